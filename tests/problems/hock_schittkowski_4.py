"""Hock & Schittkowski, "Test Examples for Nonlinear Programming Codes" (1981), problems 77 to 100.

Constraints c(u) >= 0 of the book are written -c(u) <= 0 here.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from .base import TestProblem, at_least, constant, declare, join, rows, within

define = partial(declare, group="hock_schittkowski")
ROOT2 = math.sqrt(2.0)

# HS 84: six coefficients of the profit, then five for each of the three capacities.
PROFIT = (-24345.0, -8720288.849, 150512.5253, -156.6950325, 476470.3222, 729482.8271)
CAPACITY = (
    (-145421.402, 2931.1506, -40.427932, 5106.192, 15711.36),
    (-155011.1084, 4360.53352, 12.9492344, 10236.884, 13176.786),
    (-326669.5104, 7390.68412, -27.8986976, 16643.076, 30988.146),
)
# HS 86 (Colville 1): linear, quadratic and cubic terms, ten linear constraints.
LINEAR = (-15.0, -27.0, -36.0, -18.0, -12.0)
CUBIC = (4.0, 8.0, 10.0, 6.0, 2.0)
QUADRATIC = (
    (30.0, -20.0, -10.0, 32.0, -10.0),
    (-20.0, 39.0, -6.0, -31.0, 32.0),
    (-10.0, -6.0, 10.0, -6.0, -10.0),
    (32.0, -31.0, -6.0, 39.0, -20.0),
    (-10.0, 32.0, -10.0, -20.0, 30.0),
)
SIDES = (
    (-16.0, 2.0, 0.0, 1.0, 0.0),
    (0.0, -2.0, 0.0, 0.4, 2.0),
    (-3.5, 0.0, 2.0, 0.0, 0.0),
    (0.0, -2.0, 0.0, -4.0, -1.0),
    (0.0, -9.0, -2.0, 1.0, -2.8),
    (2.0, 0.0, -4.0, 0.0, 0.0),
    (-1.0, -1.0, -1.0, -1.0, -1.0),
    (-1.0, -2.0, -3.0, -2.0, -1.0),
    (1.0, 2.0, 3.0, 4.0, 5.0),
    (1.0, 1.0, 1.0, 1.0, 1.0),
)
LIMITS = (-40.0, -2.0, -0.25, -4.0, -4.0, -1.0, -40.0, -60.0, 5.0, 1.0)


def three_rows(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The constraints that HS 78, 80 and 81 share; x1, x2 = squared radius, factor of the last product."""
    return rows(u.square().sum() - x[0], u[1] * u[2] - x[1] * u[3] * u[4], u[0] ** 3 + u[1] ** 3 + 1)


def product(u: torch.Tensor) -> torch.Tensor:
    """u1 u2 u3 u4 u5, written out: the derivative of a product over a tensor looks for zeros."""
    return u[0] * u[1] * u[2] * u[3] * u[4]


def colville_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 83: three expressions, each with a lower and an upper limit, and the bounds."""
    values = rows(
        85.334407 + 0.0056858 * u[1] * u[4] + 0.0006262 * u[0] * u[3] - 0.0022053 * u[2] * u[4],
        80.51249 + 0.0071317 * u[1] * u[4] + 0.0029955 * u[0] * u[1] + 0.0021813 * u[2].square() - 90,
        9.300961 + 0.0047026 * u[2] * u[4] + 0.0012547 * u[0] * u[2] + 0.0019085 * u[2] * u[3] - x[2],
    )
    bounds = within(u, (78.0, 33.0, 27.0, 27.0, 27.0), (102.0, 45.0, 45.0, 45.0, 45.0))
    return join(within(values, 0.0, (92.0, 20.0, 5.0)), bounds)


def capacities(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 84: three capacities, each with a lower and an upper limit, and the bounds."""
    values = u[0] * (constant(CAPACITY, u) @ join(torch.ones_like(u[:1]), u[1:]))
    limits = join(constant((294000.0, 294000.0), u), x[1:2])
    return join(-values, values - limits, within(u, (0.0, 1.2, 20.0, 9.0, 6.5), (1000.0, 2.4, 60.0, 9.3, 7.0)))


def transformer(x: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """HS 93: the two products that the cost and the constraints share."""
    return u[0] * u[3] * (u[0] + u[1] + u[2]), u[1] * u[2] * (u[0] + 1.57 * u[1] + u[3])


def transformer_cost(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 93: material and losses."""
    inner, outer = transformer(x, u)
    return x[0] * inner + x[1] * outer + 0.0607 * inner * u[4].square() + 0.0437 * outer * u[5].square()


def transformer_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 93: rated power, permissible losses, signs."""
    inner, outer = transformer(x, u)
    power = x[2] - 0.001 * product(u) * u[5]
    losses = 0.00062 * inner * u[4].square() + 0.00058 * outer * u[5].square() - x[3]
    return join(rows(power, losses), at_least(u, 0.0))


def blending(first: float, second: float, third: float, fourth: float) -> dict[str, Any]:
    """HS 95 to 98: six activities, four bilinear demands; x = two costs and the first two demands."""

    def inequality(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        a, b, c, d, e, f = u
        supply_1 = constant((17.1, 38.2, 204.2, 212.3, 623.4, 1495.5), u) @ u - 169 * a * c - 3580 * c * e
        supply_2 = constant((17.9, 36.8, 113.9, 169.7, 337.8, 1385.2), u) @ u - 139 * a * c - 2450 * d * e
        supply_4 = constant((159.9, -311.0, 0.0, 587.0, 391.0, 2198.0), u) @ u - 14000 * a * f
        return join(
            rows(
                x[2] - supply_1 + 3810 * d * e + 18500 * d * f + 24300 * e * f,
                x[3] - supply_2 + 16600 * d * f + 17200 * e * f,
                third + 273 * b + 70 * d + 819 * e - 26000 * d * e,
                fourth - supply_4,
            ),
            within(u, 0.0, (0.31, 0.046, 0.068, 0.042, 0.028, 0.0134)),
        )

    return {
        "objective": lambda x, u: x[0] * u[0] + constant((31.8, 63.3, 15.8, 68.5), u) @ u[1:5] + x[1] * u[5],
        "inequality": inequality,
        "x": (4.3, 4.7, first, second),
        "start": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "q": 16,
        "nonconvex": True,
    }


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "hs77",
        source="HS 77; x = target of u1, right-hand sides",
        objective=lambda x, u: (
            (u[0] - x[0]).square() + (u[0] - u[1]).square() + (u[2] - 1).square() + (u[3] - 1) ** 4 + (u[4] - 1) ** 6
        ),
        equality=lambda x, u: rows(
            u[0].square() * u[3] + torch.sin(u[3] - u[4]) - x[1], u[1] + u[2] ** 4 * u[3].square() - x[2]
        ),
        x=(1.0, 2 * ROOT2, 8 + ROOT2),
        start=(2.0, 2.0, 2.0, 2.0, 2.0),
        p=2,
        y=(1.16617218971, 1.1821113888, 1.38025704315, 1.50603627362, 0.610920196043),
        f=0.24150513,
        nonconvex=True,
    ),
    define(
        "hs78",
        source="HS 78; x = squared radius, factor of the last product, scale of the objective",
        objective=lambda x, u: x[2] * product(u),
        equality=three_rows,
        x=(10.0, 5.0, 1.0),
        start=(-2.0, 1.5, 2.0, -1.0, -1.0),
        p=3,
        y=(-1.71714357039, 1.59570969018, 1.82724575293, -0.763643078184, -0.763643078184),
        f=-2.91970041,
        nonconvex=True,
    ),
    define(
        "hs79",
        source="HS 79; x = target of u1, right-hand sides",
        objective=lambda x, u: (
            (u[0] - x[0]).square()
            + (u[0] - u[1]).square()
            + (u[1] - u[2]).square()
            + (u[2] - u[3]) ** 4
            + (u[3] - u[4]) ** 4
        ),
        equality=lambda x, u: rows(
            u[0] + u[1].square() + u[2] ** 3 - x[1], u[1] - u[2].square() + u[3] - x[2], u[0] * u[4] - x[3]
        ),
        x=(1.0, 2 + 3 * ROOT2, 2 * ROOT2 - 2, 2.0),
        start=(2.0, 2.0, 2.0, 2.0, 2.0),
        p=3,
        y=(1.19112745631, 1.36260316496, 1.47281793151, 1.63501661917, 1.67908143617),
        f=0.0787768209,
        nonconvex=True,
    ),
    define(
        "hs80",
        source="HS 80; x = squared radius, factor of the last product, rate of the exponential",
        objective=lambda x, u: torch.exp(x[2] * product(u)),
        equality=three_rows,
        inequality=lambda x, u: within(u, (-2.3, -2.3, -3.2, -3.2, -3.2), (2.3, 2.3, 3.2, 3.2, 3.2)),
        x=(10.0, 5.0, 1.0),
        start=(-2.0, 2.0, 2.0, -1.0, -1.0),
        p=3,
        q=10,
        y=(-1.71714357039, 1.59570969018, 1.82724575293, -0.763643078184, -0.763643078184),
        f=0.0539498478,
        nonconvex=True,
    ),
    define(
        "hs81",
        source="HS 81; x = squared radius, factor of the last product, weight of the square",
        objective=lambda x, u: torch.exp(product(u)) - x[2] * (u[0] ** 3 + u[1] ** 3 + 1).square(),
        equality=three_rows,
        inequality=lambda x, u: within(u, (-2.3, -2.3, -3.2, -3.2, -3.2), (2.3, 2.3, 3.2, 3.2, 3.2)),
        x=(10.0, 5.0, 0.5),
        start=(-2.0, 2.0, 2.0, -1.0, -1.0),
        p=3,
        q=10,
        y=(-1.71714357039, 1.59570969018, 1.82724575293, -0.763643078184, -0.763643078184),
        f=0.0539498478,
        nonconvex=True,
    ),
    define(
        "hs83",
        source="HS 83 (Colville 3); x = two coefficients of the objective, a limit",
        objective=lambda x, u: x[0] * u[2].square() + 0.8356891 * u[0] * u[4] + x[1] * u[0] - 40792.141,
        inequality=colville_limits,
        x=(5.3578547, 37.293239, 20.0),
        start=(78.0, 33.0, 27.0, 27.0, 27.0),
        q=16,
        y=(78.0, 33.0, 29.9952560257, 45.0, 36.7758129058),
        f=-30665.53867,
        nonconvex=True,
        spread=0.01,
    ),
    define(
        "hs84",
        source="HS 84, values from 1 to 1e7; x = the linear coefficient of the profit, the last capacity",
        objective=lambda x, u: -PROFIT[0] - x[0] * u[0] - u[0] * (constant(PROFIT[2:], u) @ u[1:]),
        inequality=capacities,
        x=(PROFIT[1], 277200.0),
        start=(2.52, 2.0, 37.5, 9.25, 6.8),
        q=16,
        y=(4.53743097466, 2.4, 60.0, 9.3, 7.0),
        f=-5280335.133,
        nonconvex=True,
        spread=0.01,
    ),
    define(
        "hs86",
        source="HS 86 (Colville 1); x = the linear terms",
        objective=lambda x, u: x @ u + u @ constant(QUADRATIC, u) @ u + constant(CUBIC, u) @ u**3,
        inequality=lambda x, u: join(constant(LIMITS, u) - constant(SIDES, u) @ u, at_least(u, 0.0)),
        x=LINEAR,
        start=(0.0, 0.0, 0.0, 0.0, 1.0),
        q=15,
        y=(0.3, 0.333467606535, 0.4, 0.428310104782, 0.223964873561),
        f=-32.34867897,
        nonconvex=True,
    ),
    define(
        "hs93",
        source="HS 93 (transformer design); x = two prices, rated power, permissible losses",
        objective=transformer_cost,
        inequality=transformer_limits,
        x=(0.0204, 0.0187, 2.07, 1.0),
        start=(5.54, 4.4, 12.02, 11.82, 0.702, 0.852),
        q=8,
        y=(5.33266633553, 4.65674405917, 10.4329919405, 12.0823063401, 0.752607436224, 0.878650874659),
        f=135.075961,
        nonconvex=True,
    ),
    define(
        "hs95",
        source="HS 95; x = two costs, two demands",
        y=(0.0, 0.0, 0.0, 0.0, 0.0, 0.00332330324306),
        f=0.015619514,
        **blending(4.97, -1.88, -29.08, -78.02),
    ),
    define(
        "hs97",
        source="HS 97; x = two costs, two demands",
        y=(0.268564912281, 0.0, 0.0, 0.0, 0.028, 0.0134),
        f=3.1358091,
        **blending(32.97, 25.12, -29.08, -78.02),
    ),
    define(
        "hs100",
        source="HS 100; x = target of u1, weight of u5, two levels",
        objective=lambda x, u: (
            (u[0] - x[0]).square()
            + 5 * (u[1] - 12).square()
            + u[2] ** 4
            + 3 * (u[3] - 11).square()
            + x[1] * u[4] ** 6
            + 7 * u[5].square()
            + u[6] ** 4
            - 4 * u[5] * u[6]
            - 10 * u[5]
            - 8 * u[6]
        ),
        inequality=lambda x, u: rows(
            2 * u[0].square() + 3 * u[1] ** 4 + u[2] + 4 * u[3].square() + 5 * u[4] - x[2],
            7 * u[0] + 3 * u[1] + 10 * u[2].square() + u[3] - u[4] - 282,
            23 * u[0] + u[1].square() + 6 * u[5].square() - 8 * u[6] - 196,
            4 * u[0].square() + u[1].square() - 3 * u[0] * u[1] + 2 * u[2].square() + 5 * u[5] - 11 * u[6] - x[3],
        ),
        x=(10.0, 10.0, 127.0, 0.0),
        start=(1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0),
        q=4,
        y=(
            *(2.33049937288, 1.9513723729, -0.477541392389, 4.36572623366),
            *(-0.624486970527, 1.03813101861, 1.59422671161),
        ),
        f=680.6300573,
    ),
)
