"""Robust pooling of vectors as a layer keeps the contract, one class a penalty. DDN[robust-pooling]."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.functions import PENALTIES, Penalty
from tacit.nn import RobustVectorPool
from tacit.testing import NodeContract

X = torch.tensor(
    [
        [[0.3, -0.2], [0.9, 0.4], [8.0, 1.0], [0.1, -0.4], [-0.2, 0.3]],
        [[2.0, 2.3], [1.4, 2.9], [2.1, 2.6], [-7.0, 0.0], [2.3, 2.1]],
        [[-1.0, 0.7], [-1.2, 0.4], [30.0, 9.0], [-0.9, 0.8], [-0.5, 0.2]],
    ]
)


class VectorPoolContract(NodeContract):
    """A set a sample, alpha learned."""

    penalty: str | Penalty
    compiles = "fullgraph"
    start_nudge = 1e-3

    def build(self):
        return RobustVectorPool(self.penalty, torch.nn.Parameter(torch.tensor(1.5)))

    def inputs(self):
        return X, 0.5 + X[..., 0].sin().square()

    def problem_inputs(self, layer, x, weight):
        return x, layer.alpha.expand(len(x)), weight


class TestQuadratic(VectorPoolContract):
    penalty = "quadratic"


class TestPseudoHuber(VectorPoolContract):
    penalty = "pseudo_huber"


class TestHuber(VectorPoolContract):
    penalty = "huber"


class TestWelsch(VectorPoolContract):
    penalty = "welsch"


class TestTruncatedQuadratic(VectorPoolContract):
    penalty = "truncated_quadratic"


def hard_sets(n: int, seed: int) -> torch.Tensor:
    """50 sets of n points in the plane: plain, with outliers, with ties, equal, and two clusters."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(50, n, 2, generator=generator, dtype=torch.float64)
    far = torch.rand(50, n, 1, generator=generator) < 0.3
    reach = 10 ** (3 * torch.rand(50, n, 1, generator=generator, dtype=torch.float64))
    x[10:20] = torch.where(far, x * reach, x)[10:20]
    x[20:30] = (3 * x[20:30]).round() / 3
    x[30:35] = x[30:35, :1]
    x[35:] = torch.where(far, x + 5, x)[35:]
    return x


@pytest.mark.slow
@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_solution_and_gradient_are_those_of_the_declared_problem_on_a_thousand_hard_sets(penalty):
    layer = RobustVectorPool(penalty, torch.nn.Parameter(torch.tensor(0.83, dtype=torch.float64)))
    twin = layer.problem()
    policy = tacit.Implicit(on_failure="ignore")
    compared = 0
    for n in (1, 2, 5, 12):
        for seed in range(5):
            x = hard_sets(n, seed).requires_grad_()
            alpha, weight = layer.alpha.detach().expand(50), torch.ones_like(x[..., 0])
            y = layer(x)
            known = y.detach()
            solved = tacit.solve(twin, x.detach(), alpha, weight, start=known, on_failure="ignore")
            own = torch.stack([torch.autograd.grad(y[:, c].sum(), x, retain_graph=True)[0] for c in range(2)], 1)
            declared = tacit.jacobian(twin, x.detach(), alpha, weight, y=known, gradient=policy)[0]
            hessian = torch.vmap(torch.func.hessian(twin.objective, 3))(x.detach(), alpha, weight, known)
            least = torch.linalg.eigvalsh(hessian).abs().amin(-1)
            # With less curvature than that an interval, or nearly one, minimises; its derivative is by policy.
            sound = (tacit.regularity(twin, x.detach(), alpha, weight, y=known).flags == 0) & (least > 1e-6)
            compared += int(sound.sum())
            assert ((solved.y - known).abs() <= 1e-10 * (1 + known.abs()))[sound].all()
            # Elsewhere more than one point may be lowest.
            low, high = (
                (
                    weight
                    * PENALTIES[penalty].value(
                        torch.linalg.vector_norm(u[:, None] - x.detach(), dim=-1), alpha[:, None]
                    )
                ).sum(-1)
                for u in (solved.y, known)
            )
            torch.testing.assert_close(high, low, atol=1e-9, rtol=1e-9)
            torch.testing.assert_close(own[sound], declared[sound], atol=1e-8, rtol=1e-8)
    assert compared > 400


def test_the_declared_problem_bends_where_the_answer_is_one_of_the_points():
    x = torch.tensor([[0.0, 0.0], [0.0, 0.5], [0.0, -0.5], [9.0, 9.0]], dtype=torch.float64)
    layer = RobustVectorPool("truncated_quadratic")
    one = torch.ones((), dtype=torch.float64)
    hessian = torch.func.hessian(layer.problem().objective, 3)(x, one, torch.ones_like(x[:, 0]), layer(x))
    assert torch.equal(layer(x), x[0])
    torch.testing.assert_close(hessian, 3 * torch.eye(2, dtype=torch.float64))


def test_the_vectors_may_lie_along_any_dims():
    x = torch.randn(4, 2, 7, generator=torch.Generator().manual_seed(0))  # batch, channels, points
    plain = RobustVectorPool("huber")(x.mT)
    torch.testing.assert_close(RobustVectorPool("huber", dim=2, vector_dim=1)(x), plain)
    assert RobustVectorPool("huber", dim=2, vector_dim=1, keepdim=True)(x).shape == (4, 2, 1)


def test_it_says_what_it_is():
    assert repr(RobustVectorPool("huber", 0.5)) == "RobustVectorPool(huber, alpha=0.5, dim=-2, vector_dim=-1)"
    assert RobustVectorPool("huber", torch.ones(3)).state_dict()["alpha"].shape == (3,)
