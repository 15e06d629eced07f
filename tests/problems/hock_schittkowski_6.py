"""Hock & Schittkowski (1981), the rest of 25 to 119: flat or badly scaled starts, geometry, power networks, posynomials.

Constraints c(u) >= 0 of the book are written -c(u) <= 0 here. Problems 67, 85 and 87 (tables and iterations inside the
functions), 82 and 94 (not in the book), 88 to 92 (roots of a transcendental equation) and 105 (235 observations) are left out.
"""

from __future__ import annotations

import math
from functools import partial

import torch

from .base import TestProblem, at_least, constant, declare, join, rows, within

define = partial(declare, group="hock_schittkowski")
ROOT2 = math.sqrt(2.0)

WEIBULL = tuple(25 + (-50 * math.log(0.01 * i)) ** (2 / 3) for i in range(1, 100))
SEDIMENT_TIME = (0.1, *(float(i) for i in range(1, 19)))
SEDIMENT = (
    *(0.00189, 0.1038, 0.268, 0.506, 0.577, 0.604, 0.725, 0.898, 0.947, 0.845, 0.702, 0.528, 0.385, 0.257, 0.159),
    *(0.0869, 0.0453, 0.01509, 0.00189),
)
THRUST = (50.0, 50.0, 75.0, 75.0, 75.0, 100.0, 100.0)
INTERVALS = (25.0, 25.0, 50.0, 50.0, 50.0, 90.0, 90.0)
PAIRS = (
    *(
        (1, 1),
        (1, 4),
        (1, 7),
        (1, 8),
        (1, 16),
        (2, 2),
        (2, 3),
        (2, 7),
        (2, 10),
        (3, 3),
        (3, 7),
        (3, 9),
        (3, 10),
        (3, 14),
    ),
    *((4, 4), (4, 7), (4, 11), (4, 15), (5, 5), (5, 6), (5, 10), (5, 12), (5, 16), (6, 6), (6, 8), (6, 15), (7, 7)),
    *((7, 11), (7, 13), (8, 8), (8, 10), (8, 15), (9, 9), (9, 12), (9, 16), (10, 10), (10, 14), (11, 11), (11, 13)),
    *((12, 12), (12, 14), (13, 13), (13, 14), (14, 14), (15, 15), (16, 16)),
)
BALANCE = (
    (0.22, 0.20, 0.19, 0.25, 0.15, 0.11, 0.12, 0.13),
    (-1.46, 0.0, -1.30, 1.82, -1.15, 0.0, 0.80, 0.0),
    (1.29, -0.89, 0.0, 0.0, -1.16, -0.96, 0.0, -0.49),
    (-1.10, -1.06, 0.95, -0.54, 0.0, -1.78, -0.41, 0.0),
    (0.0, 0.0, 0.0, -1.43, 1.51, 0.59, -0.33, -0.43),
    (0.0, -1.72, -0.33, 0.0, 1.62, 1.24, 0.21, -0.26),
    (1.12, 0.0, 0.0, 0.31, 0.0, 0.0, 1.12, 0.0),
    (0.0, 0.45, 0.26, -1.10, 0.58, 0.0, -1.03, 0.10),
)


def sediment(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Squared deviations of a mixture of two gamma densities from measured concentrations; x = the largest three."""
    t = constant(SEDIMENT_TIME, u)
    seen = torch.cat([constant(SEDIMENT[:7], u), x, constant(SEDIMENT[10:], u)])
    b = u[2] + (1 - u[2]) * u[3]
    first = (
        u[2] * b ** u[1] * (u[1] / 6.2832).sqrt() * (t / 7.685) ** (u[1] - 1) * torch.exp(u[1] - b * t * u[1] / 7.658)
    )
    second = (1 - u[2]) * (b / u[3]) ** u[0] * (u[0] / 6.2832).sqrt() * (t / 7.658) ** (u[0] - 1)
    second = second * torch.exp(u[0] - b * t * u[0] / (7.658 * u[3]))
    return ((1 + 1 / (12 * u[1])) * first + (1 + 1 / (12 * u[0])) * second - seen).square().sum()


def ascent(x: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Range, height and speed of a rocket after seven intervals of constant thrust angles u, against gravity x1."""
    far, high, speed = torch.zeros_like(u[0]), torch.zeros_like(u[0]), torch.zeros_like(u[0])
    for i, (thrust, time) in enumerate(zip(THRUST, INTERVALS, strict=True)):
        push = thrust * torch.sin(u[i]) - x[0]
        high = high + time * speed + 0.5 * time**2 * push
        speed = speed + time * push
        far = far + thrust * time * torch.cos(u[i])
    return far, high, speed


def posynomial(power: float, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    a, b, c, d, e, f, g = u
    return (
        x[0] * a * d**2 * g**power / (b * f**3)
        + 15 * c * d / (a * b**2 * e * g**0.5)
        + 20 * b * f / (a**2 * d * e**2)
        + x[1] * a**2 * b**2 * e**0.5 * g / (c * f**2)
    )


def posynomial_rows(power: float, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    a, b, c, d, e, f, g = u
    value = posynomial(power, x, u)
    return join(
        rows(
            0.5 * a**0.5 * g / (c * f**2)
            + 0.7 * a**3 * b * f * g**0.5 / c**2
            + 0.2 * c * f ** (2 / 3) * g**0.25 / (b * d**0.5)
            - 1,
            1.3 * b * f / (a**0.5 * c * e)
            + 0.8 * c * f**2 / (d * e)
            + 3.1 * b**0.5 * f ** (1 / 3) / (a * d**2 * e)
            - 1,
            2 * a * e * g ** (1 / 3) / (c**1.5 * f)
            + 0.1 * b * e / (c**0.5 * f * g**0.5)
            + b * c**0.5 * e / a
            + 0.65 * c * e * g / (b**2 * f)
            - 1,
            0.2 * b * e**0.5 * g ** (1 / 3) / (a**2 * d)
            + 0.3 * a**0.5 * b**2 * c * d ** (1 / 3) * g**0.25 / e ** (2 / 3)
            + 0.4 * c * e * g**0.75 / (a**3 * b**2)
            + 0.5 * d * g**0.5 / c**2
            - 1,
            100 - value,
            value - 3000,
        ),
        within(u, (*[0.1] * 6, 0.01), [10.0] * 7),
    )


def network(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Real and reactive power balance of three buses; x = loads."""
    c, d = 48.4 / 50.176 * math.sin(0.25), 48.4 / 50.176 * math.cos(0.25)
    s1, c1, s2, c2 = torch.sin(u[7]), torch.cos(u[7]), torch.sin(u[8]), torch.cos(u[8])
    s3, c3 = torch.sin(u[7] - u[8]), torch.cos(u[7] - u[8])
    v, w, z = u[4], u[5], u[6]
    return rows(
        x[0] - u[0] + 2 * c * v**2 - v * w * (d * s1 + c * c1) - v * z * (d * s2 + c * c2),
        x[0] - u[1] + 2 * c * w**2 + v * w * (d * s1 - c * c1) + w * z * (d * s3 - c * c3),
        x[1] + 2 * c * z**2 + v * z * (d * s2 - c * c2) - w * z * (d * s3 + c * c3),
        x[2] - u[2] + 2 * d * v**2 + v * w * (c * s1 - d * c1) + v * z * (c * s2 - d * c2),
        x[2] - u[3] + 2 * d * w**2 - v * w * (c * s1 + d * c1) - w * z * (c * s3 + d * c3),
        -0.337 + 2 * d * z**2 - v * z * (c * s2 + d * c2) + w * z * (c * s3 - d * c3),
    )


def hexagon(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    a, b, c, d, e, f, g, h, i = u
    return rows(
        c**2 + d**2 - x[0],
        i**2 - 1,
        e**2 + f**2 - 1,
        a**2 + (b - i) ** 2 - 1,
        (a - e) ** 2 + (b - f) ** 2 - 1,
        (a - g) ** 2 + (b - h) ** 2 - 1,
        (c - e) ** 2 + (d - f) ** 2 - 1,
        (c - g) ** 2 + (d - h) ** 2 - 1,
        g**2 + (h - i) ** 2 - 1,
        b * c - a * d,
        -c * i,
        e * i,
        f * g - e * h,
        -i,
    )


def separation(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """A three-stage membrane separation; x = required purity, total of the feeds."""
    a, b, c, d, e, f, g, h, i, j, k, o, p = u
    low = (0.1, 0.1, 0.1, 1e-4, 0.1, 0.1, 0.1, 0.1, 500.0, 0.1, 1.0, 1e-4, 1e-4)
    high = (1.0, 1.0, 1.0, 0.1, 0.9, 0.9, 1000.0, 1000.0, 1000.0, 500.0, 150.0, 150.0, 150.0)
    return join(
        -rows(
            c - b,
            b - a,
            1 - 0.002 * (g - h),
            k + o + p - 50,
            x[1] - k - o - p,
            p - 1.262626 * j + 1.231059 * c * j,
            e - 0.03475 * b - 0.975 * b * e + 0.00975 * b**2,
            f - 0.03475 * c - 0.975 * c * f + 0.00975 * c**2,
            e * g - a * h - d * g + d * h,
            1 - 0.002 * (b * i + e * h - a * h - f * i) - e - f,
            b * i - c * j - f * i - 500 * b + 500 * f + b * j,
            b - x[0] - 0.002 * (b * j - c * j),
            d - 0.03475 * a - 0.975 * a * d + 0.00975 * a**2,
            k - 1.262626 * h + 1.231059 * a * h,
            o - 1.262626 * i + 1.231059 * b * i,
        ),
        within(u, low, high),
    )


def balances(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    left = constant(BALANCE, u) @ u[:8] + u[8:]
    right = torch.cat([x, constant((-3.1, -3.5, 1.3, 2.1, 2.3, -1.5), u)])
    # The seventh balance has a ninth unknown.
    return left - right - 0.36 * u[8] * constant((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0), u)


def pairs(u: torch.Tensor) -> torch.Tensor:
    w = u.square() + u + 1
    first, second = (torch.tensor([pair[k] - 1 for pair in PAIRS], device=u.device) for k in (0, 1))
    return (w[first] * w[second]).sum()


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "hs25",
        source="HS 25; x = scale of the exponential, added to the first unknown and the second; a level start",
        objective=lambda x, u: (
            (
                torch.exp(-((constant(WEIBULL, u) - u[1]) ** u[2]) / (u[0] + x[0]))
                - 0.01 * torch.arange(1, 100, dtype=u.dtype, device=u.device)
            )
            .square()
            .sum()
        ),
        inequality=lambda x, u: within(u, (0.1, 0.0, 0.0), (100.0, 25.6, 5.0)),
        x=(0.0,),
        start=(100.0, 12.5, 3.0),
        q=6,
        y=(50.0, 25.0, 1.5),
        f=0.0,
        nonconvex=True,
    ),
    define(
        "hs47",
        source="HS 47; x = the three right-hand sides",
        objective=lambda x, u: (u[0] - u[1]).square() + (u[1] - u[2]) ** 3 + (u[2] - u[3]) ** 4 + (u[3] - u[4]) ** 4,
        equality=lambda x, u: rows(
            u[0] + u[1].square() + u[2] ** 3 - x[0], u[1] - u[2].square() + u[3] - x[1], u[0] * u[4] - x[2]
        ),
        x=(3.0, 1.0, 1.0),
        start=(2.0, ROOT2, -1.0, 2 - ROOT2, 0.5),
        p=3,
        nonconvex=True,
    ),
    define(
        "hs54",
        source="HS 54 in units of its own spreads; x = the row's right-hand side, correlation",
        objective=lambda x, u: (
            -torch.exp(
                -(
                    (u[0].square() / 0.64 + x[1] * u[0] * u[1] + u[1].square()) / 0.96
                    + (u[2] / 0.7).square()
                    + (u[3] / 5).square()
                    + (u[4] / 0.05).square()
                    + (u[5] / 0.5).square()
                )
                / 2
            )
        ),
        equality=lambda x, u: rows(u[0] + 0.4 * u[1] - x[0]),
        inequality=lambda x, u: within(u, (-1.0, -11.0, -0.2, -10.0, -1.001, -0.1), (1.0, 9.0, 0.8, 10.0, 0.999, 0.1)),
        x=(0.36, 0.5),
        start=(-0.4, 0.5, 0.2, -8.0, 0.002, -0.05),
        p=1,
        q=12,
        f=-0.90807475904,
        nonconvex=True,
    ),
    define(
        "hs58",
        source="HS 58; x = steepness, bottom, radius",
        objective=lambda x, u: x[0] * (u[1] - u[0].square()).square() + (x[1] - u[0]).square(),
        inequality=lambda x, u: join(
            rows(u[0] - u[1].square(), u[1] - u[0].square(), x[2] - u.square().sum()), within(u[:1], [-2.0], [0.5])
        ),
        x=(100.0, 1.0, 1.0),
        start=(-2.0, 1.0),
        q=5,
        y=(-0.786151377757, 0.618033988750),
        f=3.19033674411,  # of the vertex; the book prints six digits of it
        nonconvex=True,
    ),
    define(
        "hs59",
        source="HS 59; x = constant of the hyperbola, curvature of the parabola",
        objective=lambda x, u: (
            -75.196
            + 3.8112 * u[0]
            - 0.12694 * u[0] ** 2
            + 2.0567e-3 * u[0] ** 3
            - 1.0345e-5 * u[0] ** 4
            + 6.8306 * u[1]
            - 0.030234 * u[0] * u[1]
            + 1.28134e-3 * u[1] * u[0] ** 2
            - 3.5256e-5 * u[1] * u[0] ** 3
            + 2.266e-7 * u[1] * u[0] ** 4
            - 0.25645 * u[1] ** 2
            + 3.4604e-3 * u[1] ** 3
            - 1.3514e-5 * u[1] ** 4
            + 28.106 / (u[1] + 1)
            + 5.2375e-6 * u[0] ** 2 * u[1] ** 2
            + 6.3e-8 * u[0] ** 3 * u[1] ** 2
            - 7e-10 * u[0] ** 3 * u[1] ** 3
            - 3.4054e-4 * u[0] * u[1] ** 2
            + 1.6638e-6 * u[0] * u[1] ** 3
            + 2.8673 * torch.exp(0.0005 * u[0] * u[1])
        ),
        inequality=lambda x, u: join(
            rows(x[0] - u[0] * u[1], x[1] * u[0].square() - u[1], 5 * (u[0] - 55) - (u[1] - 50).square()),
            within(u, (0.0, 0.0), (75.0, 65.0)),
        ),
        x=(700.0, 0.008),
        start=(90.0, 10.0),
        q=7,
        nonconvex=True,
    ),
    define(
        "hs70",
        source="HS 70; x = the three largest observations",
        objective=sediment,
        inequality=lambda x, u: join(
            rows(-u[2] - (1 - u[2]) * u[3]), within(u, [1e-5] * 4, (100.0, 100.0, 1.0, 100.0))
        ),
        x=SEDIMENT[7:10],
        start=(2.0, 4.0, 0.04, 2.0),
        q=9,
        nonconvex=True,
        spread=0.01,
    ),
    define(
        "hs99",
        source="HS 99 in units of 10^5; x = gravity, height and speed to reach",
        objective=lambda x, u: -((ascent(x, u)[0] / 1e5).square()),
        equality=lambda x, u: rows(ascent(x, u)[1] / 1e5 - x[1], ascent(x, u)[2] / 1e3 - x[2]),
        inequality=lambda x, u: within(u, [0.0] * 7, [1.58] * 7),
        x=(32.0, 1.0, 1.0),
        start=[0.5] * 7,
        p=2,
        q=14,
        f=-0.0831079892,
        nonconvex=True,
    ),
    *(
        define(
            f"hs{number}",
            source=f"HS {number}; x = the first and the last coefficient",
            objective=partial(posynomial, power),
            inequality=partial(posynomial_rows, power),
            x=(10.0, 25.0),
            start=[6.0] * 7,
            q=20,
            f=value,
            nonconvex=True,
        )
        for number, power, value in (
            (101, -0.25, 1809.76476),
            (102, 0.125, 911.880571),
            (103, 0.5, 543.667958),
        )
    ),
    define(
        "hs107",
        source="HS 107; x = the loads",
        objective=lambda x, u: 3000 * u[0] + 1000 * u[0] ** 3 + 2000 * u[1] + 666.667 * u[1] ** 3,
        equality=network,
        inequality=lambda x, u: join(at_least(u[:2], (0.0, 0.0)), within(u[4:7], [0.90909] * 3, [1.0909] * 3)),
        x=(0.4, 0.8, 0.2),
        start=(0.8, 0.8, 0.2, 0.2, 1.0454, 1.0454, 1.0454, 0.0, 0.0),
        p=6,
        q=8,
        f=5055.011803,
        nonconvex=True,
    ),
    define(
        "hs108",
        source="HS 108, the largest hexagon of diameter one; x = the first radius",
        objective=lambda x, u: (
            -0.5 * (u[0] * u[3] - u[1] * u[2] + u[2] * u[8] - u[4] * u[8] + u[4] * u[7] - u[5] * u[6])
        ),
        inequality=hexagon,
        x=(1.0,),
        start=[1.0] * 9,
        q=14,
        kind="singular",
        nonconvex=True,
    ),
    define(
        "hs116",
        source="HS 116; x = purity, total",
        objective=lambda x, u: u[10] + u[11] + u[12],
        inequality=separation,
        x=(0.9, 250.0),
        start=(0.5, 0.8, 0.9, 0.1, 0.14, 0.5, 489.0, 80.0, 650.0, 450.0, 150.0, 150.0, 150.0),
        q=41,
        f=97.588409,
        kind="dependent",
        nonconvex=True,
        spread=0.005,
    ),
    define(
        "hs119",
        source="HS 119; x = the first two right-hand sides",
        objective=lambda x, u: pairs(u),
        equality=balances,
        inequality=lambda x, u: within(u, [0.0] * 16, [5.0] * 16),
        x=(2.5, 1.1),
        start=[10.0] * 16,
        p=8,
        q=32,
        f=244.899698,
        nonconvex=True,
    ),
)
