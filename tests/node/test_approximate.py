"""DDN[approximations] Approximate gradients are what they say: the unrolled, the truncated series, one step."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.errors import InputTypeError, InputValueError

from .cases import CASES, ball, gradient, inputs, jacobian

PROBLEM = CASES["free"].problem
X = inputs()
Y = tacit.solve(PROBLEM, X, start=X).y


def by(policy, solver=lambda _: Y) -> torch.Tensor:
    x = X.clone().requires_grad_()
    return gradient(tacit.argmin(PROBLEM, x, start=X, solver=solver, gradient=policy), x)[0]


def exact() -> torch.Tensor:
    return by(tacit.Implicit())


def letters() -> tuple[torch.Tensor, torch.Tensor]:
    from tacit.problem import Instance
    from tacit.problem.letters import input_letters
    from tacit.problem.letters import letters as read

    instance, none = Instance.bind(PROBLEM, (X,), (0,), Y), Y.new_zeros(len(Y), 0)
    return read(instance, Y, none).H, input_letters(instance, Y, none, 0).B


@pytest.mark.parametrize("terms", [1, 3, 10])
def test_truncated_is_so_many_terms_of_the_neumann_series(terms: int):
    H, B = letters()
    eye, rate = torch.eye(3).double(), 0.3
    Dy = -rate * sum(torch.linalg.matrix_power(eye - rate * H, k) for k in range(terms)) @ B
    v = torch.cos(torch.arange(Y.numel(), dtype=Y.dtype)).reshape(Y.shape)
    torch.testing.assert_close(by(tacit.Truncated(terms=terms, rate=rate)), torch.einsum("bm,bmn->bn", v, Dy))


def test_one_step_is_the_first_term():
    torch.testing.assert_close(by(tacit.OneStep(rate=0.3)), by(tacit.Truncated(terms=1, rate=0.3)))


def test_one_newton_step_is_exact_to_first_order():
    torch.testing.assert_close(by(tacit.OneStep(newton=True)), exact(), rtol=1e-9, atol=1e-12)


def test_terms_and_steps_approach_the_exact_gradient():
    errors = [float((by(tacit.Truncated(terms=k)) - exact()).norm()) for k in (5, 50, 500)]
    assert errors[0] > 3 * errors[1] and errors[2] < 1e-6
    descent = tacit.solvers.GradientDescent(rate=0.3, max_iter=400)
    errors = [float((by(tacit.Unrolled(steps=k), descent) - exact()).norm()) for k in (2, 10, 100)]
    assert errors[0] > 3 * errors[1] and errors[2] < 1e-6


def test_unrolling_from_the_start_goes_through_every_step_the_solver_took():
    descent = tacit.solvers.GradientDescent(rate=0.3, max_iter=400)
    torch.testing.assert_close(by(tacit.Unrolled(), descent), exact(), rtol=1e-4, atol=1e-6)


def test_an_approximation_that_does_not_apply_is_refused():
    x = inputs()
    with pytest.raises(InputValueError, match="without constraints; received 0 equality and 1 inequality"):
        tacit.argmin(ball, x, start=x, gradient=tacit.Truncated())
    with pytest.raises(InputTypeError, match="differentiable `step"):
        tacit.argmin(PROBLEM, x, start=x, solver=lambda x, start: start, gradient=tacit.Unrolled())


def test_a_newton_step_knows_constraints():
    case = CASES["inequality"]
    x = case.x.clone().requires_grad_()
    y = tacit.argmin(case.problem, x, start=x.detach(), gradient=tacit.OneStep(newton=True))
    v = torch.cos(torch.arange(y.numel(), dtype=y.dtype)).reshape(y.shape)
    expected = torch.einsum("bm,bmn->bn", v, jacobian(case, case.x))
    torch.testing.assert_close(gradient(y, x)[0], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"gradient": tacit.Truncated(terms=20)},
        {"gradient": tacit.OneStep()},
        {"gradient": tacit.OneStep(newton=True)},
        {"gradient": tacit.Unrolled(), "solver": tacit.solvers.GradientDescent(rate=0.3)},
        {"gradient": tacit.Unrolled(steps=3), "solver": tacit.solvers.GradientDescent(rate=0.3)},
    ],
    ids=lambda options: str(options["gradient"]),
)
def test_a_sample_of_nan_leaves_the_gradient_of_what_all_share_alone(options: dict):
    problem = tacit.Problem(lambda w, x, u: 0.5 * (u - w * x).square().sum())
    x = inputs(3)

    def shared(x: torch.Tensor) -> torch.Tensor:
        w = torch.ones(3, dtype=torch.float64).requires_grad_()
        y = tacit.argmin(problem, w, x, start=torch.zeros_like(x), in_dims=(None, 0), on_failure="ignore", **options)
        return torch.autograd.grad(y[[0, -1]].sum(), w)[0]

    broken = x.clone()
    broken[1] = torch.nan
    torch.testing.assert_close(shared(broken), shared(x), rtol=1e-12, atol=1e-12)
