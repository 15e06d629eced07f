"""The nodes that the paper on deep declarative networks shows: robust pools, projections, alignments."""

from __future__ import annotations

import math
from functools import partial

import torch

from .base import TestProblem, at_least, constant, declare, rows

define = partial(declare, group="paper")
VALUES = (0.1, -0.4, 0.7, 1.2, 0.3, -0.2, 9.0, -0.6)  # six near zero, one beside, one far outlier
ROOT14 = math.sqrt(14.0)
MARKS = ((1.0, 0.2, -0.3), (-0.4, 0.9, 0.5), (0.3, -0.6, 1.1))


def half_distance(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Half the squared distance to the first entries of x."""
    return 0.5 * (u - x[: u.shape[0]]).square().sum()


def huber(z: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Quadratic within alpha, linear beyond."""
    return torch.where(z.abs() <= alpha, 0.5 * z.square(), alpha * (z.abs() - 0.5 * alpha))


def rotate(u: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """The rows of `points` turned by the quaternion u (scaled by |u|^2 where u is not of unit length)."""
    a, b, c, d = u
    matrix = torch.stack(
        [
            torch.stack([a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)]),
            torch.stack([2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)]),
            torch.stack([2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d]),
        ]
    )
    return points @ matrix.mT


def misalignment(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Half the squared distances between turned marks and the observed ones, x (9,)."""
    return 0.5 * (rotate(u, constant(MARKS, u)) - x.reshape(3, 3)).square().sum()


POOLS: tuple[TestProblem, ...] = (
    define(
        "pool_quadratic",
        source="quadratic pool: the mean; x = the values",
        objective=lambda x, u: 0.5 * (u - x).square().sum(),
        x=VALUES,
        start=(0.0,),
        y=(math.fsum(VALUES) / len(VALUES),),
    ),
    define(
        "pool_pseudo_huber",
        source="pseudo-Huber pool; x = eight values, alpha",
        objective=lambda x, u: (x[8].square() * (torch.sqrt(1 + ((u - x[:8]) / x[8]).square()) - 1)).sum(),
        x=(*VALUES, 1.0),
        start=(1.0,),
        y=(0.330780206794,),
    ),
    define(
        "pool_huber",
        source="Huber pool; x = eight values, alpha",
        objective=lambda x, u: huber(u - x[:8], x[8]).sum(),
        x=(*VALUES, 1.0),
        start=(1.0,),
        y=(0.3,),
    ),
    define(
        "pool_welsch",
        source="Welsch pool, the minimum among the six near values; x = eight values, alpha",
        objective=lambda x, u: (1 - torch.exp(-((u - x[:8]) / x[8]).square() / 2)).sum(),
        x=(*VALUES, 1.0),
        start=(0.3,),
        y=(0.105114025071,),
        nonconvex=True,
    ),
    define(
        "pool_huber_interval",
        source="Huber pool of two far values: every point between them, alpha away from both, is a minimum; x = values",
        objective=lambda x, u: huber(u - x, constant(1.0, u)).sum(),
        x=(-3.0, 3.0),
        start=(0.5,),
        y=(0.0,),
        f=5.0,
        kind="singular",
    ),
)
PROJECTIONS: tuple[TestProblem, ...] = (
    define(
        "project_sphere",
        source="projection onto the L2 sphere; x = point, radius",
        objective=half_distance,
        equality=lambda x, u: rows(u.square().sum() - x[3].square()),
        x=(1.0, 2.0, 3.0, 2.0),
        start=(1.0, 1.0, 1.0),
        p=1,
        y=(2 / ROOT14, 4 / ROOT14, 6 / ROOT14),
        f=0.5 * (ROOT14 - 2) ** 2,
        nonconvex=True,
    ),
    define(
        "project_sphere_from_inside",
        source="projection of an inner point onto the L2 sphere: the multiplier changes its sign; x = point, radius",
        objective=half_distance,
        equality=lambda x, u: rows(u.square().sum() - x[3].square()),
        x=(0.3, -0.4, 0.0, 1.0),
        start=(1.0, -1.0, 0.5),
        p=1,
        y=(0.6, -0.8, 0.0),
        f=0.125,
        nonconvex=True,
    ),
    define(
        "project_ball_from_outside",
        source="projection onto the L2 ball; x = point, radius",
        objective=half_distance,
        inequality=lambda x, u: rows(u.square().sum() - x[3].square()),
        x=(1.0, 2.0, 3.0, 2.0),
        start=(0.0, 0.0, 0.0),
        q=1,
        y=(2 / ROOT14, 4 / ROOT14, 6 / ROOT14),
        f=0.5 * (ROOT14 - 2) ** 2,
    ),
    define(
        "project_ball_from_inside",
        source="projection of an inner point onto the L2 ball: the point itself; x = point, radius",
        objective=half_distance,
        inequality=lambda x, u: rows(u.square().sum() - x[3].square()),
        x=(0.3, -0.4, 0.2, 1.0),
        start=(0.0, 0.0, 0.0),
        q=1,
        y=(0.3, -0.4, 0.2),
        f=0.0,
    ),
    define(
        "project_ball_from_boundary",
        source="projection of a boundary point onto the L2 ball: the row is weakly active; x = point",
        objective=half_distance,
        inequality=lambda x, u: rows(u.square().sum() - 1),
        x=torch.tensor([[0.6, 0.8], [-1.0, 0.0], [0.28, -0.96]], dtype=torch.float64),
        start=(0.1, 0.1),
        q=1,
        y=(0.6, 0.8),
        f=0.0,
        kind="weak",
    ),
    define(
        "project_box",
        source="projection onto the L-infinity ball; x = point, radius",
        objective=half_distance,
        inequality=lambda x, u: torch.cat([-x[4] - u, u - x[4]]),
        x=(0.3, 1.7, -0.2, -2.5, 1.0),
        start=(0.0, 0.0, 0.0, 0.0),
        q=8,
        y=(0.3, 1.0, -0.2, -1.0),
        f=0.5 * (0.7**2 + 1.5**2),
    ),
    define(
        "project_cross",
        source="projection onto the L1 ball in the plane; x = point, radius",
        objective=half_distance,
        inequality=lambda x, u: rows(u[0] + u[1], u[0] - u[1], u[1] - u[0], -u[0] - u[1]) - x[2],
        x=(1.4, 0.8, 1.0),
        start=(0.0, 0.0),
        q=4,
        y=(0.8, 0.2),
        f=0.36,
    ),
    define(
        "project_cross_corner",
        source="projection onto a corner of the L1 ball; x = point, radius",
        objective=half_distance,
        inequality=lambda x, u: rows(u[0] + u[1], u[0] - u[1], u[1] - u[0], -u[0] - u[1]) - x[2],
        x=(3.0, 0.4, 1.0),
        start=(0.0, 0.0),
        q=4,
        y=(1.0, 0.0),
        f=2.08,
    ),
    define(
        "project_l4_sphere",
        source="projection onto the L4 sphere; x = point, fourth power of the radius",
        objective=half_distance,
        equality=lambda x, u: rows((u**4).sum() - x[3]),
        x=(1.2, 0.8, -0.5, 1.0),
        start=(0.9, 0.7, -0.5),
        p=1,
        y=(0.924510555076, 0.686971928884, -0.464956576497),
        nonconvex=True,
    ),
    define(
        "project_simplex",
        source="projection onto the probability simplex; x = point, total",
        objective=half_distance,
        equality=lambda x, u: rows(u.sum() - x[5]),
        inequality=lambda x, u: at_least(u, 0.0),
        x=(0.5, 0.4, -0.3, 0.2, 0.1, 1.0),
        start=(0.2, 0.2, 0.2, 0.2, 0.2),
        p=1,
        q=5,
        y=(0.45, 0.35, 0.0, 0.15, 0.05),
        f=0.05,
    ),
    define(
        "project_simplex_tie",
        source="projection onto the simplex where one entry just reaches zero: its bound is weakly active; x = point",
        objective=half_distance,
        equality=lambda x, u: rows(u.sum() - 1),
        inequality=lambda x, u: at_least(u, 0.0),
        x=torch.tensor([[0.6, 0.4, 0.0], [0.25, 0.0, 0.75], [1.5, 0.5, 0.5]], dtype=torch.float64),
        start=(1 / 3, 1 / 3, 1 / 3),
        p=1,
        q=3,
        y=(0.6, 0.4, 0.0),
        f=0.0,
        kind="weak",
    ),
    define(
        "relu",
        source="the rectified linear unit as a projection; x = point",
        objective=half_distance,
        inequality=lambda x, u: at_least(u, 0.0),
        x=(0.7, -1.2, 2.0, -0.1),
        start=(1.0, 1.0, 1.0, 1.0),
        q=4,
        y=(0.7, 0.0, 2.0, 0.0),
        f=0.725,
    ),
    define(
        "relu_kink",
        source="the rectified linear unit at zero: the bound is weakly active; x = point",
        objective=half_distance,
        inequality=lambda x, u: at_least(u, 0.0),
        x=torch.tensor([[0.7, 0.0, -1.0], [0.0, 0.0, 2.0], [-0.5, 1.0, 0.0]], dtype=torch.float64),
        start=(1.0, 1.0, 1.0),
        q=3,
        y=(0.7, 0.0, 0.0),
        f=0.5,
        kind="weak",
    ),
    define(
        "softmax",
        source="entropy over the simplex: softmax; x = scores",
        objective=lambda x, u: (u * torch.log(u)).sum() - x @ u,
        equality=lambda x, u: rows(u.sum() - 1),
        x=(0.0, math.log(2.0), math.log(3.0), math.log(4.0)),
        start=(0.25, 0.25, 0.25, 0.25),
        p=1,
        y=(0.1, 0.2, 0.3, 0.4),
        f=-math.log(10.0),
    ),
    define(
        "sigmoid",
        source="binary entropy: sigmoid; x = scores",
        objective=lambda x, u: (u * torch.log(u) + (1 - u) * torch.log1p(-u) - x * u).sum(),
        x=(math.log(3.0), -math.log(3.0)),
        start=(0.5, 0.5),
        y=(0.75, 0.25),
        f=-math.log(16 / 3),
    ),
    define(
        "imperative",
        source="any explicit function f~(x) as a declared one; x = its input",
        objective=lambda x, u: 0.5 * (u - torch.stack([torch.sin(x[0]) * x[1], x[0] + x[1].square()])).square().sum(),
        x=(0.5, 2.0),
        start=(0.0, 0.0),
        y=(2 * math.sin(0.5), 4.5),
        f=0.0,
    ),
)
ALIGNMENTS: tuple[TestProblem, ...] = (
    define(
        "quaternion_toy",
        source="align a vector of any length: H is singular along the solution; x = direction",
        objective=lambda x, u: -(x @ u) / torch.sqrt(u @ u),
        x=(1.0, 2.0, 2.0, 4.0),
        start=(0.2, 0.4, 0.4, 0.9),
        y=(0.2, 0.4, 0.4, 0.8),
        f=-5.0,
        kind="singular",
        nonconvex=True,
    ),
    define(
        "quaternion_toy_unit",
        source="align a vector of unit length: H = 0 without the multiplier's part; x = direction",
        objective=lambda x, u: -(x @ u),
        equality=lambda x, u: rows(torch.sqrt(u @ u) - 1),
        x=(1.0, 2.0, 2.0, 4.0),
        start=(0.2, 0.4, 0.4, 0.9),
        p=1,
        y=(0.2, 0.4, 0.4, 0.8),
        f=-5.0,
        nonconvex=True,
    ),
    define(
        "rotation_free",
        source="align three marks by a quaternion of any length, scale removed: H is singular; x = observed marks",
        objective=lambda x, u: misalignment(x, u / torch.sqrt(u @ u)),
        x=(0.9, 0.5, -0.2, -0.7, 0.8, 0.3, 0.2, -0.4, 1.2),
        start=(1.0, 0.1, 0.1, 0.1),
        y=(1.18392028874, -0.0684032315941, -0.106597402709, 0.177418937258),
        kind="singular",
        nonconvex=True,
    ),
    define(
        "rotation_unit",
        source="align three marks by a unit quaternion; x = observed marks",
        objective=misalignment,
        equality=lambda x, u: rows(u @ u - 1),
        x=(0.9, 0.5, -0.2, -0.7, 0.8, 0.3, 0.2, -0.4, 1.2),
        start=(1.0, 0.1, 0.1, 0.1),
        p=1,
        y=(0.983468122692, -0.0568217289639, -0.0885491603811, 0.147379744071),
        nonconvex=True,
    ),
    define(
        "geometric_line",
        source="scalar input, one fixed linear row: the gradient is projected onto the line; x = a scalar",
        objective=lambda x, u: 2 * (u[0] - x[0]).square() + 0.5 * (u[1] + x[0].square()).square() + u[0] * u[1],
        equality=lambda x, u: rows(u[0] + 2 * u[1] - 1),
        x=(0.7,),
        start=(0.0, 0.0),
        p=1,
        y=(0.86, 0.07),
    ),
    define(
        "geometric_circle",
        source="scalar input, one curved row that moves with it; x = a scalar",
        objective=lambda x, u: 0.5 * (u[0] - 2 * torch.cos(x[0])).square() + (u[1] - 2 * torch.sin(x[0])).square(),
        equality=lambda x, u: rows(u[0].square() + u[1].square() - 1 - x[0]),
        x=(0.7,),
        start=(1.0, 1.0),
        p=1,
        y=(0.893120272884, 0.949913774067),
        nonconvex=True,
    ),
)
PROBLEMS: tuple[TestProblem, ...] = POOLS + PROJECTIONS + ALIGNMENTS
