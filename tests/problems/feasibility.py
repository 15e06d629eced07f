"""Feasibility problems: no objective, as many rows as unknowns, or fewer."""

from __future__ import annotations

import math
from functools import partial

import torch

from .base import TestProblem, at_least, constant, declare, join, rows

define = partial(declare, group="feasibility", kind="feasibility")


def elbow(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Where a planar arm ends: link lengths x1, x2, joint angles u."""
    shoulder, wrist = u[0], u[0] + u[1]
    return rows(
        x[0] * torch.cos(shoulder) + x[1] * torch.cos(wrist), x[0] * torch.sin(shoulder) + x[1] * torch.sin(wrist)
    )


def kinetics(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Robertson's kinetics after one implicit Euler step; x = rates, initial amounts."""
    slow, fast, medium = x[0] * u[0], x[1] * u[1].square(), x[2] * u[1] * u[2]
    return rows(u[0] - x[3] + slow - medium, u[1] - x[4] - slow + medium + fast, u[2] - x[5] - fast)


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "pathological",
        source="the paper's (u - 1)^2 = x^2, the branch u = 1 + x; x = a scalar",
        equality=lambda x, u: (u - 1).square() - x.square(),
        x=(1.0,),
        start=(3.0,),
        p=1,
        y=(2.0,),
        nonconvex=True,
    ),
    define(
        "square_linear",
        source="a linear system; x = right-hand side",
        equality=lambda x, u: constant(((2.0, 1.0, 0.0), (1.0, 3.0, -1.0), (0.0, 1.0, 2.0)), u) @ u - x,
        x=(3.0, 3.0, 3.0),
        start=(0.0, 0.0, 0.0),
        p=3,
        y=(1.0, 1.0, 1.0),
    ),
    define(
        "two_circles",
        source="the upper meeting point of two circles; x = centre of the second, radii",
        equality=lambda x, u: rows(
            u.square().sum() - x[1].square(), (u[0] - x[0]).square() + u[1].square() - x[2].square()
        ),
        x=(5.0, 3.0, 4.0),
        start=(2.0, 2.0),
        p=2,
        y=(1.8, 2.4),
        nonconvex=True,
    ),
    define(
        "powell_exponential",
        source="Powell's badly scaled pair as equations; x = level of the product, right-hand side",
        equality=lambda x, u: rows(10 * u[0] * u[1] - x[0], torch.exp(-u[0]) + torch.exp(-u[1]) - x[1]),
        x=(1.0, 1.3),
        start=(0.2, 1.0),
        p=2,
        y=(0.110525908767, 0.904765236635),
        nonconvex=True,
    ),
    define(
        "inverse_kinematics",
        source="joint angles that bring a planar arm to a point; x = link lengths, point",
        equality=lambda x, u: elbow(x, u) - x[2:],
        x=(1.0, 1.0, 1.0, 1.0),
        start=(0.2, 1.2),
        p=2,
        y=(0.0, math.pi / 2),
        nonconvex=True,
    ),
    define(
        "implicit_euler",
        source="one implicit step of Robertson's kinetics, slowed down; x = rates, initial amounts",
        equality=kinetics,
        x=(0.4, 3.0, 1.0, 1.0, 0.1, 0.2),
        start=(1.0, 0.1, 0.2),
        p=3,
        y=(0.763113867068, 0.207596817288, 0.329289315644),
        nonconvex=True,
    ),
    define(
        "point_on_circle",
        source="any point of a circle: one row, two unknowns; x = radius",
        equality=lambda x, u: rows(u.square().sum() - x[0].square()),
        x=(5.0,),
        start=(6.0, 8.0),
        p=1,
        y=(3.0, 4.0),
        nonconvex=True,
    ),
    define(
        "point_on_line",
        source="any point of a line in space: two rows, three unknowns; x = right-hand sides",
        equality=lambda x, u: rows(u[0] + u[1] + u[2] - x[0], u[0] - u[1] - x[1]),
        x=(3.0, 0.0),
        start=(0.0, 0.0, 0.0),
        p=2,
        y=(1.0, 1.0, 1.0),
    ),
    define(
        "circle_and_half_plane",
        source="a point of a circle on the border of a half plane: an active inequality row; x = radius, offset",
        equality=lambda x, u: rows(u.square().sum() - x[0].square()),
        inequality=lambda x, u: rows(u[0] + u[1] - x[1]),
        x=(5.0, 7.0),
        start=(3.5, 3.5),
        p=1,
        q=1,
        y=(3.0, 4.0),
        nonconvex=True,
    ),
    define(
        "corner_of_a_wedge",
        source="the tip of a wedge, both inequality rows active; x = offsets, slope",
        inequality=lambda x, u: rows(u[0] + x[2] * u[1] - x[0], u[1] - u[0] - x[1]),
        x=(3.0, 0.0, 2.0),
        start=(1.0, 1.0),
        q=2,
        y=(1.0, 1.0),
    ),
    define(
        "plane_in_the_orthant",
        source="a point of a plane with all entries positive, no bound active; x = right-hand side, slope",
        equality=lambda x, u: rows(u[0] + x[1] * u[1] + u[2] - x[0]),
        inequality=lambda x, u: join(at_least(u, 0.0)),
        x=(4.0, 2.0),
        start=(3.0, 3.0, 3.0),
        p=1,
        q=3,
        y=(1.0, 1.0, 1.0),
    ),
)
