"""Hock & Schittkowski, "Test Examples for Nonlinear Programming Codes" (1981), problems 55 to 76.

Constraints c(u) >= 0 of the book are written -c(u) <= 0 here.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from .base import TestProblem, at_least, at_most, constant, declare, join, rows, within

define = partial(declare, group="hock_schittkowski")
ROOT2 = math.sqrt(2.0)
# HS 57: fraction of available chlorine left after so many weeks.
CHLORINE_WEEKS = (
    *(8, 8, 10, 10, 10, 10, 12, 12, 12, 12, 14, 14, 14, 16, 16, 16, 18, 18, 20, 20, 20, 22),
    *(22, 22, 24, 24, 24, 26, 26, 26, 28, 28, 30, 30, 30, 32, 32, 34, 36, 36, 38, 38, 40, 42),
)
CHLORINE_LEFT = (
    *(0.49, 0.49, 0.48, 0.47, 0.48, 0.47, 0.46, 0.46, 0.45, 0.43, 0.45, 0.43, 0.43, 0.44, 0.43, 0.43, 0.46, 0.45),
    *(0.42, 0.42, 0.43, 0.41, 0.41, 0.40, 0.42, 0.40, 0.40, 0.41, 0.40, 0.41, 0.41, 0.40, 0.40, 0.40, 0.38, 0.41),
    *(0.40, 0.40, 0.41, 0.38, 0.40, 0.40, 0.39, 0.39),
)


def chlorine(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Sum of squares of b - u1 - (x1 - u1) exp(-u2 (a - x2))."""
    a, b = constant(CHLORINE_WEEKS, u), constant(CHLORINE_LEFT, u)
    return (b - u[0] - (x[0] - u[0]) * torch.exp(-u[1] * (a - x[1]))).square().sum()


def separation(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Minus the weighted logarithms of HS 62."""
    tail = u[2] + 0.03
    both = u[1] + tail
    return -32.174 * (
        x[0] * torch.log((u[0] + both) / (0.09 * u[0] + both))
        + x[1] * torch.log(both / (0.07 * u[1] + tail))
        + x[2] * torch.log(tail / (0.13 * u[2] + 0.03))
    )


def normal(z: torch.Tensor) -> torch.Tensor:
    """Distribution function of the standard normal."""
    return 0.5 * (1 + torch.erf(z / ROOT2))


def inspection(samples: int, shift: float) -> dict[str, Any]:
    """HS 68 and 69: the cost of a control chart with samples of this size; x = cost of one sample, penalty."""

    def objective(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        growth = torch.exp(u[0]) - 1
        return (x[0] * samples - (x[1] * growth - u[2]) * u[3] / (growth + u[3])) / u[0]

    def equality(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        delta = shift * math.sqrt(samples)
        return rows(u[2] - 2 * normal(-u[1]), u[3] - normal(delta - u[1]) - normal(-delta - u[1]))

    return {
        "objective": objective,
        "equality": equality,
        "inequality": lambda x, u: within(u, (0.0001, 0.0, 0.0, 0.0), (100.0, 100.0, 2.0, 2.0)),
        "start": (1.0, 1.0, 1.0, 1.0),
        "p": 2,
        "q": 8,
        "nonconvex": True,
    }


def power_flow(angle: float) -> dict[str, Any]:
    """HS 74 and 75: two generators, angles within +-angle; x = costs, phase, demand at the third node."""

    def equality(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        first, second, phase = u[2], u[3], x[2]
        return rows(
            1000 * (torch.sin(-first - phase) + torch.sin(-second - phase)) + 894.8 - u[0],
            1000 * (torch.sin(first - phase) + torch.sin(first - second - phase)) + 894.8 - u[1],
            1000 * (torch.sin(second - phase) + torch.sin(second - first - phase)) + x[3],
        )

    limits = (0.0, 0.0, -angle, -angle), (1200.0, 1200.0, angle, angle)
    return {
        "objective": lambda x, u: x[0] * u[0] + 1e-6 * u[0] ** 3 + x[1] * u[1] + 2e-6 / 3 * u[1] ** 3,
        "equality": equality,
        "inequality": lambda x, u: join(rows(u[2] - u[3] - angle, u[3] - u[2] - angle), within(u, *limits)),
        "x": (3.0, 2.0, 0.25, 1294.8),
        "start": (0.0, 0.0, 0.0, 0.0),
        "p": 3,
        "q": 10,
        "nonconvex": True,
        "spread": 0.01,  # the admissible angles leave little room
    }


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "hs55",
        source="HS 55, six equality rows of rank five; x = weight of u2, rate of the exponential",
        objective=lambda x, u: u[0] + x[0] * u[1] + 4 * u[4] + torch.exp(x[1] * u[0] * u[3]),
        equality=lambda x, u: rows(
            u[0] + 2 * u[1] + 5 * u[4] - 6,
            u[0] + u[1] + u[2] - 3,
            u[3] + u[4] + u[5] - 2,
            u[0] + u[3] - 1,
            u[1] + u[4] - 2,
            u[2] + u[5] - 2,
        ),
        inequality=lambda x, u: join(at_least(u, 0.0), rows(u[0] - 1, u[3] - 1)),
        x=(2.0, 1.0),
        start=(1.0, 2.0, 0.0, 0.0, 0.0, 2.0),
        p=6,
        q=8,
        y=(0.0, 4 / 3, 5 / 3, 1.0, 2 / 3, 1 / 3),
        f=19 / 3,
        kind="dependent",
        nonconvex=True,
    ),
    define(
        "hs56",
        source="HS 56; x = the two sizes",
        objective=lambda x, u: -u[0] * u[1] * u[2],
        equality=lambda x, u: rows(
            u[0] - x[0] * torch.sin(u[3]).square(),
            u[1] - x[0] * torch.sin(u[4]).square(),
            u[2] - x[0] * torch.sin(u[5]).square(),
            u[0] + 2 * u[1] + 2 * u[2] - x[1] * torch.sin(u[6]).square(),
        ),
        x=(4.2, 7.2),
        start=(1.0, 1.0, 1.0, *[math.asin(math.sqrt(1 / 4.2))] * 3, math.asin(math.sqrt(5 / 7.2))),
        p=4,
        y=(
            2.4,
            1.2,
            1.2,
            math.asin(math.sqrt(4 / 7)),
            math.asin(math.sqrt(2 / 7)),
            math.asin(math.sqrt(2 / 7)),
            math.pi / 2,
        ),
        f=-3.456,
        nonconvex=True,
    ),
    define(
        "hs57",
        source="HS 57; x = initial fraction, first week",
        objective=chlorine,
        inequality=lambda x, u: join(rows(u[0] * u[1] - 0.49 * u[1] + 0.09), at_least(u, (0.4, -4.0))),
        x=(0.49, 8.0),
        start=(0.42, 5.0),
        q=3,
        y=(0.419952650758, 1.28484519362),
        f=0.02845966972,
        nonconvex=True,
    ),
    define(
        "hs60",
        source="HS 60; x = target of u1, weight of the quartic, right-hand side",
        objective=lambda x, u: (u[0] - x[0]).square() + (u[0] - u[1]).square() + x[1] * (u[1] - u[2]) ** 4,
        equality=lambda x, u: rows(u[0] * (1 + u[1].square()) + u[2] ** 4 - x[2]),
        inequality=lambda x, u: within(u, -10.0, 10.0),
        x=(1.0, 1.0, 4 + 3 * ROOT2),
        start=(2.0, 2.0, 2.0),
        p=1,
        q=6,
        y=(1.10485901973, 1.19667418229, 1.53526226033),
        f=0.03256820025,
        nonconvex=True,
    ),
    define(
        "hs61",
        source="HS 61; x = linear terms, right-hand sides",
        objective=lambda x, u: 4 * u[0].square() + 2 * u[1:].square().sum() - x[0] * u[0] + x[1] * u[1] - x[2] * u[2],
        equality=lambda x, u: rows(3 * u[0] - 2 * u[1].square() - x[3], 4 * u[0] - u[2].square() - x[4]),
        x=(33.0, 16.0, 24.0, 7.0, 11.0),
        start=(0.0, 0.0, 0.0),
        p=2,
        y=(5.32677013556, -2.11899863222, 3.21046422535),
        f=-143.6461422,
        nonconvex=True,
    ),
    define(
        "hs62",
        source="HS 62; x = weights of the logarithms, right-hand side",
        objective=separation,
        equality=lambda x, u: rows(u.sum() - x[3]),
        inequality=lambda x, u: within(u, 0.0, 1.0),
        x=(255.0, 280.0, 290.0, 1.0),
        start=(0.7, 0.2, 0.1),
        p=1,
        q=6,
        y=(0.617812690813, 0.32820222312, 0.0539850860676),
        f=-26272.51448,
    ),
    define(
        "hs63",
        source="HS 63; x = weight of u2, right-hand side of the plane, squared radius",
        objective=lambda x, u: 1000 - u[0].square() - x[0] * u[1].square() - u[2].square() - u[0] * u[1] - u[0] * u[2],
        equality=lambda x, u: rows(8 * u[0] + 14 * u[1] + 7 * u[2] - x[1], u.square().sum() - x[2]),
        inequality=lambda x, u: at_least(u, 0.0),
        x=(2.0, 56.0, 25.0),
        start=(2.0, 2.0, 2.0),
        p=2,
        q=3,
        y=(3.51212134187, 0.216987941515, 3.55217115483),
        f=961.7151721,
        nonconvex=True,
    ),
    define(
        "hs64",
        source="HS 64; x = linear costs of u1 and u3, the last two reciprocal costs, a coefficient of the constraint",
        objective=lambda x, u: x[0] * u[0] + 50000 / u[0] + 20 * u[1] + x[2] / u[1] + x[1] * u[2] + x[3] / u[2],
        inequality=lambda x, u: join(rows(4 / u[0] + x[4] / u[1] + 120 / u[2] - 1), at_least(u, 1e-5)),
        x=(5.0, 10.0, 72000.0, 144000.0, 32.0),
        start=(1.0, 1.0, 1.0),
        q=4,
        y=(108.734704911, 85.1262127909, 204.324596613),
        f=6299.842428,
        nonconvex=True,
    ),
    define(
        "hs65",
        source="HS 65; x = target of u1 + u2, target of u3, squared radius",
        objective=lambda x, u: (u[0] - u[1]).square() + (u[0] + u[1] - x[0]).square() / 9 + (u[2] - x[1]).square(),
        inequality=lambda x, u: join(rows(u.square().sum() - x[2]), within(u, (-4.5, -4.5, -5.0), (4.5, 4.5, 5.0))),
        x=(10.0, 5.0, 48.0),
        start=(-5.0, 5.0, 0.0),
        q=7,
        y=(3.65046172521, 3.65046172521, 4.62041755532),
        f=0.9535288567,
    ),
    define(
        "hs66",
        source="HS 66; x = costs, factors of the exponentials",
        objective=lambda x, u: x[0] * u[2] - x[1] * u[0],
        inequality=lambda x, u: join(
            rows(x[2] * torch.exp(u[0]) - u[1], x[3] * torch.exp(u[1]) - u[2]), within(u, 0.0, (100.0, 100.0, 10.0))
        ),
        x=(0.2, 0.8, 1.0, 1.0),
        start=(0.0, 1.05, 2.9),
        q=8,
        y=(0.184126487923, 1.2021678732, 3.3273223226),
        f=0.5181632741,
    ),
    define(
        "hs68",
        source="HS 68 (cost optimal inspection plan); x = cost of one sample, penalty",
        x=(0.0001, 1.0),
        y=(0.0678585770855, 3.64621085569, 0.000266135625215, 0.894855039374),
        f=-0.920425026,
        **inspection(samples=24, shift=1.0),
    ),
    define(
        "hs69",
        source="HS 69 (cost optimal inspection plan); x = cost of one sample, penalty",
        x=(0.1, 1000.0),
        y=(0.0293714174217, 1.19025345041, 0.233946790667, 0.791667811244),
        f=-956.71288,
        **inspection(samples=4, shift=1.0),
    ),
    define(
        "hs71",
        source="HS 71; x = level of the product, squared radius, weight of u3 in the objective, lower bound",
        objective=lambda x, u: u[0] * u[3] * (u[0] + u[1] + u[2]) + x[2] * u[2],
        equality=lambda x, u: rows(u.square().sum() - x[1]),
        inequality=lambda x, u: join(rows(x[0] - u[0] * u[1] * u[2] * u[3]), x[3] - u, at_most(u, 5.0)),
        x=(25.0, 40.0, 1.0, 1.0),
        start=(1.0, 5.0, 5.0, 1.0),
        p=1,
        q=9,
        y=(1.0, 4.74299963726, 3.82114998418, 1.37940829317),
        f=17.0140173,
        nonconvex=True,
    ),
    define(
        "hs72",
        source="HS 72; x = right-hand sides, a coefficient of each constraint",
        objective=lambda x, u: 1 + u.sum(),
        inequality=lambda x, u: join(
            rows(
                x[2] / u[0] + 2.25 / u[1] + 1 / u[2] + 0.25 / u[3] - x[0],
                0.16 / u[0] + x[3] / u[1] + 0.64 / u[2] + 0.64 / u[3] - x[1],
            ),
            within(u, 0.001, (4e5, 3e5, 2e5, 1e5)),
        ),
        x=(0.0401, 0.010085, 4.0, 0.36),
        start=(1.0, 1.0, 1.0, 1.0),
        q=10,
        y=(193.407427272, 179.547076032, 185.018063358, 168.706791127),
        f=727.67937,
    ),
    define(
        "hs73",
        source="HS 73 (cattle feed); x = price and fat of the first feed, protein demand, quantile of the normal",
        objective=lambda x, u: x[0] * u[0] + 26.75 * u[1] + 39 * u[2] + 40.5 * u[3],
        equality=lambda x, u: rows(u.sum() - 1),
        inequality=lambda x, u: join(
            rows(
                5 - x[1] * u[0] - 5.6 * u[1] - 11.1 * u[2] - 1.3 * u[3],
                x[2]
                + x[3] * torch.sqrt((constant((0.28, 0.19, 20.5, 0.62), u) * u.square()).sum())
                - (constant((12.0, 11.9, 41.8, 52.1), u) * u).sum(),
            ),
            at_least(u, 0.0),
        ),
        x=(24.55, 2.3, 21.0, 1.645),
        start=(1.0, 1.0, 1.0, 1.0),
        p=1,
        q=6,
        y=(0.635521568635, 0.0, 0.312701880752, 0.0517765506134),
        f=29.894378,
    ),
    define(
        "hs74",
        source="HS 74 (optimal power flow); x = costs, phase, demand",
        y=(679.945319851, 1026.06713261, 0.118876364493, -0.396233553203),
        f=5126.4981,
        **power_flow(angle=0.55),
    ),
    define(
        "hs75",
        source="HS 75 (optimal power flow); x = costs, phase, demand",
        y=(776.159026586, 925.195138469, 0.0511089285384, -0.428891071462),
        f=5174.4129,
        **power_flow(angle=0.48),
    ),
    define(
        "hs76",
        source="HS 76; x = linear terms, right-hand side",
        objective=lambda x, u: (
            u[0].square()
            + u[1].square() / 2
            + u[2].square()
            + u[3].square() / 2
            - u[0] * u[2]
            + u[2] * u[3]
            - x[0] * u[0]
            - x[1] * u[1]
            + x[2] * u[2]
            - x[3] * u[3]
        ),
        inequality=lambda x, u: join(
            rows(
                u[0] + 2 * u[1] + u[2] + u[3] - x[4],
                3 * u[0] + u[1] + 2 * u[2] - u[3] - 4,
                1.5 - u[1] - 4 * u[2],
            ),
            at_least(u, 0.0),
        ),
        x=(1.0, 3.0, 1.0, 1.0, 5.0),
        start=(0.5, 0.5, 0.5, 0.5),
        q=7,
        y=(0.272727272727, 2.09090909091, 0.0, 0.545454545455),
        f=-4.681818181,
    ),
)
