"""Euclidean projection onto Lp spheres, Lp balls and the simplex.

    y = argmin_u 1/2 ||u - x||^2   subject to   ||u||_p = r   (sphere),   ||u||_p <= r   (ball),
                                                u >= 0, sum(u) = r   (simplex)

p = 1, 2 and infinity are exact; any other p >= 1 is solved by a safeguarded Newton on its dual (`lp_curved`).
Two gradients of the paper's table exist where the constraint has kinks: "zero" is D^z y, the true derivative away
from kinks; "printed" is Dy, which lets coordinates on a plateau move. Inside a ball the derivative is the identity
(the paper's text says zero; its own inequality proposition gives the identity), and so it is exactly on the boundary,
where the constraint is weakly active. Claim keys: DDN[lp-projection], DDN[inequality].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch

from tacit.errors import OptionError, OptionTypeError
from tacit.nn.functional.arguments import (
    choice,
    dims_of,
    full_precision,
    in_forward_mode,
    need_floating,
    per_row,
    positive_number,
    restore,
    rows_of,
    working_dtype,
)
from tacit.nn.functional.lp_curved import project_curved
from tacit.nn.functional.projected import Target, beyond_range, project, scaled_norm
from tacit.nn.functional.threshold import support
from tacit.shapes import Bool, Float, Tensor

__all__ = ["check_options", "checked_p", "lp_ball", "lp_sphere", "simplex"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]


def lp_sphere(x: Tensor, p: float, radius: float | Tensor = 1.0, dim: int = -1, *, plateau: str = "zero") -> Tensor:
    """Return the point of the sphere ||u||_p = radius nearest to `x` along `dim`.

    Args:
        x: any shape, floating.
        p: 1 or more, `math.inf` included.
        radius: a positive number, or a tensor that broadcasts to the shape of `x` without `dim`; has a gradient. Where
            a tensor's value is not positive and finite the row is NaN, with gradient zero.
        plateau: "zero" (the true derivative) or "printed"; see the head of this page.

    Returns:
        The shape of `x`. For x inside, the nearest point too: p = infinity moves the first of the largest coordinates
        alone, p = 1 moves all equally, zeros upwards. x = 0: all coordinates equal (p <= 2) or the first alone
        (p > 2), positive, with gradient zero where every direction is as good. Other p inside the sphere: a
        stationary point in the orthant of `x`, the problem not being convex there. NaN stays in its row.

    Raises:
        InputTypeError, InputValueError, OptionError, OptionTypeError: an argument of a kind that cannot be meant.

    >>> lp_sphere(torch.tensor([2.0, 0.75]), 1)
    tensor([1., 0.])
    """
    p = checked_p(p)
    choice(plateau, ("zero", "printed"), "plateau")

    return _along(x, radius, dim, partial(_onto_sphere, p=p, plateau=plateau))


def lp_ball(x: Tensor, p: float, radius: float | Tensor = 1.0, dim: int = -1, *, plateau: str = "zero") -> Tensor:
    """Return the point of the ball ||u||_p <= radius nearest to `x` along `dim`; arguments as in `lp_sphere`.

    Inside and on the boundary: `x` itself, with the identity as gradient.

    >>> lp_ball(torch.tensor([2.0, 0.75]), math.inf)
    tensor([1.0000, 0.7500])
    """
    p = checked_p(p)
    choice(plateau, ("zero", "printed"), "plateau")

    return _along(x, radius, dim, partial(_onto_ball, p=p, plateau=plateau))


def simplex(x: Tensor, radius: float | Tensor = 1.0, dim: int = -1) -> Tensor:
    """Return the point with u >= 0 and sum(u) = radius nearest to `x` along `dim`; arguments as in `lp_sphere`.

    >>> simplex(torch.tensor([0.9, 0.5, -3.0]))
    tensor([0.7000, 0.3000, 0.0000])
    """

    return _along(x, radius, dim, _onto_simplex)


def _onto_sphere(rows: Rows, r: Column, p: float, plateau: str) -> Rows:
    if p in (1, 2, math.inf) and not _in_plain_operations():
        return project(rows, r, Target("sphere", p, plateau))
    if p == 2:
        return _l2_sphere(rows, r)
    if p == 1:
        return _l1_sphere(rows, r, plateau)
    if math.isinf(p):
        return _linf_sphere(rows, r, plateau)
    return project_curved(rows, r, p)


def _onto_ball(rows: Rows, r: Column, p: float, plateau: str) -> Rows:
    if p in (1, 2, math.inf) and not _in_plain_operations():
        return project(rows, r, Target("ball", p, plateau))
    if math.isinf(p):
        return _linf_ball(rows, r, plateau)
    if p == 2:
        s, q = scaled_norm(rows)
        outside = ~(s * q <= r)  # NaN and infinity too: their rows become NaN
        return torch.where(outside, (rows / s) * (r / torch.where(outside, q, 1.0)), rows)
    inside = _norm_at_most(rows, r, p)
    # A point within must not reach the arithmetic of those without, or its zero gradient would be 0 * inf.
    outside = torch.where(inside, 2 * r.detach(), rows)
    projected = _l1_sphere(outside, r, plateau) if p == 1 else project_curved(outside, r, p)
    return torch.where(inside, rows, projected)


def _onto_simplex(rows: Rows, r: Column) -> Rows:
    if not _in_plain_operations():
        return project(rows, r, Target("simplex", 1.0, "zero"))
    active = support(rows.detach(), r.detach())
    return _onto_face(rows, active.to(rows.dtype), r)


def _in_plain_operations() -> bool:
    """Return whether to spell the projection out: the compiler fuses it, forward mode differentiates it."""
    return torch.compiler.is_compiling() or in_forward_mode()


def checked_p(p: float) -> float:
    """Return p as a float >= 1, or raise."""
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise OptionTypeError(f"p expects a number of 1 or more, math.inf included; received {type(p).__name__}.")
    if not p >= 1:
        raise OptionError(f"p expects a number of 1 or more, for a smaller one has no ball; received {p}.")
    return float(p)


def _one_dim(dim: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise OptionTypeError(f"dim expects one integer; received {dim!r}. Flatten the dims to project over first.")
    return dim


def check_options(radius: float | Tensor, dim: int, p: float = 2.0, plateau: str = "zero") -> None:
    """Raise what a projection with these options would raise for any input: a layer asks when it is built."""
    checked_p(p)
    choice(plateau, ("zero", "printed"), "plateau")
    _one_dim(dim)
    if isinstance(radius, Tensor):
        need_floating(radius, "radius")
    else:
        positive_number(radius, "radius")


def _along(x: Tensor, radius: float | Tensor, dim: int, project: Callable[[Rows, Column], Rows]) -> Tensor:
    """Return project(rows, radius of each row), in the shape and dtype of `x`."""
    need_floating(x)
    dims = dims_of(_one_dim(dim), x.ndim)
    with full_precision(x):
        working = x.to(working_dtype(x))
        rows = rows_of(working, dims)
        r = per_row(radius, working, dims, "radius")
        if not isinstance(radius, Tensor):
            return restore(project(rows, r), x.shape, dims).to(x.dtype)
        # Values do not raise, and to look at them would stall an accelerator: a radius that none can have makes NaN.
        possible = (r.detach() >= torch.finfo(r.dtype).tiny) & (r.detach() < math.inf)
        # A row that is not finite gives its radius, which others may share, no gradient.
        finite = rows.detach().abs().amax(-1, keepdim=True).isfinite()
        r = torch.where(finite & possible, r, torch.where(possible, r.detach(), 1.0))
        y = torch.where(possible, project(rows, r), math.nan)
        return restore(y, x.shape, dims).to(x.dtype)


def _l2_sphere(x: Rows, radius: Column) -> Rows:
    s, q = scaled_norm(x)
    x = torch.where(beyond_range(radius.detach() / q.detach() / s), x.detach(), x)
    s, q = scaled_norm(x)
    somewhere = q != 0  # NaN too
    q = torch.where(somewhere, q, 1.0)
    return torch.where(somewhere, (x / s) * (radius / q), radius / math.sqrt(x.shape[-1]))


def _sign(x: Rows) -> Rows:
    """Return 1 where x >= 0, else -1, without gradient: a zero has to move somewhere."""
    return torch.where(x.detach() >= 0, 1.0, -1.0).to(x.dtype)


def _onto_face(x: Rows, normal: Rows, radius: Column) -> Rows:
    """Return the projection onto {normal' u = radius} of the coordinates whose normal is not 0; the others are 0."""
    count = normal.abs().sum(-1, keepdim=True)
    # Measured from the largest, so that a common part of 1e7 cancels before it can swallow the radius.
    top = (x.detach() * normal).where(normal != 0, -torch.inf).amax(-1, keepdim=True)
    near = (x * normal - top) * normal.abs()
    shift = (near.sum(-1, keepdim=True) - radius) / count
    return normal * (near - shift)


def _l1_sphere(x: Rows, radius: Column, plateau: str) -> Rows:
    sign = _sign(x)
    a = x.detach().abs()
    inside = _norm_at_most(a, radius, 1.0)
    normal = sign * (inside | support(a, radius.detach())).to(x.dtype)
    y = _onto_face(x, normal, radius)
    return y if plateau == "zero" else _free_plateau(x, y, normal == 0)


def _free_plateau(x: Rows, y: Rows, plateau: Bool[Tensor, "r n"]) -> Rows:
    """Return y in value; on the plateau with the identity for gradient."""
    return y + torch.where(plateau, x - x.detach(), 0.0)


def _linf_sphere(x: Rows, radius: Column, plateau: str) -> Rows:
    a = x.detach().abs()
    clamped = a >= radius
    first_largest = torch.arange(x.shape[-1], device=x.device) == a.argmax(-1, keepdim=True)
    moved = torch.where(clamped.any(-1, keepdim=True), clamped, first_largest)
    return _clamped(x, radius, moved, plateau)


def _linf_ball(x: Rows, radius: Column, plateau: str) -> Rows:
    return _clamped(x, radius, x.detach().abs() > radius, plateau)


def _clamped(x: Rows, radius: Column, moved: Bool[Tensor, "r n"], plateau: str) -> Rows:
    normal = torch.where(moved, _sign(x), 0.0)
    y = torch.where(moved, normal * radius, x)
    if plateau == "zero":
        return y
    tangent = (x - x.detach()) * normal
    count = normal.abs().sum(-1, keepdim=True).clamp_min(1.0)
    return y + torch.where(moved, normal * (tangent * normal.abs() - tangent.sum(-1, keepdim=True) / count), 0.0)


def _norm_at_most(x: Rows, radius: Column, p: float) -> Bool[Tensor, "r 1"]:
    """Return whether ||x||_p <= radius, to rounding; NaN rows are within, so that they come back as they are."""
    scaled = x.detach().abs() / radius.detach()
    within = scaled.pow(p).sum(-1, keepdim=True) <= 1 + 4 * torch.finfo(x.dtype).eps
    return within | scaled.isnan().any(-1, keepdim=True)
