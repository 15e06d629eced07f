from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tacit.errors import OptionError
from tacit.linalg import KrylovResult, conjugate_gradients, gmres, minres

DTYPES = [torch.float64, torch.float32]
METHODS = [conjugate_gradients, minres, gmres]
Operator = Callable[[torch.Tensor], torch.Tensor]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def with_spectrum(values: torch.Tensor, seed: int = 0) -> torch.Tensor:
    b, N = values.shape
    Q = torch.linalg.qr(randn(b, N, N, seed=seed)).Q
    K = Q @ torch.diag_embed(values.double()) @ Q.mT
    return (0.5 * (K + K.mT)).to(values.dtype)


def product(A: torch.Tensor) -> Operator:
    # Elementwise products and sums, so that an element's bits do not depend on the size of the batch.
    return lambda v: (A * v[:, None, :]).sum(-1)


def spd(b: int, N: int, dtype: torch.dtype = torch.float64, cond: float = 100.0) -> torch.Tensor:
    return with_spectrum(torch.logspace(0, 1, N, base=cond, dtype=dtype).expand(b, N))


def indefinite(b: int, N: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    values = torch.linspace(1, 5, N, dtype=dtype)
    values[::3] = -values[::3]
    return with_spectrum(values.expand(b, N))


def general(b: int, N: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return (2 * torch.eye(N) + 0.5 * randn(b, N, N) / N**0.5).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("N", [1, 2, 10, 60])
@pytest.mark.parametrize(
    ("method", "matrix"),
    [(conjugate_gradients, spd), (minres, spd), (minres, indefinite), (gmres, spd), (gmres, general)],
)
def test_what_is_reported_as_converged_solves_the_system(
    method: Callable[..., KrylovResult], matrix: Callable[..., torch.Tensor], N: int, dtype: torch.dtype
) -> None:
    A, rhs = matrix(4, N, dtype), randn(4, N, seed=1, dtype=dtype)
    tol = 1e-10 if dtype == torch.float64 else 1e-5
    result = method(product(A), rhs, tol=tol)
    assert result.converged.all()
    assert result.x.dtype == dtype
    residual = (rhs - product(A)(result.x)).norm(dim=-1) / rhs.norm(dim=-1)
    torch.testing.assert_close(result.residual, residual, atol=torch.finfo(dtype).eps * 10, rtol=1e-3)
    assert (residual <= 1.01 * tol).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_zero_right_hand_side_costs_nothing(method: Callable[..., KrylovResult]) -> None:
    result = method(product(spd(2, 5)), torch.zeros(2, 5, dtype=torch.float64))
    assert result.converged.all()
    assert result.iterations.tolist() == [0, 0]
    assert result.x.abs().max() == 0
    assert result.residual.max() == 0


@pytest.mark.parametrize("method", METHODS)
def test_an_element_among_others_has_every_bit_it_has_with_quicker_and_slower_ones_replaced(
    method: Callable[..., KrylovResult],
) -> None:
    N = 30
    A = torch.cat([torch.eye(N, dtype=torch.float64)[None], spd(1, N), spd(1, N, cond=1e4)])
    rhs = randn(3, N, seed=1)
    mixed = method(product(A), rhs)
    repeated = method(product(A[[0, 0, 0]]), rhs[[0, 0, 0]])
    assert torch.equal(mixed.x[0], repeated.x[0])
    middle = method(product(A[[1, 1, 1]]), rhs[[1, 1, 1]])
    assert torch.equal(mixed.x[1], middle.x[1])
    assert mixed.iterations[1] == middle.iterations[1]
    assert mixed.iterations[0] < mixed.iterations[1] <= mixed.iterations[2]


@pytest.mark.parametrize("method", METHODS)
def test_an_element_does_not_depend_on_the_batch(method: Callable[..., KrylovResult]) -> None:
    A, rhs = spd(4, 20), randn(4, 20, seed=1)
    together = method(product(A), rhs)
    for i in range(4):
        alone = method(product(A[i : i + 1]), rhs[i : i + 1])
        torch.testing.assert_close(together.x[i], alone.x[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("where", ["rhs", "operator"])
def test_an_element_that_is_not_finite_stops_at_once_and_its_neighbours_do_not_notice(
    method: Callable[..., KrylovResult], where: str
) -> None:
    A, rhs = spd(3, 12), randn(3, 12, seed=1)
    clean = method(product(A), rhs)
    if where == "rhs":
        rhs[1, 3] = float("nan")
    else:
        A[1, 0, 0] = float("inf")
    result = method(product(A), rhs)
    assert result.converged.tolist() == [True, False, True]
    assert torch.equal(result.x[[0, 2]], clean.x[[0, 2]])
    assert result.x[1].abs().max() == 0
    assert result.residual[1] == float("inf")
    assert result.iterations[1] <= 1


def test_conjugate_gradients_stop_at_negative_curvature_and_say_so() -> None:
    A = torch.cat([spd(1, 10), indefinite(1, 10), torch.zeros(1, 10, 10).double()])
    result = conjugate_gradients(product(A), randn(3, 10, seed=1))
    assert result.indefinite.tolist() == [False, True, True]
    assert result.converged.tolist() == [True, False, False]
    assert result.x.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_minres_solves_indefinite_systems_and_tells_them_from_definite_ones(dtype: torch.dtype) -> None:
    A = torch.cat([spd(2, 40, dtype, cond=1e3), indefinite(1, 40, dtype)])
    result = minres(product(A), randn(3, 40, seed=1, dtype=dtype), tol=1e-4, max_iter=400)
    assert result.indefinite.tolist() == [False, False, True]
    assert result.converged.all()


def test_minres_reaches_the_least_residual_of_a_singular_system_and_calls_it_not_converged() -> None:
    values = torch.tensor([[0.0, 0.0, 1.0, 2.0, 3.0]], dtype=torch.float64)
    A, rhs = with_spectrum(values), randn(1, 5, seed=1)
    result = minres(product(A), rhs)
    assert not result.converged.any()
    assert result.indefinite.all()
    least = rhs - (A @ torch.linalg.pinv(A) @ rhs[..., None])[..., 0]
    torch.testing.assert_close(result.residual * rhs.norm(), least.norm(dim=-1), atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("method", [conjugate_gradients, minres])
def test_a_consistent_singular_system_gets_the_shortest_solution(method: Callable[..., KrylovResult]) -> None:
    A = with_spectrum(torch.tensor([[0.0, 0.0, 1.0, 2.0, 3.0]], dtype=torch.float64))
    rhs = product(A)(randn(1, 5, seed=1))
    result = method(product(A), rhs, tol=1e-11)
    assert result.converged.all()
    torch.testing.assert_close(result.x, (torch.linalg.pinv(A) @ rhs[..., None])[..., 0], atol=1e-9, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_a_good_preconditioner_saves_iterations(method: Callable[..., KrylovResult]) -> None:
    units = torch.logspace(-3, 3, 40, dtype=torch.float64)
    A = units[:, None] * spd(2, 40, cond=5.0) * units
    rhs = randn(2, 40, seed=1) * units
    inverse = 1 / A.diagonal(dim1=-2, dim2=-1)
    plain = method(product(A), rhs, tol=1e-8, max_iter=200)
    helped = method(product(A), rhs, tol=1e-8, max_iter=200, preconditioner=lambda v: inverse * v)
    assert helped.converged.all()
    assert (helped.iterations < 40).all()
    assert (helped.iterations < 0.5 * plain.iterations).all()
    assert (helped.rcond > 0.05).all()


@pytest.mark.parametrize("cond", [1.0, 10.0, 1e4, 1e7])
def test_conjugate_gradients_estimate_the_condition(cond: float) -> None:
    result = conjugate_gradients(product(spd(3, 30, cond=cond)), randn(3, 30, seed=1), tol=1e-12, max_iter=2000)
    assert (result.rcond * cond > 0.2).all()
    assert (result.rcond * cond < 5).all()


@pytest.mark.parametrize("method", [minres, gmres])
def test_the_estimated_condition_is_no_worse_than_the_true_one(method: Callable[..., KrylovResult]) -> None:
    result = method(product(spd(3, 30, cond=1e3)), randn(3, 30, seed=1))
    assert (result.rcond > 0.1 * 1e-3).all()
    assert (result.rcond < 0.2).all()


@pytest.mark.parametrize("method", METHODS)
def test_an_operator_that_is_zero_has_no_solution_and_no_condition(method: Callable[..., KrylovResult]) -> None:
    result = method(torch.zeros_like, torch.ones(2, 4))
    assert not result.converged.any()
    assert result.x.abs().max() == 0
    assert result.rcond.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_kept_and_the_element_not_called_converged(method: Callable[..., KrylovResult]) -> None:
    result = method(product(spd(2, 50, cond=1e4)), randn(2, 50, seed=1), max_iter=7)
    assert result.iterations.tolist() == [7, 7]
    assert not result.converged.any()
    assert (result.residual > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_element_may_have_its_own_tolerance(method: Callable[..., KrylovResult]) -> None:
    A, rhs = spd(1, 40, cond=1e3).expand(2, 40, 40), randn(1, 40, seed=1).expand(2, 40)
    tol = torch.tensor([1e-2, 1e-8], dtype=torch.float64)
    result = method(product(A), rhs, tol=tol)
    assert result.converged.all()
    assert result.iterations[0] < result.iterations[1]
    assert (result.residual <= tol).all()


def test_gmres_converges_in_cycles_shorter_than_the_system() -> None:
    A, rhs = general(3, 50), randn(3, 50, seed=1)
    result = gmres(product(A), rhs, restart=5, tol=1e-10)
    assert result.converged.all()
    assert (result.iterations > 5).all()


def test_gmres_solves_a_rotation_that_has_no_symmetric_part() -> None:
    shift = torch.roll(torch.eye(6, dtype=torch.float64), 1, 0)[None]
    rhs = torch.eye(6, dtype=torch.float64)[:1]
    result = gmres(product(shift), rhs)
    assert result.converged.all()
    torch.testing.assert_close(product(shift)(result.x), rhs)
    assert not gmres(product(shift), rhs, restart=3).converged.any()


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_batch_needs_no_product(method: Callable[..., KrylovResult]) -> None:
    def unused(v: torch.Tensor) -> torch.Tensor:
        raise AssertionError

    result = method(unused, torch.zeros(0, 4))
    assert result.x.shape == (0, 4)
    assert result.converged.shape == (0,)


def test_a_senseless_option_says_what_to_give() -> None:
    with pytest.raises(OptionError, match="restart"):
        gmres(product(spd(1, 2)), torch.ones(1, 2).double(), restart=0)
    with pytest.raises(OptionError, match="max_iter"):
        minres(product(spd(1, 2)), torch.ones(1, 2).double(), max_iter=-1)
