"""More, Garbow & Hillstrom, "Testing unconstrained optimization software" (1981): the rest, of chosen dimensions."""

from __future__ import annotations

import math
from functools import partial, reduce

import torch

from .base import TestProblem, constant, declare

define = partial(declare, group="more_garbow_hillstrom", nonconvex=True)

OSBORNE = (
    *(1.366, 1.191, 1.112, 1.013, 0.991, 0.885, 0.831, 0.847, 0.786, 0.725, 0.746, 0.679, 0.608, 0.655, 0.616, 0.606),
    *(0.602, 0.626, 0.651, 0.724, 0.649, 0.649, 0.694, 0.644, 0.624, 0.661, 0.612, 0.558, 0.533, 0.495, 0.500, 0.423),
    *(0.395, 0.375, 0.372, 0.391, 0.396, 0.405, 0.428, 0.429, 0.523, 0.562, 0.607, 0.653, 0.672, 0.708, 0.633, 0.668),
    *(0.645, 0.632, 0.591, 0.559, 0.597, 0.625, 0.739, 0.710, 0.729, 0.720, 0.636, 0.581, 0.428, 0.292, 0.162, 0.098),
    0.054,
)


def osborne(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """An exponential and three Gaussian peaks; x = the first three observations."""
    t = torch.arange(65, dtype=u.dtype, device=u.device) / 10
    peaks = [u[1 + k] * torch.exp(-((t - u[8 + k]).square()) * u[5 + k]) for k in range(3)]
    seen = torch.cat([x, constant(OSBORNE[3:], u)])
    return (seen - u[0] * torch.exp(-t * u[4]) - peaks[0] - peaks[1] - peaks[2]).square().sum()


def gulf(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    t = torch.arange(1, 100, dtype=u.dtype, device=u.device) / 100
    level = x[0] + (-50 * t.log()) ** (2 / 3)
    return (torch.exp(-((level - u[1]).abs() ** u[2]) / u[0]) - t).square().sum()


def watson(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    t = torch.arange(1, 30, dtype=u.dtype, device=u.device)[:, None] / 29
    j = torch.arange(n, dtype=u.dtype, device=u.device)
    slope = (j[1:] * u[1:] * t ** (j[1:] - 1)).sum(1)
    value = (u * t**j).sum(1)
    return (slope - value.square() - x[0]).square().sum() + u[0].square() + (u[1] - u[0].square() - x[0]).square()


def chained_rosenbrock(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    odd, even = u[0::2], u[1::2]
    return (x[0] * (even - odd.square()).square() + (x[1] - odd).square()).sum()


def chained_powell(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    a, b, c, d = u[0::4], u[1::4], u[2::4], u[3::4]
    return ((a + x[0] * b).square() + 5 * (c - d).square() + (b - 2 * c) ** 4 + x[1] * (a - d) ** 4).sum()


def penalty_two(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    i = torch.arange(2, n + 1, dtype=u.dtype, device=u.device)
    level = torch.exp(i / 10) + torch.exp((i - 1) / 10)
    first = (torch.exp(u[1:] / 10) + torch.exp(u[:-1] / 10) - level).square().sum()
    second = (torch.exp(u[1:] / 10) - math.exp(-0.1)).square().sum()
    weights = torch.arange(n, 0, -1, dtype=u.dtype, device=u.device)
    return (u[0] - x[0]).square() + x[1] * (first + second) + ((weights * u.square()).sum() - 1).square()


def almost_linear(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    return (u[:-1] + u.sum() - x[0] * (n + 1)).square().sum() + (reduce(torch.mul, u.unbind()) - x[1]).square()


def boundary_value(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    h = 1 / (n + 1)
    t = torch.arange(1, n + 1, dtype=u.dtype, device=u.device) * h
    none = torch.zeros_like(u[:1])
    wide = torch.cat([none, u, none])
    return (2 * u - wide[:-2] - wide[2:] + x[0] * h**2 * (u + t + 1) ** 3 / 2).square().sum()


def integral_equation(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    h = 1 / (n + 1)
    t = torch.arange(1, n + 1, dtype=u.dtype, device=u.device) * h
    kernel = torch.minimum(t[:, None], t) * (1 - torch.maximum(t[:, None], t))
    return (u + x[0] * h * kernel @ (u + t + 1) ** 3 / 2).square().sum()


def broyden_banded(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    place = torch.arange(n, device=u.device)
    gap = place[:, None] - place
    band = ((gap <= 5) & (gap >= -1) & (gap != 0)).to(u.dtype)
    return (u * (x[0] + 5 * u.square()) + x[1] - band @ (u * (1 + u))).square().sum()


def linear_full(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n, k = u.shape[0], 10
    mean = 2 * u.sum() / k
    return (u - mean - x[0]).square().sum() + (k - n) * (mean + x[0]).square()


def chebyquad(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    n = u.shape[0]
    before, now = torch.ones_like(u), 2 * u - 1
    total = torch.zeros_like(u[0])
    for i in range(1, n + 1):
        exact = -1 / (i * i - 1) if i % 2 == 0 else 0.0
        total = total + (now.mean() - x[0] * exact).square()
        before, now = now, 2 * (2 * u - 1) * now - before
    return total


def starts_at(n: int) -> tuple[float, ...]:
    """t (t - 1) on a grid."""
    return tuple(i / (n + 1) * (i / (n + 1) - 1) for i in range(1, n + 1))


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "mgh_gulf",
        source="MGH 11 with 99 levels; x = the shift",
        objective=gulf,
        x=(25.0,),
        start=(5.0, 2.5, 0.15),
        y=(50.0, 25.0, 1.5),
        f=0.0,
        spread=0.01,
    ),
    define(
        "mgh_osborne_2",
        source="MGH 19",
        objective=osborne,
        x=(1.366, 1.191, 1.112),
        start=(1.3, 0.65, 0.65, 0.7, 0.6, 3.0, 5.0, 7.0, 2.0, 4.5, 5.5),
        f=0.0401377362,
        spread=0.01,
    ),
    *(
        define(
            f"mgh_watson_{n}",
            source=f"MGH 20 with {n} unknowns; x = the right-hand side",
            objective=watson,
            x=(1.0,),
            start=[0.0] * n,
            f=f,
            kind=kind,  # with 12 unknowns the condition is beyond float64
        )
        for n, f, kind in ((9, 1.39976e-6, "regular"), (12, 4.72238e-10, "singular"))
    ),
    define(
        "mgh_extended_rosenbrock",
        source="MGH 21 with 10 unknowns; x = steepness, bottom",
        objective=chained_rosenbrock,
        x=(100.0, 1.0),
        start=(-1.2, 1.0) * 5,
        y=(1.0,) * 10,
        f=0.0,
    ),
    define(
        "mgh_extended_powell",
        source="MGH 22 with 12 unknowns; x = two coefficients",
        objective=chained_powell,
        x=(10.0, 10.0),
        start=(3.0, -1.0, 0.0, 1.0) * 3,
        y=(0.0,) * 12,
        f=0.0,
        kind="singular",
    ),
    define(
        "mgh_penalty_1",
        source="MGH 23 with 10 unknowns; x = weight, squared radius",
        objective=lambda x, u: x[0] * (u - 1).square().sum() + (u.square().sum() - x[1]).square(),
        x=(1e-5, 0.25),
        start=tuple(float(i) for i in range(1, 11)),
        f=7.08765e-5,
    ),
    *(
        define(
            f"mgh_penalty_2_{n}",
            source=f"MGH 24 with {n} unknowns; x = first target, weight",
            objective=penalty_two,
            x=(0.2, 1e-5),
            start=[0.5] * n,
            f=f,
        )
        for n, f in ((4, 9.37629e-6), (10, 2.93660e-4))
    ),
    define(
        "mgh_brown_almost_linear",
        source="MGH 27 with 10 unknowns; x = sum, product",
        objective=almost_linear,
        x=(1.0, 1.0),
        start=[0.5] * 10,
    ),
    define(
        "mgh_boundary_value",
        source="MGH 28 with 10 unknowns; x = weight of the cube",
        objective=boundary_value,
        x=(1.0,),
        start=starts_at(10),
        f=0.0,
    ),
    define(
        "mgh_integral_equation",
        source="MGH 29 with 10 unknowns; x = weight of the integral",
        objective=integral_equation,
        x=(1.0,),
        start=starts_at(10),
        f=0.0,
    ),
    define(
        "mgh_broyden_banded",
        source="MGH 31 with 10 unknowns; x = slope, constant",
        objective=broyden_banded,
        x=(2.0, 1.0),
        start=[-1.0] * 10,
        f=0.0,
    ),
    define(
        "mgh_linear",
        source="MGH 32 with 5 unknowns and 10 residuals; x = the right-hand side",
        objective=linear_full,
        x=(1.0,),
        start=[1.0] * 5,
        y=[-1.0] * 5,
        f=5.0,
        nonconvex=False,
    ),
    *(
        define(
            f"mgh_chebyquad_{n}",
            source=f"MGH 35 with {n} unknowns; x = scale of the integrals",
            objective=chebyquad,
            x=(1.0,),
            start=tuple(i / (n + 1) for i in range(1, n + 1)),
            f=f,
            spread=0.01,
        )
        for n, f in ((5, 0.0), (8, 3.51687e-3), (10, None))
    ),
)
