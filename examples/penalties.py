"""Five penalties: their shapes, the summed objective of two points, and the pooled value as an outlier walks away."""

from __future__ import annotations

from typing import Any

import torch
from drawing import Ink, present

from tacit.functions import PENALTIES
from tacit.nn.functional import robust_pool

NAMES = ("quadratic", "pseudo_huber", "huber", "welsch", "truncated_quadratic")
PAIR = torch.tensor([-2.0, 2.0], dtype=torch.float64)
OTHERS = torch.tensor([-0.6, -0.3, 0.0, 0.2, 0.7], dtype=torch.float64)


def study(fast: bool) -> dict[str, Any]:
    """Evaluate every penalty with alpha = 1, and pool five numbers and a sixth that walks from 0 to 8."""
    one = torch.tensor(1.0, dtype=torch.float64)
    z = torch.linspace(-4, 4, 49, dtype=torch.float64)
    u = torch.linspace(-5, 5, 41, dtype=torch.float64)
    place = torch.linspace(0, 8, 33 if fast else 49, dtype=torch.float64)
    x = torch.cat([OTHERS.expand(len(place), 5), place[:, None]], dim=1).requires_grad_()
    found: dict[str, Any] = {"z": z, "u": u, "place": place}
    for name in NAMES:
        y = robust_pool(x, name)
        (slope,) = torch.autograd.grad(y.sum(), x)
        found[name] = {
            "shape": PENALTIES[name].value(z, one),
            "terms": PENALTIES[name].value(u[:, None] - PAIR, one),
            "top": PENALTIES[name].value(u[:, None] - PAIR, one).sum(1).max().clamp(1.1, 9.0).item(),
            "answer": robust_pool(PAIR, name),
            "y": y.detach(),
            "pull": slope[:, -1],
        }
    return found


def say(found: dict[str, Any]) -> str:
    """Where the pooled value ends, and how much the outlier still counts there."""
    lines = [
        f"pooled value of five numbers around 0 and a sixth at {found['place'][-1]:.0f}, and what the sixth counts"
    ]
    for name in NAMES:
        part = found[name]
        lines.append(f"{name:>20}: {part['y'][-1]:6.3f}  {part['pull'][-1].item() + 0.0:6.3f}")
    return "\n".join(lines)


def draw(ink: Ink, found: dict[str, Any]) -> Any:
    """A column for a penalty, a row for a picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 5, figsize=(9.0, 5.6), sharex="row")
    for (shape, pair, walk), name, k in zip(axes.T, NAMES, range(5)):
        part = found[name]
        shape.plot(found["z"], part["shape"], color=ink[k])
        shape.set(title=name.replace("_", " "), xlabel="$z$", ylim=(-0.2, 4.2), xticks=(-4, 0, 4), yticks=(0, 2, 4))
        for term in part["terms"].T:
            pair.plot(found["u"], term, ":", color=ink.text, linewidth=1)
        total = part["terms"].sum(1)
        pair.plot(found["u"], total, color=ink[k])
        pair.plot(part["answer"], total[(found["u"] - part["answer"]).abs().argmin()], "o", color=ink[k], markersize=4)
        pair.set(xlabel="$u$", ylim=(-0.1 * part["top"], 1.05 * part["top"]), xticks=(-4, 0, 4), yticks=())
        walk.plot(found["place"], found["place"] / 6, "--", color=ink.faint)
        walk.plot(found["place"], part["y"], color=ink[k])
        walk.set(xlabel="$x_6$", ylim=(-0.1, 0.9), yticks=(0, 0.4, 0.8))
    for axis in (*axes[0, 1:], *axes[2, 1:]):  # of one height throughout the row
        axis.tick_params(labelleft=False)
    for axis, label in zip(axes[:, 0], (r"$\phi(z)$", "$f(u)$ of $x = (-2, 2)$", "pooled value")):
        axis.set_ylabel(label)
    return figure


if __name__ == "__main__":
    present(study, say, draw)
