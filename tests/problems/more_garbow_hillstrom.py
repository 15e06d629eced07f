"""More, Garbow & Hillstrom, "Testing Unconstrained Optimization Software" (1981): sums of squares without constraints.

Numbers in `source` are those of the article. Values are the sum of squares, without a factor one half.
"""

from __future__ import annotations

import math
from functools import partial

import torch

from .base import TestProblem, constant, declare, rows

define = partial(declare, group="more_garbow_hillstrom", nonconvex=True)
BARD = (0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39)
KOWALIK_TIME = (4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625)
KOWALIK_RATE = (0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246)
MEYER: tuple[float, ...] = (34780.0, 28610.0, 23650.0, 19630.0, 16370.0, 13720.0, 11540.0, 9744.0)
MEYER += (8261.0, 7030.0, 6005.0, 5147.0, 4427.0, 3820.0, 3307.0, 2872.0)
OSBORNE_1 = (
    *(0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718),
    *(0.685, 0.658, 0.628, 0.603, 0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467),
    *(0.457, 0.448, 0.438, 0.431, 0.424, 0.420, 0.414, 0.411, 0.406),
)
GAUSSIAN: tuple[float, ...] = (0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521, 0.3989)
GAUSSIAN += (0.3521, 0.2420, 0.1295, 0.0540, 0.0175, 0.0044, 0.0009)


def count(first: int, last: int, like: torch.Tensor) -> torch.Tensor:
    """The integers from first to last."""
    return torch.arange(first, last + 1, dtype=like.dtype, device=like.device)


def helical_valley(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 7; x = steepness, radius, pitch."""
    angle = torch.atan2(u[1], u[0]) / (2 * math.pi)
    radius = torch.sqrt(u[0].square() + u[1].square())
    return x[0] * ((u[2] - x[2] * angle).square() + (radius - x[1]).square()) + u[2].square()


def bard(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 8; x = the first, the middle and the last observation."""
    i = count(1, 15, u)
    y = torch.cat([x[:1], constant(BARD[1:7], u), x[1:2], constant(BARD[8:14], u), x[2:]])
    return (y - u[0] - i / ((16 - i) * u[1] + torch.minimum(i, 16 - i) * u[2])).square().sum()


def gaussian(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 9; x = the middle observation, the spacing of the grid."""
    t = (8 - count(1, 15, u)) * x[1]
    y = torch.cat([constant(GAUSSIAN[:7], u), x[:1], constant(GAUSSIAN[8:], u)])
    return (u[0] * torch.exp(-u[1] * (t - u[2]).square() / 2) - y).square().sum()


def meyer(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 10; x = the first and the last observation."""
    y = torch.cat([x[:1], constant(MEYER[1:15], u), x[1:]])
    return (u[0] * torch.exp(u[1] / (45 + 5 * count(1, 16, u) + u[2])) - y).square().sum()


def box_3d(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 12; x = the two rates that the data come from."""
    t = 0.1 * count(1, 10, u)
    data = torch.exp(-x[0] * t) - torch.exp(-x[1] * t)
    return (torch.exp(-t * u[0]) - torch.exp(-t * u[1]) - u[2] * data).square().sum()


def kowalik_osborne(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 15; x = the first two observations and the last."""
    t = constant(KOWALIK_TIME, u)
    y = torch.cat([x[:2], constant(KOWALIK_RATE[2:10], u), x[2:]])
    return (y - u[0] * (t.square() + t * u[1]) / (t.square() + t * u[2] + u[3])).square().sum()


def brown_dennis(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 16; x = the spacing of the grid, the scale of the exponential."""
    t = x[0] * count(1, 20, u)
    first, second = u[0] + t * u[1] - x[1] * torch.exp(t), u[2] + u[3] * torch.sin(t) - torch.cos(t)
    return (first.square() + second.square()).square().sum()


def osborne_1(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 17; x = the first two observations."""
    t = 10 * count(0, 32, u)
    y = torch.cat([x, constant(OSBORNE_1[2:], u)])
    return (y - u[0] - u[1] * torch.exp(-t * u[3]) - u[2] * torch.exp(-t * u[4])).square().sum()


def biggs(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 18; x = the three rates that the data come from."""
    t = 0.1 * count(1, 13, u)
    data = torch.exp(-x[0] * t) - 5 * torch.exp(-x[1] * t) + 3 * torch.exp(-x[2] * t)
    model = u[2] * torch.exp(-t * u[0]) - u[3] * torch.exp(-t * u[1]) + u[5] * torch.exp(-t * u[4])
    return (model - data).square().sum()


def watson(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 20 with six unknowns; x = target of the differential equation, boundary value."""
    t = count(1, 29, u)[:, None] / 29
    power = count(0, 5, u)
    value = (u * t**power).sum(dim=1)
    slope = (power[1:] * u[1:] * t ** power[:5]).sum(dim=1)
    residuals = (slope - value.square() - x[0]).square().sum()
    return residuals + (u[0] - x[1]).square() + (u[1] - u[0].square() - x[0]).square()


def trigonometric(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """MGH 26 with five unknowns; x = weight of the cosines, of the sines."""
    cosines = torch.cos(u)
    terms = 5 - x[0] * cosines.sum() + count(1, 5, u) * (1 - cosines) - x[1] * torch.sin(u)
    return terms.square().sum()


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "mgh_rosenbrock",
        source="MGH 1; x = weight of the valley, bottom, curvature",
        objective=lambda x, u: x[0] * (u[1] - x[2] * u[0].square()).square() + (x[1] - u[0]).square(),
        x=(100.0, 1.0, 1.0),
        start=(-1.2, 1.0),
        y=(1.0, 1.0),
        f=0.0,
    ),
    define(
        "mgh_freudenstein_roth",
        source="MGH 2, the local minimum that the standard start leads to (the global one is 0 at (5, 4)); x = offsets",
        objective=lambda x, u: (
            (u[0] - x[0] + ((5 - u[1]) * u[1] - 2) * u[1]).square()
            + (u[0] - x[1] + ((u[1] + 1) * u[1] - 14) * u[1]).square()
        ),
        x=(13.0, 29.0),
        start=(0.5, -2.0),
        y=(11.4127789869, -0.896805253274),
        f=48.98425368,
    ),
    define(
        "mgh_powell_badly_scaled",
        source="MGH 3; x = level of the product, right-hand side",
        objective=lambda x, u: (
            (1e4 * u[0] * u[1] - x[0]).square() + (torch.exp(-u[0]) + torch.exp(-u[1]) - x[1]).square()
        ),
        x=(1.0, 1.0001),
        start=(0.0, 1.0),
        y=(1.09815933e-5, 9.106146738),
        f=0.0,
        spread=1e-5,  # with a right-hand side of one, the second unknown escapes
    ),
    define(
        "mgh_brown_badly_scaled",
        source="MGH 4, values from 1e-6 to 1e6; x = the two targets, the product",
        objective=lambda x, u: (u[0] - x[0]).square() + (u[1] - x[1]).square() + (u[0] * u[1] - x[2]).square(),
        x=(1e6, 2e-6, 2.0),
        start=(1.0, 1.0),
        y=(1e6, 2e-6),
        f=0.0,
    ),
    define(
        "mgh_beale",
        source="MGH 5; x = the three right-hand sides",
        objective=lambda x, u: (
            (x[0] - u[0] * (1 - u[1])).square()
            + (x[1] - u[0] * (1 - u[1].square())).square()
            + (x[2] - u[0] * (1 - u[1] ** 3)).square()
        ),
        x=(1.5, 2.25, 2.625),
        start=(1.0, 1.0),
        y=(3.0, 0.5),
        f=0.0,
    ),
    define(
        "mgh_jennrich_sampson",
        source="MGH 6 with ten terms; x = offset, slope of the data",
        objective=lambda x, u: (
            (x[0] + x[1] * count(1, 10, u) - torch.exp(count(1, 10, u) * u[0]) - torch.exp(count(1, 10, u) * u[1]))
            .square()
            .sum()
        ),
        x=(2.0, 2.0),
        start=(0.3, 0.4),
        y=(0.25782521367, 0.25782521367),
        f=124.362182,
    ),
    define(
        "mgh_helical_valley",
        source="MGH 7; x = steepness, radius, pitch",
        objective=helical_valley,
        x=(100.0, 1.0, 10.0),
        start=(-1.0, 0.0, 0.0),
        y=(1.0, 0.0, 0.0),
        f=0.0,
    ),
    define(
        "mgh_bard",
        source="MGH 8; x = three of the observations",
        objective=bard,
        x=(BARD[0], BARD[7], BARD[14]),
        start=(1.0, 1.0, 1.0),
        y=(0.0824105597498, 1.13303609203, 2.34369517864),
        f=8.21487730e-3,
    ),
    define(
        "mgh_gaussian",
        source="MGH 9; x = the middle observation, spacing of the grid",
        objective=gaussian,
        x=(GAUSSIAN[7], 0.5),
        start=(0.4, 1.0, 0.0),
        y=(0.398956137839, 1.00001908449, 0.0),
        f=1.12793277e-8,
    ),
    define(
        "mgh_meyer",
        source="MGH 10, very ill conditioned; x = the first and the last observation",
        objective=meyer,
        x=(MEYER[0], MEYER[15]),
        start=(0.02, 4000.0, 250.0),
        y=(5.6096364710e-3, 6181.3463463, 345.22363462),
        f=87.9458552,
        spread=0.01,
    ),
    define(
        "mgh_box_3d",
        source="MGH 12; x = the two rates in the data",
        objective=box_3d,
        x=(1.0, 10.0),
        start=(0.0, 10.0, 20.0),
        y=(1.0, 10.0, 1.0),
        f=0.0,
    ),
    define(
        "mgh_powell_singular",
        source="MGH 13: H is singular at the solution; x = weights of the four squares",
        objective=lambda x, u: (
            x[0] * (u[0] + 10 * u[1]).square()
            + x[1] * (u[2] - u[3]).square()
            + x[2] * (u[1] - 2 * u[2]) ** 4
            + x[3] * (u[0] - u[3]) ** 4
        ),
        x=(1.0, 5.0, 1.0, 10.0),
        start=(3.0, -1.0, 0.0, 1.0),
        y=(0.0, 0.0, 0.0, 0.0),
        f=0.0,
        kind="singular",
    ),
    define(
        "mgh_wood",
        source="MGH 14; x = steepness of the two valleys, the bottoms",
        objective=lambda x, u: (
            x[0] * (u[1] - u[0].square()).square()
            + (x[2] - u[0]).square()
            + x[1] * (u[3] - u[2].square()).square()
            + (x[3] - u[2]).square()
            + 10 * (u[1] + u[3] - 2).square()
            + (u[1] - u[3]).square() / 10
        ),
        x=(100.0, 90.0, 1.0, 1.0),
        start=(-3.0, -1.0, -3.0, -1.0),
        y=(1.0, 1.0, 1.0, 1.0),
        f=0.0,
    ),
    define(
        "mgh_kowalik_osborne",
        source="MGH 15; x = three of the observations",
        objective=kowalik_osborne,
        x=(KOWALIK_RATE[0], KOWALIK_RATE[1], KOWALIK_RATE[10]),
        start=(0.25, 0.39, 0.415, 0.39),
        y=(0.192806934579, 0.191282328734, 0.123056506926, 0.136062330684),
        f=3.07505604e-4,
        spread=0.02,
    ),
    define(
        "mgh_brown_dennis",
        source="MGH 16; x = spacing of the grid, scale of the exponential",
        objective=brown_dennis,
        x=(0.2, 1.0),
        start=(25.0, 5.0, -5.0, -1.0),
        y=(-11.5944399048, 13.2036300512, -0.403439488177, 0.236778774456),
        f=85822.2016,
    ),
    define(
        "mgh_osborne_1",
        source="MGH 17; x = the first two observations",
        objective=osborne_1,
        x=(OSBORNE_1[0], OSBORNE_1[1]),
        start=(0.5, 1.5, -1.0, 0.01, 0.02),
        y=(0.375410052107, 1.93584691271, -1.46468713661, 0.0128675346401, 0.0221226996617),
        f=5.46489470e-5,
        spread=0.005,
    ),
    define(
        "mgh_biggs_exp6",
        source="MGH 18; x = the three rates in the data",
        objective=biggs,
        x=(1.0, 10.0, 4.0),
        start=(1.0, 2.0, 1.0, 1.0, 1.0, 1.0),
        y=(1.0, 10.0, 1.0, 5.0, 4.0, 3.0),
        f=0.0,
    ),
    define(
        "mgh_watson",
        source="MGH 20 with six unknowns; x = target of the differential equation, boundary value",
        objective=watson,
        x=(1.0, 0.0),
        start=6 * (0.0,),
        y=(-0.0157250864015, 1.01243486937, -0.232991625957, 1.2604300878, -1.51372892272, 0.992996432431),
        f=2.28767005e-3,
    ),
    define(
        "mgh_trigonometric",
        source="MGH 26 with five unknowns; x = weights of the cosines and of the sines",
        objective=trigonometric,
        x=(1.0, 1.0),
        start=5 * (0.2,),
        y=(0.104548506885, 0.111562497281, 0.12120260702, 0.353394364572, 0.190489900411),
    ),
    define(
        "mgh_variably_dimensioned",
        source="MGH 25 with five unknowns; x = the targets of the linear terms",
        objective=lambda x, u: (
            (u - x).square().sum() + (count(1, 5, u) @ (u - 1)).square() + (count(1, 5, u) @ (u - 1)) ** 4
        ),
        x=5 * (1.0,),
        start=(0.8, 0.6, 0.4, 0.2, 0.0),
        y=5 * (1.0,),
        f=0.0,
    ),
    define(
        "mgh_broyden_tridiagonal",
        source="MGH 30 with five unknowns; x = the three coefficients",
        objective=lambda x, u: (
            (
                (x[0] - x[1] * u) * u
                - torch.cat([rows(0 * u[0]), u[:-1]])
                - 2 * torch.cat([u[1:], rows(0 * u[0])])
                + x[2]
            )
            .square()
            .sum()
        ),
        x=(3.0, 2.0, 1.0),
        start=5 * (-1.0,),
        y=(-0.564828398615, -0.666273717805, -0.660917044437, -0.59505004738, -0.416201107738),
    ),
)
