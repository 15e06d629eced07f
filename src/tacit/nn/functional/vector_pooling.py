"""Robust pooling of vectors: y = argmin_u sum_i w_i phi(||u - x_i||; alpha), one location in R^C for a set.

With d_i = (u - x_i) / rho_i, rho_i = ||u - x_i|| and pull_i = phi'(rho_i) / rho_i,

    gradient  sum_i w_i phi'(rho_i) d_i,     H = sum_i w_i M_i,     M_i = pull_i I + (phi''(rho_i) - pull_i) d_i d_i'

and Dy = H^{-1} [w_1 M_1 ... w_n M_n] by the unconstrained proposition. Convex penalties have one minimum, and it is
found; the others are searched from many starts, which most often finds the global minimum, and proves nothing.
Claim keys: DDN[robust-pooling], DDN[unconstrained].
"""

from __future__ import annotations

import math
from typing import Any

import torch

from tacit.errors import InputTypeError, InputValueError, OptionError
from tacit.functions.penalties import PENALTIES, Penalty, get_penalty
from tacit.nn.functional.arguments import dims_of, full_precision, need_floating, per_row, working_dtype
from tacit.shapes import Float, Tensor

__all__ = ["robust_vector_pool"]

Sets = Float[Tensor, "r n c"]
Weights = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]
Vector = Float[Tensor, "r c"]

_STARTS = 16  # descents a set, for a penalty that is not convex ...
_POINTS = 256  # ... from the best of at most so many of its points ...
_PAIRED = 32  # ... and of the middles of pairs of so many
_STEPS = 40
_CONVEX_STEPS = 60
_HALVINGS = 8


def robust_vector_pool(
    x: Tensor,
    penalty: str | Penalty,
    alpha: float | Tensor = 1.0,
    dim: int = -2,
    keepdim: bool = False,
    *,
    vector_dim: int = -1,
    weight: Tensor | None = None,
) -> Tensor:
    """Return the robust location of the vectors along `dim`, each vector lying along `vector_dim`.

    Args:
        x: any shape of two dims or more, floating: sets of vectors.
        penalty: a name or a `Penalty`, applied to the Euclidean distance.
        alpha: a number, or a tensor that broadcasts to the shape of `x` without `dim` and `vector_dim`.
        dim: the dim to pool over.
        keepdim: keep it with size 1.
        vector_dim: the dim that holds a vector.
        weight: non-negative, broadcasts to the shape of `x` without `vector_dim`; 0 is a hole.

    Returns:
        The shape of `x` without `dim`. Differentiable to third order, in `x`, `alpha` and `weight`; gradient zero
        where H is singular. A set with a number that is not finite, with a negative weight, or with an alpha that is
        not positive and finite is NaN; one without weight pools to 0.

    Raises:
        InputTypeError, InputValueError, OptionError, OptionTypeError: an argument of a kind that cannot be meant.

    >>> x = torch.tensor([[0.0, 0.0], [0.0, 0.2], [0.2, 0.1], [50.0, 50.0]])
    >>> robust_vector_pool(x, "truncated_quadratic")
    tensor([0.0667, 0.1000])
    """
    need_floating(x)
    if x.ndim < 2:
        raise InputValueError(
            f"x expects two dims or more, a set of vectors; received shape {tuple(x.shape)}. "
            "For a set of numbers use robust_pool."
        )
    chosen = get_penalty(penalty)
    set_dim, channels = dims_of(dim, x.ndim)[0], dims_of(vector_dim, x.ndim)[0]
    if set_dim == channels:
        raise OptionError(f"dim and vector_dim expect two different dims; received {dim} and {vector_dim}.")
    with full_precision(x):
        working = x.to(working_dtype(x))
        moved = working.movedim((set_dim, channels), (-2, -1))
        front = moved.shape[:-2]
        n, c = moved.shape[-2:]
        if n == 0 or c == 0:
            raise InputValueError(f"x expects at least one vector of one number; received shape {tuple(x.shape)}.")
        sets = moved.reshape(math.prod(front), n, c)
        size = per_row(alpha, working, tuple(sorted((set_dim, channels))), "alpha")
        weights = _weights(weight, working, set_dim, channels).reshape(-1, n)
        there = (weights > 0)[..., None] | sets.isfinite()
        y = _pool(torch.where(there, sets, 0.0), size, weights, chosen).reshape(*front, c)
    y = y.unsqueeze(-2).movedim((-2, -1), (set_dim, channels))
    return (y if keepdim else y.squeeze(set_dim)).to(x.dtype)


def _weights(weight: Tensor | None, x: Tensor, set_dim: int, channels: int) -> Tensor:
    """Return weights with the set dim last, for every vector."""
    shape = [size for d, size in enumerate(x.shape) if d != channels]
    at = set_dim - (channels < set_dim)
    if weight is None:
        return x.new_ones(()).expand(shape).movedim(at, -1)
    if not isinstance(weight, Tensor) or weight.device != x.device:
        kind = weight.device if isinstance(weight, Tensor) else type(weight).__name__
        raise InputTypeError(f"weight expects a tensor on the device of x, {x.device}; received {kind}.")
    if weight.ndim > len(shape) or any(
        have not in (1, want) for have, want in zip(reversed(weight.shape), reversed(shape), strict=False)
    ):
        raise InputValueError(f"weight expects a shape that broadcasts to {shape}; received {tuple(weight.shape)}.")
    return weight.to(x.dtype).expand(shape).movedim(at, -1)


def _pool(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Vector:
    with torch.no_grad():
        fixed = (x.detach(), alpha.detach(), weight.detach())
        sound = fixed[0].isfinite().all(-1).all(-1, keepdim=True) & (fixed[1] > 0) & fixed[1].isfinite()
        sound = sound & (fixed[2] >= 0).all(-1, keepdim=True)
        heavy = fixed[2].sum(-1, keepdim=True) > 0
        usable = sound & heavy
        y = _find(torch.where(usable[..., None], fixed[0], 0.0), fixed[1], fixed[2], penalty)
    # Sets that cannot be pooled take part as zeros, so that no NaN of theirs reaches an alpha that others share.
    x = torch.where(usable[..., None], x, 0.0)
    alpha, weight = torch.where(usable, alpha, alpha.detach()), torch.where(usable, weight, 1.0)
    for _ in range(2):  # Newton doubles the number of right derivatives: none, one, three
        step = _newton(x, alpha, weight, y, penalty)
        y = y - (step - step.detach())
    y = y + 0.0 * (alpha - alpha.detach())  # a penalty that alpha does not bend has the gradient 0 in it, not none
    y = torch.where(heavy, y, 0.0)
    return torch.where(sound, y, torch.nan)


def _parts(
    x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty
) -> tuple[Vector, Weights, Weights, Sets]:
    """Return the gradient at u, the weights of the reweighted mean, curvature less these, and the directions."""
    z = u[:, None] - x
    rho, direction = _polar(z)
    apart = rho > 0
    slope, curvature, _ = penalty.row_derivatives(rho, alpha)
    pull = weight * torch.where(apart, slope / torch.where(apart, rho, 1.0), curvature)
    # Slope times direction: the length of a very long z is out of range, its direction is not.
    gradient = torch.where(apart[..., None], (weight * slope)[..., None] * direction, pull[..., None] * z).sum(1)
    return gradient, pull, torch.where(apart, weight * curvature - pull, 0.0), direction


def _polar(z: Sets) -> tuple[Weights, Sets]:
    """Return length and direction; 0 and 0 of a zero. Squares are of numbers up to 1, so that none is out of range."""
    info = torch.finfo(z.dtype)
    size = z.detach().abs().amax(-1, keepdim=True)
    apart = size > info.tiny  # a shorter one has no direction that could be differentiated
    unit = torch.where(apart, size, 1.0)
    scaled = z / unit
    root = torch.where(apart, scaled, 1.0).square().sum(-1, keepdim=True).sqrt()
    length = (unit * root).clamp_max(info.max)
    return torch.where(apart, length, 0.0)[..., 0], torch.where(apart, scaled / root, 0.0)


def _newton(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Vector:
    """Return H^{-1} gradient; zero where H is singular to rounding."""
    gradient, pull, excess, direction = _parts(x, alpha, weight, u, penalty)
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    hessian = (direction * excess[..., None]).mT @ direction + pull.sum(-1)[:, None, None] * eye
    size = hessian.detach().abs().amax((-2, -1)).maximum(pull.detach().abs().sum(-1))[:, None, None]
    finite = (size > 0) & size.isfinite()
    scaled = hessian / torch.where(finite, size, 1.0)
    spectrum = torch.linalg.eigvalsh(torch.where(finite, scaled.detach(), eye))
    singular = (spectrum.abs().amin(-1) <= 32 * torch.finfo(x.dtype).eps)[:, None, None] | ~finite
    solved = torch.linalg.solve_ex(torch.where(singular, eye, scaled), gradient[..., None])[0]
    return torch.where(singular, 0.0, solved / torch.where(finite, size, 1.0))[..., 0]


def _find(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Vector:
    """Return the location; the compiler is told not to look inside, where it would unroll every step."""
    if not torch.compiler.is_compiling():
        return _Found.apply(x, alpha, weight, penalty)
    if PENALTIES.get(penalty.name) == penalty:
        found: Tensor = _found_by_name(x, alpha, weight, penalty.name)
        return found
    return _found_outside(x, alpha, weight, penalty)


@torch.library.custom_op("tacit::robust_vector_location", mutates_args=())
def _found_by_name(x: Tensor, alpha: Tensor, weight: Tensor, penalty: str) -> Tensor:
    return _search(x, alpha, weight, PENALTIES[penalty])


@_found_by_name.register_fake
def _(x: Tensor, alpha: Tensor, weight: Tensor, penalty: str) -> Tensor:
    return torch.empty_like(x[:, 0])


@torch.compiler.disable
def _found_outside(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Vector:
    return _search(x, alpha, weight, penalty)


class _Found(torch.autograd.Function):
    """The search, which may look at values, as one operation: mapped sets are more sets."""

    @staticmethod
    def forward(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Vector:
        return _search(x, alpha, weight, penalty)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Vector) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> tuple[None, ...]:
        return None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Any, alpha: Any, weight: Any, penalty: Any) -> Any:
        def flat(part: Tensor, at: int | None) -> Tensor:
            wide = part.movedim(at, 0) if at is not None else part.expand(info.batch_size, *part.shape)
            return wide.flatten(0, 1)

        y = _Found.apply(*(flat(part, at) for part, at in zip((x, alpha, weight), in_dims, strict=False)), penalty)
        return y.unflatten(0, (info.batch_size, -1)), 0


def _search(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Vector:
    """Return the best end of the descents."""
    mass = weight.sum(-1, keepdim=True)
    mean = (weight[..., None] * x).sum(1) / torch.where(mass > 0, mass, 1.0)
    if penalty.name == "quadratic":
        return mean
    seen = torch.where((weight > 0)[..., None], x, torch.nan)
    starts = torch.stack([mean, seen.nanmedian(1).values.nan_to_num(0.0)], 1)
    starts = torch.cat([starts, _best_points(x, alpha, weight, penalty)], 1)
    k = starts.shape[1]
    many = (x.repeat_interleave(k, 0), alpha.repeat_interleave(k, 0), weight.repeat_interleave(k, 0))
    if penalty.convex:  # what is stationary is the minimum; values would be lost beside that of one far point
        ends = _descend_convex(*many, starts.flatten(0, 1), penalty)
        worth = _parts(*many, ends, penalty)[0].abs().amax(-1)
    else:
        ends = _descend(*many, starts.flatten(0, 1), penalty)
        worth = _values(*many, ends, penalty).sum(-1)
    best = worth.unflatten(0, (-1, k)).nan_to_num(nan=torch.inf).argmin(-1)
    return ends.unflatten(0, (-1, k)).gather(1, best[:, None, None].expand(-1, 1, x.shape[-1]))[:, 0]


def _values(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Weights:
    """Return the terms whose sum is the objective at u."""
    return weight * penalty.value(_polar(u[:, None] - x)[0], alpha)


def _best_points(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Float[Tensor, "r k c"]:
    """Return the best of the points, and middles of pairs, no two within alpha / 8 where there is a choice.

    A convex penalty wants no more than the best points: of the two or three places where it bends sharply, one.
    """
    some, there = (part[:, :: -(-x.shape[1] // _POINTS)] for part in (x, weight > 0))
    candidates, seen = some, there
    if not penalty.convex:
        few, there = (part[:, :: -(-x.shape[1] // _PAIRED)] for part in (x, weight > 0))
        i, j = torch.triu_indices(few.shape[1], few.shape[1], 1, device=x.device)
        candidates = torch.cat([some, 0.5 * few[:, i] + 0.5 * few[:, j]], 1)
        seen = torch.cat([seen, there[:, i] & there[:, j]], 1)
    height = torch.stack([_values(x, alpha, weight, u, penalty).sum(-1) for u in candidates.unbind(1)], -1)
    height = torch.where(seen, height, torch.inf)
    chosen: list[Tensor] = []
    for _ in range(min(2 if penalty.convex else _STARTS, candidates.shape[1])):
        best = height.argmin(-1)[:, None, None].expand(-1, 1, x.shape[-1])
        at = candidates.gather(1, best)
        chosen.append(at)
        near = torch.linalg.vector_norm(candidates - at, dim=-1) < 0.125 * alpha
        height = torch.where(near, torch.inf, height)
    return torch.cat(chosen, 1)


def _descend_convex(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Vector:
    """Return the minimum: Newton steps, shortened until the slope along them still falls at their end.

    Slopes, not values, are looked at, so that nothing is lost beside a far point. Where not even a short step will do,
    the reweighted mean is taken, which never climbs. A set that is done stands still: no answer depends on another.
    """
    eps = torch.finfo(x.dtype).eps
    done = torch.zeros_like(alpha, dtype=torch.bool)
    for _ in range(_CONVEX_STEPS):
        gradient, pull, _, _ = _parts(x, alpha, weight, u, penalty)
        full = pull.sum(-1, keepdim=True)
        mean = gradient / torch.where(full > 0, full, 1.0)
        newton = _newton(x, alpha, weight, u, penalty)
        part, end = torch.zeros_like(alpha), torch.ones_like(alpha)
        t = end
        for _ in range(_HALVINGS):
            falls = (_parts(x, alpha, weight, u - t * newton, penalty)[0] * newton).sum(-1, keepdim=True) >= 0
            part, end = torch.where(falls, t, part), torch.where(falls, end, t)
            t = 0.5 * part + 0.5 * end
        step = torch.where((part > 0) & (newton != 0).any(-1, keepdim=True), part * newton, mean)
        size = step.abs().amax(-1, keepdim=True)
        u = torch.where(done, u, u - step)
        done = done | ~(size > 2 * eps * torch.maximum(u.abs().amax(-1, keepdim=True), alpha))
        if x.is_cpu and not torch.compiler.is_compiling() and bool(done.all()):
            break
    return u


def _descend(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Vector:
    """Return u carried downhill: Newton where that lowers the objective more than the reweighted mean does."""
    for _ in range(_STEPS):
        gradient, pull, _, _ = _parts(x, alpha, weight, u, penalty)
        full = pull.sum(-1, keepdim=True)
        mean = torch.where(full > 0, u - gradient / torch.where(full > 0, full, 1.0), u)
        newton = u - _newton(x, alpha, weight, u, penalty)
        gain = _values(x, alpha, weight, mean, penalty) - _values(x, alpha, weight, newton, penalty)
        u = torch.where(gain.sum(-1, keepdim=True) >= 0, newton, mean)
    return u
