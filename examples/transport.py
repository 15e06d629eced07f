"""Optimal transport as a node: learn features under which the transport plan finds who belongs to whom."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from learning import train
from measuring import beside_unrolled, table

import tacit

N, EPS = 12, 0.1


def potentials(cost: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f and g of length n from 2n - 1 unknowns; the last of g is 0, or f + c, g - c would be as good."""
    return u[: len(cost)], torch.cat([u[len(cost) :], u.new_zeros(1)])


def negative_dual(cost: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The dual of entropic transport between uniform weights: convex, without constraints."""
    f, g = potentials(cost, u)
    return EPS * ((f[:, None] + g - cost) / EPS).exp().sum() - f.mean() - g.mean()


transport = tacit.Problem(negative_dual)


def sinkhorn(cost: torch.Tensor, steps: int) -> torch.Tensor:
    """So many rounds of block ascent on the dual, in the log domain, batched."""
    level = torch.log(torch.tensor(1.0 / cost.shape[-1], dtype=cost.dtype))
    g = cost.new_zeros(cost.shape[0], 1, cost.shape[-1])
    for _ in range(steps):
        f = EPS * (level - ((g - cost) / EPS).logsumexp(2, keepdim=True))
        g = EPS * (level - ((f - cost) / EPS).logsumexp(1, keepdim=True))
    f, g = f + g[..., -1:], g - g[..., -1:]
    return torch.cat([f.flatten(1), g.flatten(1)[:, :-1]], dim=1)


def solved(cost: torch.Tensor) -> torch.Tensor:
    """The potentials with their gradient: some rounds of Sinkhorn bring it near, Newton's method ends it."""
    return tacit.argmin(transport, cost, start=sinkhorn(cost.detach(), 50))


def plan(cost: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The transport plan of the potentials."""
    f, g = u[:, :N], torch.cat([u[:, N:], u.new_zeros(len(u), 1)], dim=1)
    return ((f[:, :, None] + g[:, None] - cost) / EPS).exp()


def pairs(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Two sets of n objects, the same in two coordinates but for noise, unrelated in four others."""
    common = torch.randn(count, N, 2, dtype=torch.float64, generator=generator)
    sides = []
    for _ in range(2):
        noise = 0.15 * torch.randn(count, N, 2, dtype=torch.float64, generator=generator)
        clutter = torch.randn(count, N, 4, dtype=torch.float64, generator=generator)
        sides.append(torch.cat([common + noise, clutter], dim=2))
    return sides[0], sides[1]


def study(fast: bool) -> dict[str, Any]:
    """Train a linear map so that the plan puts its mass on the diagonal; the cost beside an unrolled Sinkhorn."""
    generator = torch.Generator().manual_seed(0)
    features = torch.nn.Linear(6, 2, bias=False, dtype=torch.float64)
    tests = pairs(32, generator)

    def plans(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        price = (features(a)[:, :, None] - features(b)[:, None]).square().sum(3)
        price = price / price.mean((1, 2), keepdim=True)
        return plan(price, solved(price))

    def loss() -> torch.Tensor:
        return -(N * plans(*pairs(8, generator)).diagonal(dim1=1, dim2=2)).log().mean()

    found: dict[str, Any] = {"before": plans(*tests).detach()}
    found["losses"] = train(features.parameters(), loss, 3 if fast else 80, 0.05)
    with torch.no_grad():
        found["after"] = plans(*tests)
    found["map"] = features.weight.detach()
    price = torch.rand(8, N, N, dtype=torch.float64, generator=generator).requires_grad_()
    v = torch.randn(8, N, N, dtype=torch.float64, generator=generator)

    found["rows"] = beside_unrolled(
        lambda: (plan(price, solved(price)) * v).sum(),
        lambda steps: (plan(price, sinkhorn(price, steps)) * v).sum(),
        (10,) if fast else (10, 30, 100, 300),
        price,
    )
    return found


def say(found: dict[str, Any]) -> str:
    """Matches found before and after, and costs."""
    right = [float((found[key].argmax(2) == torch.arange(N)).double().mean()) for key in ("before", "after")]
    share = found["map"][:, :2].norm() / found["map"].norm()
    lines = [
        f"pairs found: {100 * right[0]:.0f} % before, {100 * right[1]:.0f} % after {len(found['losses'])} steps",
        f"share of the learned map on the two coordinates that matter: {share:.3f}",
    ]
    return "\n".join([*lines, *table(found["rows"])])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """A plan before and after, and the loss."""
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("ink", [ink.page, ink[0]])
    figure, (a, b, c) = plt.subplots(1, 3, figsize=(8.4, 2.8))
    for panel, key in ((a, "before"), (b, "after")):
        panel.pcolormesh(N * found[key][0].flip(0), cmap=shades, vmin=0, vmax=1)
        panel.set(aspect="equal", xticks=[], yticks=[], title=f"plan, {key}")
    c.plot(found["losses"], color=ink[0])
    c.set(xlabel="step", title="loss")
    return figure


if __name__ == "__main__":
    present(study, say, draw)
