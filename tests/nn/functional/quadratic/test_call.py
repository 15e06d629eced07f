"""Quadratic programs as a function: what comes back, regular and degenerate."""

from __future__ import annotations

import pytest
import torch

import tacit
from nn.functional.quadratic.cases import SIZES, given, programs, tensor
from tacit.errors import ConvergenceError, GradientWarning, InputTypeError, OptionError, SolverWarning
from tacit.nn.functional import quadratic_program, solve_quadratic_program
from tacit.problem import Status
from tacit.shapes import Tensor

EYE = tensor([[1.0, 0.0], [0.0, 1.0]])
NAN = float("nan")


def balance(six: list[Tensor], s: tacit.Solution) -> tuple[Tensor, Tensor]:
    """The largest entry of the Lagrangian's gradient, and the largest violation, a sample."""
    Q, q, A, b, G, h = six
    rows, lam = torch.cat([A, G], 1), torch.cat([s.equality, s.inequality], 1)
    force = (Q @ s.y[:, :, None])[:, :, 0] + q - (lam[:, None, :] @ rows)[:, 0]
    gaps = torch.cat([((A @ s.y[:, :, None])[:, :, 0] - b).abs(), (G @ s.y[:, :, None])[:, :, 0] - h, 0 * b[:, :1]], 1)
    return force.abs().amax(1), gaps.clamp_min(0).sum(1)


@pytest.mark.parametrize("engine", ["daqp", "torch"])
@pytest.mark.parametrize("size", [*SIZES, (30, 8, 40)])
def test_the_conditions_hold_to_rounding(size: tuple[int, int, int], engine: str):
    if engine == "daqp":
        pytest.importorskip("daqp")
    six = programs(*size, batch=8)
    s = solve_quadratic_program(*given(six), engine=engine)
    assert bool(s.converged.all()) and bool((s.inequality <= 0).all())
    force, gap = balance(six, s)
    assert float(force.max()) < 2e-13 * size[0] and float(gap.max()) < 1e-13 * size[0]


@pytest.mark.parametrize(("rank", "p"), [(0, 0), (0, 2), (3, 0), (3, 2)])
def test_semidefinite_and_linear_programs_are_solved_to_rounding(rank: int, p: int):
    n, q = 5, 14
    six = programs(n, p, q, batch=8, rank=rank)
    six[1] = -(torch.rand(8, 1, q, generator=torch.Generator().manual_seed(1), dtype=torch.float64) @ six[4])[:, 0]
    s = solve_quadratic_program(*six if p else given(six))
    assert bool(s.converged.all())
    force, gap = balance(six, s)
    assert float(force.max()) < 1e-12 and float(gap.max()) < 1e-12


def test_what_is_shared_is_as_if_it_were_repeated():
    six = programs(4, 1, 5)
    for i in (0, 2, 4):
        six[i] = six[i][:1].expand_as(six[i])
    six[3] = (six[2] @ torch.ones(4, 1, dtype=torch.float64))[:, :, 0]
    six[5] = six[5].abs() + 5
    whole = quadratic_program(*six)
    alone = quadratic_program(six[0][0], six[1], six[2][0], six[3], six[4][0], six[5])
    torch.testing.assert_close(whole, alone, rtol=1e-12, atol=1e-12)


def test_nothing_batched_gives_one_vector():
    u = quadratic_program(EYE, tensor([3.0, 1.0]))
    torch.testing.assert_close(u, tensor([-3.0, -1.0]))


def test_a_weakly_active_row_is_flagged_and_counted_as_active():
    q = tensor([0.0, -1.0]).requires_grad_()
    u = quadratic_program(EYE, q, G=tensor([[-1.0, 0.0]]), h=tensor([0.0]))
    torch.testing.assert_close(u.detach(), tensor([0.0, 1.0]), rtol=0, atol=1e-12)
    with pytest.warns(GradientWarning, match="WEAKLY_ACTIVE"):
        (grad,) = torch.autograd.grad(u.sum(), q)
    assert grad.tolist() == [0.0, -1.0]
    inside = quadratic_program(
        EYE, q, G=tensor([[-1.0, 0.0]]), h=tensor([0.0]), gradient=tacit.Implicit(weak="inactive", on_failure="ignore")
    )
    assert torch.autograd.grad(inside.sum(), q)[0].tolist() == [-1.0, -1.0]


def test_rows_stated_twice_are_flagged_and_one_of_each_carries_the_multiplier():
    q = tensor([-3.0, 0.0]).requires_grad_()
    A, b = tensor([[0.0, 1.0], [0.0, 2.0]]), tensor([0.5, 1.0])
    G, h = tensor([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), tensor([1.0, 1.0, 2.0])
    s = solve_quadratic_program(EYE, q.detach(), A, b, G, h)
    torch.testing.assert_close(s.y, tensor([[1.0, 0.5]]), rtol=0, atol=1e-12)
    assert bool((s.inequality <= 0).all())
    torch.testing.assert_close(s.inequality @ G + s.equality @ A, tensor([[-2.0, 0.5]]), rtol=0, atol=1e-12)
    with pytest.warns(GradientWarning, match="DEPENDENT"):
        (grad,) = torch.autograd.grad(quadratic_program(EYE, q, A, b, G, h).sum(), q)
    torch.testing.assert_close(grad, torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-12)


NO_ANSWER = {
    "opposite inequalities": (Status.INFEASIBLE, {"Q": EYE, "G": tensor([[1.0, 0], [-1, 0]]), "h": tensor([-1.0, -1])}),
    "opposite equalities": (Status.INFEASIBLE, {"Q": EYE, "A": tensor([[1.0, 0], [1, 0]]), "b": tensor([-1.0, 1])}),
    "nothing <= -1": (Status.INFEASIBLE, {"Q": EYE, "G": tensor([[0.0, 0.0]]), "h": tensor([-1.0])}),
    "a linear program with a way down": (Status.UNBOUNDED, {"q": tensor([1.0, 1]), "G": EYE, "h": tensor([1.0, 1])}),
    "a linear objective alone": (Status.UNBOUNDED, {"q": tensor([1.0, 1.0])}),
    "a level direction that falls": (Status.UNBOUNDED, {"Q": tensor([[1.0, 0], [0, 0]]), "q": tensor([1.0, 1])}),
    "an indefinite Q": (Status.STALLED, {"Q": tensor([[1.0, 0], [0, -1]]), "G": EYE, "h": tensor([1.0, 1])}),
    "NaN in q": (Status.NONFINITE, {"Q": EYE, "q": tensor([NAN, 1.0]), "G": EYE, "h": tensor([1.0, 1])}),
}


@pytest.mark.parametrize("name", NO_ANSWER)
def test_without_an_answer_there_is_a_status_a_warning_and_no_gradient(name: str):
    status, arguments = NO_ANSWER[name]
    leaves = {key: value.clone().requires_grad_() for key, value in arguments.items()}
    with pytest.warns(SolverWarning, match=status.name):
        u = quadratic_program(**leaves)
    with pytest.warns(GradientWarning, match="UNCONVERGED"):
        grads = torch.autograd.grad(u.nan_to_num().sum(), list(leaves.values()))
    assert all(bool((grad == 0).all()) for grad in grads)
    with pytest.raises(ConvergenceError, match=status.name):
        quadratic_program(**leaves, on_failure="raise")
    assert solve_quadratic_program(**arguments, on_failure="ignore").status.tolist() == [status]


def test_an_indefinite_matrix_is_named():
    with pytest.warns(SolverWarning, match="not positive semidefinite"):
        quadratic_program(-EYE, tensor([1.0, 1.0]))


def test_an_indefinite_matrix_that_the_equalities_make_convex_is_solved():
    u = quadratic_program(tensor([[1.0, 0.0], [0.0, -1.0]]), tensor([1.0, 1.0]), tensor([[0.0, 1.0]]), tensor([2.0]))
    torch.testing.assert_close(u, tensor([-1.0, 2.0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bad", list(NO_ANSWER))
def test_a_program_without_an_answer_leaves_its_neighbours_alone(bad: str):
    status, arguments = NO_ANSWER[bad]
    fine = {"Q": EYE, "q": tensor([-3.0, 1.0]), "G": EYE, "h": tensor([1.0, 1.0])}
    zero = {"A": EYE[:0], "b": EYE[0, :0]}
    both = {}
    for key, value in {**zero, **fine}.items():
        other = arguments.get(key, torch.zeros_like(value) if key in ("Q", "q") else value)
        rows = max(len(other), len(value))
        if key in ("A", "G"):
            other, value = (torch.cat([t, t.new_zeros(rows - len(t), 2)]) for t in (other, value))
        if key in ("b", "h"):
            other, value = (torch.cat([t, t.new_full((rows - len(t),), float(key == "h"))]) for t in (other, value))
        both[key] = torch.stack([value, other])
    s = solve_quadratic_program(**both, on_failure="ignore")
    assert s.status.tolist() == [Status.CONVERGED, status]
    torch.testing.assert_close(s.y[0], tensor([1.0, -1.0]), rtol=0, atol=1e-12)


def test_a_direction_of_no_consequence_has_the_least_gradient_and_a_flag():
    q = tensor([1.0, 0.0]).requires_grad_()
    u = quadratic_program(tensor([[1.0, 0.0], [0.0, 0.0]]), q)
    with pytest.warns(GradientWarning, match="SINGULAR"):
        (grad,) = torch.autograd.grad(u.sum(), q)
    torch.testing.assert_close(grad, tensor([-1.0, 0.0]), rtol=0, atol=1e-12)


def test_single_precision_is_kept():
    six = programs(6, 2, 8)
    u = quadratic_program(*(t.float() for t in six))
    assert u.dtype == torch.float32
    torch.testing.assert_close(u, quadratic_program(*six).float(), rtol=1e-4, atol=1e-4)


def test_an_empty_batch_gives_an_empty_answer():
    q = torch.zeros(0, 2, dtype=torch.float64, requires_grad=True)
    u = quadratic_program(EYE, q)
    assert u.shape == (0, 2) and torch.autograd.grad(u.sum(), q)[0].shape == (0, 2)


@pytest.mark.untyped
def test_unknown_options_are_refused():
    with pytest.raises(OptionError, match="engine"):
        quadratic_program(EYE, engine="daqq")
    with pytest.raises(InputTypeError, match="Implicit"):
        quadratic_program(EYE, gradient=tacit.Unrolled(3))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_without_a_linear_term_and_within_its_rows_the_answer_is_zero_and_has_a_gradient(size):
    q = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    Q, G, h = size * torch.eye(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64), torch.ones(3).double()
    found = solve_quadratic_program(Q, q.detach(), G=G, h=h)
    assert found.status.tolist() == [0, 0] and not found.y.any()
    (gradient,) = torch.autograd.grad(quadratic_program(Q, q, G=G, h=h).sum(), q)
    torch.testing.assert_close(gradient, torch.full_like(q, -1 / size), rtol=1e-12, atol=0)
