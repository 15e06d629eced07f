"""Programs written in CVXPY: the answers of another package, closed forms, finite differences, and what is refused."""

from __future__ import annotations

import sys

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tacit.errors import (
    ConvergenceError,
    GradientWarning,
    InputTypeError,
    InputValueError,
    MissingDependencyError,
    SolverWarning,
)
from tacit.nn import ConvexProgram
from tacit.shapes import Tensor

cp = pytest.importorskip("cvxpy")
pytest.importorskip("clarabel")
D = torch.float64


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=D)


def lasso():
    x, F, g, weight = cp.Variable(3), cp.Parameter((4, 3)), cp.Parameter(4), cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(F @ x - g) + weight * cp.norm1(x)))
    i = torch.arange(12, dtype=D)
    return ConvexProgram(problem, [F, g, weight], [x]), [i.cos().reshape(4, 3), (i[:4] + 1).sin(), tensor(0.3)]


def ball():
    x, a, r, c = cp.Variable(3), cp.Parameter(3), cp.Parameter(nonneg=True), cp.Parameter(3)
    problem = cp.Problem(cp.Minimize(c @ x), [cp.norm(x - a) <= r, cp.sum(x) >= 0.5])
    return ConvexProgram(problem, [a, r, c], [x]), [tensor([0.2, -0.1, 0.4]), tensor(1.5), tensor([1.0, 2.0, -0.5])]


def entropy():
    x, p = cp.Variable(3), cp.Parameter(3)
    problem = cp.Problem(cp.Minimize(p @ x - cp.sum(cp.entr(x))), [cp.sum(x) == 1])
    return ConvexProgram(problem, [p], [x]), [tensor([0.3, -0.2, 0.9])]


def groups():
    x, y, M, b = cp.Variable(3), cp.Variable(), cp.Parameter((3, 3)), cp.Parameter(3)
    cost = cp.norm(M @ x - b) + 0.5 * cp.norm(x) + cp.square(y - x[0])
    problem = cp.Problem(cp.Minimize(cost), [x >= -0.2, y <= 0.1])
    M_value = tensor([[2.0, 0.3, -0.1], [0.4, 1.5, 0.2], [-0.3, 0.1, 1.2]])
    return ConvexProgram(problem, [M, b], [x, y]), [M_value, tensor([1.0, -2.0, 0.5])]


# Computed with cvxpylayers 1.2.0 (cvxpy 1.9.3) at solver_args={"eps": 1e-13, "max_iters": 1000000}: the values of the
# variables, and the gradients, in the parameters, of sum_i cos(i + 1/2) x_i over each variable.
CVXPYLAYERS = {
    lasso: (
        [[0.124945591929757, 0.0, 0.0]],
        [
            [0.139104073756604, 0, 0, 0.271983573643204, 0, 0, -0.023236083595593, 0, 0, -0.124417058845681, 0, 0],
            [0.235139998920857, -0.232786834582283, 0.225774440166805, -0.214243168796323],
            [-0.235139998920856],
        ],
    ),
    ball: (
        [[0.059512128262746, -1.083415102160779, 1.523902973898032]],
        [
            [0.828523845886865, 0.021678485664836, -0.850202331551412],
            [-0.728840953888252],
            [-0.640845235446205, 0.384507141268439, 0.256338094177527],
        ],
    ),
    entropy: (
        [[0.312741112960931, 0.515622925161116, 0.171635961877954]],
        [[-0.220219071295002, 0.052948087920412, 0.167270983373515]],
    ),
    groups: (
        [[0.138802338460195, -0.2, 0.044262207699663], [0.1]],
        [
            [
                *(0.033969508219319, 0.029392622325744, -0.114212499024380, -0.123484536766498, 0.002260281184808),
                *(0.241023918294196, 0.061258145699688, -0.037635771742653, -0.061282652074939),
            ],
            [0.146963113279157, 0.011301402223095, -0.188178857646583],
        ],
    ),
}


def outputs(layer: ConvexProgram, values: list[Tensor]) -> tuple[Tensor, ...]:
    out = layer(*values)
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize("make", CVXPYLAYERS)
def test_answers_and_gradients_are_those_of_cvxpylayers(make):
    layer, values = make()
    leaves = [v.clone().requires_grad_() for v in values]
    out = outputs(layer, leaves)
    wanted, wanted_grads = CVXPYLAYERS[make]
    for ours, theirs in zip(out, wanted, strict=True):
        torch.testing.assert_close(ours.detach().flatten(), tensor(theirs), rtol=0, atol=1e-9)
    loss = sum((torch.cos(torch.arange(o.numel(), dtype=D) + 0.5) * o.flatten()).sum() for o in out)
    for ours, theirs in zip(torch.autograd.grad(loss, leaves), wanted_grads, strict=True):
        torch.testing.assert_close(ours.flatten(), tensor(theirs), rtol=0, atol=2e-8)


@pytest.mark.parametrize("make", CVXPYLAYERS)
def test_derivatives_are_those_of_finite_differences(make):
    layer, values = make()
    leaves = [v.clone().requires_grad_() for v in values]
    assert gradcheck(layer, leaves, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(layer, leaves, fast_mode=True)


def test_a_batch_and_what_it_shares():
    layer, (F, _, weight) = lasso()
    generator = torch.Generator().manual_seed(0)
    many = torch.randn(4, 4, generator=generator, dtype=D)
    weight = weight.clone().requires_grad_()
    whole = layer(F, many, weight)
    assert whole.shape == (4, 3)
    alone = [layer(F, row, weight) for row in many]
    torch.testing.assert_close(whole, torch.stack(alone), rtol=0, atol=1e-12)
    (shared,) = torch.autograd.grad(whole.sum(), weight)
    torch.testing.assert_close(shared, sum(torch.autograd.grad(x.sum(), weight)[0] for x in alone))
    torch.testing.assert_close(torch.vmap(layer, (None, 0, None))(F, many, weight), whole, rtol=0, atol=1e-12)


def test_the_projection_onto_a_second_order_cone_is_the_closed_form():
    x, a = cp.Variable(4), cp.Parameter(4)
    layer = ConvexProgram(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - a)), [cp.SOC(x[0], x[1:])]), [a], [x])
    points = tensor([[3.0, 1, 0, 1], [-3, 1, 0, 1], [0.5, 1, 2, 2], [-0.5, 1, 2, 2]]).requires_grad_()
    y = layer(points)
    t, v = points[2:, :1], points[2:, 1:]
    length = v.norm(dim=1, keepdim=True)
    between = 0.5 * (1 + t / length) * torch.cat([length, v], 1)
    wanted = torch.cat([points[:1], 0 * points[1:2], between])
    torch.testing.assert_close(y, wanted, rtol=0, atol=1e-12)
    weight = torch.cos(torch.arange(16, dtype=D)).reshape(4, 4)
    ours, theirs = (torch.autograd.grad((out * weight).sum(), points)[0] for out in (y, wanted))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_matrices_and_attributes_keep_their_entries_in_place():
    X, Y = cp.Variable((2, 3), nonneg=True), cp.Variable((2, 2), symmetric=True)
    S, T = cp.Parameter((2, 3)), cp.Parameter((2, 2))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X - S) + cp.sum_squares(Y - T)))
    layer = ConvexProgram(problem, [T, S], [X, Y])
    s, t = torch.randn(5, 2, 3, dtype=D), torch.randn(5, 2, 2, dtype=D)
    found, symmetric = layer(t, s)
    torch.testing.assert_close(found, s.clamp_min(0), rtol=0, atol=1e-12)
    torch.testing.assert_close(symmetric, 0.5 * (t + t.mT), rtol=0, atol=1e-12)


def test_single_precision_is_kept():
    layer, values = ball()
    out = layer(*(v.float() for v in values))
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, layer(*values).float(), rtol=1e-5, atol=1e-5)


def box(sense=None):
    x, low, cost = cp.Variable(1), cp.Parameter(1), cp.Parameter(1)
    return ConvexProgram(
        cp.Problem(cp.Minimize(cost @ x), [x >= low, x <= 1] if sense is None else []), [low, cost], [x]
    )


def test_without_an_answer_there_is_a_status_a_warning_and_no_gradient():
    layer, low = box(), tensor([[0.0], [2.0], [float("nan")]]).requires_grad_()
    with pytest.warns(SolverWarning, match=r"INFEASIBLE: samples 1; NONFINITE: samples 2"):
        x = layer(low, tensor([1.0]))
    assert x[0].item() == pytest.approx(0.0, abs=1e-12) and bool(x[2].isnan())
    with pytest.warns(GradientWarning, match="UNCONVERGED, samples 1, 2"):
        (grad,) = torch.autograd.grad(x.sum(), low)
    torch.testing.assert_close(grad, tensor([[1.0], [0.0], [0.0]]), rtol=0, atol=1e-12)
    layer.options["on_failure"] = "raise"
    with pytest.raises(ConvergenceError, match="INFEASIBLE"):
        layer(low, tensor([1.0]))


def test_what_falls_forever_is_unbounded():
    x, cost = cp.Variable(2), cp.Parameter(2)
    layer = ConvexProgram(cp.Problem(cp.Minimize(cost @ x), [x[0] >= 0]), [cost], [x])
    with pytest.warns(SolverWarning, match="UNBOUNDED"):
        layer(tensor([1.0, 1.0]))


def test_a_weakly_active_row_is_flagged():
    x, a = cp.Variable(1), cp.Parameter(1)
    layer = ConvexProgram(cp.Problem(cp.Minimize(cp.sum_squares(x - a)), [x >= 0]), [a], [x])
    at = tensor([0.0]).requires_grad_()
    y = layer(at)
    with pytest.warns(GradientWarning, match="WEAKLY_ACTIVE"):
        torch.autograd.grad(y.sum(), at)


def problem_of(kind: str) -> tuple[object, list[object], list[object]]:
    x, p, X = cp.Variable(2), cp.Parameter(2), cp.Variable((2, 2), symmetric=True)
    if kind == "not convex":
        return cp.Problem(cp.Maximize(cp.norm(x - p))), [p], [x]
    if kind == "not DPP":
        return cp.Problem(cp.Minimize(cp.sum_squares(x)), [x >= cp.multiply(p, p)]), [p], [x]
    if kind == "semidefinite":
        return cp.Problem(cp.Minimize(cp.trace(X)), [X >> cp.diag(p)]), [p], [X]
    if kind == "integer":
        z = cp.Variable(2, integer=True)
        return cp.Problem(cp.Minimize(cp.sum_squares(z - p))), [p], [z]
    if kind == "a parameter too few":
        return cp.Problem(cp.Minimize(cp.sum_squares(x - p))), [], [x]
    return cp.Problem(cp.Minimize(cp.sum_squares(x - p))), [p, cp.Parameter(2, name="stranger")], [x]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("not convex", "convex by CVXPY's rules"),
        ("not DPP", "DPP: parameters enter otherwise"),
        ("semidefinite", "positive semidefinite cones"),
        ("integer", "continuous"),
        ("a parameter too few", "parameters misses"),
        ("a stranger", "stranger does not occur"),
    ],
)
@pytest.mark.filterwarnings("ignore:You are solving a parameterized problem:UserWarning")
def test_what_cannot_be_a_layer_is_refused(kind: str, words: str):
    with pytest.raises(InputValueError, match=words):
        ConvexProgram(*problem_of(kind))


def test_values_that_do_not_fit_are_named():
    layer, (F, g, weight) = lasso()
    with pytest.raises(InputValueError, match="expects 3 values"):
        layer(F, g)
    with pytest.raises(InputValueError, match=r"expects shape \(4, 3\)"):
        layer(F.mT, g, weight)
    with pytest.raises(InputValueError, match="one batch size"):
        layer(F.expand(2, 4, 3), g.expand(3, 4), weight)
    with pytest.raises(InputTypeError, match="dtype"):
        layer(F, g.float(), weight)


@pytest.mark.untyped
def test_what_is_no_problem_is_refused():
    with pytest.raises(InputTypeError, match=r"cvxpy\.Problem"):
        ConvexProgram("minimise x", [], [])


def test_absence_of_cvxpy_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        ConvexProgram(None, [], [])
