"""Robust pooling as a layer keeps the contract, one class a penalty; it equals its declaration. DDN[robust-pooling]."""

from __future__ import annotations

import pytest
import torch

import tacit
from tacit.errors import OptionError, OptionTypeError
from tacit.functions import PENALTIES, Penalty
from tacit.nn import RobustPool
from tacit.shapes import Tensor
from tacit.testing import NodeContract
from typecheck import ENABLED

NAMES = sorted(PENALTIES)
X = torch.tensor(
    [[0.3, -0.2, 0.9, 8.0, 0.1, -0.4], [2.0, 2.3, 1.4, -7.0, 2.1, 2.6], [-1.0, -0.7, -1.2, -0.4, 30.0, -0.9]]
)


class Cauchy(Penalty):
    """A sixth penalty, as a user brings it."""

    name = "cauchy"

    def value(self, z: Tensor, alpha: Tensor) -> Tensor:
        return 0.5 * alpha**2 * torch.log1p((z / alpha) ** 2)


class PoolContract(NodeContract):
    """A set a sample, alpha learned."""

    penalty: str | Penalty
    compiles = "fullgraph"
    start_nudge = 1e-3

    def build(self):
        return RobustPool(self.penalty, torch.nn.Parameter(torch.tensor(1.5)))

    def inputs(self):
        return X, 0.5 + X.sin().square()

    def problem_inputs(self, layer, x, weight):
        return x, layer.alpha.expand(len(x)), weight


class TestQuadratic(PoolContract):
    penalty = "quadratic"


class TestPseudoHuber(PoolContract):
    penalty = "pseudo_huber"


class TestHuber(PoolContract):
    penalty = "huber"


class TestWelsch(PoolContract):
    penalty = "welsch"


class TestTruncatedQuadratic(PoolContract):
    penalty = "truncated_quadratic"


class TestBroughtByAUser(PoolContract):
    penalty = Cauchy()
    # The tracer stumbles over checks in the derivatives that it gets for free.
    compiles = None if ENABLED else "fullgraph"

    @pytest.mark.slow  # every derivative of the search is automatic
    def test_the_gradient_is_that_of_finite_differences(self):
        super().test_the_gradient_is_that_of_finite_differences()


def hard_rows(n: int, seed: int) -> Tensor:
    """200 rows of n numbers: plain, with outliers, with ties, equal, and two clusters; shaken where ties would kink."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(200, n, generator=generator, dtype=torch.float64)
    far = torch.rand(200, n, generator=generator) < 0.3
    reach = 10 ** (3 * torch.rand(200, n, generator=generator, dtype=torch.float64))
    x[40:80] = torch.where(far, x * reach, x)[40:80]
    x[80:120] = (3 * x[80:120]).round() / 3
    x[120:140] = x[120:140, :1]
    x[140:200] = torch.where(far, x + 5, x)[140:200]
    return x


@pytest.mark.parametrize("penalty", NAMES)
def test_solution_and_gradient_are_those_of_the_declared_problem_on_a_thousand_hard_rows(penalty):
    layer = RobustPool(penalty, torch.nn.Parameter(torch.tensor(0.83, dtype=torch.float64)))
    for n in (1, 2, 5, 12, 33):
        x = hard_rows(n, n).requires_grad_()
        alpha, weight = layer.alpha.detach().expand(200), torch.ones_like(x)
        y = layer(x)
        (own,) = torch.autograd.grad(y.sum(), x)
        twin = layer.problem()
        solved = tacit.solve(twin, x.detach(), alpha, weight, start=y.detach(), on_failure="ignore")
        scale = 1 + y.detach().abs()
        policy = tacit.Implicit(on_failure="ignore")
        declared = tacit.jacobian(twin, x.detach(), alpha, weight, y=y.detach(), gradient=policy)[0]
        # Where the declared Hessian is no more than rounding of its terms the two differ by policy, if at all.
        terms = PENALTIES[penalty].derivatives(y.detach()[:, None] - x.detach(), alpha[:, None]).curvature
        sound = terms.sum(-1).abs() > 1e-6 * terms.abs().sum(-1)
        torch.testing.assert_close(own[sound], declared[sound], atol=1e-8, rtol=1e-8)
        assert ((solved.y - y.detach()).abs() <= 1e-10 * scale)[sound].all()
        # Elsewhere an interval minimises: another point of it is as low.
        low, high = ((weight * PENALTIES[penalty].value(u[:, None] - x.detach(), alpha[:, None])).sum(-1)
                     for u in (solved.y, y.detach()))  # fmt: skip
        torch.testing.assert_close(high, low, atol=1e-10, rtol=1e-10)
        assert sound.sum() > 100 or penalty == "huber"
        assert not own[~sound].any()


def test_alpha_as_a_tensor_is_a_buffer_and_travels_with_the_layer():
    layer = RobustPool("welsch", torch.tensor([0.5, 1.0]))
    assert "alpha" in layer.state_dict() and not list(layer.parameters())
    assert layer.double()(torch.zeros(3, 2, 4, dtype=torch.float64)).dtype == torch.float64


def test_alpha_is_learned():
    torch.manual_seed(0)
    x = torch.randn(64, 30)
    x[:, :6] += 6
    layer = RobustPool("pseudo_huber", torch.nn.Parameter(torch.tensor(5.0)))
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(30):
        loss = layer(x).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert layer.alpha < 3 and losses[-1] < 0.5 * losses[0]


def test_it_says_what_it_is():
    assert repr(RobustPool("huber", 0.5, dim=(1, 2))) == "RobustPool(huber, alpha=0.5, dim=(1, 2), keepdim=False)"
    assert "alpha=tensor(3,)" in repr(RobustPool("huber", torch.ones(3)))


@pytest.mark.untyped
def test_what_cannot_be_meant_is_refused():
    with pytest.raises(OptionError, match="Did you mean 'huber'"):
        RobustPool("hubert")
    with pytest.raises(OptionTypeError, match="penalty expects"):
        RobustPool(3)
    with pytest.raises(OptionError, match="search expects"):
        RobustPool("welsch", search="papers")(X)


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("penalty", NAMES)
def test_it_exports(penalty):
    layer = RobustPool(penalty, 1.5)
    with torch.no_grad():
        exported = torch.export.export(layer, (X,))
        torch.testing.assert_close(exported.module()(X), layer(X), atol=1e-5, rtol=1e-5)
