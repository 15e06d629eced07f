"""Problems at the edge of the theory: dependent rows, no multipliers, intervals of minima, no solution at all."""

from __future__ import annotations

from functools import partial

import torch

from .base import TestProblem, at_least, declare, join, rows

define = partial(declare, group="irregular")


def half_square(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Half the squared distance to the first entries of x."""
    return 0.5 * (u - x[: u.shape[0]]).square().sum()


DEPENDENT: tuple[TestProblem, ...] = (
    define(
        "duplicate_equality",
        source="the same plane twice, once scaled; x = point, right-hand side",
        objective=half_square,
        equality=lambda x, u: (u.sum() - x[3]) * torch.tensor([1.0, 2.0], dtype=u.dtype, device=u.device),
        x=(1.0, 2.0, 3.0, 3.0),
        start=(0.0, 0.0, 0.0),
        p=2,
        y=(0.0, 1.0, 2.0),
        f=1.5,
        kind="dependent",
    ),
    define(
        "equality_and_its_bound",
        source="an equality row that is an inequality row as well; x = point, right-hand side",
        objective=half_square,
        equality=lambda x, u: rows(u[0] + u[1] - x[2]),
        inequality=lambda x, u: rows(u[0] + u[1] - x[2]),
        x=(2.0, 1.0, 1.0),
        start=(0.0, 0.0),
        p=1,
        q=1,
        y=(1.0, 0.0),
        f=1.0,
        kind="dependent",
    ),
    define(
        "nested_tangent_balls",
        source="two balls, one inside the other, touching at the solution; x = radius of the inner, slope",
        objective=lambda x, u: -x[1] * u[0] + 0.1 * u[1].square(),
        inequality=lambda x, u: rows(
            u.square().sum() - x[0].square(), (u[0] + 1).square() + u[1].square() - (x[0] + 1).square()
        ),
        x=(1.0, 2.0),
        start=(0.0, 0.3),
        q=2,
        y=(1.0, 0.0),
        f=-2.0,
        kind="dependent",
    ),
    define(
        "touching_balls",
        source="two balls with one common point: no multipliers exist; x = radii, height of the target",
        objective=lambda x, u: 0.5 * (u[0].square() + (u[1] - x[2]).square()),
        inequality=lambda x, u: rows(
            u.square().sum() - x[0].square(), (u[0] - x[0] - x[1]).square() + u[1].square() - x[1].square()
        ),
        x=(1.0, 1.0, 1.0),
        start=(1.0, 0.5),
        q=2,
        y=(1.0, 0.0),
        f=1.0,
        kind="dependent",
    ),
    define(
        "apex",
        source="three planes through one point of the plane, consistent as x moves; x = height, position, tilt",
        objective=lambda x, u: u[1] + x[2] * u[0],
        inequality=lambda x, u: rows(x[0] + u[0] - x[1] - u[1], x[0] - u[0] + x[1] - u[1], x[0] - u[1]),
        x=(1.0, 0.5, 0.2),
        start=(2.0, 3.0),
        q=3,
        y=(0.5, 1.0),
        f=1.1,
        kind="dependent",
    ),
    define(
        "apex_inconsistent",
        source="three planes with a right-hand side each: they meet in a point only where all three agree; x = those",
        objective=lambda x, u: u[1],
        inequality=lambda x, u: rows(x[0] + u[0] - u[1], x[1] - u[0] - u[1], x[2] - u[1]),
        x=torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [-0.5, -0.5, -0.5]], dtype=torch.float64),
        start=(2.0, 3.0),
        q=3,
        y=(0.0, 1.0),
        f=1.0,
        kind="dependent",
    ),
    define(
        "sum_of_squares",
        source="two equality rows squared and added into one: its gradient vanishes; x = the point they name, weight",
        objective=lambda x, u: 0.5 * x[2] * u.square().sum(),
        equality=lambda x, u: rows((u - x[:2]).square().sum()),
        x=(1.0, -2.0, 1.0),
        start=(0.0, 0.0),
        p=1,
        y=(1.0, -2.0),
        f=2.5,
        kind="dependent",
        nonconvex=True,
    ),
    define(
        "squared_row",
        source="a linear row written as its square; x = point, right-hand side",
        objective=half_square,
        equality=lambda x, u: rows((u.sum() - x[2]).square()),
        x=(2.0, 1.0, 1.0),
        start=(0.0, 0.0),
        p=1,
        y=(1.0, 0.0),
        f=1.0,
        kind="dependent",
        nonconvex=True,
    ),
    define(
        "transport_full",
        source="entropic transport with every marginal written down: six rows of rank five; x = costs",
        objective=lambda x, u: (u * (torch.log(u) + x)).sum(),
        equality=lambda x, u: join(u.reshape(3, 3).sum(dim=1) - 1 / 3, u.reshape(3, 3).sum(dim=0) - 1 / 3),
        x=(0.1, 0.9, 0.5, 0.8, 0.2, 0.6, 0.7, 0.4, 0.3),
        start=9 * (1 / 9,),
        p=6,
        y=(
            *(0.159918178602, 0.0692520399286, 0.104163114803, 0.0845394424095, 0.148458951763),
            *(0.100334939161, 0.0888757123222, 0.115622341642, 0.128835279369),
        ),
        kind="dependent",
    ),
)
SINGULAR: tuple[TestProblem, ...] = (
    define(
        "flat_direction",
        source="one of two unknowns does not matter; x = target, weight",
        objective=lambda x, u: x[1] * (u[0] + u[1] - x[0]).square(),
        x=(2.0, 1.0),
        start=(0.0, 0.0),
        y=(1.0, 1.0),
        f=0.0,
        kind="singular",
    ),
    define(
        "linear_program_edge",
        source="a linear program whose minima fill an edge; x = price, right-hand side",
        objective=lambda x, u: x[0] * (u[0] + u[1]),
        inequality=lambda x, u: join(rows(x[1] - u[0] - u[1]), at_least(u, 0.0)),
        x=(1.0, 2.0),
        start=(3.0, 1.5),
        q=3,
        y=(1.0, 1.0),
        f=2.0,
        kind="singular",
    ),
    define(
        "quartic_root",
        source="a minimum of fourth order: y = x1, H = 0; x = root, weight",
        objective=lambda x, u: x[1] * (u[0] - x[0]) ** 4,
        x=(1.0, 1.0),
        start=(2.0,),
        y=(1.0,),
        f=0.0,
        kind="singular",
    ),
)
WEAK: tuple[TestProblem, ...] = (
    define(
        "weak_corner",
        source="the free minimum lies in a corner: two weakly active rows, four one-sided derivatives; x = corner",
        objective=half_square,
        inequality=lambda x, u: rows(-u[0], -u[1]),
        x=torch.zeros(1, 2, dtype=torch.float64),
        start=(1.0, 1.0),
        q=2,
        y=(0.0, 0.0),
        f=0.0,
        kind="weak",
    ),
    define(
        "weak_and_strong",
        source="one row with a multiplier, one without; x = point on the diagonal bound",
        objective=half_square,
        inequality=lambda x, u: rows(u[0] - 1, u[1] - x[1]),
        x=(3.0, 0.5),
        start=(0.0, 0.0),
        q=2,
        y=(1.0, 0.5),
        f=2.0,
        kind="weak",
    ),
)
NO_SOLUTION: tuple[TestProblem, ...] = (
    define(
        "infeasible_bounds",
        source="a lower bound above the upper one; x = the bounds",
        objective=lambda x, u: u[0].square() + u[1].square(),
        inequality=lambda x, u: rows(x[0] - u[0], u[0] - x[1]),
        x=(2.0, 1.0),
        start=(0.0, 1.0),
        q=2,
        kind="no-solution",
    ),
    define(
        "infeasible_planes",
        source="two parallel planes; x = point, right-hand sides",
        objective=half_square,
        equality=lambda x, u: rows(u.sum() - x[2], u.sum() - x[3]),
        x=(1.0, 1.0, 1.0, 2.0),
        start=(0.0, 0.0),
        p=2,
        kind="no-solution",
    ),
    define(
        "infeasible_circles",
        source="two circles that do not meet; x = distance of the centres, radii",
        equality=lambda x, u: rows(
            u.square().sum() - x[1].square(), (u[0] - x[0]).square() + u[1].square() - x[2].square()
        ),
        x=(4.0, 1.0, 1.0),
        start=(1.0, 1.0),
        p=2,
        kind="no-solution",
        nonconvex=True,
    ),
    define(
        "infeasible_square",
        source="a square that ought to be negative; x = point, depth",
        objective=lambda x, u: (u[0] - x[0]).square(),
        inequality=lambda x, u: rows(u[0].square() + x[1]),
        x=(1.0, 1.0),
        start=(1.0,),
        q=1,
        kind="no-solution",
    ),
    define(
        "unbounded_linear",
        source="a linear objective that a bound does not stop; x = slopes",
        objective=lambda x, u: x[0] * u[0] + x[1] * u[1],
        inequality=lambda x, u: at_least(u, 0.0),
        x=(1.0, -1.0),
        start=(1.0, 1.0),
        q=2,
        kind="no-solution",
    ),
    define(
        "unbounded_cubic",
        source="a local minimum is missing and the cube falls for ever; x = weight, slope",
        objective=lambda x, u: x[0] * u[0] ** 3 + x[1] * u[0] + u[1].square(),
        x=(1.0, 1.0),
        start=(0.5, 1.0),
        kind="no-solution",
        nonconvex=True,
    ),
    define(
        "unbounded_saddle",
        source="a saddle with a linear row that does not close it; x = point, right-hand side",
        objective=lambda x, u: (u[0] - x[0]).square() - (u[1] - x[1]).square(),
        equality=lambda x, u: rows(u[0] - x[2]),
        x=(1.0, 0.5, 2.0),
        start=(1.0, 1.0),
        p=1,
        kind="no-solution",
        nonconvex=True,
    ),
    define(
        "not_attained",
        source="an infimum that no point attains; x = rate, weight",
        objective=lambda x, u: torch.exp(-x[0] * u[0]) + x[1] * u[1].square(),
        x=(1.0, 1.0),
        start=(0.0, 1.0),
        kind="no-solution",
    ),
)
PROBLEMS: tuple[TestProblem, ...] = DEPENDENT + SINGULAR + WEAK + NO_SOLUTION
