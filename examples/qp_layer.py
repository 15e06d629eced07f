"""A quadratic program in a network: a forecast of prices, trained for what a battery earns with it."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present
from measuring import beside_unrolled, table

from tacit.nn.functional import quadratic_program

T, INTO, OUT, STORE = 16, 0.4, 0.33, 1.0
"""Periods of a day, most that flows in and out in one, most that can be stored."""

tri = torch.tril(torch.ones(T, T, dtype=torch.float64))
Q = 0.2 * torch.eye(T, dtype=torch.float64)
A, b = torch.ones(1, T, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)  # ends the day as it began it
rows = torch.cat([torch.eye(T, dtype=torch.float64), tri])
high = torch.cat([torch.full((T,), INTO), torch.full((T,), STORE / 2)]).double()
low = torch.cat([torch.full((T,), -OUT), torch.full((T,), -STORE / 2)]).double()
G, h = torch.cat([rows, -rows]), torch.cat([high, -low])


def schedule(prices: torch.Tensor) -> torch.Tensor:
    """What to buy (or sell) when: argmin_u p'u + 0.1 |u|^2 within what the battery can do."""
    return quadratic_program(Q, prices, A, b, G, h)


def bill(prices: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """What the day costs."""
    return (prices * u).sum(1) + 0.1 * u.square().sum(1)


def days(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Three features of a day and its prices, which are no linear function of them."""
    x = torch.randn(count, 3, dtype=torch.float64, generator=generator)
    t = torch.linspace(0, 2 * torch.pi, T, dtype=torch.float64)
    wave = x[:, :1].tanh() * (t + x[:, 1:2]).sin() + 0.6 * (2 * t + 2 * x[:, 2:]).cos()
    level = (
        4 * x[:, :1].square() * torch.linspace(0.8, 1.2, T, dtype=torch.float64)
    )  # high on some days, whatever one buys
    return x, wave + level + 0.1 * torch.randn(count, T, dtype=torch.float64, generator=generator)


def split(prices: torch.Tensor, steps: int) -> torch.Tensor:
    """The alternative: steps of ADMM on the same program, differentiated one by one."""
    least, most = torch.cat([low, b]), torch.cat([high, b])
    M = torch.cat([rows, A])
    inverse = torch.linalg.inv(Q + M.T @ M)
    z = y = prices.new_zeros(len(prices), len(M))
    for _ in range(steps):
        u = (z - y) @ M @ inverse - prices @ inverse
        z = torch.minimum(torch.maximum(u @ M.T + y, least), most)
        y = y + u @ M.T - z
    return u


def study(fast: bool) -> dict[str, Any]:
    """Train one network for accurate prices and one for cheap days; the cost of the layer beside unrolled steps."""
    found: dict[str, Any] = {}
    for name in ("prices", "bills"):
        generator = torch.Generator().manual_seed(0)
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(3, 12), torch.nn.Tanh(), torch.nn.Linear(12, T)).double()
        optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
        tests = days(200, torch.Generator().manual_seed(1))
        best = bill(tests[1], schedule(tests[1])).mean()
        regrets = []
        for step in range(5 if fast else 400):
            x, p = days(32, generator)
            guess = network(x)
            loss = (guess - p).square().mean() if name == "prices" else bill(p, schedule(guess)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 10 == 0:
                with torch.no_grad():
                    regrets.append(float(bill(tests[1], schedule(network(tests[0]))).mean() - best))
        with torch.no_grad():
            found[name] = {"regret": regrets, "guess": network(tests[0])[1], "u": schedule(network(tests[0]))[1]}
    found["truth"], found["best"] = tests[1][1], schedule(tests[1])[1]
    p = tests[1][:32].clone().requires_grad_()
    v = torch.randn(32, T, dtype=torch.float64, generator=generator)
    found["rows"] = beside_unrolled(
        lambda: (schedule(p) * v).sum(),
        lambda steps: (split(p, steps) * v).sum(),
        (10,) if fast else (10, 30, 100, 300),
        p,
    )
    return found


def say(found: dict[str, Any]) -> str:
    """Regrets, and costs."""
    lines = [
        f"trained for {name}: a day costs {found[name]['regret'][-1]:.3f} more than with the prices known"
        for name in ("prices", "bills")
    ]
    return "\n".join([*lines, *table(found["rows"])])


def charge(u: torch.Tensor) -> torch.Tensor:
    """What is stored before the day and after each of its periods; half of what can be, to begin with."""
    return STORE / 2 + torch.cat([u.new_zeros(1), u.cumsum(0)])


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """Regret against the step, and one day's charge in the battery."""
    import matplotlib.pyplot as plt

    figure, (a, b) = plt.subplots(1, 2, figsize=(7.8, 3.0))
    for k, name in enumerate(("prices", "bills")):
        a.plot(
            [10 * i for i in range(len(found[name]["regret"]))],
            found[name]["regret"],
            color=ink[1 - k],
            label=f"for {name}",
        )
        b.plot(range(T + 1), charge(found[name]["u"]), color=ink[1 - k], label=f"for {name}")
    b.plot(range(T + 1), charge(found["best"]), "--", color=ink.text, label="prices known", linewidth=1)
    a.set(xlabel="step", title="regret on new days", ylim=(0, None))
    b.set(xlabel="period", title="charge of the battery on one day", ylim=(-0.05, 1.25), yticks=[0, 0.5, 1])
    a.legend()
    b.legend(fontsize=8, ncols=3, loc="upper center", columnspacing=1)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
