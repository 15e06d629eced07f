"""A declared layer learns to ignore outliers: the shortest honest run from a problem to a trained model and a figure.

Every sample is a handful of measurements of one number, a third of them gross errors. A `tacit.Node` fuses them by a
robust mean whose scale is a learnable parameter; its gradient comes from the implicit function theorem. Beside it, the
plain mean. Run it with `python examples/demo.py`; it takes well under a minute on one core.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch

import tacit


class RobustMean(tacit.Node):
    """y = argmin_u sum_i alpha^2 (sqrt(1 + ((u - x_i) / alpha)^2) - 1), the pseudo-Huber location."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.log_alpha = torch.nn.Parameter(torch.tensor(math.log(alpha)))

    def objective(self, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        alpha = self.log_alpha.exp()
        return (alpha.square() * ((1 + ((u - x) / alpha).square()).sqrt() - 1)).sum()

    def start(self, x: torch.Tensor) -> torch.Tensor:
        return x.median()


def measurements(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """True values `(count,)` and 15 measurements of each `(count, 15)`: noise 0.1, a third off by up to 10."""
    truth = torch.randn(count, generator=generator)
    noise = 0.1 * torch.randn(count, 15, generator=generator)
    gross = torch.rand(count, 15, generator=generator) < 1 / 3
    error = 10 * torch.rand(count, 15, generator=generator)
    return truth, truth[:, None] + torch.where(gross, error, noise)


def train(steps: int, seed: int) -> tuple[RobustMean, list[float], list[float]]:
    """Fit alpha by Adam; return the node, its test errors and its alphas, one per step."""
    generator = torch.Generator().manual_seed(seed)
    node = RobustMean(alpha=10.0)
    optimiser = torch.optim.Adam(node.parameters(), lr=0.1)
    test_truth, test_x = measurements(500, generator)
    errors, alphas = [], []
    for _ in range(steps):
        truth, x = measurements(64, generator)
        loss = (node(x) - truth).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            errors.append(float((node(test_x) - test_truth).abs().mean()))
            alphas.append(float(node.log_alpha.exp()))
    return node, errors, alphas


def draw(errors: list[float], alphas: list[float], plain: float, path: Path) -> None:
    """Error and alpha against the step."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), constrained_layout=True)
    left.plot(errors, color="C0", label="robust mean, declared")
    left.axhline(plain, color="C3", linestyle="--", label="plain mean")
    left.set(xlabel="step", ylabel="mean absolute error on the test set", yscale="log")
    left.legend(frameon=False)
    right.plot(alphas, color="C0")
    right.set(xlabel="step", ylabel=r"learned scale $\alpha$", yscale="log")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Train, compare, draw, and say in one sentence what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo/demo.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    node, errors, alphas = train(options.steps, options.seed)
    truth, x = measurements(500, torch.Generator().manual_seed(options.seed + 1))
    plain = float((x.mean(1) - truth).abs().mean())
    with torch.no_grad():
        robust = float((node(x) - truth).abs().mean())
    draw(errors, alphas, plain, options.out)
    print(f"plain mean             error {plain:.3f}")
    print(f"robust mean, declared  error {robust:.3f}   alpha {alphas[0]:.2f} -> {alphas[-1]:.3f}")
    print(f"figure: {options.out}")
    print(
        f"With a third of the measurements wrong, a declared robust mean that learned its own scale is off by {robust:.3f} "
        f"on average, the plain mean by {plain:.3f}."
    )


if __name__ == "__main__":
    main()
