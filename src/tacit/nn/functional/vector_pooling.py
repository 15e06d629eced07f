"""Robust pooling of vectors: y = argmin_u sum_i w_i phi(||u - x_i||; alpha), one location in R^C for a set.

With d_i = (u - x_i) / rho_i, rho_i = ||u - x_i|| and pull_i = phi'(rho_i) / rho_i,

    gradient  sum_i w_i phi'(rho_i) d_i,     H = sum_i w_i M_i,     M_i = pull_i I + (phi''(rho_i) - pull_i) d_i d_i'

and Dy = H^{-1} [w_1 M_1 ... w_n M_n] by the unconstrained proposition. Convex penalties have one minimum; the others
are searched from many starts, which finds the global one in all our trials and proves nothing.
Claim keys: DDN[robust-pooling], DDN[unconstrained].
"""

from __future__ import annotations

import math

import torch

from tacit.errors import InputTypeError, InputValueError, OptionError
from tacit.functions.penalties import Penalty, get_penalty
from tacit.nn.functional.arguments import dims_of, full_precision, need_floating, per_row, working_dtype
from tacit.shapes import Float, Tensor

__all__ = ["robust_vector_pool"]

Sets = Float[Tensor, "r n c"]
Weights = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]
Vector = Float[Tensor, "r c"]

_STARTS = 16  # descents a set, for a penalty that is not convex ...
_SCORED = 32  # ... from the best of its points and the middles of pairs of that many
_STEPS = 40


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
        where H is singular. A set with NaN, or with alpha <= 0, is NaN; one without weight pools to 0.

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
        sound = fixed[0].isfinite().all(-1).all(-1, keepdim=True) & (fixed[1] > 0)
        sound = sound & (fixed[2] >= 0).all(-1, keepdim=True)
        heavy = fixed[2].sum(-1, keepdim=True) > 0
        usable = sound & heavy
        y = _search(torch.where(usable[..., None], fixed[0], 0.0), fixed[1], fixed[2], penalty)
    # Sets that cannot be pooled take part as zeros, so that no NaN of theirs reaches an alpha that others share.
    x = torch.where(usable[..., None], x, 0.0)
    alpha, weight = torch.where(usable, alpha, alpha.detach()), torch.where(usable, weight, 1.0)
    for _ in range(2):  # Newton doubles the number of right derivatives: none, one, three
        step = _newton(x, alpha, weight, y, penalty)
        y = y - (step - step.detach())
    y = torch.where(heavy, y, 0.0)
    return torch.where(sound, y, torch.nan)


def _parts(
    x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty
) -> tuple[Vector, Float[Tensor, "r c c"], Weights]:
    """Return gradient, Hessian and the weights of the reweighted mean at u."""
    z = u[:, None] - x
    square = z.square().sum(-1)
    apart = square > 0
    rho = torch.where(apart, torch.where(apart, square, 1.0).sqrt(), 0.0)
    slope, curvature, _ = penalty.row_derivatives(rho, alpha)
    safe = torch.where(apart, rho, 1.0)
    pull = weight * torch.where(apart, slope / safe, curvature)
    direction = z / safe[..., None]
    gradient = (pull[..., None] * z).sum(1)
    excess = torch.where(apart, weight * curvature - pull, 0.0)
    hessian = (direction * excess[..., None]).mT @ direction
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return gradient, hessian + pull.sum(-1)[:, None, None] * eye, pull


def _newton(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Vector:
    """Return H^{-1} gradient; zero where H is singular to rounding."""
    gradient, hessian, pull = _parts(x, alpha, weight, u, penalty)
    size = hessian.detach().abs().amax((-2, -1)).maximum(pull.detach().abs().sum(-1))[:, None, None]
    finite = (size > 0) & size.isfinite()
    scaled = hessian / torch.where(finite, size, 1.0)
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    spectrum = torch.linalg.eigvalsh(torch.where(finite, scaled.detach(), eye))
    singular = (spectrum.abs().amin(-1) <= 32 * torch.finfo(x.dtype).eps)[:, None, None] | ~finite
    solved = torch.linalg.solve_ex(torch.where(singular, eye, scaled), gradient[..., None])[0]
    return torch.where(singular, 0.0, solved / torch.where(finite, size, 1.0))[..., 0]


def _search(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Vector:
    """Return the best end of the descents."""
    mass = weight.sum(-1, keepdim=True)
    mean = (weight[..., None] * x).sum(1) / torch.where(mass > 0, mass, 1.0)
    if penalty.name == "quadratic":
        return mean
    seen = torch.where((weight > 0)[..., None], x, torch.nan)
    starts = torch.stack([mean, seen.nanmedian(1).values.nan_to_num(0.0)], 1)
    if not penalty.convex:
        starts = torch.cat([starts, _best_points(x, alpha, weight, penalty)], 1)
    k = starts.shape[1]
    many = (x.repeat_interleave(k, 0), alpha.repeat_interleave(k, 0), weight.repeat_interleave(k, 0))
    ends = _descend(*many, starts.flatten(0, 1), penalty)
    heights = _objective(*many, ends, penalty).unflatten(0, (-1, k))
    best = heights.nan_to_num(nan=torch.inf).argmin(-1)
    return ends.unflatten(0, (-1, k)).gather(1, best[:, None, None].expand(-1, 1, x.shape[-1]))[:, 0]


def _objective(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Float[Tensor, "r"]:
    rho = torch.linalg.vector_norm(u[:, None] - x, dim=-1)
    return (weight * penalty.value(rho, alpha)).sum(-1)


def _best_points(x: Sets, alpha: Column, weight: Weights, penalty: Penalty) -> Float[Tensor, "r k c"]:
    """Return the best of the points and middles of pairs, no two within alpha / 8 where there is a choice."""
    step = -(-x.shape[1] // _SCORED)
    some, there = x[:, ::step], weight[:, ::step] > 0
    i, j = torch.triu_indices(some.shape[1], some.shape[1], 0, device=x.device)
    candidates, seen = 0.5 * some[:, i] + 0.5 * some[:, j], there[:, i] & there[:, j]
    height = torch.stack([_objective(x, alpha, weight, u, penalty) for u in candidates.unbind(1)], -1)
    height = torch.where(seen, height, torch.inf)
    chosen: list[Tensor] = []
    for _ in range(min(_STARTS, candidates.shape[1])):
        best = height.argmin(-1)[:, None, None].expand(-1, 1, x.shape[-1])
        at = candidates.gather(1, best)
        chosen.append(at)
        near = torch.linalg.vector_norm(candidates - at, dim=-1) < 0.125 * alpha
        height = torch.where(near, torch.inf, height)
    return torch.cat(chosen, 1)


def _descend(x: Sets, alpha: Column, weight: Weights, u: Vector, penalty: Penalty) -> Vector:
    """Return u carried downhill: Newton where that lowers the objective more than the reweighted mean does."""
    for _ in range(_STEPS):
        gradient, _, pull = _parts(x, alpha, weight, u, penalty)
        full = pull.sum(-1, keepdim=True)
        mean = torch.where(full > 0, u - gradient / torch.where(full > 0, full, 1.0), u)
        newton = u - _newton(x, alpha, weight, u, penalty)
        lower = _objective(x, alpha, weight, newton, penalty) <= _objective(x, alpha, weight, mean, penalty)
        u = torch.where(lower[:, None], newton, mean)
    return u
