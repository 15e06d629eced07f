"""The backward pass: what it saves, what it refuses, what it tells, and that it leaves nothing behind."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
from torch.testing import assert_close

import tacit
from node.cases import CASES, ball, distance, gradient, inputs, sphere
from tacit.errors import GradientError, GradientWarning
from tacit.shapes import Tensor

x = inputs()
flat = tacit.Problem(lambda x, u: (u[0] - x[0]).square() + 0 * u.sum())  # u_1 and u_2 are free


def project(x: Tensor) -> Tensor:
    return x / x.norm(dim=1, keepdim=True).clamp_min(1.0)


def test_an_input_changed_in_place_between_forward_and_backward_raises():
    z = x.clone().requires_grad_()
    changed = z * 1.0
    y = CASES["mixed"].argmin(changed)
    changed.mul_(2.0)
    with pytest.raises(GradientError, match=r"modified in place.*x\.clone\(\)"):
        y.sum().backward()


def test_a_y_changed_in_place_between_forward_and_backward_raises():
    z = x.clone().requires_grad_()
    y = CASES["mixed"].argmin(z)
    y.mul_(2.0)
    with pytest.raises(GradientError, match="modified in place"):
        y.sum().backward()


def test_backward_twice_says_retain_graph_and_works_with_it():
    z = x.clone().requires_grad_()
    y = CASES["mixed"].argmin(z).sum()
    y.backward(retain_graph=True)
    once = z.grad.clone()
    y.backward()
    assert_close(z.grad, 2 * once)
    with pytest.raises(GradientError, match=r"second time.*retain_graph=True"):
        y.backward()


def test_y_belongs_to_the_caller_and_the_start_stays_untouched():
    start = x.clone()
    with torch.no_grad():
        y = tacit.argmin(ball, x, start=start)
        y.zero_()
    assert torch.equal(start, x)
    given = project(x)
    y = tacit.argmin(ball, x, solver=lambda x: given)
    y.zero_()
    assert torch.equal(given, project(x))


def test_the_gradient_of_a_loss_that_uses_y_twice_adds_up():
    z = x.clone().requires_grad_()
    y = CASES["equality"].argmin(z)
    twice = torch.autograd.grad((y.sum() + (y * y).sum()), z, retain_graph=True)[0]
    parts = [torch.autograd.grad(part, z, retain_graph=True)[0] for part in (y.sum(), (y * y).sum())]
    assert_close(twice, parts[0] + parts[1])


def test_two_nodes_compose_as_their_closed_forms_do():
    z = x.clone().requires_grad_()
    half = tacit.Problem(lambda x, u: (u - x).square().sum() + u.square().sum())
    for outer, inner in ((ball, half), (half, ball)):
        y = tacit.argmin(outer, tacit.argmin(inner, z, start=x), start=x)
        expected = project(z / 2) if outer is ball else project(z) / 2
        assert_close(y.detach(), expected.detach(), rtol=0, atol=1e-8)
        assert_close(gradient(y, z)[0], gradient(expected, z)[0], rtol=1e-6, atol=1e-8)


def test_a_node_inside_a_node_is_differentiated_through_the_transforms_of_the_outer_one():
    """Bi-level: the outer problem tunes u so that the inner projection of x * u comes close to a target."""

    def outer(x: Tensor, u: Tensor) -> Tensor:
        inner = tacit.argmin(ball, (x * u)[None], solver=project)[0]
        return (inner - 0.5).square().sum() + 0.1 * u.square().sum()

    def plain(x: Tensor, u: Tensor) -> Tensor:
        return (project((x * u)[None])[0] - 0.5).square().sum() + 0.1 * u.square().sum()

    z = x.clone().requires_grad_()
    start = torch.full_like(x, 0.1)
    y, expected = (tacit.argmin(tacit.Problem(f), z, start=start) for f in (outer, plain))
    assert_close(y, expected)
    assert_close(gradient(y, z)[0], gradient(expected, z)[0])


def test_samples_that_fail_get_zero_and_one_warning():
    z = x.clone().requires_grad_()
    solver = lambda x: torch.where(torch.tensor([[True], [False], [True], [True]]), project(x), 3.0)  # noqa: E731
    with pytest.warns(tacit.errors.SolverWarning, match=r"1 of 4 samples were not solved by .* \(STALLED: samples 1\)"):
        y = tacit.argmin(ball, z, solver=solver)
    with pytest.warns(GradientWarning, match=r"NOT_STATIONARY, samples 1:") as caught:
        (found,) = gradient(y, z)
    assert len(caught) == 1
    expected = gradient(tacit.argmin(ball, z, solver=project), z)[0].clone()
    expected[1] = 0
    assert_close(found, expected)


def test_a_singular_sample_keeps_the_formulas_value_and_one_warning():
    z = x.clone().requires_grad_()
    y = tacit.argmin(flat, z, start=x)
    with pytest.warns(GradientWarning, match=r"(?s)SINGULAR, samples 0, 1, 2, 3:.*regularity") as caught:
        (found,) = torch.autograd.grad(y[:, 0].sum(), z)
    assert len(caught) == 1
    expected = torch.zeros_like(x)
    expected[:, 0] = 1
    assert_close(found, expected)


@pytest.mark.parametrize("where", ["call", "policy"])
def test_on_failure_decides_between_warning_error_and_silence(where: str):
    def backward(word: str) -> Tensor:
        z = x.clone().requires_grad_()
        option = {"on_failure": word} if where == "call" else {"gradient": tacit.Implicit(on_failure=word)}
        return gradient(tacit.argmin(flat, z, start=x, **option), z)[0]

    with pytest.raises(GradientError, match=r"(?s)4 of 4 samples have an unusual gradient.*SINGULAR"):
        backward("raise")
    with pytest.warns(GradientWarning):
        warned = backward("warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(backward("ignore"), warned)


def test_raising_in_the_forward_pass_names_the_samples():
    bad = lambda x: torch.full_like(x, 2.0)  # noqa: E731
    with pytest.raises(tacit.errors.ConvergenceError, match=r"4 of 4 samples.*STALLED: samples 0, 1, 2, 3"):
        tacit.argmin(ball, x, solver=bad, on_failure="raise")


def test_a_nan_in_the_incoming_gradient_stays_in_its_sample():
    z = x.clone().requires_grad_()
    y = CASES["mixed"].argmin(z)
    v = torch.ones_like(y)
    clean = torch.autograd.grad(y, z, v, retain_graph=True)[0]
    v[2, 0] = torch.nan
    found = torch.autograd.grad(y, z, v)[0]
    assert found[2].isnan().all()
    others = torch.tensor([0, 1, 3])
    assert_close(found[others], clean[others], rtol=0, atol=1e-12)


def passes(count: int) -> None:
    w = torch.ones(3, dtype=x.dtype, requires_grad=True)
    problem = tacit.Problem(lambda x, u: distance(x * w, u), inequality=sphere)
    for _ in range(count):
        z = x.clone().requires_grad_()
        y = tacit.argmin(problem, z, solver=project)
        torch.autograd.grad(torch.autograd.grad(y.sum(), z, create_graph=True)[0].sum(), (z, w), allow_unused=True)


def living() -> tuple[int, int]:
    """How many tensors and how many objects of any kind the collector knows."""
    gc.collect()
    objects = gc.get_objects()
    return sum(issubclass(type(o), Tensor) for o in objects), len(objects)


def grows(warm: int, count: int) -> tuple[int, int]:
    """How many more tensors and objects there are after `count` passes, once `warm` have filled every cache."""
    passes(warm)
    tensors, objects = living()
    passes(count)
    more_tensors, more_objects = living()
    return more_tensors - tensors, more_objects - objects


def test_memory_does_not_grow_over_passes():
    tensors, objects = grows(10, 40)
    assert tensors <= 0 and objects <= 50


def test_no_tensor_of_a_pass_waits_for_the_garbage_collector():
    passes(3)
    gc.collect()
    gc.disable()
    try:
        before = sum(issubclass(type(o), Tensor) for o in gc.get_objects())
        passes(3)
        assert sum(issubclass(type(o), Tensor) for o in gc.get_objects()) <= before
    finally:
        gc.enable()


@pytest.mark.slow
def test_memory_does_not_grow_over_ten_thousand_passes():
    import resource

    passes(500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tensors, objects = grows(0, 10_000)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert tensors <= 0 and objects <= 50
    assert after - before < 20 * 1024  # KiB: the peak itself has not moved by more than 20 MB


def test_a_sample_whose_derivative_in_x_is_infinite_has_none_and_is_named():
    problem = tacit.Problem(lambda w, x, u: (u - w * x.sqrt()).square().sum())
    w = torch.tensor(2.0, dtype=torch.float64).requires_grad_()
    z = torch.tensor([[0.0, 4.0], [1.0, 4.0], [9.0, 9.0]], dtype=torch.float64).requires_grad_()
    y = tacit.argmin(problem, w, z, start=torch.zeros_like(z), in_dims=(None, 0))
    with pytest.warns(tacit.errors.GradientWarning, match="NONFINITE, samples 0"):
        g_w, g_z = torch.autograd.grad(y.sum(), (w, z))
    assert_close(g_w, torch.tensor(1.0 + 2.0 + 3.0 + 3.0).double())
    assert_close(g_z, torch.tensor([[0.0, 0.0], [1.0, 0.5], [1 / 3, 1 / 3]]).double())
    Dw, Dz = tacit.jacobian(problem, w, z, y=y, in_dims=(None, 0))
    assert_close(Dz.sum(1), g_z)
    assert not Dw[0].any()
    assert tacit.regularity(problem, w, z, y=y, in_dims=(None, 0)).flags.tolist() == [tacit.Flag.NONFINITE, 0, 0]


def test_where_every_sample_is_broken_the_jacobian_is_zero():
    kink = tacit.Problem(lambda x, u: (u - x).norm())
    assert not tacit.jacobian(kink, x, y=x).any()
    assert (tacit.regularity(kink, x, y=x).flags == tacit.Flag.NONFINITE).all()
