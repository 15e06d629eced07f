"""DDN[geometric] The form with H^(-1/2) for a scalar input."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit.equality import equality
from tacit.implicit.geometric import geometric, power, transformed_tangent

from .cases import at, close, rand, spd


@pytest.mark.parametrize("moving", [0.0, 1.0], ids=["c = 0", "c != 0"])
def test_formula_proposition_and_engine_agree(moving):
    problem = tacit.Problem(
        lambda x, u: (
            2 * (u[0] - 2 * torch.cos(x[0])).square() + (u[1] - 2 * torch.sin(x[0])).square() + 0.3 * u[0] * u[1]
        ),
        equality=lambda x, u: (u.square().sum() - 1 - moving * x[0])[None],
    )
    x = torch.tensor([[0.7], [0.2], [1.1]], dtype=torch.float64)
    y = tacit.solve(problem, x, start=torch.ones(3, 2).double()).y
    H, A, B, C = at(problem, x, y).letters
    assert bool((C != 0).all()) == bool(moving)
    Dy = geometric(H, A[:, 0], B[..., 0], C[:, 0, 0])
    close(Dy[..., None], equality(H, A, B, C))
    close(Dy[..., None], tacit.jacobian(problem, x, y=y))


def test_without_motion_the_unconstrained_derivative_is_bent_projected_and_bent_back():
    H, a, b = spd(3, 4), rand(3, 4, seed=1), rand(3, 4, seed=2)
    half, inverse_half = power(H, 0.5), power(H, -0.5)
    free = -torch.linalg.solve(H, b)
    bent = (half @ free[..., None])[..., 0]
    normal = (inverse_half @ a[..., None])[..., 0]
    normal = normal / normal.norm(dim=1, keepdim=True)
    flat = bent - (bent * normal).sum(1, keepdim=True) * normal
    close((inverse_half @ flat[..., None])[..., 0], geometric(H, a, b, torch.zeros(3).double()))


def test_tangents_are_mapped_by_the_root_and_not_by_its_inverse():
    H, a, t = spd(3, 4), rand(3, 4, seed=1), rand(3, 4, seed=2)
    t = t - (t * a).sum(1, keepdim=True) / a.square().sum(1, keepdim=True) * a
    normal = (power(H, -0.5) @ a[..., None])[..., 0]
    close((normal * transformed_tangent(H, t)).sum(1), torch.zeros(3).double())
    by_the_text = (power(H, -0.5) @ t[..., None])[..., 0]
    assert float((normal * by_the_text).sum(1).abs().min()) > 1e-4


def test_an_indefinite_element_is_nan_and_its_neighbours_are_not_touched():
    H = spd(3, 2)
    clean = power(H, -0.5)
    H[1] = torch.diag(torch.tensor([1.0, -1.0]))
    assert power(H, -0.5)[1].isnan().all()
    assert torch.equal(power(H, -0.5)[[0, 2]], clean[[0, 2]])
