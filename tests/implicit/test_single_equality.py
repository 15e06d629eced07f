"""DDN[single-equality] One fixed equality; DDN[orthogonality] A Dy = 0 for fixed rows."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.equality import equality
from tacit.implicit.single_equality import motion_off_constraint, multiplier, single_equality

from .cases import at, bowl, by_differences, close, flags, rand

SPHERE = tacit.Problem(
    lambda x, u: 0.5 * (u - x).square().sum(), equality=lambda x, u: (u.square().sum().sqrt() - 1)[None]
)
QUARTIC = tacit.Problem(bowl, equality=lambda x, u: ((u**4).sum() - 1)[None])


def test_formula_engine_and_finite_differences_agree():
    x = 1 + 0.3 * rand(3, 3)
    s = tacit.solve(QUARTIC, x, start=x)
    point = at(QUARTIC, x, s.y)
    H, A, B, C = point.letters
    Dy = tacit.jacobian(QUARTIC, x, y=s.y)
    assert not C.any()
    close(single_equality(H, A[:, 0], B), Dy)
    close(single_equality(H, A[:, 0], B), equality(H, A, B, C))
    close(by_differences(QUARTIC, x, s.y), Dy, 1e-6)
    close(multiplier(A[:, 0], point.instance.gradient(s.y)), s.equality[:, 0], 1e-6)


def test_projection_onto_the_sphere_has_the_closed_form_of_the_table():
    x = rand(4, 3)
    length = x.norm(dim=1)[:, None]
    y = x / length
    Dy = (torch.eye(3).double() - y[:, :, None] * y[:, None, :]) / length[..., None]
    point = at(SPHERE, x, y)
    close(point.lam, 1 - length)
    close(tacit.jacobian(SPHERE, x, y=y), Dy)
    H, A, B, _ = point.letters
    close(single_equality(H, A[:, 0], B), Dy)


def test_y_moves_along_a_fixed_constraint():
    x = 1 + 0.3 * rand(3, 3)
    y = tacit.solve(QUARTIC, x, start=x).y
    close(
        motion_off_constraint(at(QUARTIC, x, y).letters[1], tacit.jacobian(QUARTIC, x, y=y)),
        torch.zeros(3, 1, 3).double(),
    )


def test_y_leaves_a_moving_constraint_as_fast_as_it_moves():
    moving = tacit.Problem(bowl, equality=lambda x, u: (u.square().sum() - x[0].square())[None])
    x = 1 + 0.3 * rand(3, 3)
    y = tacit.solve(moving, x, start=x).y
    _, A, _, C = at(moving, x, y).letters
    close(motion_off_constraint(A, tacit.jacobian(moving, x, y=y)), -C)


def test_a_flat_objective_on_the_sphere_has_H_zero_without_the_multiplier_and_a_derivative_with_it():
    # The paper's remedy for the quaternion: H = -lam D_YY h is singular along y, K is not.
    align = tacit.Problem(lambda x, u: -(x @ u), equality=SPHERE.equality)
    x = rand(2, 4)
    y = x / x.norm(dim=1, keepdim=True)
    H, A, B, _ = at(align, x, y).letters
    assert float(torch.linalg.eigvalsh(H)[:, 0].abs().max()) < 1e-14
    Dy = (torch.eye(4).double() - y[:, :, None] * y[:, None, :]) / x.norm(dim=1)[:, None, None]
    assert float((single_equality(H, A[:, 0], B) - Dy).abs().nan_to_num(torch.inf).amax()) > 1e-2
    close(tacit.jacobian(align, x, y=y), Dy)
    assert flags(align, x, y=y) == [tacit.Flag(0)] * 2
