"""DDN[engine] One bordered system serves every proposition: regular where K is, and each sample on its own."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.implicit import Implicit
from tacit.implicit.inequality import inequality
from tacit.implicit.kkt import kept_rows, kkt_matrix, kkt_residual, linearise
from tacit.problem.active_set import RowState

from .cases import at, bowl, close, flags, rand, spd

BOX = tacit.Problem(bowl, inequality=lambda x, u: torch.cat([u - 0.5, -u - 0.5]))


def solved(b: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    x = rand(b, 3, seed=3)
    return x, tacit.solve(BOX, x, start=torch.zeros_like(x)).y


def linearised(x: torch.Tensor, y: torch.Tensor, policy: Implicit | None = None):
    point = at(BOX, x, y)
    state = torch.where(point.active, int(RowState.ACTIVE), int(RowState.INACTIVE)).to(torch.int8)
    failed = torch.zeros(len(x), dtype=torch.bool)
    return point, linearise(point.instance, y, point.lam, state, failed, policy or Implicit())


def test_rows_that_take_no_part_are_rows_of_the_identity():
    H, A = spd(2, 2), rand(2, 3, 2)
    keep = torch.tensor([[True, False, True], [False, False, False]])
    K = kkt_matrix(H, A, keep)
    close(K, K.mT)
    close(K[:, 3], torch.eye(5).double()[3].expand(2, 5))
    close(K[1, 2:], torch.eye(5).double()[2:])
    close(K[0, [2, 4], :2], A[0, [0, 2]])
    R = kkt_residual(torch.ones(2, 5).double(), keep)
    assert R.tolist() == [[1, 1, 1, 0, 1], [1, 1, 0, 0, 0]]


def test_one_factorisation_serves_a_batch_of_different_active_sets():
    x, y = solved()
    point, known = linearised(x, y)
    assert len(set(map(tuple, point.active.tolist()))) > 2
    H, A, B, C = point.letters
    w = known.solve(-torch.cat([B, torch.where(point.active[..., None], C, 0.0)], 1))
    close(w[:, :3], inequality(H, A, B, C, point.active))


def test_the_explicit_inverse_is_the_solve_of_the_identity():
    point, known = linearised(*solved())
    H, A, _, _ = point.letters
    inverse = known.explicit_inverse()
    close(inverse @ kkt_matrix(H, A, known.keep), torch.eye(9).double().expand(6, 9, 9), 1e-9)


def test_weak_rows_are_kept_by_policy():
    state = torch.tensor([[int(s) for s in RowState]], dtype=torch.int8)
    assert kept_rows(state, Implicit()).tolist() == [[False, True, True, False]]
    assert kept_rows(state, Implicit(weak="inactive")).tolist() == [[False, True, False, False]]


@pytest.mark.parametrize("harm", [torch.nan, torch.inf], ids=["NaN", "infinite"])
def test_a_broken_element_is_flagged_and_leaves_its_neighbours_alone(harm):
    x, y = solved()
    clean = tacit.jacobian(BOX, x, y=y)
    x[2, 1] = harm
    mixed = tacit.jacobian(BOX, x, y=y)
    others = [0, 1, 3, 4, 5]
    assert float((mixed - clean)[others].abs().max()) < 1e-12
    assert mixed[2].isfinite().all()
    found = flags(BOX, x, y=y)
    assert found[2] & tacit.Flag.NONFINITE
    assert all(found[i] == tacit.Flag(0) for i in others)


def test_a_y_that_is_not_stationary_is_flagged_and_its_backward_pass_gives_zero():
    x, y = solved()
    off = y.clone()
    off[1] = torch.tensor([0.1, 0.2, -0.1])
    found = flags(BOX, x, y=off)
    assert found[1] & tacit.Flag.NOT_STATIONARY and found[0] == tacit.Flag(0)
    live = x.clone().requires_grad_()
    out = tacit.argmin(BOX, live, solver=lambda x: off, on_failure="ignore")
    (g,) = torch.autograd.grad(out.sum(), live)
    assert not g[1].any() and g[0].any()


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_an_unknown_changes_neither_answer_nor_flags(scale):
    # u_0 in another unit: its derivative changes by the unit and by nothing else.
    unit = torch.tensor([scale, 1.0, 1.0], dtype=torch.float64)
    problem = tacit.Problem(
        lambda x, u: bowl(x, u / unit), equality=lambda x, u: ((u / unit).square().sum() - 1 - x[0].square())[None]
    )
    plain = tacit.Problem(bowl, equality=lambda x, u: (u.square().sum() - 1 - x[0].square())[None])
    x = 1 + 0.3 * rand(3, 3)
    y = tacit.solve(plain, x, start=x).y
    found = tacit.jacobian(problem, x, y=y * unit)
    close(found / unit[:, None], tacit.jacobian(plain, x, y=y), 1e-9)
    assert flags(problem, x, y=y * unit) == [tacit.Flag(0)] * 3


def test_what_the_rows_hold_does_not_move_however_large_b_is():
    """One rounding error in the place of a zero, times a B of two hundred, would show."""
    corner = tacit.Problem(
        lambda x, u: (torch.tensor([2.3, 1.7, 2.2]) * u).sum() + 1e-4 * (x * u).square().sum(),
        inequality=lambda x, u: torch.cat([60 - u[:1], 50 - u[:1] - u[1:2], 70 - u.sum()[None]]),
    )
    x = torch.tensor([[1.0, 1.5, 0.7]])
    y = torch.tensor([[60.0, -10.0, 20.0]])
    report = tacit.regularity(corner, x, y=y)
    assert report.rank.tolist() == [3]
    assert tacit.jacobian(corner, x, y=y).abs().max() < 1e-9


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_an_unknown_in_other_units_than_its_neighbour_is_as_regular(unit):
    disc = tacit.Problem(
        lambda x, u: 0.5 * (u[0] / unit - x[0]).square() + 0.5 * (u[1] - x[1]).square(),
        inequality=lambda x, u: (u[0] / unit).square()[None] + u[1].square() - 1,
    )
    x = torch.tensor([[3.0, 4.0], [0.1, 0.2]], dtype=torch.float64)
    units = torch.tensor([unit, 1.0], dtype=torch.float64)
    y = torch.tensor([[0.6, 0.8], [0.1, 0.2]], dtype=torch.float64) * units
    expected = torch.tensor([[[0.128, -0.096], [-0.096, 0.072]], [[1.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    torch.testing.assert_close(tacit.jacobian(disc, x, y=y) / units[:, None], expected)
    assert not tacit.regularity(disc, x, y=y).flags.any()
