"""More nonlinear regressions of the NIST Statistical Reference Datasets, and the known ones from their first, far starts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from . import nist
from .base import TestProblem, declare
from .nist import Model, residual_sum

define = partial(declare, group="nist", nonconvex=True, spread=0.01)

LANCZOS_TIME = tuple(0.05 * i for i in range(24))
LANCZOS_3 = (
    *(2.5134, 2.0443, 1.6684, 1.3664, 1.1232, 0.9269, 0.7679, 0.6389, 0.5338, 0.4479, 0.3776, 0.3197, 0.2720),
    *(0.2325, 0.1997, 0.1723, 0.1493, 0.1301, 0.1138, 0.1000, 0.0883, 0.0783, 0.0698, 0.0624),
)
ROSZMAN_ENERGY = (
    *(-4868.68, -4868.09, -4867.41, -3375.19, -3373.14, -3372.03, -2473.74, -2472.35, -2469.45, -1894.65, -1893.40),
    *(-1497.24, -1495.85, -1493.41, -1208.68, -1206.18, -1206.04, -997.92, -996.61, -996.31, -834.94, -834.66),
    *(-710.03, -530.16, -464.17),
)
ROSZMAN_DEFECTS = (
    *(0.252429, 0.252141, 0.251809, 0.297989, 0.296257, 0.295319, 0.339603, 0.337731, 0.333820, 0.389510, 0.386998),
    *(0.438864, 0.434887, 0.427893, 0.471568, 0.461699, 0.461144, 0.513532, 0.506641, 0.505062, 0.535648, 0.533726),
    *(0.568064, 0.612886, 0.624169),
)
FIRST = {
    "nist_misra1a": (500.0, 1e-4),
    "nist_misra1b": (500.0, 1e-4),
    "nist_misra1c": (500.0, 1e-4),
    "nist_misra1d": (500.0, 1e-4),
    "nist_danwood": (1.0, 5.0),
    "nist_rat42": (100.0, 1.0, 0.1),
    "nist_rat43": (100.0, 10.0, 1.0, 1.0),
    "nist_boxbod": (1.0, 1.0),
    "nist_chwirut2": (0.1, 0.01, 0.02),
    "nist_eckerle4": (1.0, 10.0, 500.0),
}
"""NIST's first starts, further away than the second."""


def exponentials(t: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return b[0] * torch.exp(-b[1] * t) + b[2] * torch.exp(-b[3] * t) + b[4] * torch.exp(-b[5] * t)


def roszman(t: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return b[0] - b[1] * t - torch.atan(b[2] / (t - b[3])) / torch.pi


def lanczos(name: str, start: tuple[float, ...], model: Model = exponentials) -> TestProblem:
    return define(
        name,
        source="StRD Lanczos3, three exponentials",
        objective=residual_sum(model, LANCZOS_TIME, LANCZOS_3),
        x=LANCZOS_3[:3],
        start=start,
        f=1.6117193594e-08,
        spread=1e-5,
    )


PROBLEMS: tuple[TestProblem, ...] = (
    lanczos("nist_lanczos3", (0.5, 0.7, 3.6, 4.2, 4.0, 6.3)),
    lanczos("nist_lanczos3_far", (1.2, 0.3, 5.6, 5.5, 6.5, 7.6)),
    define(
        "nist_roszman1",
        source="StRD Roszman1, quantum defects",
        objective=residual_sum(roszman, ROSZMAN_ENERGY, ROSZMAN_DEFECTS),
        x=ROSZMAN_DEFECTS[:3],
        start=(0.2, -5e-6, 1200.0, -150.0),
        y=(0.20196866396, -6.1953516256e-06, 1204.4556708, -181.34269537),
        f=4.9484847331e-04,
    ),
    define(
        "nist_roszman1_far",
        source="StRD Roszman1 from its first start",
        objective=residual_sum(roszman, ROSZMAN_ENERGY, ROSZMAN_DEFECTS),
        x=ROSZMAN_DEFECTS[:3],
        start=(0.1, -1e-5, 1000.0, -100.0),
        y=(0.20196866396, -6.1953516256e-06, 1204.4556708, -181.34269537),
        f=4.9484847331e-04,
    ),
    *(
        replace(
            given,
            name=f"{given.name}_far",
            source=f"{given.source}, from its first start",
            start=torch.tensor(FIRST[given.name], dtype=torch.float64),
        )
        for given in nist.PROBLEMS
        if given.name in FIRST
    ),
)
