"""Projection onto the Lp sphere for 1 < p < infinity, p other than 2, by a safeguarded Newton on one number.

In units of the radius and in the positive orthant the KKT conditions are  u + mu u^{p-1} = a,  sum u^p = 1.
Outside (mu > 0) the problem is convex on the ball and the answer is global. Inside (mu < 0) it is not: the largest
coordinate u_1 is followed from a_1 to 1, which fixes mu = (a_1 - u_1) / u_1^{p-1}, hence every other coordinate, until
the norm is 1. That is a stationary point; for p < 2 the norm rises all the way, so it is the only one of its orthant.
"""

from __future__ import annotations

import torch

from tacit.shapes import Bool, Float, Tensor

__all__ = ["project_curved"]

Rows = Float[Tensor, "r n"]
Column = Float[Tensor, "r 1"]

_OUTER = 60
_INNER = 12
_FAR = 1e-60


def project_curved(x: Rows, radius: Column, p: float) -> Rows:
    """Return the nearest (outside) or a stationary (inside) point of ||u||_p = radius, differentiable to second order.

    The solution is found without autograd; two Newton steps on the KKT system attach two derivatives in x and radius.
    """
    sign = torch.where(x.detach() >= 0, 1.0, -1.0).double()
    r = radius.double()  # powers of float32 numbers overflow float32
    # So far out that the radius is lost beside x only the direction counts, and x / radius may overflow.
    unit = torch.maximum(r, _FAR * x.detach().abs().amax(-1, keepdim=True).double())
    a = (x.double() * sign) / unit
    u, mu = _search(a.detach(), p)
    for _ in range(2):
        u, mu = _attached(a, u, mu, p)
    return (sign * u * r).to(x.dtype)


@torch.library.custom_op("tacit::curved_search", mutates_args=())
def _search(a: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Return (u, mu) for rows a >= 0. One opaque operation to the compiler, which would unroll thousands of steps."""
    outside = ~(a.amax(-1, keepdim=True) <= 1) | (_power_sum(a, p) > 1)
    if _finished(outside):
        return _outside(a, p)
    (u_out, mu_out), (u_in, mu_in) = _outside(a.where(outside, 2.0), p), _inside(a.where(~outside, 0.0), p)
    return torch.where(outside, u_out, u_in), torch.where(outside, mu_out, mu_in)


@_search.register_fake
def _(a: Tensor, p: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(a), a.new_empty(*a.shape[:-1], 1)


@_search.register_vmap
def _(info, in_dims, a, p):  # type: ignore[no-untyped-def]
    rows = a.movedim(in_dims[0], 0)
    u, mu = _search(rows.reshape(-1, rows.shape[-1]), p)
    return (u.reshape(rows.shape), mu.reshape(*rows.shape[:-1], 1)), (0, 0)


def _power_sum(u: Rows, p: float) -> Column:
    return u.pow(p).sum(-1, keepdim=True)


def _attached(a: Rows, u: Rows, mu: Column, p: float) -> tuple[Rows, Column]:
    """Return (u, mu) after the derivative of one Newton step on the KKT system; the values stay.

    The system is [[diag(stiffness), normal], [normal', 0]]. Inside a sphere with p > 2 the stiffness of the largest
    coordinate may be zero or negative, so that one is eliminated last, and its stiffness never divided by.
    """
    # A coordinate next to nothing counts as zero: the derivatives of its powers overflow.
    positive = u.detach() > (1e-60 if p < 2 else 0.0)
    safe = torch.where(positive, u, 1.0)
    normal = torch.where(positive, safe.pow(p - 1), 0.0)
    stiffness = torch.where(positive, 1 + mu * (p - 1) * safe.pow(p - 2), 1.0)
    residual = u + mu * normal - a
    excess = (torch.where(positive, safe.pow(p), 0.0).sum(-1, keepdim=True) - 1) / p

    first = u.detach().argmax(-1, keepdim=True)
    others: Bool[Tensor, "r n"] = torch.arange(u.shape[-1], device=u.device) != first
    n1, s1, r1 = (part.gather(-1, first) for part in (normal, stiffness, residual))
    # For p < 2 a zero coordinate is held: the curvature of the sphere there is infinite.
    free = others & positive if p < 2 else others
    stuck = free & (stiffness.detach().abs() <= torch.finfo(u.dtype).tiny)
    flexibility = torch.where(free & ~stuck, 1 / torch.where(free & ~stuck, stiffness, 1.0), 0.0)
    slack = flexibility * (residual - normal * (r1 / n1))
    pivot = n1 + (s1 / n1) * (flexibility * normal * normal).sum(-1, keepdim=True)
    # At a fold of the stationary points there is no derivative.
    singular = stuck.any(-1, keepdim=True) | ~(pivot.detach().abs() > torch.finfo(u.dtype).eps * n1.detach())
    step1 = (excess - (normal * slack).sum(-1, keepdim=True)) / torch.where(singular, 1.0, pivot)
    step1 = torch.where(singular, 0.0, step1)
    rise = torch.where(singular, 0.0, (r1 - s1 * step1) / n1)
    step = torch.where(others, flexibility * (residual - normal * rise), step1)
    step = torch.where(singular, 0.0, step)
    return u - (step - step.detach()), mu - (rise - rise.detach())


def _outside(a: Rows, p: float) -> tuple[Rows, Column]:
    """Return (u, mu), mu >= 0, for rows outside: bracketed Newton on the norm as a function of mu."""
    dual = p / (p - 1)
    top = a.amax(-1, keepdim=True)
    high = top * _power_sum(a / top, dual).pow(1 / dual)
    low = torch.zeros_like(high)
    mu = (high - 1).clamp_min(0.5 * high)
    done = torch.zeros_like(mu, dtype=torch.bool)
    for _ in range(_OUTER):
        u = _coordinates(a, mu, p)
        normal = u.pow(p - 1)
        size = _power_sum(u, p)
        low, high = torch.where(size >= 1, mu, low), torch.where(size <= 1, mu, high)
        fall = p * (normal * normal / _stiffness(u, mu, p)).sum(-1, keepdim=True)
        # Newton on size^(-1/dual), which is nearly linear in mu where the size itself is a steep power.
        newton = mu + dual * size * (size.pow(1 / dual) - 1) / fall
        trusted = (newton > low) & (newton < high)
        new = torch.where(trusted, newton, 0.5 * low + 0.5 * high)
        new = torch.where(done | (size == 1), mu, new)
        done = done | ~((new - mu).abs() > 4 * torch.finfo(a.dtype).eps * mu)
        mu = new
        if _finished(done):
            break
    return _coordinates(a, mu, p), mu


def _finished(done: Bool[Tensor, "..."]) -> bool:
    """Return whether all are done, where that can be seen for nothing: not on an accelerator."""
    return done.is_cpu and bool(done.all())


def _stiffness(u: Rows, mu: Column, p: float) -> Rows:
    """Return 1 + mu (p - 1) u^{p-2}; infinite at u = 0 for p < 2."""
    return 1 + mu * (p - 1) * u.pow(p - 2)


def _coordinates(a: Rows, mu: Column, p: float) -> Rows:
    """Return the root u of u + mu u^{p-1} = a, mu > 0: Newton from above on a convex function, in u or in u^{p-1}."""
    if p > 2:
        u = torch.minimum(a, (a / mu).pow(1 / (p - 1)))
        for _ in range(_INNER):
            before, u = u, (u - (u + mu * u.pow(p - 1) - a) / _stiffness(u, mu, p)).clamp_min(0.0)
            if _finished((before - u).abs() <= 4e-16 * u):
                break
        return u
    power = 1 / (p - 1)
    v = torch.minimum(a.pow(p - 1), a / mu)
    for _ in range(_INNER):
        steep = v.pow(power - 1)
        before, v = v, (v - (steep * v + mu * v - a) / (power * steep + mu)).clamp_min(0.0)
        if _finished((before - v).abs() <= 4e-16 * v):
            break
    return v.pow(power)


def _inside(a: Rows, p: float) -> tuple[Rows, Column]:
    """Return (u, mu), mu <= 0, for rows inside: bisection on the largest coordinate."""
    top, first = a.max(-1, keepdim=True)
    largest: Bool[Tensor, "r n"] = torch.arange(a.shape[-1], device=a.device) == first
    low, high = top, torch.ones_like(top)
    u, kappa = a, torch.zeros_like(top)
    for _ in range(_OUTER):
        middle = 0.5 * low + 0.5 * high
        kappa = (middle - top) / middle.pow(p - 1)
        u = torch.where(largest, middle, _grown(a, middle, kappa, p))
        short = _power_sum(u, p) < 1
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return u, -kappa


def _grown(a: Rows, largest: Column, kappa: Column, p: float) -> Rows:
    """Return the root u of u - kappa u^{p-1} = a: the small one for p > 2, the only positive one for p < 2."""
    u = a if p > 2 else largest.expand_as(a)
    for _ in range(_INNER):
        slope = 1 - kappa * (p - 1) * u.pow(p - 2)
        step = (u - kappa * u.pow(p - 1) - a) / slope
        u = torch.where(slope > 0, u - step, u).clamp_min(0.0)
        u = torch.minimum(u, largest)
    return u
