"""A wrong option is an exception at once: its name, what was expected, what came, and the nearest right one."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tacit
from node.cases import ball, inputs
from node.test_errors_inputs import raised
from tacit.errors import GradientError, InputTypeError, OptionError, OptionTypeError, SolverError

pytestmark = pytest.mark.untyped
x = inputs()


@pytest.mark.parametrize(
    ("function", "option", "hint"),
    [
        ("argmin", "strat", "start"),
        ("argmin", "solvr", "solver"),
        ("argmin", "in_dim", "in_dims"),
        ("argmin", "onfailure", "on_failure"),
        ("solve", "gradients", "gradient"),
        ("value", "starts", "start"),
        ("jacobian", "indims", "in_dims"),
        ("regularity", "gradent", "gradient"),
    ],
)
def test_an_unknown_option_of_a_call_names_the_nearest_known_one(function: str, option: str, hint: str):
    keyword = {"y": x} if function in ("jacobian", "regularity") else {"start": x}
    call = getattr(tacit, function)
    raised(OptionTypeError, lambda: call(ball, x, **keyword, **{option: 1}), option, f"Did you mean '{hint}'?")


@pytest.mark.parametrize(
    ("make", "option", "hint"),
    [
        (tacit.Implicit, "singlar", "singular"),
        (tacit.Implicit, "linearsolver", "linear_solver"),
        (tacit.Unrolled, "step", "steps"),
        (tacit.Truncated, "term", "terms"),
        (tacit.OneStep, "rates", "rate"),
        (tacit.solvers.InteriorPoint, "toll", "tol"),
        (tacit.solvers.InteriorPoint, "maxiter", "max_iter"),
        (tacit.solvers.Newton, "max_iters", "max_iter"),
    ],
)
def test_an_unknown_option_of_a_policy_or_solver_names_the_nearest_known_one(make: Any, option: str, hint: str):
    raised(OptionTypeError, lambda: make(**{option: 1}), option, f"Did you mean '{hint}'?")


@pytest.mark.parametrize("make", [tacit.solvers.InteriorPoint, tacit.solvers.Newton], ids=lambda m: m.__name__)
@pytest.mark.parametrize(
    ("option", "value", "kind", "words"),
    [
        ("tol", 0, OptionError, ("positive", "0")),
        ("tol", -1e-9, OptionError, ("positive", "-1e-09")),
        ("tol", math.nan, OptionError, ("positive", "nan")),
        ("tol", math.inf, OptionError, ("finite", "inf")),
        ("tol", "small", OptionTypeError, ("number", "'small'")),
        ("tol", True, OptionTypeError, ("number", "True")),
        ("max_iter", 0, OptionError, ("at least 1", "0")),
        ("max_iter", -3, OptionError, ("at least 1", "-3")),
        ("max_iter", 2.5, OptionTypeError, ("integer", "2.5")),
        ("max_iter", 10.0, OptionTypeError, ("integer", "10.0")),
        ("max_iter", None, OptionTypeError, ("integer", "None")),
        ("max_iter", True, OptionTypeError, ("integer", "True")),
    ],
)
def test_a_tolerance_or_count_that_makes_no_sense_is_refused(
    make: Any, option: str, value: Any, kind: type[Exception], words: tuple[str, ...]
):
    raised(kind, lambda: make(**{option: value}), f"{make.__name__}({option}=...) expects", *words)


@pytest.mark.parametrize(
    ("option", "value", "kind", "words"),
    [
        ("linear_solver", "dens", OptionError, ("dense", "Did you mean 'dense'?")),
        ("linear_solver", None, OptionTypeError, ("auto", "None")),
        ("singular", "pinvs", OptionError, ("Did you mean 'pinv'?",)),
        ("singular", 0, OptionTypeError, ("pinv", "0")),
        ("weak", "activ", OptionError, ("Did you mean 'active'?",)),
        ("on_failure", "rais", OptionError, ("Did you mean 'raise'?",)),
        ("delta", 0, OptionError, ("positive", "0")),
        ("delta", math.nan, OptionError, ("positive", "nan")),
        ("delta", "1", OptionTypeError, ("positive", "'1'")),
        ("activity_tol", -1.0, OptionError, ("positive", "-1.0")),
        ("stationarity_tol", 0.0, OptionError, ("positive", "0.0")),
        ("krylov_tol", math.inf, OptionError, ("finite", "inf")),
        ("krylov_max_iter", 0, OptionError, ("at least 1", "0")),
        ("krylov_max_iter", 1.0, OptionTypeError, ("whole number", "1.0")),
        ("dense_limit", -1, OptionError, ("at least 1", "-1")),
        ("preconditioner", 3, OptionTypeError, ("function", "3")),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    option: str, value: Any, kind: type[Exception], words: tuple[str, ...]
):
    raised(kind, lambda: tacit.Implicit(**{option: value}), f"Implicit({option}=...) expects", *words)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: tacit.Unrolled(steps=0), OptionError, ("Unrolled(steps=...)", "at least 1")),
        (lambda: tacit.Unrolled(steps=1.5), OptionTypeError, ("Unrolled(steps=...)", "1.5")),
        (lambda: tacit.Truncated(terms=-1), OptionError, ("Truncated(terms=...)", "-1")),
        (lambda: tacit.Truncated(rate=0.0), OptionError, ("Truncated(rate=...)", "positive")),
        (lambda: tacit.OneStep(rate=math.nan), OptionError, ("OneStep(rate=...)", "nan")),
        (lambda: tacit.OneStep(newton=1), OptionTypeError, ("OneStep(newton=...)", "True or False")),
    ],
)
def test_an_approximation_that_makes_no_sense_is_refused(make: Any, kind: type[Exception], words: tuple[str, ...]):
    raised(kind, make, *words)


@pytest.mark.parametrize("function", ["argmin", "solve", "value"])
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"solver": 3}, InputTypeError, ("solver expects", "3 (int)")),
        ({"solver": "newton"}, InputTypeError, ("solver expects", "'newton'")),
        ({"solver": tacit.solvers.Newton}, InputTypeError, ("solver expects", "Write Newton()")),
        ({"gradient": "implicit"}, InputTypeError, ("gradient expects", "'implicit'")),
        ({"gradient": tacit.Implicit}, InputTypeError, ("gradient expects", "Write Implicit()")),
        ({"gradient": tacit.solvers.Newton()}, InputTypeError, ("gradient expects", "Newton")),
        ({"on_failure": "rais"}, OptionError, ("on_failure", "'rais'", "Did you mean 'raise'?")),
        ({"on_failure": True}, OptionTypeError, ("on_failure", "True")),
    ],
)
def test_a_solver_gradient_or_on_failure_that_is_none_is_refused(
    function: str, options: dict[str, Any], kind: type[Exception], words: tuple[str, ...]
):
    raised(kind, lambda: getattr(tacit, function)(ball, x, start=x, **options), *words)


@pytest.mark.parametrize("function", ["jacobian", "regularity"])
def test_an_approximation_is_refused_where_the_exact_gradient_is_the_question(function: str):
    call = getattr(tacit, function)
    raised(InputTypeError, lambda: call(ball, x, y=x, gradient=tacit.OneStep()), f"{function} expects", "OneStep")


def test_options_of_a_node_are_checked_like_those_of_a_call():
    class Ball(tacit.Node):
        objective = staticmethod(ball.objective)
        inequality = staticmethod(ball.inequality)

    raised(OptionTypeError, lambda: Ball()(x, strat=x), "strat", "Did you mean 'start'?")
    raised(InputTypeError, lambda: Ball(gradient=3), "gradient expects", "3 (int)")
    raised(InputTypeError, lambda: Ball(solver="newton"), "solver expects", "'newton'")
    raised(OptionError, lambda: Ball(on_failure="explode"), "on_failure", "'explode'")
    raised(OptionTypeError, lambda: Ball(solvr=None), "Ball has no option", "Did you mean 'solver'?")


def test_a_misspelt_function_of_a_problem_names_the_nearest():
    raised(OptionTypeError, lambda: tacit.Problem(None, inequalty=ball.inequality), "Did you mean 'inequality'?")


def test_a_solver_for_free_problems_says_that_there_are_constraints():
    raised(SolverError, lambda: tacit.argmin(ball, x, start=x, solver=tacit.solvers.Newton()), "Newton", "constraint")


def test_the_policy_raise_raises_at_a_singular_point():
    flat = tacit.Problem(lambda x, u: (u[0] - x[0]).square())
    z = x.clone().requires_grad_()
    y = tacit.argmin(flat, z, start=x, gradient=tacit.Implicit(singular="raise"))
    raised(GradientError, lambda: y.sum().backward(), "samples 0, 1, 2, 3", "singular")
