"""What the tests of the propositions share: problems with their solutions, letters at a solution, finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import tacit
from tacit.implicit.notation import paper_letters
from tacit.problem import Instance
from tacit.problem.active_set import RowState, find_active_set


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers in float64, the same at every call."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def spd(b: int, m: int, seed: int = 0) -> torch.Tensor:
    """Well-conditioned symmetric positive definite matrices."""
    M = rand(b, m, m, seed=seed)
    return M @ M.mT + m * torch.eye(m, dtype=M.dtype)


@dataclass
class Point:
    """A problem at its solution: letters, multipliers and the rows that are active, strongly or weakly."""

    instance: Instance
    y: torch.Tensor
    lam: torch.Tensor
    active: torch.Tensor
    weak: torch.Tensor
    letters: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def at(problem: tacit.Problem, x: torch.Tensor, y: torch.Tensor) -> Point:
    """The letters at y (b, m), derivatives in x (b, n)."""
    instance = Instance.bind(problem, (x,), (0,), y)
    found = find_active_set(instance, y)
    active, weak = found.state == RowState.ACTIVE, found.state == RowState.WEAK
    return Point(instance, y, found.lam, active, weak, paper_letters(instance, y, found.lam))


def by_differences(problem: tacit.Problem, x: torch.Tensor, start: torch.Tensor, step: float = 1e-4) -> torch.Tensor:
    """Dy (b, m, n) by central differences of fourth order, all of them in one call of `tacit.solve`."""
    b, n = x.shape
    shifts = torch.tensor([-2.0, -1.0, 1.0, 2.0], dtype=x.dtype) * step
    moved = x[None, None] + shifts[:, None, None, None] * torch.eye(n, dtype=x.dtype)[None, :, None]
    found = tacit.solve(problem, moved.reshape(-1, n), start=start.repeat(4 * n, 1))
    assert bool(found.converged.all())
    far_back, back, ahead, far_ahead = found.y.reshape(4, n, b, -1)
    return ((8 * (ahead - back) - (far_ahead - far_back)) / (12 * step)).movedim(0, 2)


def close(a: torch.Tensor, b: torch.Tensor, tol: float = 1e-10) -> None:
    """Equal to `tol`, relative to the largest entry."""
    a, b = a.detach(), b.detach()
    torch.testing.assert_close(a, b, rtol=0, atol=tol * max(1.0, float(b.abs().max())))


class Counted(TorchDispatchMode):
    """Collects the names of the operations that run, and the largest number of elements any of them returns."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.append(func.name())
        for value in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(value, torch.Tensor):
                self.largest = max(self.largest, value.numel())
        return result

    @property
    def solves(self) -> list[str]:
        """Factorisations and solves among them."""
        marks = ("linalg", "lu_", "cholesky", "triangular", "eig", "svd")
        return [name for name in self.names if any(mark in name for mark in marks) and "vector_norm" not in name]


def flags(problem: tacit.Problem, *xs: torch.Tensor, y: torch.Tensor, **options: object) -> list[tacit.Flag]:
    """The flags of every sample, as the report gives them."""
    return [tacit.Flag(int(f)) for f in tacit.regularity(problem, *xs, y=y, **options).flags]


# y(x) for n = m = 3, smooth and curved everywhere, with a positive definite Hessian.
def bowl(x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    w = torch.tensor([1.0, 2.0, 4.0], dtype=u.dtype)
    return 0.5 * (w * (u - x).square()).sum() + torch.log(torch.cosh(u - x.flip(0))).sum() + 0.1 * (u * u.roll(1)).sum()
