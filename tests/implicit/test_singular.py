"""DDN[singular-hessian] Minimum norm, the family, proximal, reformulation; the quaternion."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.errors import GradientError
from tacit.implicit.singular import aligned, family, minimum_norm, proximal
from tacit.implicit.unconstrained import unconstrained

from .cases import at, close, flags, rand

FREE = tacit.Problem(lambda x, u: -(x @ u) / u.square().sum().sqrt())
UNIT = tacit.Problem(lambda x, u: -(x @ u), equality=lambda x, u: (u.square().sum().sqrt() - 1)[None])


def quaternions(b: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, alpha = rand(b, 4), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)[:b]
    return x, alpha, alpha[:, None] * x


def test_the_hessian_of_the_alignment_is_the_paper_s():
    x, alpha, y = quaternions()
    length = x.norm(dim=1)
    H = at(FREE, x, y).letters[0]
    close(H, aligned(x, 1 / (alpha**2 * length)))
    close(torch.linalg.eigvalsh(H)[:, 0], torch.zeros(3).double())


def test_least_norm_is_the_closed_form_and_what_the_engine_gives_with_a_flag():
    x, alpha, y = quaternions()
    H, _, B, _ = at(FREE, x, y).letters
    close(minimum_norm(H, B), aligned(x, alpha))
    close(tacit.jacobian(FREE, x, y=y), aligned(x, alpha))
    assert flags(FREE, x, y=y) == [tacit.Flag.SINGULAR] * 3


def test_with_unit_length_the_derivative_is_that_for_alpha_one_over_the_length_of_x():
    x, _, _ = quaternions()
    length = x.norm(dim=1)
    y = x / length[:, None]
    close(tacit.jacobian(UNIT, x, y=y), aligned(x, 1 / length))
    assert flags(UNIT, x, y=y) == [tacit.Flag(0)] * 3


def test_every_member_of_the_family_solves_the_equation_and_the_first_is_the_shortest():
    x, _, y = quaternions()
    H, _, B, _ = at(FREE, x, y).letters
    least = minimum_norm(H, B)
    for seed in range(3):
        member = family(H, B, rand(3, 4, 4, seed=seed))
        close(H @ member, -B)
        assert (member.flatten(1).norm(dim=1) > least.flatten(1).norm(dim=1)).all()


def test_the_family_reaches_the_derivative_of_any_reformulation():
    # y = alpha x with alpha held: Dy = alpha I, a member that Z = alpha I picks.
    x, alpha, y = quaternions()
    H, _, B, _ = at(FREE, x, y).letters
    wanted = alpha[:, None, None] * torch.eye(4).double()
    close(family(H, B, wanted), wanted)


def test_proximal_tends_to_the_least_norm_and_is_the_policy_s():
    x, alpha, y = quaternions()
    H, _, B, _ = at(FREE, x, y).letters
    errors = [float((proximal(H, B, delta) - aligned(x, alpha)).abs().max()) for delta in (1e-2, 1e-4, 1e-6)]
    assert errors[0] > 50 * errors[1] > 2500 * errors[2]
    policy = tacit.Implicit(singular="proximal", delta=1e-3)
    size = H.abs().amax((1, 2))
    found = tacit.jacobian(FREE, x, y=y, gradient=policy)
    for i in range(3):
        close(found[i : i + 1], proximal(H[i : i + 1], B[i : i + 1], 1e-3 * float(size[i])), 1e-9)


def test_the_policy_may_ask_for_zero_or_for_an_exception():
    x, _, y = quaternions()
    assert not tacit.jacobian(FREE, x, y=y, gradient=tacit.Implicit(singular="zero")).any()
    live = x.clone().requires_grad_()
    found = tacit.argmin(FREE, live, solver=lambda x: x, gradient=tacit.Implicit(singular="raise"))
    with pytest.raises(GradientError, match="singular"):
        found.sum().backward()


def test_the_least_norm_is_that_of_y_in_its_own_coordinates():
    # Badly scaled unknowns: an equilibrated pseudo-inverse would give another vector.
    flat = tacit.Problem(lambda x, u: 0.5 * (u[0] + 100 * u[1] - x[0]).square())
    x = torch.tensor([[3.0]], dtype=torch.float64)
    normal = torch.tensor([1.0, 100.0], dtype=torch.float64)
    y = (3 * normal / normal.square().sum())[None]
    close(tacit.jacobian(flat, x, y=y)[0, :, 0], normal / normal.square().sum())
    assert flags(flat, x, y=y) == [tacit.Flag.SINGULAR]


def test_a_singular_element_leaves_its_neighbours_alone():
    weighted = tacit.Problem(lambda x, u: 0.5 * (x[:2] * (u - x[2:]).square()).sum())
    x = rand(3, 4).abs() + 0.5
    clean = tacit.jacobian(weighted, x, y=x[:, 2:])
    x[1, 1] = 0
    mixed = tacit.jacobian(weighted, x, y=x[:, 2:])
    assert float((mixed - clean)[[0, 2]].abs().max()) < 1e-12
    assert flags(weighted, x, y=x[:, 2:]) == [tacit.Flag(0), tacit.Flag.SINGULAR, tacit.Flag(0)]
    H, _, B, _ = at(weighted, x, x[:, 2:]).letters
    assert unconstrained(H, B)[1].isnan().all()
    close(mixed[1], minimum_norm(H, B)[1])
