"""The envelope shortcut: the derivative of an optimal value needs no derivative of the solution."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from measuring import cost, relative

import tacit

wave = tacit.Problem(
    objective=lambda x, u: (0.25 * u.pow(4) + 0.5 * u.square() - x * u + 0.1 * x.square()).sum(),
    inequality=lambda x, u: (u - 1.2)[None],
)


def large(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """An objective of as many unknowns as there are inputs."""
    return (0.25 * (u - x).pow(4) + 0.5 * u.square()).sum() + (u[1:] - u[:-1]).square().sum()


def study(fast: bool) -> dict[str, Any]:
    """The value function with its slope, and the cost of its gradient with the shortcut and without it."""
    x = torch.linspace(-3, 3, 61, dtype=torch.float64, requires_grad=True)
    start = torch.zeros_like(x).detach()
    v = tacit.value(wave, x, start=start)
    (slope,) = torch.autograd.grad(v.sum(), x)
    u = torch.linspace(-1.6, 1.2, 15, dtype=torch.float64)
    curves = torch.stack([0.25 * c**4 + 0.5 * c**2 - x.detach() * c + 0.1 * x.detach().square() for c in u])
    ends = [tacit.value(wave, x.detach() + step, start=start) for step in (1e-5, -1e-5)]
    found: dict[str, Any] = {"x": x.detach(), "v": v.detach(), "slope": slope, "curves": curves}
    found["off"] = ((ends[0] - ends[1]) / 2e-5 - slope).abs().max()
    found["sizes"] = (10, 40) if fast else (10, 30, 100, 300)
    found["short"], found["long"], found["agree"] = [], [], 0.0
    problem = tacit.Problem(large)
    for m in found["sizes"]:
        x = (2 * torch.randn(8, m, dtype=torch.float64)).requires_grad_()
        y = tacit.solve(problem, x, start=x.detach()).y

        def known(*_: Any, y: torch.Tensor = y) -> torch.Tensor:
            return y

        def short(x: torch.Tensor = x, known: Any = known) -> torch.Tensor:
            return tacit.value(problem, x, solver=known)

        def long(x: torch.Tensor = x, known: Any = known) -> torch.Tensor:
            return torch.vmap(large)(x, tacit.argmin(problem, x, solver=known))

        (a,), (b,) = torch.autograd.grad(short().sum(), x), torch.autograd.grad(long().sum(), x)
        found["agree"] = max(found["agree"], relative(a, b))
        found["short"].append(cost(short).backward)
        found["long"].append(cost(long).backward)
    return found


def say(found: dict[str, Any]) -> str:
    """Agreement and cost."""
    lines = [
        f"slope of v against central differences: {found['off']:.0e}",
        f"with the shortcut and through Dy the gradients agree to {found['agree']:.0e}; backward, batch 8:",
    ]
    for m, short, long in zip(found["sizes"], found["short"], found["long"]):
        lines.append(f"m = {m:3d}: shortcut {short:6.1f} ms, through Dy {long:6.1f} ms")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """The value as the lower envelope of the objectives at fixed u, and the times."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.6, 3.0))
    for curve in found["curves"]:
        a.plot(found["x"], curve, color=ink.faint, linewidth=0.8)
    a.plot(found["x"], found["v"], color=ink[0], linewidth=2.4)
    for i in (10, 30, 48):
        t = torch.tensor([-0.7, 0.7])
        a.plot(found["x"][i] + t, found["v"][i] + t * found["slope"][i], color=ink[1])
    a.set(xlabel="$x$", ylim=(-2, 1.5), title="$v(x)$, beneath $f(x, u)$ for fixed $u$; its slope")
    b.loglog(found["sizes"], found["long"], ".-", color=ink[1], label="through $\\mathrm{D}y$")
    b.loglog(found["sizes"], found["short"], ".-", color=ink[0], label="shortcut")
    b.set(xlabel="unknowns $m$", title="milliseconds backward")
    b.legend()
    return figure


if __name__ == "__main__":
    present(study, say, draw)
