"""A wrong type, rank, shape, dtype or device of an input, of start or of y is an exception at once, with advice."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

import tacit
from node.cases import ball, distance, inputs
from tacit.errors import FunctionError, InputTypeError, InputValueError, SolverError, TacitError
from tacit.shapes import Tensor

pytestmark = pytest.mark.untyped
x = inputs()
two = tacit.Problem(lambda a, b, u: (u - a - b).square().sum())


def raised(kind: type[Exception], call: Any, *words: str) -> str:
    """The message of what `call` raises within a second; every word of it is there, and each comes after the last."""
    begin = time.perf_counter()
    with pytest.raises(kind) as caught:
        call()
    assert time.perf_counter() - begin < 1.0
    assert isinstance(caught.value, TacitError)
    message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"
    return message


BAD_INPUTS = {
    "None": (None, InputTypeError, "None", "in_dims to None"),
    "list": ([[1.0, 2.0]], InputTypeError, "list", "as_tensor"),
    "float": (1.5, InputTypeError, "1.5 (float)", "as_tensor"),
    "string": ("x", InputTypeError, "'x' (str)", "as_tensor"),
    "numpy": (np.ones((4, 3)), InputTypeError, "ndarray", "as_tensor"),
    "complex": (x.to(torch.complex128), InputTypeError, "complex128", "view_as_real"),
    "float16": (x.half(), InputTypeError, "float16", ".float()"),
    "bfloat16": (x.bfloat16(), InputTypeError, "bfloat16", ".float()"),
    "sparse": (x.to_sparse(), InputTypeError, "sparse", "to_dense()"),
    "sparse csr": (x.to_sparse_coo(), InputTypeError, "sparse", "to_dense()"),
    "no batch axis": (torch.tensor(1.0, dtype=torch.float64), InputValueError, "shape ()", "unsqueeze"),
    "n = 0": (x[:, :0], InputValueError, "shape (4, 0)", "Leave it out"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
@pytest.mark.parametrize("function", ["argmin", "solve", "value", "jacobian", "regularity"])
def test_an_input_that_is_no_batch_of_real_numbers_is_refused(function: str, name: str):
    bad, kind, received, advice = BAD_INPUTS[name]
    keyword = {"y": x} if function in ("jacobian", "regularity") else {"start": x}
    message = raised(kind, lambda: getattr(tacit, function)(ball, bad, **keyword), "input 0 expects", received, advice)
    assert "received" in message


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (x[:3], InputValueError, ("same batch", "4 samples", "input 1", "(3, 3)")),
        (x.float(), InputTypeError, ("one dtype", "float64", "float32", ".to(")),
        (x.to("meta"), InputTypeError, ("device", "cpu", "meta", ".to(")),
        (torch.ones(4, 0), InputValueError, ("input 1", "(4, 0)")),
        (None, InputTypeError, ("input 1", "None")),
    ],
    ids=["batch", "dtype", "device", "n=0", "None"],
)
def test_inputs_that_do_not_agree_are_refused_by_position(bad: Any, kind: type[Exception], words: tuple[str, ...]):
    raised(kind, lambda: tacit.argmin(two, x, bad, start=x), *words)


@pytest.mark.parametrize(
    ("in_dims", "kind", "words"),
    [
        ((0,), InputValueError, ("in_dims", "one entry per input", "2", "received 1")),
        ((0, 0, 0), InputValueError, ("in_dims", "one entry per input", "received 3")),
        (0.0, InputTypeError, ("in_dims", "int", "0.0 (float)")),
        (True, InputTypeError, ("in_dims", "True")),
        (("0", 0), InputTypeError, ("in_dims", "'0'")),
        ((0, True), InputTypeError, ("in_dims", "True")),
        ((0, 2), InputValueError, ("input 1", "axis 2", "(4, 3)")),
        ((-3, 0), InputValueError, ("input 0", "axis -3", "(4, 3)")),
        ({0: 0}, InputTypeError, ("in_dims", "dict")),
    ],
    ids=str,
)
def test_in_dims_that_fit_no_input_are_refused(in_dims: Any, kind: type[Exception], words: tuple[str, ...]):
    raised(kind, lambda: tacit.argmin(two, x, x, start=x, in_dims=in_dims), *words)


BAD_UNKNOWNS = {
    "list": ([1.0], InputTypeError, "list", "(batch, *shape of u)"),
    "numpy": (np.ones((4, 3)), InputTypeError, "ndarray", "tensor"),
    "int": (torch.ones(4, 3, dtype=torch.int64), InputTypeError, "int64", ".double()"),
    "bool": (torch.ones(4, 3, dtype=torch.bool), InputTypeError, "bool", ".double()"),
    "float32": (x.float(), InputTypeError, "float32", ".to("),
    "float16": (x.half(), InputTypeError, "float16", ".float()"),
    "complex": (x.to(torch.complex128), InputTypeError, "complex128", "real"),
    "sparse": (x.to_sparse(), InputTypeError, "sparse", "to_dense()"),
    "device": (x.to("meta"), InputTypeError, "meta", ".to("),
    "batch": (x[:2], InputValueError, "(2, 3)", "batch-first"),
    "scalar": (torch.tensor(0.0, dtype=torch.float64), InputValueError, "shape ()", "axis 0"),
    "no unknowns": (x[:, :0], InputValueError, "(4, 0)", "at least one unknown"),
}


@pytest.mark.parametrize("name", BAD_UNKNOWNS)
@pytest.mark.parametrize("function", ["argmin", "solve", "value", "jacobian", "regularity"])
def test_a_start_or_y_that_fits_no_batch_is_refused(function: str, name: str):
    bad, kind, received, advice = BAD_UNKNOWNS[name]
    keyword = "y" if function in ("jacobian", "regularity") else "start"
    raised(kind, lambda: getattr(tacit, function)(ball, x, **{keyword: bad}), f"{keyword} expects", received, advice)


@pytest.mark.parametrize("function", ["jacobian", "regularity"])
def test_a_y_that_is_missing_is_refused(function: str):
    raised(InputTypeError, lambda: getattr(tacit, function)(ball, x, x), "y expects", "tacit.solve")


@pytest.mark.parametrize("function", ["jacobian", "regularity"])
def test_a_y_that_is_none_is_refused(function: str):
    raised(InputTypeError, lambda: getattr(tacit, function)(ball, x, y=None), "y expects", "None")


@pytest.mark.parametrize("function", ["argmin", "solve", "value"])
def test_a_missing_start_says_what_start_is_for(function: str):
    raised(InputValueError, lambda: getattr(tacit, function)(ball, x), "start expects", "shape of y", "start=x")


@pytest.mark.parametrize(
    ("start", "kind", "words"),
    [
        (lambda x: [0.0], FunctionError, ("start expects", "list")),
        (lambda x: None, FunctionError, ("start expects", "None")),
        (lambda x: x.float(), InputTypeError, ("start expects", "float64", "float32")),
        (lambda x: x.long(), InputTypeError, ("start expects", "int64")),
        (lambda x: x if x.sum() > 0 else -x, FunctionError, ("start", "torch.where")),
    ],
    ids=["list", "None", "float32", "int", "if"],
)
def test_a_start_function_is_held_to_one_sample_of_u(start: Any, kind: type[Exception], words: tuple[str, ...]):
    raised(kind, lambda: tacit.argmin(ball, x, start=start), *words)


def test_a_start_of_the_wrong_width_says_what_the_objective_met():
    raised(FunctionError, lambda: tacit.argmin(ball, x, start=x[:, :2]), "objective", "ONE sample", "(3,)", "(2,)")


def test_a_start_function_needs_a_batched_input_to_know_the_batch():
    message = raised(
        InputValueError, lambda: tacit.argmin(ball, x[0], start=lambda x: x, in_dims=None), "start expects"
    )
    assert "every input is shared" in message


@pytest.mark.parametrize(
    "problem",
    [None, distance, torch.nn.Linear(3, 3), "ball", tacit.Problem, tacit.Node],
    ids=lambda bad: getattr(bad, "__name__", None) or type(bad).__name__,
)
@pytest.mark.parametrize("function", ["argmin", "solve", "value"])
def test_something_that_declares_no_problem_is_refused(function: str, problem: Any):
    call = getattr(tacit, function)
    raised(InputTypeError, lambda: call(problem, x, start=x), "the first argument expects", "tacit.Problem(objective=")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, ("None", "tensor or numpy array")),
        ([1.0], ("list", "tensor or numpy array")),
        (x.long(), ("int64", "floating")),
        (x[:2], ("(2, 3)", "(4, *shape of u)")),
        (x[0, 0], ("shape ()", "(4, *shape of u)")),
        (x.to(torch.complex128), ("complex128", "floating")),
        (x[:, :0], ("(4, 0)", "at least one unknown")),
        (np.ones((2, 3)), ("(2, 3)", "(4, *shape of u)")),
        (np.array(["a"] * 4), ("solver", "ndarray")),
    ],
    ids=["None", "list", "int", "batch", "scalar", "complex", "empty", "numpy batch", "strings"],
)
def test_a_solver_that_returns_no_y_a_sample_is_refused(answer: Any, words: tuple[str, ...]):
    raised(SolverError, lambda: tacit.argmin(ball, x, solver=lambda x: answer), "solver expects", *words)


def test_a_solver_that_returns_no_data_is_refused():
    raised(SolverError, lambda: tacit.argmin(ball, x, solver=lambda x: x.to_sparse()), "dense tensor", "sparse")
    raised(SolverError, lambda: tacit.argmin(ball, x, solver=lambda x: x.to("meta")), "dense tensor", "meta")


@pytest.mark.parametrize(
    "as_given", [lambda a: a[:, ::-1], lambda a: a.astype(">f8"), lambda a: a.astype("g"), lambda a: a.T.copy().T]
)
def test_a_solver_may_return_an_array_of_any_strides_byte_order_or_precision(as_given: Any):
    given = as_given(x.numpy())
    y = tacit.argmin(ball, x, solver=lambda x: given, on_failure="ignore")
    assert y.dtype == x.dtype and np.array_equal(y.numpy(), given.astype("f8"))


def test_a_shared_sparse_input_is_an_object_like_any_other():
    weigh = tacit.Problem(lambda x, s, u: (u - x).square().sum() + 0 * len(s.shape) * u.sum())
    z = x.clone().requires_grad_()
    y = tacit.argmin(weigh, z, torch.eye(3).to_sparse(), start=x, in_dims=(0, None))
    assert torch.equal(torch.autograd.grad(y.sum(), z)[0], torch.ones_like(x))
    asked = torch.eye(3).to_sparse().requires_grad_()
    raised(InputTypeError, lambda: tacit.argmin(weigh, x, asked, start=x, in_dims=(0, None)), "input 1", ".to_dense()")


def test_a_nested_tensor_is_refused():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    raised(InputTypeError, lambda: tacit.argmin(ball, nested, start=x), "nested", "to_padded_tensor")


def test_a_solver_with_the_wrong_width_says_what_the_objective_met():
    call = lambda: tacit.argmin(ball, x, solver=lambda x: x[:, :2])  # noqa: E731
    raised(FunctionError, call, "objective", "ONE sample", "(2,)")


def test_a_solver_of_shared_inputs_only_asks_for_a_start():
    call = lambda: tacit.argmin(ball, x[0], solver=lambda x: x[None], in_dims=None)  # noqa: E731
    raised(InputValueError, call, "at least one batched input", "start=")


def test_a_feasibility_problem_has_no_value():
    circle = tacit.Problem(None, equality=lambda x, u: u.square().sum()[None] - 1)
    raised(InputValueError, lambda: tacit.value(circle, x, start=x), "value expects", "objective=None")


def test_a_problem_of_nothing_and_functions_that_are_none_are_refused():
    raised(InputValueError, lambda: tacit.Problem(None), "at least one constraint", "received none")
    raised(InputTypeError, lambda: tacit.Problem(3.0), "objective", "float", "lambda x, u")
    raised(InputTypeError, lambda: tacit.Problem(distance, x), "equality", "Tensor", "lambda x, u")
    raised(InputTypeError, lambda: tacit.Problem(distance, None, [distance]), "inequality", "list")


class Unready(tacit.Node):
    objective = staticmethod(distance)

    def __init__(self):
        torch.nn.Module.__init__(self)


def test_a_node_that_never_called_its_base_says_so():
    raised(InputTypeError, lambda: Unready()(x, start=x), "Unready", "super().__init__()")


class Complex(tacit.Node):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3, dtype=torch.complex128))

    def objective(self, x: Tensor, u: Tensor) -> Tensor:
        return (u - x * self.w.real).square().sum()


def test_a_node_with_complex_or_alien_parameters_is_refused():
    raised((InputTypeError, InputValueError), lambda: Complex()(x, start=x), "complex")

    class Single(tacit.Node):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3))

        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return (u - x * self.w).square().sum()

    raised(TacitError, lambda: Single()(x, start=x), "float32", "float64", ".to(")
