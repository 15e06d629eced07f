from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear, nnls

from tacit.linalg import sign_constrained_least_squares as solve

DTYPES = [torch.float64, torch.float32]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def marks(b: int, r: int, seed: int, share: float = 0.5) -> torch.Tensor:
    return torch.rand(b, r, generator=torch.Generator().manual_seed(seed)) < share


def all_rows(b: int, r: int) -> torch.Tensor:
    return torch.ones(b, r, dtype=torch.bool)


def assert_optimal(
    A: torch.Tensor, t: torch.Tensor, free: torch.Tensor, mask: torch.Tensor, p: torch.Tensor, mu: torch.Tensor
) -> None:
    """The conditions of optimality, which for this convex problem are sufficient."""
    eps = torch.finfo(mu.dtype).eps
    length = (A.square().sum(-1) + p.square()).sqrt().clamp(min=torch.finfo(mu.dtype).tiny)
    residual = t - (mu[:, None] @ A)[:, 0]
    slope = ((A @ residual[:, :, None])[:, :, 0] - p.square() * mu) / length
    bound = 1e3 * eps * (t.abs().amax(-1, keepdim=True) + (mu.abs() * length).sum(-1, keepdim=True))
    assert (mu[~mask] == 0).all()
    assert (mu >= 0)[~free].all()
    assert (slope <= bound)[mask & ~free].all()
    assert (slope.abs() <= bound)[mask & (free | (mu > 0))].all()


@pytest.mark.parametrize(("r", "m"), [(1, 1), (3, 8), (8, 8), (15, 6), (30, 40)])
def test_agrees_with_scipy_where_all_are_sign_constrained(r: int, m: int) -> None:
    A, t = randn(25, r, m, seed=r), randn(25, m, seed=m + 1)
    mu, residual = solve(A, t, ~all_rows(25, r), all_rows(25, r))
    assert_optimal(A, t, ~all_rows(25, r), all_rows(25, r), torch.zeros(25, r), mu)
    for i in range(25):
        reference, distance = nnls(A[i].T.numpy(), t[i].numpy())
        np.testing.assert_allclose(residual[i].norm().item(), distance, atol=1e-12)
        if r <= m:
            np.testing.assert_allclose(mu[i].numpy(), reference, atol=1e-10 * max(1.0, np.abs(reference).max()))


@pytest.mark.parametrize("penalised", [False, True])
def test_agrees_with_scipy_where_some_are_free_masked_or_penalised(penalised: bool) -> None:
    b, r, m = 25, 7, 9
    A, t, free, mask = randn(b, r, m), randn(b, m, seed=1), marks(b, r, 2, 0.3), marks(b, r, 3, 0.8)
    p = penalised * randn(b, r, seed=4).abs()
    mu, _ = solve(A, t, free, mask, p)
    assert_optimal(A, t, free, mask, p, mu)
    for i in range(b):
        M = torch.cat([A[i], torch.diag(p[i])], -1)[mask[i]].T.numpy()
        goal = torch.cat([t[i], torch.zeros(r)]).numpy()
        low = np.where(free[i, mask[i]].numpy(), -np.inf, 0.0)
        reference = lsq_linear(M, goal, bounds=(low, np.inf), tol=1e-14).x
        np.testing.assert_allclose(mu[i, mask[i]].numpy(), reference, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_multipliers_that_exist_are_found_to_the_precision_of_the_dtype(dtype: torch.dtype) -> None:
    b, r, m = 20, 6, 20
    A, free = randn(b, r, m, dtype=dtype), marks(b, r, 1)
    truth = torch.where(free, randn(b, r, seed=2), 0.5 + randn(b, r, seed=3).abs()).to(dtype)
    mu, residual = solve(A, (truth[:, None].double() @ A.double())[:, 0].to(dtype), free, all_rows(b, r))
    assert mu.dtype == dtype
    assert (mu - truth).abs().max() < 100 * torch.finfo(dtype).eps
    assert residual.abs().max() < 100 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("r", "m", "rank"), [(6, 10, 3), (12, 5, 5), (20, 10, 4)])
def test_dependent_rows_get_a_basic_solution(r: int, m: int, rank: int, dtype: torch.dtype) -> None:
    b = 20
    A = (randn(b, r, rank) @ randn(b, rank, m, seed=1)).to(dtype)
    free, t = marks(b, r, 2, 0.2), randn(b, m, seed=3, dtype=dtype)
    # Half of the targets can be met exactly.
    t[::2] = (randn(b, r, seed=4, dtype=dtype).abs()[:, None] @ A)[::2, 0]
    mu, _ = solve(A, t, free, all_rows(b, r))
    assert_optimal(A, t, free, all_rows(b, r), torch.zeros(b, r, dtype=dtype), mu)
    for i in range(b):
        used = A[i, mu[i] != 0].double()
        assert torch.linalg.matrix_rank(used, rtol=1e-6) == used.shape[0]


def test_repeated_rows_share_nothing_and_the_sum_is_right() -> None:
    A = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]], dtype=torch.float64)
    mu, residual = solve(A, torch.tensor([[2.0, -3.0]], dtype=torch.float64), ~all_rows(1, 4), all_rows(1, 4))
    assert sorted(mu[0, :2].tolist()) == [0.0, 2.0]
    assert mu[0, 2:].tolist() == [0.0, 3.0]
    assert residual.abs().max() == 0


def test_the_units_of_a_row_scale_its_multiplier_and_nothing_else() -> None:
    A, t, free = randn(10, 6, 8), randn(10, 8, seed=1), marks(10, 6, 2, 0.3)
    units = 10.0 ** torch.linspace(-9, 9, 6, dtype=torch.float64)
    mu, residual = solve(A, t, free, all_rows(10, 6))
    mu_units, residual_units = solve(units[:, None] * A, 1e30 * t, free, all_rows(10, 6))
    torch.testing.assert_close(mu_units * units * 1e-30, mu, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(residual_units * 1e-30, residual, atol=1e-12, rtol=1e-12)


def test_a_penalty_keeps_a_multiplier_small() -> None:
    A, t = torch.ones(1, 1, 1), torch.ones(1, 1)
    free, mask = all_rows(1, 1), all_rows(1, 1)
    # (mu - 1)^2 + 9 mu^2
    torch.testing.assert_close(solve(A, t, free, mask, torch.tensor([[3.0]]))[0], torch.tensor([[0.1]]))


def test_a_zero_target_has_zero_multipliers() -> None:
    mu, residual = solve(randn(2, 3, 4), torch.zeros(2, 4).double(), marks(2, 3, 0), all_rows(2, 3))
    assert mu.abs().max() == 0
    assert residual.abs().max() == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_element_that_is_not_finite_is_zero_and_its_neighbours_do_not_notice(bad: float) -> None:
    A, t, free = randn(3, 5, 4), randn(3, 4, seed=1), marks(3, 5, 2)
    alone = solve(A[[0, 2]], t[[0, 2]], free[[0, 2]], all_rows(2, 5))
    A[1, 0, 0] = bad
    mu, residual = solve(A, t, free, all_rows(3, 5))
    torch.testing.assert_close((mu[[0, 2]], residual[[0, 2]]), alone, atol=1e-12, rtol=0)
    assert mu[1].abs().max() == 0
    assert residual[1].abs().max() == 0


@pytest.mark.parametrize(("b", "r", "m"), [(0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0)])
def test_nothing_to_solve_is_no_error(b: int, r: int, m: int) -> None:
    t = torch.ones(b, m)
    mu, residual = solve(torch.ones(b, r, m), t, all_rows(b, r), all_rows(b, r))
    assert mu.shape == (b, r)
    assert residual.shape == (b, m)
    if r == 0:
        assert torch.equal(residual, t)


def test_rows_that_are_zero_keep_a_zero_multiplier() -> None:
    A = torch.zeros(1, 2, 3)
    A[0, 1, 0] = 2.0
    mu, _ = solve(A, torch.tensor([[1.0, 1.0, 1.0]]), ~all_rows(1, 2), all_rows(1, 2))
    assert mu.tolist() == [[0.0, 0.5]]
