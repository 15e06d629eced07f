from __future__ import annotations

import pytest
import torch

from tacit.linalg import equilibrate, factor

DTYPES = [torch.float64, torch.float32]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def with_spectrum(values: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Symmetric matrices with the given eigenvalues (b, N) and random eigenvectors."""
    b, N = values.shape
    Q = torch.linalg.qr(torch.randn(b, N, N, generator=generator(seed), dtype=values.dtype)).Q
    K = Q @ torch.diag_embed(values) @ Q.mT
    return 0.5 * (K + K.mT)


def bordered(H: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    corner = A.new_zeros(A.shape[0], A.shape[1], A.shape[1])
    return torch.cat([torch.cat([H, A.mT], -1), torch.cat([A, corner], -1)], -2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("N", [1, 2, 9, 50])
def test_solution_satisfies_the_equation(N: int, dtype: torch.dtype) -> None:
    K = torch.randn(4, N, N, generator=generator(N), dtype=dtype) + 3 * N**0.5 * torch.eye(N, dtype=dtype)
    v = torch.randn(4, N, 3, generator=generator(1), dtype=dtype)
    f = factor(K)
    assert f.ok.all()
    bound = 30 * N * torch.finfo(dtype).eps
    assert (K @ f.solve(v) - v).abs().max() <= bound
    assert (K @ f.solve(v, K) - v).abs().max() <= bound


def test_a_matrix_that_is_not_symmetric_is_not_mistaken_for_its_transpose() -> None:
    K = torch.tensor([[[1.0, 5.0], [0.0, 2.0]]])
    v = torch.tensor([[[7.0], [4.0]]])
    torch.testing.assert_close(factor(K).solve(v), torch.tensor([[[-3.0], [2.0]]]))


def test_equilibration_and_refinement_solve_what_units_have_spoilt() -> None:
    units = 10.0 ** torch.linspace(-8, 8, 20, dtype=torch.float64)
    good = with_spectrum(torch.linspace(1, 2, 20, dtype=torch.float64)[None])
    K = units[:, None] * good * units
    truth = torch.randn(1, 20, 1, generator=generator(2), dtype=torch.float64) / units[:, None]
    f = factor(K, equilibrate(K))
    assert f.rcond.item() > 1e-3
    assert factor(K).rcond.item() < 1e-12
    error = (f.solve(K @ truth, K) - truth) * units[:, None]
    assert error.abs().max() < 1e-11


@pytest.mark.parametrize("N", [1, 2, 3, 5, 10, 30, 100])
@pytest.mark.parametrize("kind", ["spd", "indefinite", "general", "signs"])
def test_rcond_is_right_within_a_factor_of_ten(N: int, kind: str) -> None:
    gen = generator(N)
    b = 60 if N < 50 else 12
    spread = torch.rand(b, 1, generator=gen, dtype=torch.float64)
    values = 10 ** (-10 * spread * torch.rand(b, N, generator=gen, dtype=torch.float64))
    signs = torch.randn(b, N, generator=gen, dtype=torch.float64).sign()
    raw = torch.randn(b, N, N, generator=gen, dtype=torch.float64)
    K = {
        "spd": lambda: with_spectrum(values, N),
        "indefinite": lambda: with_spectrum(values * signs, N),
        "general": lambda: raw * values[:, None, :],
        "signs": lambda: raw.sign(),
    }[kind]()
    truth = 1 / torch.linalg.cond(K, 1)
    comparable = truth > 1e-13
    ratio = factor(K).rcond[comparable] / truth[comparable]
    assert comparable.any()
    # The estimate of the inverse's norm is a lower bound, so rcond errs upwards.
    assert ratio.min() > 0.99
    assert ratio.max() < 10


@pytest.mark.parametrize("N", [2, 3, 5, 17, 64, 200])
def test_one_missing_rank_is_seen_as_rounding_level_rcond(N: int) -> None:
    b = 40 if N < 100 else 4
    values = torch.randn(b, N, generator=generator(N), dtype=torch.float64)
    values[:, 0] = 0
    assert factor(with_spectrum(values, N)).rcond.max() < 1e-14
    K32 = with_spectrum(values, N).float()
    assert factor(K32).rcond.max() < 20 * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("m", [2, 4, 30])
def test_the_projector_off_a_unit_vector_is_seen_as_singular(m: int) -> None:
    x = torch.nn.functional.normalize(torch.randn(30, m, generator=generator(m), dtype=torch.float64), dim=-1)
    P = torch.eye(m, dtype=torch.float64) - x[:, :, None] * x[:, None, :]
    assert factor(P).rcond.max() < 1e-14
    # Bordered with the constraint's row it is regular: an orthogonal matrix but for the border.
    assert factor(bordered(P, x[:, None, :])).rcond.min() > 0.01


@pytest.mark.parametrize("axis", range(4))
def test_a_unit_vector_along_an_axis_is_no_special_case(axis: int) -> None:
    x = 1e-17 * torch.randn(20, 4, generator=generator(axis), dtype=torch.float64)
    x[:, axis] = 1
    P = torch.eye(4, dtype=torch.float64) - x[:, :, None] * x[:, None, :]
    assert factor(P).rcond.max() < 1e-14
    assert factor(bordered(P, x[:, None, :])).rcond.min() > 0.1


@pytest.mark.parametrize("m", [4, 10, 60])
@pytest.mark.parametrize("curved", [False, True])
def test_dependent_constraint_rows_are_seen_as_singular(m: int, curved: bool) -> None:
    A = torch.randn(20, 4, m, generator=generator(m), dtype=torch.float64)
    A[:, 3] = 0.3 * A[:, 0] + 1.7 * A[:, 1]
    H = with_spectrum(torch.rand(20, m, generator=generator(1), dtype=torch.float64) + 0.1) * float(curved)
    K = bordered(H, A)
    assert factor(K).rcond.max() < 1e-14
    assert factor(K, equilibrate(K)).rcond.max() < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_a_broken_element_is_zero_and_its_neighbours_do_not_notice(bad: float, dtype: torch.dtype) -> None:
    K = with_spectrum(torch.rand(3, 8, generator=generator(5), dtype=dtype) + 0.5)
    v = torch.randn(3, 8, 2, generator=generator(6), dtype=dtype)
    alone = factor(K[[0, 2]])
    K[1] = bad
    f = factor(K, equilibrate(K))
    assert f.ok.tolist() == [True, False, True]
    assert f.rcond[1] == 0
    assert torch.equal(f.rcond[[0, 2]], factor(K[[0, 2]], equilibrate(K[[0, 2]])).rcond)
    torch.testing.assert_close(f.solve(v, K)[[0, 2]], alone.solve(v[[0, 2]], K[[0, 2]]))
    assert torch.equal(f.solve(v, K)[1], torch.zeros(8, 2, dtype=dtype))


def test_a_right_hand_side_that_is_not_finite_spoils_its_own_element_only() -> None:
    K = with_spectrum(torch.rand(3, 5, generator=generator(5), dtype=torch.float64) + 0.5)
    v = torch.ones(3, 5, 1, dtype=torch.float64)
    clean = factor(K).solve(v)
    v[1, 2] = float("nan")
    assert torch.equal(factor(K).solve(v)[[0, 2]], clean[[0, 2]])


def test_an_inverse_too_large_for_the_dtype_counts_as_singular() -> None:
    K = torch.diag_embed(torch.tensor([[1.0, 1e-320], [1.0, 1.0]], dtype=torch.float64))
    f = factor(K)
    assert f.rcond[0] < 1e-300
    assert f.rcond[1] == 1
    assert f.solve(torch.ones(2, 2, 1, dtype=torch.float64))[1].isfinite().all()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_nothing_to_factor_is_no_error(shape: tuple[int, int]) -> None:
    b, N = shape
    f = factor(torch.zeros(b, N, N))
    assert f.ok.all()
    assert f.rcond.shape == (b,)
    assert f.solve(torch.zeros(b, N, 2)).shape == (b, N, 2)


def test_solving_under_vmap_over_right_hand_sides_is_solving_them_together() -> None:
    K = with_spectrum(torch.rand(3, 6, generator=generator(7), dtype=torch.float64) + 0.5)
    f = factor(K, equilibrate(K))
    v = torch.randn(5, 3, 6, generator=generator(8), dtype=torch.float64)
    together = f.solve(v.permute(1, 2, 0)).permute(2, 0, 1)
    each = torch.func.vmap(lambda one: f.solve(one[..., None], K)[..., 0])(v)
    torch.testing.assert_close(each, together)


def test_rows_and_columns_of_a_transposed_view_are_kept_apart() -> None:
    K = torch.randn(2, 4, 4, generator=generator(9), dtype=torch.float64)
    v = torch.randn(2, 4, 1, generator=generator(10), dtype=torch.float64)
    torch.testing.assert_close(factor(K.mT).solve(v), factor(K.mT.contiguous()).solve(v))
