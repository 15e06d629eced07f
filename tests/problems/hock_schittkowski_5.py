"""Hock & Schittkowski, "Test Examples for Nonlinear Programming Codes" (1981), problems 104 to 118.

Constraints c(u) >= 0 of the book are written -c(u) <= 0 here.
"""

from __future__ import annotations

from functools import partial

import torch

from .base import TestProblem, at_least, constant, declare, join, rows, within
from .hock_schittkowski_4 import CUBIC, LIMITS, LINEAR, QUADRATIC, SIDES

define = partial(declare, group="hock_schittkowski")
# HS 111 and 112: free energies of ten species, and how much of three elements each holds.
ENERGIES = (-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179)
ELEMENTS = (
    (1.0, 2.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
    (0.0, 0.0, 0.0, 1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 1.0),
)
LOWER_118 = (8.0, 43.0, 3.0) + 4 * (0.0, 0.0, 0.0)
UPPER_118 = (21.0, 57.0, 16.0) + 4 * (90.0, 120.0, 60.0)


def reactor_cost(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 104: the objective, which is bounded from both sides too."""
    powers = (u[0] / u[6]) ** 0.67 + (u[1] / u[7]) ** 0.67
    return x[0] * powers + x[1] - u[0] - u[1]


def reactor_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 104: four posynomials, the range of the objective, the bounds."""
    k, cost = x[2], reactor_cost(x, u)
    return join(
        rows(
            k * u[4] * u[6] + 0.1 * u[0] - 1,
            k * u[5] * u[7] + 0.1 * (u[0] + u[1]) - 1,
            4 * u[2] / u[4] + 2 / (u[2] ** 0.71 * u[4]) + k * u[6] / u[2] ** 1.3 - 1,
            4 * u[3] / u[5] + 2 / (u[3] ** 0.71 * u[5]) + k * u[7] / u[3] ** 1.3 - 1,
            1 - cost,
            cost - 4.2,
        ),
        within(u, 0.1, 10.0),
    )


def exchanger_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 106: three linear and three bilinear rows, the bounds."""
    return join(
        rows(
            0.0025 * (u[3] + u[5]) - 1,
            0.0025 * (u[4] + u[6] - u[3]) - 1,
            0.01 * (u[7] - u[4]) - 1,
            x[0] * u[3] + 100 * u[0] - 83333.333 - u[0] * u[5],
            x[1] * u[4] - x[1] * u[3] + u[1] * u[3] - u[1] * u[6],
            x[2] - 2500 * u[4] + u[2] * u[4] - u[2] * u[7],
        ),
        within(u, (100.0, 1000.0, 1000.0) + 5 * (10.0,), 3 * (10000.0,) + 5 * (1000.0,)),
    )


def free_energy(x: torch.Tensor, moles: torch.Tensor, logarithms: torch.Tensor) -> torch.Tensor:
    """HS 111 and 112: sum of moles times (energy + logarithm of the fraction); x1 = the first energy."""
    energies = join(x[:1], constant(ENERGIES[1:], moles))
    return (moles * (energies + logarithms - torch.log(moles.sum()))).sum()


def wong(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 113: a convex quadratic in ten unknowns."""
    return (
        u[0].square()
        + u[1].square()
        + u[0] * u[1]
        - x[0] * u[0]
        - x[1] * u[1]
        + (u[2] - 10).square()
        + 4 * (u[3] - 5).square()
        + (u[4] - 3).square()
        + 2 * (u[5] - 1).square()
        + 5 * u[6].square()
        + 7 * (u[7] - 11).square()
        + 2 * (u[8] - 10).square()
        + (u[9] - 7).square()
        + 45
    )


def wong_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 113: three linear and five quadratic rows."""
    return rows(
        4 * u[0] + 5 * u[1] - 3 * u[6] + 9 * u[7] - x[2],
        10 * u[0] - 8 * u[1] - 17 * u[6] + 2 * u[7],
        5 * u[8] - 8 * u[0] + 2 * u[1] - 2 * u[9] - 12,
        3 * (u[0] - 2).square() + 4 * (u[1] - 3).square() + 2 * u[2].square() - 7 * u[3] - x[3],
        5 * u[0].square() + 8 * u[1] + (u[2] - 6).square() - 2 * u[3] - 40,
        0.5 * (u[0] - 8).square() + 2 * (u[1] - 4).square() + 3 * u[4].square() - u[5] - 30,
        u[0].square() + 2 * (u[1] - 2).square() - 2 * u[0] * u[1] + 14 * u[4] - 6 * u[5],
        6 * u[1] - 3 * u[0] + 12 * (u[8] - 8).square() - 7 * u[9],
    )


def alkylation_balance(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 114: the three balances of the alkylation process."""
    return rows(
        1.22 * u[3] - u[0] - u[4],
        98000 * u[2] / (u[3] * u[8] + 1000 * u[2]) - u[5],
        (u[1] + u[4]) / u[0] - u[7],
    )


def alkylation_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 114: four regressions, each held within a band, and the bounds."""
    low, narrow = 0.99, 0.9
    fit_1, fit_2 = 35.82 - 0.222 * u[9], -133 + 3 * u[6]
    fit_3 = u[0] * (1.12 + 0.13167 * u[7] - 0.00667 * u[7].square())
    fit_4 = 57.425 + 1.098 * u[7] - 0.038 * u[7].square() + 0.325 * u[5]
    lower = (1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 85.0, 90.0, 3.0, 1.2, 145.0)
    upper = (2000.0, 16000.0, 120.0, 5000.0, 2000.0, 93.0, 95.0, 12.0, 4.0, 162.0)
    return join(
        rows(
            narrow * u[8] - fit_1,
            low * u[9] - fit_2,
            fit_1 - u[8] / narrow,
            fit_2 - u[9] / low,
            low * u[3] - fit_3,
            low * u[6] - fit_4,
            fit_3 - u[3] / low,
            fit_4 - u[6] / low,
        ),
        within(u, lower, upper),
    )


def shell_dual(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 117: the dual of HS 86."""
    primal = u[10:]
    return (
        primal @ constant(QUADRATIC, u) @ primal + 2 * (constant(CUBIC, u) @ primal**3) - constant(LIMITS, u) @ u[:10]
    )


def shell_dual_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 117: dual feasibility and signs; x = the linear terms of HS 86."""
    primal = u[10:]
    slope = 2 * constant(QUADRATIC, u) @ primal + 3 * constant(CUBIC, u) * primal.square() + x
    return join(u[:10] @ constant(SIDES, u) - slope, at_least(u, 0.0))


def plan(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 118: five periods of three products."""
    periods = u.reshape(5, 3)
    return (periods * join(x[:2], constant((2.2,), u)) + periods.square() * constant((1e-4, 1e-4, 1.5e-4), u)).sum()


def plan_limits(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """HS 118: limited changes between periods, demands, bounds."""
    periods = u.reshape(5, 3)
    change = (periods[1:] - periods[:-1] + 7).reshape(-1)
    demand = join(x[2:4], constant((70.0, 85.0, 100.0), u)) - periods.sum(dim=1)
    return join(within(change, 0.0, 4 * (13.0, 14.0, 13.0)), demand, within(u, LOWER_118, UPPER_118))


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "hs104",
        source="HS 104 (optimal reactor design); x = weight, offset, rate",
        objective=reactor_cost,
        inequality=reactor_limits,
        x=(0.4, 10.0, 0.0588),
        start=(6.0, 3.0, 0.4, 0.2, 6.0, 6.0, 1.0, 0.5),
        q=22,
        y=(
            *(6.46511402837, 2.23270864799, 0.667397491287, 0.5957564229),
            *(5.93267567791, 5.52723456498, 1.0133220089, 0.400668229126),
        ),
        f=3.9511634396,
        nonconvex=True,
        spread=0.02,
    ),
    define(
        "hs106",
        source="HS 106 (heat exchanger design; value from later, tighter solutions); x = three coefficients",
        objective=lambda x, u: u[0] + u[1] + u[2],
        inequality=exchanger_limits,
        x=(833.33252, 1250.0, 1250000.0),
        start=(5000.0, 5000.0, 5000.0, 200.0, 350.0, 150.0, 225.0, 425.0),
        q=22,
        y=(
            *(579.306684425, 1359.97066805, 5109.97066805, 182.017699581),
            *(295.601173278, 217.982300419, 286.416526303, 395.601173278),
        ),
        f=7049.24802,
        nonconvex=True,
        spread=0.01,
    ),
    define(
        "hs110",
        source="HS 110; x = the two poles of the logarithms, the exponent",
        objective=lambda x, u: (
            (torch.log(u - x[0]).square() + torch.log(x[1] - u).square()).sum() - torch.exp(x[2] * torch.log(u).sum())
        ),
        inequality=lambda x, u: within(u, 2.001, 9.999),
        x=(2.0, 10.0, 0.2),
        start=10 * (9.0,),
        q=20,
        y=10 * (9.35026583307,),
        f=-45.77846971,
        nonconvex=True,
        spread=0.01,
    ),
    define(
        "hs111",
        source="HS 111 (chemical equilibrium in logarithms); x = the first energy, the amounts of the elements",
        objective=lambda x, u: free_energy(x, torch.exp(u), u),
        equality=lambda x, u: constant(ELEMENTS, u) @ torch.exp(u) - x[1:],
        inequality=lambda x, u: within(u, -100.0, 100.0),
        x=(ENERGIES[0], 2.0, 1.0, 1.0),
        start=10 * (-2.3,),
        p=3,
        q=20,
        y=(
            *(-3.20231158855, -1.91236659708, -0.24442674775, -6.56117727166, -0.723097963295),
            *(-7.27423228019, -3.59723742233, -4.02031673069, -3.28837688136, -2.33437173922),
        ),
        f=-47.76109026,
        nonconvex=True,
    ),
    define(
        "hs112",
        source="HS 112 (chemical equilibrium); x = the first energy, the amounts of the elements",
        objective=lambda x, u: free_energy(x, u, torch.log(u)),
        equality=lambda x, u: constant(ELEMENTS, u) @ u - x[1:],
        inequality=lambda x, u: at_least(u, 1e-6),
        x=(ENERGIES[0], 2.0, 1.0, 1.0),
        start=10 * (0.1,),
        p=3,
        q=10,
        y=(
            *(0.0406680873557, 0.147730354341, 0.783153354009, 0.00141421980903, 0.485246648699),
            *(0.000693172078421, 0.027399310714, 0.0179472795849, 0.037314365913, 0.0968713238658),
        ),
        f=-47.76109026,
    ),
    define(
        "hs113",
        source="HS 113 (Wong 2); x = linear terms, two levels",
        objective=wong,
        inequality=wong_limits,
        x=(14.0, 16.0, 105.0, 120.0),
        start=(2.0, 3.0, 5.0, 5.0, 1.0, 2.0, 7.0, 3.0, 6.0, 10.0),
        q=8,
        y=(
            *(2.17199637126, 2.3636829737, 8.77392573848, 5.09598448795, 0.990654764964),
            *(1.43057397894, 1.32164420816, 9.82872580789, 8.2800916701, 8.37592666392),
        ),
        f=24.3062091,
    ),
    define(
        "hs114",
        source="HS 114 (alkylation process); x = prices of the product and of the make-up",
        objective=lambda x, u: 5.04 * u[0] + 0.035 * u[1] + 10 * u[2] + x[1] * u[4] - x[0] * u[3] * u[6],
        equality=alkylation_balance,
        inequality=alkylation_limits,
        x=(0.063, 3.36),
        start=(1745.0, 12000.0, 110.0, 3048.0, 1974.0, 89.2, 92.8, 8.0, 3.6, 145.0),
        p=3,
        q=28,
        y=(
            *(1698.09476519, 15818.6149242, 54.1026823332, 3031.22521737, 2000.0),
            *(90.115422199, 95.0, 10.4932983067, 1.56163636364, 153.535353535),
        ),
        f=-1768.80696,
        nonconvex=True,
    ),
    define(
        "hs117",
        source="HS 117 (Colville 2, the dual of HS 86); x = the linear terms",
        objective=shell_dual,
        inequality=shell_dual_limits,
        x=LINEAR,
        start=6 * (0.001,) + (60.0,) + 8 * (0.001,),
        q=20,
        y=(
            *(0.0, 0.0, 5.1740407277, 0.0, 3.06110868776, 11.8395456648, 0.0, 0.0),
            *(0.103896190771, 0.0, 0.3, 0.333467606535, 0.4, 0.428310104782, 0.223964873561),
        ),
        f=32.348679,
        nonconvex=True,
    ),
    define(
        "hs118",
        source="HS 118, a convex program in 15 unknowns; x = prices of two products, two demands",
        objective=plan,
        inequality=plan_limits,
        x=(2.3, 1.7, 60.0, 50.0),
        start=(20.0, 55.0, 15.0) + 4 * (20.0, 60.0, 20.0),
        q=59,
        y=(8.0, 49.0, 3.0, 1.0, 56.0, 0.0, 1.0, 63.0, 6.0, 3.0, 70.0, 12.0, 5.0, 77.0, 18.0),
        f=664.82045,
    ),
)
