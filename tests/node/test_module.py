"""A Node is a module like any other: it is copied, saved, pickled, compiled and trained in parallel."""

from __future__ import annotations

import copy
import io
import pickle
import socket

import pytest
import torch
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import tacit
from node.cases import gradient, inputs
from tacit.shapes import Tensor

x = inputs()


class Shrink(tacit.Node):
    """y = x / (1 + w)."""

    def __init__(self, **options: object):
        super().__init__(**options)
        self.w = torch.nn.Parameter(torch.tensor([0.5, 1.0, 2.0], dtype=x.dtype))
        self.register_buffer("scale", torch.tensor(1.0, dtype=x.dtype))

    def objective(self, x: Tensor, u: Tensor) -> Tensor:
        return (u - self.scale * x).square().sum() + (self.w * u.square()).sum()

    def start(self, x: Tensor) -> Tensor:
        return x


class Model(torch.nn.Module):
    """A node between two ordinary layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(3, 3, dtype=x.dtype)
        self.node = Shrink()
        self.last = torch.nn.Linear(3, 2, dtype=x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.node(self.first(x))))


def test_a_node_learns():
    node, target = Shrink(), x / 4
    optimiser = torch.optim.Adam(node.parameters(), lr=0.2)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = (node(x) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 100


def test_a_deep_copy_is_independent():
    node = Shrink()
    twin = copy.deepcopy(node)
    with torch.no_grad():
        twin.w.fill_(3.0)
    assert_close(twin(x), x / 4)
    assert_close(node(x), x / (1 + node.w))
    (found,) = gradient(twin(x), twin.w)
    assert_close(found, gradient(x / (1 + twin.w), twin.w)[0])


def test_the_state_dict_holds_parameters_and_buffers_and_loads():
    node, other = Shrink(), Shrink()
    with torch.no_grad():
        node.w.fill_(3.0)
        node.scale.fill_(2.0)
    assert list(node.state_dict()) == ["w", "scale"]
    other.load_state_dict(node.state_dict())
    assert_close(other(x), x / 2)


def test_a_pickled_node_is_the_same_node():
    node = Shrink(solver=tacit.solvers.Newton(tol=1e-12), gradient=tacit.Implicit(singular="zero"), on_failure="raise")
    twin = pickle.loads(pickle.dumps(node))
    assert twin.options == node.options
    assert_close(twin(x), node(x), rtol=0, atol=0)
    file = io.BytesIO()
    torch.save(node, file)
    file.seek(0)
    assert_close(torch.load(file, weights_only=False)(x), node(x), rtol=0, atol=0)


def test_problems_of_plain_functions_are_pickled_too():
    problem = tacit.Problem(torch.dot)
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_options_given_at_construction_hold_and_a_call_overrides_them():
    seen = []

    def solver(x: Tensor) -> Tensor:
        seen.append("own")
        return x / (1 + torch.tensor([0.5, 1.0, 2.0], dtype=x.dtype))

    def other(x: Tensor) -> Tensor:
        seen.append("other")
        return solver(x)

    node = Shrink(solver=solver)
    node(x)
    assert seen == ["own"]
    node(x, solver=other)
    assert seen == ["own", "other", "own"]
    across = Shrink(in_dims=1)
    assert_close(across(x.mT), x / (1 + across.w))
    assert_close(across(x, in_dims=0), x / (1 + across.w))


def test_a_start_given_in_the_call_replaces_the_method():
    class Double(tacit.Node):  # two minima, u = 1 and u = -1
        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return (u.square() - x).square().sum()

        def start(self, x: Tensor) -> Tensor:
            return x

    one = torch.ones(2, 1, dtype=x.dtype)
    assert_close(Double()(0.9 * one, start=one), (0.9 * one).sqrt())
    assert_close(Double()(0.9 * one, start=-one), -(0.9 * one).sqrt())


def test_the_solve_method_sees_the_batch_and_may_ask_for_the_start():
    class Mean(tacit.Node):
        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return (u - x).square().sum()

        def start(self, x: Tensor) -> Tensor:
            return x.mean()

        def solve(self, x: Tensor, start: Tensor) -> Tensor:
            assert x.shape == (4, 3) and start.shape == (4,) and not torch.is_grad_enabled()
            return start

    z = x.clone().requires_grad_()
    y = Mean()(z)
    assert_close(y.detach(), x.mean(1))
    assert_close(gradient(y, z)[0], gradient(z.mean(1), z)[0])


def test_casting_a_node_casts_its_answer():
    node = Shrink().float()
    z = x.float()
    y = node(z)
    assert y.dtype == torch.float32
    assert gradient(y, node.w)[0].dtype == torch.float32


def test_a_node_shows_its_parameters_and_no_secrets():
    node = Shrink()
    assert [name for name, _ in node.named_parameters()] == ["w"]
    assert "Shrink" in repr(node)


# Dynamo itself looks at .grad of what passes a graph break, and inductor at TorchScript; neither is ours to mend.
tracer_warnings = pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning",
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning",
)


@pytest.mark.compile
@tracer_warnings
def test_a_compiled_model_with_a_node_inside_gives_the_same_values_and_gradients():
    model = Model()
    compiled = torch.compile(copy.deepcopy(model), backend="aot_eager")
    for z in (x.clone().requires_grad_(), (0.5 * x).requires_grad_()):
        y, expected = compiled(z), model(z)
        assert_close(y, expected)
        for found, wanted in zip(
            gradient(y, z, *compiled.parameters()), gradient(expected, z, *model.parameters()), strict=True
        ):
            assert_close(found, wanted)


@pytest.mark.compile
@tracer_warnings
def test_a_compiled_function_that_calls_argmin_gives_the_same_values_and_gradients():
    problem = tacit.Problem(lambda x, u: (u - x).square().sum(), inequality=lambda x, u: u.square().sum()[None] - 1)

    def function(x: Tensor) -> Tensor:
        return torch.sin(tacit.argmin(problem, 2 * x, start=x)).sum(1)

    compiled = torch.compile(function, backend="aot_eager")
    z = x.clone().requires_grad_()
    assert_close(compiled(z), function(z))
    assert_close(gradient(compiled(z), z)[0], gradient(function(z), z)[0])


@pytest.mark.compile
@pytest.mark.full
@tracer_warnings
def test_a_model_compiled_to_machine_code_trains_like_the_plain_one():
    model = Model()
    compiled = torch.compile(copy.deepcopy(model))
    for m in (model, compiled):
        optimiser = torch.optim.SGD(m.parameters(), lr=0.05)
        for _ in range(3):
            optimiser.zero_grad()
            m(x).square().sum().backward()
            optimiser.step()
    for found, wanted in zip(compiled.parameters(), model.parameters(), strict=True):
        assert_close(found, wanted)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.full
def test_distributed_data_parallel_trains_a_node_like_a_plain_model():
    model = Model()
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
    try:
        parallel = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(model))
        for m in (model, parallel):
            m(x).square().sum().backward()
        for found, wanted in zip(parallel.parameters(), model.parameters(), strict=True):
            assert_close(found.grad, wanted.grad)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_node_gives_the_same_gradients(reentrant: bool):
    node = Shrink()
    z = x.clone().requires_grad_()
    node(z).square().sum().backward()
    expected, z.grad = z.grad, None
    checkpoint(node, z, use_reentrant=reentrant).square().sum().backward()
    assert_close(z.grad, expected)


def test_what_a_node_saves_goes_through_saved_tensor_hooks():
    node, packed = Shrink(), []
    z = x.clone().requires_grad_()
    expected = gradient(node(z), z, node.w)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t, lambda t: t):
        y = node(z)
    for found, wanted in zip(gradient(y, z, node.w), expected, strict=True):
        assert_close(found, wanted)
    assert packed.count((4, 3)) >= 2  # x and y


def test_hooks_see_an_ordinary_layer():
    node, seen = Shrink(), []
    node.register_forward_hook(lambda module, args, output: seen.append(tuple(output.shape)))
    node.w.register_hook(lambda g: seen.append(tuple(g.shape)))
    node(x).sum().backward()
    assert seen == [(4, 3), (3,)]
