"""Small programs that declarative layers are made of: quadratic programs, eigenvectors, transport, statistics."""

from __future__ import annotations

import math
from functools import partial

import torch

from .base import TestProblem, at_least, constant, declare, join, rows, within

define = partial(declare, group="classics")
DESIGN = ((1.0, 0.5, -1.0), (1.0, -1.2, 0.3), (1.0, 2.0, 0.8), (1.0, -0.4, -0.7), (1.0, 0.9, 1.5), (1.0, -1.6, 0.2))
LABELS = (1.0, -1.0, 1.0, -1.0, 1.0, 1.0)
POSITIVE = ((4.0, 1.0, 0.5), (1.0, 3.0, -0.5), (0.5, -0.5, 2.0))
RETURNS = (0.10, 0.12, 0.07, 0.03)
COVARIANCE = (
    (0.10, 0.02, 0.01, 0.00),
    (0.02, 0.15, 0.03, 0.00),
    (0.01, 0.03, 0.08, 0.01),
    (0.00, 0.00, 0.01, 0.02),
)


def quadratic(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Half of u' P u minus the first three entries of x times u."""
    return 0.5 * (u @ constant(POSITIVE, u) @ u) - x[:3] @ u


def symmetric(x: torch.Tensor) -> torch.Tensor:
    """The symmetric 3 x 3 matrix with upper triangle x (6,)."""
    return torch.stack([x[:3], torch.stack([x[1], x[3], x[4]]), torch.stack([x[2], x[4], x[5]])])


def chain(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Squared lengths of the four links between (0, 0), three free joints u (6,) and (x1, x2), less the link's own."""
    joints = torch.cat([torch.zeros_like(u[:2]), u, x[:2]]).reshape(5, 2)
    return (joints[1:] - joints[:-1]).square().sum(dim=1) - x[2].square()


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "qp_free",
        source="an unconstrained quadratic; x = linear term",
        objective=quadratic,
        x=(5.5, 3.5, 2.0),
        start=(0.0, 0.0, 0.0),
        y=(1.0, 1.0, 1.0),
        f=-5.5,
    ),
    define(
        "qp_equality",
        source="a quadratic on a plane; x = linear term, right-hand side",
        objective=quadratic,
        equality=lambda x, u: rows(u.sum() - x[3]),
        x=(1.0, -2.0, 0.5, 1.0),
        start=(0.0, 0.0, 0.0),
        p=1,
        y=(0.571428571429, -0.285714285714, 0.714285714286),
    ),
    define(
        "qp_mixed",
        source="a quadratic with an equality row, a bound and a half space; x = linear term, right-hand sides",
        objective=quadratic,
        equality=lambda x, u: rows(u.sum() - x[3]),
        inequality=lambda x, u: join(rows(u[0] - u[1] - x[4]), at_least(u, 0.0)),
        x=(4.0, -2.0, 0.5, 1.0, 0.5),
        start=(0.3, 0.3, 0.3),
        p=1,
        q=4,
        y=(0.558823529412, 0.0588235294118, 0.382352941176),
    ),
    define(
        "qp_indefinite",
        source="a saddle made convex by its equality row; x = linear term, slope of the row",
        objective=lambda x, u: 0.5 * (u[0].square() - 0.2 * u[1].square()) - x[:2] @ u,
        equality=lambda x, u: rows(u[0] - x[2] * u[1]),
        x=(1.0, 0.2, 1.0),
        start=(0.0, 0.0),
        p=1,
        y=(1.5, 1.5),
        f=-0.9,
        nonconvex=True,
    ),
    define(
        "lp_vertex",
        source="a linear program, its solution a vertex: H = 0; x = prices, right-hand sides",
        objective=lambda x, u: -x[0] * u[0] - x[1] * u[1],
        inequality=lambda x, u: join(rows(u[0] + u[1] - x[2], u[0] + 3 * u[1] - x[3]), at_least(u, 0.0)),
        x=(2.0, 3.0, 4.0, 6.0),
        start=(1.0, 1.0),
        q=4,
        y=(3.0, 1.0),
        f=-9.0,
    ),
    define(
        "lp_standard_form",
        source="a linear program in standard form, two equality rows and four bounds; x = prices, right-hand sides",
        objective=lambda x, u: -x[0] * u[0] - x[1] * u[1],
        equality=lambda x, u: rows(u[0] + u[1] + u[2] - x[2], u[0] + 3 * u[1] + u[3] - x[3]),
        inequality=lambda x, u: at_least(u, 0.0),
        x=(2.0, 3.0, 4.0, 6.0),
        start=(1.0, 1.0, 1.0, 1.0),
        p=2,
        q=4,
        y=(3.0, 1.0, 0.0, 0.0),
        f=-9.0,
    ),
    define(
        "leading_eigenvector",
        source="the leading eigenvector of a symmetric matrix; x = its upper triangle",
        objective=lambda x, u: -0.5 * (u @ symmetric(x) @ u),
        equality=lambda x, u: rows(u @ u - 1),
        x=(2.0, 1.0, 0.0, 2.0, 1.0, 2.0),
        start=(0.4, 0.8, 0.4),
        p=1,
        y=(0.5, math.sqrt(0.5), 0.5),
        f=-1 - math.sqrt(0.5),
        nonconvex=True,
    ),
    define(
        "middle_eigenvector",
        source="the last eigenvector, orthogonal to a given direction; x = upper triangle of the matrix",
        objective=lambda x, u: 0.5 * (u @ symmetric(x) @ u),
        equality=lambda x, u: rows(u @ u - 1, u[0] - u[2]),
        x=(2.0, 1.0, 0.0, 2.5, 1.0, 2.0),
        start=(0.4, -0.8, 0.4),
        p=2,
        y=(0.541774320164, -0.642620550576, 0.541774320164),
        nonconvex=True,
    ),
    define(
        "trust_region_step",
        source="a linear term and an indefinite quadratic within a ball; x = linear term, radius",
        objective=lambda x, u: 0.5 * (-u[0].square() + 2 * u[1].square()) + x[:2] @ u,
        inequality=lambda x, u: rows(u @ u - x[2].square()),
        x=(1.0, -1.0, 1.5),
        start=(-0.5, 0.5),
        q=1,
        y=(-1.47515197384, 0.271894564287),
        nonconvex=True,
    ),
    define(
        "ridge",
        source="ridge regression; x = weight of the ridge, the first three observations",
        objective=lambda x, u: (
            0.5 * (constant(DESIGN, u) @ u - join(x[1:], constant((0.5, 1.0, -1.0), u))).square().sum()
            + 0.5 * x[0] * (u @ u)
        ),
        x=(0.5, 1.0, -0.5, 2.0),
        start=(0.0, 0.0, 0.0),
        y=(0.461473141236, 0.781716155991, -0.141744226575),
    ),
    define(
        "logistic",
        source="logistic regression with a ridge; x = weight of the ridge, weights of two examples",
        objective=lambda x, u: (
            join(x[1:], constant((1.0, 1.0, 1.0, 1.0), u))
            @ torch.nn.functional.softplus(-constant(LABELS, u) * (constant(DESIGN, u) @ u))
            + 0.5 * x[0] * (u @ u)
        ),
        x=(0.3, 1.0, 1.0),
        start=(0.0, 0.0, 0.0),
        y=(0.649170358231, 0.74875988174, 0.534896995235),
    ),
    define(
        "nonnegative_least_squares",
        source="least squares with signs; x = the first three observations",
        objective=lambda x, u: 0.5 * (constant(DESIGN, u) @ u - join(x, constant((0.5, 1.0, 1.0), u))).square().sum(),
        inequality=lambda x, u: at_least(u, 0.0),
        x=(1.0, -0.5, 2.0),
        start=(1.0, 1.0, 1.0),
        q=3,
        y=(0.818652042895, 0.437660982138, 0.00050504200266),
    ),
    define(
        "margin",
        source="a support vector machine with slacks for three points; x = weight of the slacks, two coordinates",
        objective=lambda x, u: 0.5 * (u[0].square() + u[1].square()) + x[0] * u[3:].sum() + 0.01 * u[2].square(),
        inequality=lambda x, u: join(
            1 - u[3:] - rows(x[1] * u[0] + u[1] + u[2], 2 * u[0] - u[1] + u[2], -(x[2] * u[0]) - u[1] - u[2]),
            at_least(u[3:], 0.0),
        ),
        x=(1.0, 1.0, -1.5),
        start=(0.5, 0.5, 0.0, 1.0, 1.0, 1.0),
        q=6,
        y=(
            *(0.8, 0.00392156862745, 0.196078431373),
            *(0.0, 0.0, 0.0),
        ),
    ),
    define(
        "portfolio",
        source="least variance at a wanted return, nothing sold short; x = expected returns, wanted return",
        objective=lambda x, u: 0.5 * (u @ constant(COVARIANCE, u) @ u),
        equality=lambda x, u: rows(u.sum() - 1),
        inequality=lambda x, u: join(rows(x[4] - x[:4] @ u), at_least(u, 0.0)),
        x=(*RETURNS, 0.09),
        start=(0.25, 0.25, 0.25, 0.25),
        p=1,
        q=5,
        y=(0.378235044548, 0.295502757743, 0.173207467119, 0.15305473059),
    ),
    define(
        "maximum_entropy_die",
        source="the die of largest entropy with a given mean; x = mean",
        objective=lambda x, u: (u * torch.log(u)).sum(),
        equality=lambda x, u: rows(u.sum() - 1, constant((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), u) @ u - x[0]),
        x=(4.5,),
        start=6 * (1 / 6,),
        p=2,
        y=(
            *(0.0543531678265, 0.0787715456331, 0.114159977229),
            *(0.16544680311, 0.239774440427, 0.347494065774),
        ),
    ),
    define(
        "transport",
        source="entropic transport, the redundant marginal left out; x = costs, first marginals",
        objective=lambda x, u: (u * (torch.log(u) + x[:9])).sum(),
        equality=lambda x, u: join(
            rows(u[:3].sum() - x[9], u[3:6].sum() - x[10], u[6:].sum() - (1 - x[9] - x[10])),
            u.reshape(3, 3).sum(dim=0)[:2] - 1 / 3,
        ),
        x=(0.1, 0.9, 0.5, 0.8, 0.2, 0.6, 0.7, 0.4, 0.3, 0.3, 0.4),
        start=9 * (1 / 9,),
        p=5,
        y=(
            *(0.146454618481, 0.0596862795777, 0.0938591019414, 0.10470077392, 0.173034859084),
            *(0.122264366996, 0.0821779409322, 0.100612194671, 0.117209864396),
        ),
    ),
    define(
        "analytic_centre",
        source="the analytic centre of a triangle; x = right-hand sides",
        objective=lambda x, u: -torch.log(join(u, rows(1.0 - u.sum())) + x).sum(),
        x=(0.0, 0.0, 0.0),
        start=(0.2, 0.3),
        y=(1 / 3, 1 / 3),
        f=3 * math.log(3.0),
    ),
    define(
        "water_filling",
        source="power spread over noisy channels, one of them unused; x = noise, total power",
        objective=lambda x, u: -torch.log(u + x[:3]).sum(),
        equality=lambda x, u: rows(u.sum() - x[3]),
        inequality=lambda x, u: at_least(u, 0.0),
        x=(0.2, 0.5, 2.0, 1.1),
        start=(0.4, 0.4, 0.3),
        p=1,
        q=3,
        y=(0.7, 0.4, 0.0),
        f=-2 * math.log(0.9) - math.log(2.0),
    ),
    define(
        "hanging_chain",
        source="a chain of four stiff links between two nails; x = second nail, link length",
        objective=lambda x, u: u[1] + u[3] + u[5],
        equality=chain,
        x=(2.0, 0.5, 0.7),
        start=(0.5, -0.5, 1.0, -0.8, 1.5, -0.4),
        p=4,
        y=(
            *(0.465803693023, -0.522519779114, 1.16210296379),
            *(-0.594403890886, 1.67846612358, -0.121784501505),
        ),
        nonconvex=True,
    ),
    define(
        "reach",
        source="a planar arm with three joints reaches a point with the least bending; x = point, rest angles",
        objective=lambda x, u: 0.5 * (u - x[2:]).square().sum(),
        equality=lambda x, u: rows(
            torch.cos(u[0]) + torch.cos(u[0] + u[1]) + torch.cos(u.sum()) - x[0],
            torch.sin(u[0]) + torch.sin(u[0] + u[1]) + torch.sin(u.sum()) - x[1],
        ),
        x=(1.5, 1.2, 0.1, 0.4, 0.4),
        start=(0.2, 0.5, 0.5),
        p=2,
        y=(-0.336780961392, 0.93954252065, 1.23893242282),
        nonconvex=True,
    ),
    define(
        "boggs_tolle_1",
        source="Boggs-Tolle 1; x = weight of the penalty, squared radius, slope",
        objective=lambda x, u: -x[2] * u[0] + x[0] * (u.square().sum() - 1),
        equality=lambda x, u: rows(u.square().sum() - x[1]),
        x=(10.0, 1.0, 1.0),
        start=(0.08, 0.06),
        p=1,
        y=(1.0, 0.0),
        f=-1.0,
        nonconvex=True,
    ),
    define(
        "boggs_tolle_4",
        source="Boggs-Tolle 4 with CUTE's start; x = squared radius, right-hand side of the plane",
        objective=lambda x, u: u[0] - u[1] + u[1] ** 3,
        equality=lambda x, u: rows(u.square().sum() - x[0], u.sum() - x[1]),
        x=(25.0, 1.0),
        start=(4.0382, -2.9470, -0.09115),
        p=2,
        y=(2.28449660117, -3.72089325576, 2.43639665459),
        f=-45.5105518,
        nonconvex=True,
    ),
    define(
        "boggs_tolle_10",
        source="Boggs-Tolle 10, as many rows as unknowns; x = curvatures",
        objective=lambda x, u: -u[0],
        equality=lambda x, u: rows(u[1] - x[0] * u[0] ** 3, u[1] - x[1] * u[0].square()),
        x=(1.0, 1.0),
        start=(2.0, 2.0),
        p=2,
        y=(1.0, 1.0),
        f=-1.0,
        nonconvex=True,
    ),
    define(
        "sipopt",
        source="Pirnay, Lopez-Negrete & Biegler's example, a bound nearly active; x = the parameters",
        objective=lambda x, u: u.square().sum(),
        equality=lambda x, u: rows(6 * u[0] + 3 * u[1] + 2 * u[2] - x[0], x[1] * u[0] + u[1] - u[2] - 1),
        inequality=lambda x, u: at_least(u, 0.0),
        x=(5.0, 1.0),
        start=(0.15, 0.15, 0.0),
        p=2,
        q=3,
        y=(31 / 49, 19 / 49, 1 / 49),
        f=27 / 49,
    ),
    define(
        "control",
        source="four steps of a force-limited cart towards the origin; x = position, speed, price, limit of the force",
        objective=lambda x, u: (
            (x[0] + 4 * x[1] + constant((3.5, 2.5, 1.5, 0.5), u) @ u).square()
            + (x[1] + u.sum()).square()
            + x[2] * u.square().sum()
        ),
        inequality=lambda x, u: torch.cat([-x[3] - u, u - x[3]]),
        x=(2.0, 0.5, 0.1, 0.6),
        start=(0.0, 0.0, 0.0, 0.0),
        q=8,
        y=(-0.6, -0.6, -0.283582089552, 0.6),
    ),
    define(
        "disc_in_a_box",
        source="the farthest point of a disc cut by a box; x = direction, radius, side",
        objective=lambda x, u: -(x[:2] @ u),
        inequality=lambda x, u: join(rows(u.square().sum() - x[2].square(), u[0] - x[3]), within(u, -2.0, 2.0)),
        x=(2.0, 1.0, 1.0, 0.6),
        start=(0.1, 0.1),
        q=6,
        y=(0.6, 0.8),
        f=-2.0,
    ),
)
