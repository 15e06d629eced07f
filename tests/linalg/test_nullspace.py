from __future__ import annotations

import pytest
import torch

from tacit.linalg import minimum_norm, minimum_norm_map, reduced_inertia, solution_family

DTYPES = [torch.float64, torch.float32]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def symmetric(b: int, m: int, rank: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    X = randn(b, m, rank, seed=seed)
    return (X @ X.mT / max(rank, 1)).to(dtype)


def bordered(H: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    corner = A.new_zeros(A.shape[0], A.shape[1], A.shape[1])
    return torch.cat([torch.cat([H, A.mT], -1), torch.cat([A, corner], -1)], -2)


def least_norm_by_definition(H: torch.Tensor, A: torch.Tensor, v: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Any solution of one consistent system, less its part along the directions of y that can be moved freely.

    A direction is free when the equations can still be met by changing the multipliers: A d = 0, H d in range(A').
    """
    m = H.shape[-1]
    K = bordered(H[None], A[None])[0]
    dy = (torch.linalg.pinv(K, rtol=1e-11) @ torch.cat([v, c]))[:m]
    _, S, Vh = torch.linalg.svd(K)
    moves = Vh[S < 1e-10, :m].mT
    U, size, _ = torch.linalg.svd(moves, full_matrices=False)
    free = U[:, size > 1e-10]
    return dy - free @ (free.mT @ dy)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "r"), [(1, 0), (1, 1), (5, 2), (8, 8), (12, 5), (30, 11)])
def test_a_regular_system_has_its_own_solution(m: int, r: int, dtype: torch.dtype) -> None:
    H, A = symmetric(4, m, 2 * m, dtype=dtype), randn(4, r, m, seed=1, dtype=dtype)
    v, c = randn(4, m, 3, seed=2, dtype=dtype), randn(4, r, 3, seed=3, dtype=dtype)
    dy, dnu, info = minimum_norm(H, A, v, c)
    K = bordered(H, A).double()
    w = torch.linalg.solve(K, torch.cat([v, c], -2).double())
    scale = w.abs().amax() * torch.linalg.cond(K).max() * torch.finfo(dtype).eps
    assert (torch.cat([dy, dnu], -2) - w).abs().max() < 20 * scale
    assert dy.dtype == dtype
    assert info.nullity.tolist() == [0] * 4
    assert info.rank_rows.tolist() == [r] * 4
    assert info.rank_reduced.tolist() == [m - r] * 4
    assert info.inconsistent_rows.max() < 1e4 * torch.finfo(dtype).eps


@pytest.mark.parametrize(("m", "r", "rank"), [(4, 0, 2), (5, 1, 2), (9, 3, 4), (7, 2, 0), (6, 7, 2)])
def test_a_singular_consistent_system_gets_the_solution_of_least_norm_in_y(m: int, r: int, rank: int) -> None:
    # Singular in earnest: the undetermined directions are common to H and A.
    basis = torch.linalg.qr(randn(m, m, seed=7)).Q[:, : max(m - 2, 1)]
    for seed in range(5):
        H = basis @ symmetric(1, basis.shape[1], rank, seed=seed)[0] @ basis.mT
        A = randn(r, basis.shape[1], seed=seed + 10) @ basis.mT
        y, nu = randn(m, 2, seed=seed + 20), randn(r, 2, seed=seed + 30)
        v, c = H @ y + A.mT @ nu, A @ y
        dy, dnu, info = minimum_norm(H[None], A[None], v[None], c[None])
        torch.testing.assert_close(H @ dy[0] + A.mT @ dnu[0], v, atol=1e-9, rtol=0)
        torch.testing.assert_close(A @ dy[0], c, atol=1e-9, rtol=0)
        torch.testing.assert_close(dy[0], least_norm_by_definition(H, A, v, c), atol=1e-9, rtol=0)
        assert info.nullity.item() > 0
        assert info.inconsistent_rows.item() < 1e-11
        assert info.inconsistent_reduced.item() < 1e-11


def test_without_curvature_the_answer_is_the_pseudo_inverse_of_the_rows() -> None:
    A, c = randn(3, 2, 5), randn(3, 2, 4, seed=1)
    dy, dnu, _ = minimum_norm(torch.zeros(3, 5, 5, dtype=torch.float64), A, torch.zeros(3, 5, 4).double(), c)
    torch.testing.assert_close(dy, torch.linalg.pinv(A) @ c)
    assert dnu.abs().max() == 0


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_inconsistent_rows_are_solved_by_least_squares_and_reported(scale: float) -> None:
    A, c = randn(3, 6, 4), randn(3, 6, 2, seed=1)
    A[:, 5], c[:, 5] = scale * A[:, 5], scale * c[:, 5]
    dy, _, info = minimum_norm(torch.zeros(3, 4, 4).double(), A, torch.zeros(3, 4, 2).double(), c)
    torch.testing.assert_close(dy, torch.linalg.pinv(A) @ c)
    assert info.inconsistent_rows.min() > 1e-3
    assert info.rank_rows.tolist() == [4, 4, 4]


def test_an_unsolvable_reduced_system_is_reported() -> None:
    H = torch.diag_embed(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    v = torch.tensor([[[1.0], [0.0]], [[1.0], [1.0]]])
    dy, _, info = minimum_norm(H, torch.zeros(2, 0, 2), v, torch.zeros(2, 0, 1))
    torch.testing.assert_close(dy[..., 0], torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    assert info.inconsistent_reduced[0] == 0
    assert info.inconsistent_reduced[1] > 0.5


def test_masked_rows_take_no_part() -> None:
    H, A = symmetric(3, 6, 12), randn(3, 3, 6, seed=1)
    v, c = randn(3, 6, 2, seed=2), randn(3, 3, 2, seed=3)
    padded = torch.zeros(3, 5, 6, dtype=torch.float64)
    padded[:, [0, 2, 4]] = A
    c_padded = torch.zeros(3, 5, 2, dtype=torch.float64)
    c_padded[:, [0, 2, 4]] = c
    dy, dnu, _ = minimum_norm(H, A, v, c)
    dy_padded, dnu_padded, info = minimum_norm(H, padded, v, c_padded)
    torch.testing.assert_close(dy_padded, dy)
    torch.testing.assert_close(dnu_padded[:, [0, 2, 4]], dnu)
    assert dnu_padded[:, [1, 3]].abs().max() == 0
    assert info.rank_rows.tolist() == [3, 3, 3]


@pytest.mark.parametrize("dependent", [False, True])
def test_rows_of_very_different_length_are_all_respected(dependent: bool) -> None:
    A = randn(2, 4, 6)
    if dependent:
        A[:, 3] = A[:, 0] - 2 * A[:, 1]
    # Independent rows may have any lengths; among dependent ones the ratio costs digits.
    spread, bound = (1e4, 1e-11) if dependent else (1e10, 1e-12)
    length = torch.tensor([spread, 1.0, 1 / spread, 1.0], dtype=torch.float64)
    y = randn(2, 6, 1, seed=4)
    A = length[:, None] * A
    dy, _, info = minimum_norm(torch.zeros(2, 6, 6).double(), A, torch.zeros(2, 6, 1).double(), A @ y)
    assert ((A @ dy - A @ y) / length[:, None]).abs().max() < bound
    assert info.rank_rows.tolist() == [4 - dependent] * 2


@pytest.mark.parametrize("r", [0, 3, 9])
def test_the_map_is_symmetric_so_its_transpose_is_itself(r: int) -> None:
    H, A = symmetric(3, 6, 3), randn(3, r, 6, seed=1)
    A[:, 1:2] = A[:, 0:1]
    map_ = minimum_norm_map(H, A)
    size = map_.G.abs().max()
    assert (map_.G - map_.G.mT).abs().max() < 1e-13 * size
    v, c = randn(3, 6, 2, seed=2), randn(3, r, 2, seed=3)
    dy, dnu = map_.solve(v, c)
    again = minimum_norm(H, A, v, c)
    torch.testing.assert_close((dy, dnu), again[:2])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_element_that_is_not_finite_is_zero_and_its_neighbours_do_not_notice(bad: float) -> None:
    H, A = symmetric(3, 5, 3), randn(3, 2, 5, seed=1)
    v, c = randn(3, 5, 2, seed=2), randn(3, 2, 2, seed=3)
    alone = minimum_norm(H[[0, 2]], A[[0, 2]], v[[0, 2]], c[[0, 2]])
    H[1, 0, 0] = bad
    dy, dnu, info = minimum_norm(H, A, v, c)
    assert info.ok.tolist() == [True, False, True]
    torch.testing.assert_close((dy[[0, 2]], dnu[[0, 2]]), alone[:2], atol=1e-12, rtol=0)
    assert dy[1].abs().max() == 0
    assert dnu[1].abs().max() == 0
    least, negative = reduced_inertia(H, A)
    assert least.isfinite().all()
    assert negative[1] == 0


def test_elements_of_different_rank_share_a_batch() -> None:
    H, A = symmetric(3, 6, 6), randn(3, 3, 6, seed=1)
    A[0, 1:], A[1, 2] = 0, A[1, 0]
    v, c = A.mT @ randn(3, 3, 1, seed=2), A @ randn(3, 6, 1, seed=3)
    dy, dnu, info = minimum_norm(H, A, v, c)
    assert info.rank_rows.tolist() == [1, 2, 3]
    for i in range(3):
        one = minimum_norm(H[i : i + 1], A[i : i + 1], v[i : i + 1], c[i : i + 1])
        torch.testing.assert_close((dy[i], dnu[i]), (one[0][0], one[1][0]), atol=1e-12, rtol=0)


def test_inertia_counts_negative_curvature_on_the_rows_null_space_only() -> None:
    H = torch.diag_embed(torch.tensor([[1.0, -2.0, 3.0], [1.0, -2.0, -3.0], [1.0, 1e-17, 3.0]], dtype=torch.float64))
    A = torch.tensor([[[0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]], dtype=torch.float64)
    least, negative = reduced_inertia(H, A)
    assert negative.tolist() == [0, 1, 0]
    torch.testing.assert_close(least, torch.tensor([1 / 3, -1.0, 0.0], dtype=torch.float64), atol=1e-15, rtol=0)


def test_no_free_direction_means_an_infinite_least_eigenvalue() -> None:
    least, negative = reduced_inertia(-torch.eye(2)[None], torch.eye(2)[None])
    assert least.item() == float("inf")
    assert negative.item() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_member_of_the_family_solves_the_equation_and_zero_picks_the_shortest(dtype: torch.dtype) -> None:
    H = symmetric(3, 6, 3, dtype=dtype)
    B = H @ randn(3, 6, 2, seed=1, dtype=dtype)
    Z = randn(3, 6, 2, seed=2, dtype=dtype)
    member, shortest = solution_family(H, B, Z), solution_family(H, B, torch.zeros_like(Z))
    bound = 1e3 * torch.finfo(dtype).eps
    assert (H @ member + B).abs().max() < bound
    assert (H @ shortest + B).abs().max() < bound
    assert (shortest.norm(dim=1) < member.norm(dim=1)).all()
    # What Z adds lies in the null space, orthogonal to the shortest.
    assert (shortest * (member - shortest)).sum(1).abs().max() < bound


@pytest.mark.parametrize(("b", "r", "m"), [(0, 2, 3), (0, 0, 1), (2, 0, 1), (2, 1, 1)])
def test_empty_batches_and_single_unknowns_are_no_special_case(b: int, r: int, m: int) -> None:
    dy, dnu, info = minimum_norm(torch.ones(b, m, m), torch.ones(b, r, m), torch.ones(b, m, 1), torch.ones(b, r, 1))
    assert dy.shape == (b, m, 1)
    assert dnu.shape == (b, r, 1)
    assert info.least.shape == (b,)
    torch.testing.assert_close(dy, torch.ones(b, m, 1))
