"""Penalties phi(z; alpha) of robust pooling: value, slope, curvature and the slope's change with alpha.

    quadratic            z^2 / 2
    pseudo-Huber         alpha^2 (sqrt(1 + (z/alpha)^2) - 1)
    Huber                z^2 / 2 for |z| <= alpha, else alpha (|z| - alpha/2)
    Welsch               1 - exp(-z^2 / (2 alpha^2))
    truncated quadratic  z^2 / 2 for |z| <= alpha, else alpha^2 / 2

Domain: any real z, alpha > 0. Claim key: DDN[robust-pooling]. All five are even in z, and each is written so that
neither a residual of 1e30 in float32 nor a tiny alpha overflows. At a kink (|z| = alpha) the inner side is taken, as
in the paper's table.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch

from tacit.errors import OptionError, OptionTypeError, nearest
from tacit.shapes import Float, Tensor

__all__ = [
    "PENALTIES",
    "Derivatives",
    "Huber",
    "Penalty",
    "PseudoHuber",
    "Quadratic",
    "TruncatedQuadratic",
    "Welsch",
    "get_penalty",
]


class Derivatives(NamedTuple):
    """Slope d phi/dz, curvature d2 phi/dz2 and mixed d2 phi/dz d alpha of a penalty, elementwise."""

    slope: Float[Tensor, "*z"]
    curvature: Float[Tensor, "*z"]
    mixed: Float[Tensor, "*z"]


class Penalty(abc.ABC):
    """What robust pooling has to know of a penalty; bring your own by writing `value`.

    `value(z, alpha)` must be elementwise, written in torch, even in z and smallest at z = 0. The three derivatives
    follow by automatic differentiation. Say `convex = True` when it is: the search is then a safeguarded Newton with
    a guaranteed answer instead of many starts.

    >>> class Cauchy(Penalty):
    ...     name = "cauchy"
    ...     def value(self, z, alpha):
    ...         return 0.5 * alpha**2 * torch.log1p((z / alpha) ** 2)
    >>> Cauchy().derivatives(torch.tensor([1.0]), torch.tensor(1.0)).slope
    tensor([0.5000])
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = False

    @abc.abstractmethod
    def value(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
        """Return phi(z; alpha), elementwise; `alpha` broadcasts against `z`."""

    def derivatives(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Derivatives:
        """Return slope, curvature and mixed derivative, each of the shape of `z`."""
        wide = alpha.expand_as(z)

        def slope(z: Tensor, wide: Tensor) -> Tensor:
            return _elementwise(self.value)(z, wide)

        curvature = _elementwise(slope)(z, wide)
        mixed = _elementwise(lambda a, b: slope(b, a))(wide, z)
        return Derivatives(slope(z, wide), curvature, mixed)

    def row_derivatives(self, z: Float[Tensor, "*b n"], alpha: Float[Tensor, "*b 1"]) -> Derivatives:
        """Return the derivatives times one positive factor per row (the last dim), chosen so that none underflows.

        Ratios of sums over a row, which is all a gradient of pooling is made of, do not see the factor.
        """
        return self.derivatives(z, alpha)


def _elementwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the derivative in the first argument of an elementwise function of two tensors of one shape."""

    def derivative(z: Tensor, other: Tensor) -> Tensor:
        return torch.func.grad(lambda z: function(z, other).sum())(z)

    return derivative


def ratio(z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
    """Return z / alpha, kept where its fourth power is finite: beyond, every penalty here has reached its limit."""
    limit = torch.finfo(z.dtype).max ** 0.24
    return (z / alpha).clamp(-limit, limit)


@dataclass(frozen=True)
class Quadratic(Penalty):
    """phi(z) = z^2 / 2, whose pooling is the mean; alpha plays no part.

    >>> Quadratic().value(torch.tensor([2.0]), torch.tensor(1.0))
    tensor([2.])
    """

    name: ClassVar[str] = "quadratic"
    convex: ClassVar[bool] = True

    def value(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
        return 0.5 * z.square()

    def derivatives(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Derivatives:
        return Derivatives(z, torch.ones_like(z), torch.zeros_like(z))


@dataclass(frozen=True)
class PseudoHuber(Penalty):
    """phi(z) = alpha^2 (sqrt(1 + (z/alpha)^2) - 1), smooth and strictly (not strongly) convex.

    >>> PseudoHuber().value(torch.tensor([0.0, 1.0]), torch.tensor(1.0))
    tensor([0.0000, 0.4142])
    """

    name: ClassVar[str] = "pseudo_huber"
    convex: ClassVar[bool] = True

    def value(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
        # q^2 / (1 + sqrt(1 + q^2)) is sqrt(1 + q^2) - 1 without cancellation; alpha q |z| is alpha^2 q^2, unclamped.
        q = ratio(z, alpha)
        return alpha * (z * q) / (1 + (1 + q * q).sqrt())

    def derivatives(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Derivatives:
        q = ratio(z, alpha)
        r = torch.rsqrt(1 + q * q)
        cube = r * r * r
        return Derivatives(alpha * (q * r), cube, q * q * q * cube)


@dataclass(frozen=True)
class Huber(Penalty):
    """phi(z) = z^2 / 2 for |z| <= alpha, else alpha (|z| - alpha/2): convex, once differentiable.

    >>> Huber().value(torch.tensor([0.5, 3.0]), torch.tensor(1.0))
    tensor([0.1250, 2.5000])
    """

    name: ClassVar[str] = "huber"
    convex: ClassVar[bool] = True

    def value(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
        inner = torch.where(z.abs() <= alpha, z, alpha * z.sign())
        return inner * (z - 0.5 * inner)

    def derivatives(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Derivatives:
        inside = z.abs() <= alpha
        return Derivatives(
            torch.where(inside, z, alpha * z.sign()),
            inside.to(z.dtype),
            torch.where(inside, 0.0, z.sign()),
        )


@dataclass(frozen=True)
class Welsch(Penalty):
    """phi(z) = 1 - exp(-z^2 / (2 alpha^2)): smooth, not convex, flat far away.

    >>> Welsch().value(torch.tensor([0.0, 1.0]), torch.tensor(1.0))
    tensor([0.0000, 0.3935])
    """

    name: ClassVar[str] = "welsch"
    convex: ClassVar[bool] = False

    def value(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
        q = ratio(z, alpha)
        return -torch.expm1(-0.5 * q * q)

    def derivatives(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Derivatives:
        q = ratio(z, alpha)
        return self._times(torch.exp(-0.5 * q * q) / alpha, q, alpha)

    def row_derivatives(self, z: Float[Tensor, "*b n"], alpha: Float[Tensor, "*b 1"]) -> Derivatives:
        # exp(-q^2/2) underflows in a row whose y is far from every point; the nearest point may stand for 1, because
        # the factor cancels. So does 1/alpha^2, whose square overflows first.
        q = ratio(z, alpha)
        square = q * q
        nearest_point = square.detach().amin(-1, keepdim=True)
        return self._times(alpha * torch.exp(-0.5 * (square - nearest_point)), q, alpha)

    @staticmethod
    def _times(scale: Tensor, q: Tensor, alpha: Tensor) -> Derivatives:
        square = q * q
        return Derivatives(scale * q, scale * (1 - square) / alpha, scale * q * (square - 2) / alpha)


@dataclass(frozen=True)
class TruncatedQuadratic(Penalty):
    """phi(z) = z^2 / 2 for |z| <= alpha, else alpha^2 / 2: neither convex nor smooth.

    >>> TruncatedQuadratic().value(torch.tensor([0.5, 3.0]), torch.tensor(1.0))
    tensor([0.1250, 0.5000])
    """

    name: ClassVar[str] = "truncated_quadratic"
    convex: ClassVar[bool] = False

    def value(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Float[Tensor, "*z"]:
        return 0.5 * torch.where(z.abs() <= alpha, z, alpha).square()

    def derivatives(self, z: Float[Tensor, "*z"], alpha: Float[Tensor, "*alpha"]) -> Derivatives:
        inside = z.abs() <= alpha
        return Derivatives(torch.where(inside, z, 0.0), inside.to(z.dtype), torch.zeros_like(z))


PENALTIES: dict[str, Penalty] = {
    penalty.name: penalty for penalty in (Quadratic(), PseudoHuber(), Huber(), Welsch(), TruncatedQuadratic())
}


def get_penalty(penalty: str | Penalty) -> Penalty:
    """Return the penalty of that name, or the penalty object itself.

    Raises:
        OptionError: no penalty has that name.
        OptionTypeError: neither a name nor a `Penalty`.

    >>> get_penalty("huber")
    Huber()
    """
    if isinstance(penalty, Penalty):
        return penalty
    if not isinstance(penalty, str):
        raise OptionTypeError(
            f"penalty expects a name or a tacit.functions.Penalty; received {type(penalty).__name__}. "
            f"Subclass Penalty and write value(z, alpha), or choose one of {sorted(PENALTIES)}."
        )
    if penalty not in PENALTIES:
        raise OptionError(
            f"penalty expects one of {sorted(PENALTIES)} or a Penalty object; received {penalty!r}."
            f"{nearest(penalty, PENALTIES)}"
        )
    return PENALTIES[penalty]
