"""Hock & Schittkowski, "Test Examples for Nonlinear Programming Codes" (1981), problems 30 to 53.

Constraints c(u) >= 0 of the book are written -c(u) <= 0 here.
"""

from __future__ import annotations

import math
from functools import partial

import torch

from .base import TestProblem, at_least, at_most, declare, join, rows, within

define = partial(declare, group="hock_schittkowski")
ROOT2, ROOT3 = math.sqrt(2.0), math.sqrt(3.0)


def volume(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Minus the volume of a box, times x1."""
    return -x[0] * u[0] * u[1] * u[2]


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "hs30",
        source="HS 30, a sphere and a plane touch: two active rows, one direction; x = their common distance, a weight",
        objective=lambda x, u: u[0].square() + x[1] * u[1].square() + u[2].square(),
        inequality=lambda x, u: join(
            rows(x[0].square() - u[0].square() - u[1].square(), x[0] - u[0]),
            at_least(u[1:], -10.0),
            at_most(u, 10.0),
        ),
        x=(1.0, 1.0),
        start=(1.0, 1.0, 1.0),
        q=7,
        y=(1.0, 0.0, 0.0),
        f=1.0,
        kind="dependent",
        nonconvex=True,
    ),
    define(
        "hs31",
        source="HS 31; x = weights of u1 and u3, level of the hyperbola",
        objective=lambda x, u: x[0] * u[0].square() + u[1].square() + x[1] * u[2].square(),
        inequality=lambda x, u: join(rows(x[2] - u[0] * u[1]), within(u, (-10.0, 1.0, -10.0), (10.0, 10.0, 1.0))),
        x=(9.0, 9.0, 1.0),
        start=(1.0, 1.0, 1.0),
        q=7,
        y=(1 / ROOT3, ROOT3, 0.0),
        f=6.0,
        nonconvex=True,
    ),
    define(
        "hs32",
        source="HS 32, the bound of u1 is active without a multiplier; x = weight of the difference, lower bound of u2",
        objective=lambda x, u: (u[0] + 3 * u[1] + u[2]).square() + x[0] * (u[0] - u[1]).square(),
        equality=lambda x, u: rows(1 - u.sum()),
        inequality=lambda x, u: join(rows(u[0] ** 3 - 6 * u[1] - 4 * u[2] + x[1]), at_least(u, 0.0)),
        x=(4.0, 3.0),
        start=(0.1, 0.7, 0.2),
        p=1,
        q=4,
        y=(0.0, 0.0, 1.0),
        f=1.0,
        kind="weak",
        nonconvex=True,
    ),
    define(
        "hs33",
        source="HS 33; x = the three roots, squared radius",
        objective=lambda x, u: (u[0] - x[0]) * (u[0] - x[1]) * (u[0] - x[2]) + u[2],
        inequality=lambda x, u: join(
            rows(u[0].square() + u[1].square() - u[2].square(), x[3] - u.square().sum()),
            at_least(u, 0.0),
            rows(u[2] - 5),
        ),
        x=(1.0, 2.0, 3.0, 4.0),
        start=(0.0, 0.0, 3.0),
        q=6,
        y=(0.0, ROOT2, ROOT2),
        f=ROOT2 - 6,
        nonconvex=True,
    ),
    define(
        "hs34",
        source="HS 34; x = weight of u1, factors of the exponentials, upper bound of u3",
        objective=lambda x, u: -x[0] * u[0],
        inequality=lambda x, u: join(
            rows(x[1] * torch.exp(u[0]) - u[1], x[2] * torch.exp(u[1]) - u[2], u[2] - x[3]),
            at_least(u, 0.0),
            at_most(u[:2], 100.0),
        ),
        x=(1.0, 1.0, 1.0, 10.0),
        start=(0.0, 1.05, 2.9),
        q=8,
        y=(math.log(math.log(10.0)), math.log(10.0), 10.0),
        f=-math.log(math.log(10.0)),
    ),
    define(
        "hs35",
        source="HS 35 (Beale's quadratic program); x = linear terms, right-hand side",
        objective=lambda x, u: (
            9 - (x[:3] * u).sum() + 2 * u[0].square() + 2 * u[1].square() + u[2].square() + 2 * u[0] * (u[1] + u[2])
        ),
        inequality=lambda x, u: join(rows(u[0] + u[1] + 2 * u[2] - x[3]), at_least(u, 0.0)),
        x=(8.0, 6.0, 4.0, 3.0),
        start=(0.5, 0.5, 0.5),
        q=4,
        y=(4 / 3, 7 / 9, 4 / 9),
        f=1 / 9,
    ),
    define(
        "hs36",
        source="HS 36; x = scale of the volume, length of the string, upper bound of u1",
        objective=volume,
        inequality=lambda x, u: join(
            rows(u[0] + 2 * u[1] + 2 * u[2] - x[1], u[0] - x[2]), at_least(u, 0.0), at_most(u[1:], (11.0, 42.0))
        ),
        x=(1.0, 72.0, 20.0),
        start=(10.0, 10.0, 10.0),
        q=7,
        y=(20.0, 11.0, 15.0),
        f=-3300.0,
        nonconvex=True,
    ),
    define(
        "hs37",
        source="HS 37; x = scale of the volume, length of the string, its price along u2",
        objective=volume,
        inequality=lambda x, u: join(
            rows(u[0] + x[2] * u[1] + 2 * u[2] - x[1], -u[0] - 2 * u[1] - 2 * u[2]), within(u, 0.0, 42.0)
        ),
        x=(1.0, 72.0, 2.0),
        start=(10.0, 10.0, 10.0),
        q=8,
        y=(24.0, 12.0, 12.0),
        f=-3456.0,
        nonconvex=True,
    ),
    define(
        "hs38",
        source="HS 38 (Colville 4, Wood); x = steepness of the two valleys, their bottoms",
        objective=lambda x, u: (
            x[0] * (u[1] - u[0].square()).square()
            + (x[2] - u[0]).square()
            + x[1] * (u[3] - u[2].square()).square()
            + (x[3] - u[2]).square()
            + 10.1 * ((u[1] - 1).square() + (u[3] - 1).square())
            + 19.8 * (u[1] - 1) * (u[3] - 1)
        ),
        inequality=lambda x, u: within(u, -10.0, 10.0),
        x=(100.0, 90.0, 1.0, 1.0),
        start=(-3.0, -1.0, -3.0, -1.0),
        q=8,
        y=(1.0, 1.0, 1.0, 1.0),
        f=0.0,
        nonconvex=True,
    ),
    define(
        "hs39",
        source="HS 39; x = the curvature of u1 in each constraint",
        objective=lambda x, u: -u[0],
        equality=lambda x, u: rows(
            u[1] - x[0] * u[0] ** 3 - u[2].square(), x[1] * u[0].square() - u[1] - u[3].square()
        ),
        x=(1.0, 1.0),
        start=(2.0, 2.0, 2.0, 2.0),
        p=2,
        y=(1.0, 1.0, 0.0, 0.0),
        f=-1.0,
        nonconvex=True,
    ),
    define(
        "hs40",
        source="HS 40; x = scale of the objective, right-hand side, factor of u3",
        objective=lambda x, u: -x[0] * u[0] * u[1] * u[2] * u[3],
        equality=lambda x, u: rows(
            u[0] ** 3 + u[1].square() - x[1], u[0].square() * u[3] - x[2] * u[2], u[3].square() - u[1]
        ),
        x=(1.0, 1.0, 1.0),
        start=(0.8, 0.8, 0.8, 0.8),
        p=3,
        y=(2 ** (-1 / 3), 2**-0.5, 2 ** (-11 / 12), 2**-0.25),
        f=-0.25,
        nonconvex=True,
    ),
    define(
        "hs41",
        source="HS 41; x = weights in the constraint, upper bound of u4",
        objective=lambda x, u: 2 - u[0] * u[1] * u[2],
        equality=lambda x, u: rows(u[0] + x[0] * u[1] + x[1] * u[2] - u[3]),
        inequality=lambda x, u: join(at_least(u, 0.0), at_most(u[:3], 1.0), rows(u[3] - x[2])),
        x=(2.0, 2.0, 2.0),
        start=(2.0, 2.0, 2.0, 2.0),
        p=1,
        q=8,
        y=(2 / 3, 1 / 3, 1 / 3, 2.0),
        f=52 / 27,
        nonconvex=True,
    ),
    define(
        "hs42",
        source="HS 42; x = the target, right-hand sides",
        objective=lambda x, u: (u - x[:4]).square().sum(),
        equality=lambda x, u: rows(u[0] - x[4], u[2].square() + u[3].square() - x[5]),
        x=(1.0, 2.0, 3.0, 4.0, 2.0, 2.0),
        start=(1.0, 1.0, 1.0, 1.0),
        p=2,
        y=(2.0, 2.0, 0.6 * ROOT2, 0.8 * ROOT2),
        f=28 - 10 * ROOT2,
        nonconvex=True,
    ),
    define(
        "hs43",
        source="HS 43 (Rosen-Suzuki); x = linear terms of u3 and u4, the three levels",
        objective=lambda x, u: (
            u[0].square()
            + u[1].square()
            + 2 * u[2].square()
            + u[3].square()
            - 5 * u[0]
            - 5 * u[1]
            - x[0] * u[2]
            + x[1] * u[3]
        ),
        inequality=lambda x, u: rows(
            u.square().sum() + u[0] - u[1] + u[2] - u[3] - x[2],
            u.square().sum() + u[1].square() + u[3].square() - u[0] - u[3] - x[3],
            u[:3].square().sum() + u[0].square() + 2 * u[0] - u[1] - u[3] - x[4],
        ),
        x=(21.0, 7.0, 8.0, 10.0, 5.0),
        start=(0.0, 0.0, 0.0, 0.0),
        q=3,
        y=(0.0, 1.0, 2.0, -1.0),
        f=-44.0,
    ),
    define(
        "hs44",
        source="HS 44, a concave program with its solution at a vertex; x = weights, two right-hand sides",
        objective=lambda x, u: x[0] * u[0] - x[1] * u[1] - u[2] + (u[3] - u[2]) * u[0] + (u[2] - u[3]) * u[1],
        inequality=lambda x, u: join(
            rows(
                u[0] + 2 * u[1] - 8,
                4 * u[0] + u[1] - 12,
                3 * u[0] + 4 * u[1] - x[2],
                2 * u[2] + u[3] - 8,
                u[2] + 2 * u[3] - x[3],
                u[2] + u[3] - 5,
            ),
            at_least(u, 0.0),
        ),
        x=(1.0, 1.0, 12.0, 8.0),
        start=(0.0, 0.0, 0.0, 0.0),
        q=10,
        y=(0.0, 3.0, 0.0, 4.0),
        f=-15.0,
        nonconvex=True,
    ),
    define(
        "hs45",
        source="HS 45; x = the upper bounds",
        objective=lambda x, u: 2 - u[0] * u[1] * u[2] * u[3] * u[4] / 120,
        inequality=lambda x, u: join(at_least(u, 0.0), u - x),
        x=(1.0, 2.0, 3.0, 4.0, 5.0),
        start=(2.0, 2.0, 2.0, 2.0, 2.0),
        q=10,
        y=(1.0, 2.0, 3.0, 4.0, 5.0),
        f=1.0,
        nonconvex=True,
    ),
    define(
        "hs46",
        source="HS 46, powers four and six: the reduced Hessian is singular; x = weights",
        objective=lambda x, u: (
            x[0] * (u[0] - u[1]).square() + (u[2] - 1).square() + x[1] * (u[3] - 1) ** 4 + (u[4] - 1) ** 6
        ),
        equality=lambda x, u: rows(
            u[0].square() * u[3] + torch.sin(u[3] - u[4]) - 1, u[1] + u[2] ** 4 * u[3].square() - 2
        ),
        x=(1.0, 1.0),
        start=(ROOT2 / 2, 1.75, 0.5, 2.0, 2.0),
        p=2,
        y=(1.0, 1.0, 1.0, 1.0, 1.0),
        f=0.0,
        kind="singular",
        nonconvex=True,
    ),
    define(
        "hs48",
        source="HS 48, H singular and the KKT matrix regular; x = target of u1, right-hand sides",
        objective=lambda x, u: (u[0] - x[0]).square() + (u[1] - u[2]).square() + (u[3] - u[4]).square(),
        equality=lambda x, u: rows(u.sum() - x[1], u[2] - 2 * (u[3] + u[4]) + x[2]),
        x=(1.0, 5.0, 3.0),
        start=(3.0, 5.0, -3.0, 2.0, -2.0),
        p=2,
        y=(1.0, 1.0, 1.0, 1.0, 1.0),
        f=0.0,
    ),
    define(
        "hs49",
        source="HS 49, powers four and six: the reduced Hessian is singular; x = weights",
        objective=lambda x, u: (
            x[0] * (u[0] - u[1]).square() + x[1] * (u[2] - 1).square() + (u[3] - 1) ** 4 + (u[4] - 1) ** 6
        ),
        equality=lambda x, u: rows(u[0] + u[1] + u[2] + 4 * u[3] - 7, u[2] + 5 * u[4] - 6),
        x=(1.0, 1.0),
        start=(10.0, 7.0, 2.0, -3.0, 0.8),
        p=2,
        y=(1.0, 1.0, 1.0, 1.0, 1.0),
        f=0.0,
        kind="singular",
    ),
    define(
        "hs50",
        source="HS 50; x = the right-hand sides",
        objective=lambda x, u: (
            (u[0] - u[1]).square() + (u[1] - u[2]).square() + (u[2] - u[3]) ** 4 + (u[3] - u[4]).square()
        ),
        equality=lambda x, u: u[:3] + 2 * u[1:4] + 3 * u[2:] - x,
        x=(6.0, 6.0, 6.0),
        start=(35.0, -31.0, 11.0, 5.0, -5.0),
        p=3,
        y=(1.0, 1.0, 1.0, 1.0, 1.0),
        f=0.0,
    ),
    define(
        "hs51",
        source="HS 51; x = target of u2 + u3, right-hand side of the first row, target of u5",
        objective=lambda x, u: (
            (u[0] - u[1]).square() + (u[1] + u[2] - x[0]).square() + (u[3] - 1).square() + (u[4] - x[2]).square()
        ),
        equality=lambda x, u: rows(u[0] + 3 * u[1] - x[1], u[2] + u[3] - 2 * u[4], u[1] - u[4]),
        x=(2.0, 4.0, 1.0),
        start=(2.5, 0.5, 2.0, -1.0, 0.5),
        p=3,
        y=(1.0, 1.0, 1.0, 1.0, 1.0),
        f=0.0,
    ),
    define(
        "hs52",
        source="HS 52; x = weight of u1, target of u2 + u3, right-hand side of the first row",
        objective=lambda x, u: (
            (x[0] * u[0] - u[1]).square() + (u[1] + u[2] - x[1]).square() + (u[3] - 1).square() + (u[4] - 1).square()
        ),
        equality=lambda x, u: rows(u[0] + 3 * u[1] - x[2], u[2] + u[3] - 2 * u[4], u[1] - u[4]),
        x=(4.0, 2.0, 0.0),
        start=(2.0, 2.0, 2.0, 2.0, 2.0),
        p=3,
        y=(-33 / 349, 11 / 349, 180 / 349, -158 / 349, 11 / 349),
        f=1859 / 349,
    ),
    define(
        "hs53",
        source="HS 53; x = target of u2 + u3, target of u4, right-hand side of the first row",
        objective=lambda x, u: (
            (u[0] - u[1]).square() + (u[1] + u[2] - x[0]).square() + (u[3] - x[1]).square() + (u[4] - 1).square()
        ),
        equality=lambda x, u: rows(u[0] + 3 * u[1] - x[2], u[2] + u[3] - 2 * u[4], u[1] - u[4]),
        inequality=lambda x, u: within(u, -10.0, 10.0),
        x=(2.0, 1.0, 0.0),
        start=(2.0, 2.0, 2.0, 2.0, 2.0),
        p=3,
        q=10,
        y=(-33 / 43, 11 / 43, 27 / 43, -5 / 43, 11 / 43),
        f=176 / 43,
    ),
)
