"""What an objective or constraint must not return or do is said at once: which one, what was expected, what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tacit
from node.cases import distance, inputs, sphere
from node.test_errors_inputs import raised
from tacit.errors import FunctionError
from tacit.shapes import Tensor

pytestmark = pytest.mark.untyped
x = inputs()
every_function = pytest.mark.parametrize("function", ["argmin", "solve", "value", "jacobian", "regularity"])
batch_norm = torch.nn.BatchNorm1d(3).double()
dropout = torch.nn.Dropout()


def call(function: str, objective: Any, equality: Any = None, inequality: Any = None) -> Any:
    problem = tacit.Problem(objective, equality, inequality)
    keyword = {"y": x} if function in ("jacobian", "regularity") else {"start": x}
    return lambda: getattr(tacit, function)(problem, x.clone().requires_grad_(), **keyword)


def assign(x: Tensor, u: Tensor) -> Tensor:
    u[0] = 0.0
    return distance(x, u)


def scale(x: Tensor, u: Tensor) -> Tensor:
    return distance(x, u.mul_(2.0))


def branch(x: Tensor, u: Tensor) -> Tensor:
    return distance(x, u) if u.sum() > 0 else distance(-x, u)


BAD_OBJECTIVES = {
    "a vector": (lambda x, u: (u - x).square(), "shape (), ", "shape (3,)", ".sum()"),
    "a row": (lambda x, u: distance(x, u)[None], "shape ()", "shape (1,)", ".sum()"),
    "an integer": (lambda x, u: u.long().sum(), "dtype of u", "int64", "Convert"),
    "a boolean": (lambda x, u: (u > x).any(), "dtype of u", "bool", "Convert"),
    "float32": (lambda x, u: distance(x, u).float(), "dtype of u, float64", "float32", ".to("),
    "complex": (lambda x, u: distance(x, u) * 1j, "dtype of u", "complex128", "Convert"),
    "a python float": (lambda x, u: 1.0, "scalar tensor", "1.0 (float)", "torch operations"),
    "None": (lambda x, u: None, "scalar tensor", "None", "torch operations"),
    "a tuple": (lambda x, u: (distance(x, u), u), "scalar tensor", "tuple", "torch operations"),
    "numpy": (lambda x, u: np.float64(3.0), "scalar tensor", "float", "torch operations"),
    "a detached tensor": (lambda x, u: distance(x, u).detach(), "path to u", "detached", "objective=None"),
    "a value of x alone": (lambda x, u: x.sum(), "path to u", "u unused", "objective=None"),
    "a constant": (lambda x, u: torch.zeros((), dtype=x.dtype), "path to u", "u unused", "objective=None"),
}


@every_function
@pytest.mark.parametrize("name", BAD_OBJECTIVES)
def test_an_objective_that_returns_no_scalar_of_u_is_refused(function: str, name: str):
    objective, *words = BAD_OBJECTIVES[name]
    raised(FunctionError, call(function, objective), "objective expects", "received", *words)


@every_function
def test_an_objective_under_no_grad_is_refused(function: str):
    raised(FunctionError, call(function, torch.no_grad()(distance)), "objective expects", "no_grad")


BAD_ROWS = {
    "a scalar": (lambda x, u: u.sum(), "shape (rows,)", "shape ()", "[None]"),
    "a matrix": (lambda x, u: u[:, None] * x, "shape (rows,)", "shape (3, 3)", ".flatten()"),
    "None": (lambda x, u: None, "tensor of rows", "None", "torch operations"),
    "a list": (lambda x, u: [u.sum()], "tensor of rows", "list", "torch operations"),
    "a python float": (lambda x, u: 0.0, "tensor of rows", "0.0 (float)", "torch operations"),
    "an integer": (lambda x, u: u.long(), "dtype of u", "int64", "Convert"),
    "float32": (lambda x, u: u.float(), "dtype of u", "float32", "Convert"),
    "a boolean": (lambda x, u: u > 0, "dtype of u", "bool", "Convert"),
    "a detached tensor": (lambda x, u: u.detach(), "path to u", "rows without", "leave it out"),
    "a condition on x": (lambda x, u: x, "path to u", "inputs alone", "leave it out"),
}


@pytest.mark.parametrize("role", ["equality", "inequality"])
@every_function
@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_constraint_that_returns_no_rows_of_u_is_refused(function: str, name: str, role: str):
    rows, *words = BAD_ROWS[name]
    raised(FunctionError, call(function, distance, **{role: rows}), f"{role} expects", *words)


@pytest.mark.parametrize("role", ["equality", "inequality"])
def test_a_constraint_whose_row_count_changes_is_refused(role: str):
    calls = []

    def rows(x: Tensor, u: Tensor) -> Tensor:
        calls.append(1)
        return u[: 1 + len(calls) % 2]

    raised(
        FunctionError, call("argmin", distance, **{role: rows}), f"{role} expects", "same number of rows", "received"
    )


BAD_DEEDS = {
    "if": (branch, "torch.where"),
    "item": (lambda x, u: distance(x, u) * u.sum().item(), "torch.where"),
    "float()": (lambda x, u: distance(x, u) * float(u.sum()), "Python number"),
    "mask indexing": (lambda x, u: u[u > 0].square().sum(), "torch.where(mask"),
    "nonzero": (lambda x, u: u[u.nonzero()].sum(), "torch.where(mask"),
    "masked_select": (lambda x, u: torch.masked_select(u, u > 0).sum(), "torch.where(mask"),
    "numpy": (lambda x, u: distance(x, torch.from_numpy(u.detach().numpy())), "torch operations"),
    "batch norm": (lambda x, u: distance(x, batch_norm(u[None])[0]), ".eval()"),
    "dropout": (lambda x, u: distance(x, dropout(u)), ".eval()"),
    "shapes": (lambda x, u: distance(x, u[:2]), "ONE sample"),
    "matrix product": (lambda x, u: (torch.ones(5, 4).to(u) @ u).sum(), "ONE sample"),
}


@pytest.mark.parametrize("name", BAD_DEEDS)
@every_function
def test_what_cannot_be_done_for_one_sample_is_explained(function: str, name: str):
    objective, advice = BAD_DEEDS[name]
    message = raised(FunctionError, call(function, objective), "objective", advice)
    assert "(3,)" in message  # the shapes of one sample


@pytest.mark.parametrize("role", ["equality", "inequality"])
@pytest.mark.parametrize("name", ["if", "item", "mask indexing", "dropout"])
def test_what_a_constraint_cannot_do_is_explained_by_its_name(role: str, name: str):
    function, advice = BAD_DEEDS[name]
    raised(FunctionError, call("argmin", distance, **{role: lambda x, u: function(x, u)[None]}), role, advice)


@pytest.mark.parametrize("objective", [assign, scale], ids=["u[0] = ", "u.mul_"])
@every_function
def test_writing_into_u_is_refused(function: str, objective: Any):
    raised(FunctionError, call(function, objective), "objective writes into", "in place", "new tensor")


def test_writing_into_u_leaves_the_start_alone():
    start = x.clone()
    with pytest.raises(FunctionError):
        tacit.argmin(tacit.Problem(scale), x, start=start)
    assert torch.equal(start, x)


class OwnError(Exception):
    """Somebody else's."""


@pytest.mark.parametrize(
    "kind", [OwnError, KeyError, ValueError, TypeError, ZeroDivisionError, RuntimeError, AttributeError]
)
@pytest.mark.parametrize("role", ["objective", "equality", "inequality"])
def test_an_exception_of_the_user_comes_through_whole(role: str, kind: type[Exception]):
    error = kind("my own words: index out of range, expected size, in-place operation")

    def bad(x: Tensor, u: Tensor) -> Tensor:
        raise error

    functions = {"objective": distance, role: bad}
    with pytest.raises(kind) as caught:
        call("argmin", **functions)()
    assert caught.value is error
    assert any(entry.name == "bad" for entry in caught.traceback)


def test_a_wrong_number_of_arguments_is_pythons_own_message():
    with pytest.raises(TypeError, match="positional argument"):
        call("argmin", lambda x, w, u: distance(x, u))()


def test_a_node_is_held_to_the_same_rules_and_named_alike():
    class Vector(tacit.Node):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))

        def objective(self, x: Tensor, u: Tensor) -> Tensor:
            return (u - self.w * x).square()

    raised(FunctionError, lambda: Vector()(x, start=x), "objective expects", "(3,)", ".sum()")


def test_no_error_is_raised_for_a_function_that_is_allowed():
    def careful(x: Tensor, u: Tensor) -> Tensor:
        return torch.where(u > 0, u - x, 2 * (u - x)).square().sum()

    y = tacit.argmin(tacit.Problem(careful, inequality=sphere), x, start=x)
    assert y.isfinite().all()
