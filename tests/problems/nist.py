"""Nonlinear regressions of the NIST Statistical Reference Datasets; the first observations are the parameters x.

Starts are NIST's second (nearer) ones unless `source` says otherwise; values are the certified residual sums of
squares. Misra1a to d are four models of one data set; Kowalik-Osborne, Meyer and Osborne 1 (which NIST calls MGH09,
MGH10 and MGH17) stand with the sums of squares of More, Garbow & Hillstrom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from .base import Function, TestProblem, constant, declare

define = partial(declare, group="nist", nonconvex=True, spread=0.01)
Model = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

MISRA_PRESSURE = (77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0)
MISRA_VOLUME = (10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78)
DANWOOD_TEMPERATURE = (1.309, 1.471, 1.490, 1.565, 1.611, 1.680)
DANWOOD_ENERGY = (2.138, 3.421, 3.597, 4.340, 4.882, 5.660)
RAT42_TIME = (9.0, 14.0, 21.0, 28.0, 42.0, 57.0, 63.0, 70.0, 79.0)
RAT42_YIELD = (8.93, 10.80, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08)
RAT43_TIME = tuple(float(t) for t in range(1, 16))
RAT43_WEIGHT = (
    *(16.08, 33.83, 65.80, 97.20, 191.55, 326.20, 386.87, 520.53, 590.03, 651.92, 724.93, 699.56),
    *(689.96, 637.56, 717.41),
)
BOXBOD_DAY = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
BOXBOD_DEMAND = (109.0, 149.0, 149.0, 191.0, 213.0, 224.0)
CHWIRUT_DISTANCE = (
    *(0.5, 1.0, 1.75, 3.75, 5.75, 0.875, 2.25, 3.25, 5.25, 0.75, 1.75, 2.75, 4.75, 0.625, 1.25, 2.25, 4.25, 0.5),
    *(3.0, 0.75, 3.0, 1.5, 6.0, 3.0, 6.0, 1.5, 3.0, 0.5, 2.0, 4.0, 0.75, 2.0, 5.0, 0.75, 2.25, 3.75),
    *(5.75, 3.0, 0.75, 2.5, 4.0, 0.75, 2.5, 4.0, 0.75, 2.5, 4.0, 0.5, 6.0, 3.0, 0.5, 2.75, 0.5, 1.75),
)
CHWIRUT_RESPONSE = (
    *(92.9, 57.1, 31.05, 11.5875, 8.025, 63.6, 21.4, 14.25, 8.475, 63.8, 26.8, 16.4625, 7.125, 67.3, 41.0, 21.15),
    *(8.175, 81.5, 13.12, 59.9, 14.62, 32.9, 5.44, 12.56, 5.44, 32.0, 13.95, 75.8, 20.0, 10.42, 59.5, 21.67, 8.55),
    *(62.0, 20.2, 7.76, 3.75, 11.81, 54.7, 23.7, 11.55, 61.3, 17.7, 8.74, 59.2, 16.3, 8.62, 81.0, 4.87, 14.62),
    *(81.7, 17.17, 81.3, 28.9),
)
THURBER_DENSITY = (
    *(-3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481, -2.363, -2.322, -1.501),
    *(-1.460, -1.274, -1.212, -1.100, -1.046, -0.915, -0.714, -0.566, -0.545, -0.400, -0.309, -0.109, -0.103),
    *(0.010, 0.119, 0.377, 0.790, 0.963, 1.006, 1.115, 1.572, 1.841, 2.047, 2.200),
)
THURBER_MOBILITY = (
    *(80.574, 84.248, 87.264, 87.195, 89.076, 89.608, 89.868, 90.101, 92.405, 95.854, 100.696, 101.060, 401.672),
    *(390.724, 567.534, 635.316, 733.054, 759.087, 894.206, 990.785, 1090.109, 1080.914, 1122.643, 1178.351),
    *(1260.531, 1273.514, 1288.339, 1327.543, 1353.863, 1414.509, 1425.208, 1421.384, 1442.962, 1464.350),
    *(1468.705, 1447.894, 1457.628),
)
ECKERLE_WAVELENGTH = (
    *(400.0, 405.0, 410.0, 415.0, 420.0, 425.0, 430.0, 435.0, 436.5, 438.0, 439.5, 441.0, 442.5, 444.0, 445.5),
    *(447.0, 448.5, 450.0, 451.5, 453.0, 454.5, 456.0, 457.5, 459.0, 460.5, 462.0, 463.5, 465.0, 470.0, 475.0),
    *(480.0, 485.0, 490.0, 495.0, 500.0),
)
ECKERLE_TRANSMITTANCE = (
    *(0.0001575, 0.0001699, 0.0002350, 0.0003102, 0.0004917, 0.0008710, 0.0017418, 0.0046400, 0.0065895, 0.0097302),
    *(0.0149002, 0.0237310, 0.0401683, 0.0712559, 0.1264458, 0.2073413, 0.2902366, 0.3445623, 0.3698049, 0.3668534),
    *(0.3106727, 0.2078154, 0.1164354, 0.0616764, 0.0337200, 0.0194023, 0.0117831, 0.0074357, 0.0022732, 0.0008800),
    *(0.0004579, 0.0002345, 0.0001586, 0.0001143, 0.0000710),
)


def residual_sum(model: Model, at: Sequence[float], observed: Sequence[float]) -> Function:
    """The sum of squared residuals of a model; the observations that x holds stand before the published rest."""

    def objective(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        data = torch.cat([x, constant(observed[x.shape[0] :], u)])
        return (model(constant(at, u), u) - data).square().sum()

    return objective


def thurber(t: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A cubic over a cubic."""
    above = b[0] + t * (b[1] + t * (b[2] + t * b[3]))
    return above / (1 + t * (b[4] + t * (b[5] + t * b[6])))


PROBLEMS: tuple[TestProblem, ...] = (
    define(
        "nist_misra1a",
        source="StRD Misra1a, b1 (1 - exp(-b2 t))",
        objective=residual_sum(lambda t, b: b[0] * (1 - torch.exp(-b[1] * t)), MISRA_PRESSURE, MISRA_VOLUME),
        x=MISRA_VOLUME[:3],
        start=(250.0, 5e-4),
        y=(238.942129179, 0.000550156431806),
        f=0.12455138894,
    ),
    define(
        "nist_misra1b",
        source="StRD Misra1b, b1 (1 - (1 + b2 t / 2)^-2)",
        objective=residual_sum(lambda t, b: b[0] * (1 - (1 + b[1] * t / 2) ** -2), MISRA_PRESSURE, MISRA_VOLUME),
        x=MISRA_VOLUME[:3],
        start=(300.0, 2e-4),
        y=(337.99746163, 3.9039091287e-4),
        f=0.075464681533,
    ),
    define(
        "nist_misra1c",
        source="StRD Misra1c, b1 (1 - (1 + 2 b2 t)^-1/2)",
        objective=residual_sum(lambda t, b: b[0] * (1 - (1 + 2 * b[1] * t) ** -0.5), MISRA_PRESSURE, MISRA_VOLUME),
        x=MISRA_VOLUME[:3],
        start=(600.0, 2e-4),
        y=(636.42725809, 2.0813627256e-4),
        f=0.040966836971,
    ),
    define(
        "nist_misra1d",
        source="StRD Misra1d, b1 b2 t / (1 + b2 t)",
        objective=residual_sum(lambda t, b: b[0] * b[1] * t / (1 + b[1] * t), MISRA_PRESSURE, MISRA_VOLUME),
        x=MISRA_VOLUME[:3],
        start=(450.0, 3e-4),
        y=(437.36970754, 3.0227324449e-4),
        f=0.056419295283,
    ),
    define(
        "nist_danwood",
        source="StRD DanWood, b1 t^b2",
        objective=residual_sum(lambda t, b: b[0] * t ** b[1], DANWOOD_TEMPERATURE, DANWOOD_ENERGY),
        x=DANWOOD_ENERGY[:3],
        start=(0.7, 4.0),
        y=(0.768862261765, 3.86040558708),
        f=0.0043173084083,
    ),
    define(
        "nist_rat42",
        source="StRD Rat42, b1 / (1 + exp(b2 - b3 t))",
        objective=residual_sum(lambda t, b: b[0] / (1 + torch.exp(b[1] - b[2] * t)), RAT42_TIME, RAT42_YIELD),
        x=RAT42_YIELD[:3],
        start=(75.0, 2.5, 0.07),
        y=(72.4622375756, 2.61807684021, 0.0673592000661),
        f=8.0565229338,
    ),
    define(
        "nist_rat43",
        source="StRD Rat43, b1 / (1 + exp(b2 - b3 t))^(1 / b4)",
        objective=residual_sum(
            lambda t, b: b[0] / (1 + torch.exp(b[1] - b[2] * t)) ** (1 / b[3]), RAT43_TIME, RAT43_WEIGHT
        ),
        x=RAT43_WEIGHT[:3],
        start=(700.0, 5.0, 0.75, 1.3),
        y=(699.641512696, 5.27712530245, 0.759629383294, 1.27924838591),
        f=8786.4049080,
    ),
    define(
        "nist_boxbod",
        source="StRD BoxBOD, b1 (1 - exp(-b2 t))",
        objective=residual_sum(lambda t, b: b[0] * (1 - torch.exp(-b[1] * t)), BOXBOD_DAY, BOXBOD_DEMAND),
        x=BOXBOD_DEMAND[:3],
        start=(100.0, 0.75),
        y=(213.80940889, 0.547237485419),
        f=1168.0088766,
    ),
    define(
        "nist_chwirut2",
        source="StRD Chwirut2, exp(-b1 t) / (b2 + b3 t)",
        objective=residual_sum(
            lambda t, b: torch.exp(-b[0] * t) / (b[1] + b[2] * t), CHWIRUT_DISTANCE, CHWIRUT_RESPONSE
        ),
        x=CHWIRUT_RESPONSE[:3],
        start=(0.15, 0.008, 0.010),
        y=(0.166576665368, 0.00516532912857, 0.0121500070958),
        f=513.04802941,
    ),
    define(
        "nist_thurber",
        source="StRD Thurber, a cubic over a cubic, with its first start",
        objective=residual_sum(thurber, THURBER_DENSITY, THURBER_MOBILITY),
        x=THURBER_MOBILITY[:3],
        start=(1000.0, 1000.0, 400.0, 40.0, 0.7, 0.3, 0.03),
        y=(
            *(1288.13967995, 1491.07925354, 583.238368767, 75.416644291),
            *(0.966295028645, 0.397972857974, 0.0497272973488),
        ),
        f=5642.7082397,
    ),
    define(
        "nist_eckerle4",
        source="StRD Eckerle4, a Gaussian peak",
        objective=residual_sum(
            lambda t, b: b[0] / b[1] * torch.exp(-((t - b[2]) / b[1]).square() / 2),
            ECKERLE_WAVELENGTH,
            ECKERLE_TRANSMITTANCE,
        ),
        x=ECKERLE_TRANSMITTANCE[:3],
        start=(1.5, 5.0, 450.0),
        y=(1.55438271775, 4.08883217542, 451.541218436),
        f=0.0014635887487,
    ),
)
