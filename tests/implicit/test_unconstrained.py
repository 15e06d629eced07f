"""DDN[unconstrained] `Dy = -H^-1 B`."""

from __future__ import annotations

import torch

import tacit
from tacit.implicit.unconstrained import unconstrained

from .cases import at, bowl, by_differences, close, rand

PROBLEM = tacit.Problem(bowl)


def solved(b: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    x = rand(b, 3)
    return x, tacit.solve(PROBLEM, x, start=x).y


def test_formula_engine_and_finite_differences_agree():
    x, y = solved()
    H, _, B, _ = at(PROBLEM, x, y).letters
    Dy = tacit.jacobian(PROBLEM, x, y=y)
    close(unconstrained(H, B), Dy)
    close(by_differences(PROBLEM, x, y), Dy, 1e-7)


def test_it_holds_at_a_maximum_and_at_a_saddle_and_the_report_says_so():
    saddle = tacit.Problem(lambda x, u: 0.5 * (u[0] - x[0]).square() - 0.5 * (u[1] - x[0] * x[1]).square())
    x = rand(3, 2)
    y = torch.stack([x[:, 0], x[:, 0] * x[:, 1]], 1)
    H, _, B, _ = at(saddle, x, y).letters
    truth = torch.stack(
        [torch.tensor([1.0, 0.0], dtype=torch.float64).expand(3, 2), torch.stack([x[:, 1], x[:, 0]], 1)], 1
    )
    close(unconstrained(H, B), truth)
    close(tacit.jacobian(saddle, x, y=y), truth)
    assert (tacit.regularity(saddle, x, y=y).flags == int(tacit.Flag.NOT_MINIMUM)).all()


def test_a_singular_element_is_nan_and_its_neighbours_are_not_touched():
    H, B = torch.eye(2).double().repeat(3, 1, 1), rand(3, 2, 2)
    H[1, 1, 1] = 0
    Dy = unconstrained(H, B)
    assert Dy[1].isnan().all()
    assert torch.equal(Dy[[0, 2]], -B[[0, 2]])


def test_gradient_is_zero_for_an_input_the_problem_ignores():
    lazy = tacit.Problem(lambda x, u: 0.5 * (u - x[:1]).square().sum())
    x = rand(2, 2)
    assert torch.equal(tacit.jacobian(lazy, x, y=x[:, :1])[..., 1], torch.zeros(2, 1).double())


def test_float32_is_kept():
    x, y = solved()
    Dy = tacit.jacobian(PROBLEM, x.float(), y=y.float())
    assert Dy.dtype == torch.float32
    close(Dy.double(), tacit.jacobian(PROBLEM, x, y=y), 1e-5)
