"""The shape of a test problem: a parametrised nonlinear program with its published start and solution.

    y(x) = argmin_u f(x, u)   subject to   h(x, u) = 0 (p rows),   g(x, u) <= 0 (q rows, the bounds among them)

Every function takes one sample: x (n,), u (m,). Some constants of the published problem are the parameters x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch

import tacit
from tacit.shapes import Float, Tensor

Function = Callable[[Tensor, Tensor], Tensor]
Kind = Literal["regular", "singular", "weak", "dependent", "feasibility", "no-solution"]
KINDS: tuple[str, ...] = get_args(Kind)
SPREAD = 0.05
GOLDEN, SILVER = 0.6180339887498949, 0.41421356237309515


@dataclass(frozen=True, eq=False)
class TestProblem:
    """A program, its parameter samples and what is known of its solution at the nominal sample `x[0]`.

    `f` is the published value; `y` the published solution, polished to about twelve digits where it was
    published with fewer. Where several minima are known, they are the ones named in `source`, else the best.
    """

    __test__: ClassVar[bool] = False  # the name starts with Test, and pytest need not collect it

    name: str
    group: str
    kind: Kind
    source: str
    objective: Function | None
    equality: Function | None
    inequality: Function | None
    x: Float[Tensor, "S n"]
    start: Float[Tensor, " m"]
    p: int
    q: int
    y: Float[Tensor, " m"] | None
    f: float | None
    nonconvex: bool

    @property
    def n(self) -> int:
        """Number of parameters."""
        return self.x.shape[1]

    @property
    def m(self) -> int:
        """Number of unknowns."""
        return self.start.shape[0]

    @property
    def starts(self) -> Float[Tensor, "S m"]:
        """The start, once for every parameter sample."""
        return self.start.repeat(self.x.shape[0], 1)

    @property
    def problem(self) -> tacit.Problem:
        """The same program in the library's words."""
        return tacit.Problem(objective=self.objective, equality=self.equality, inequality=self.inequality)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.kind}, n={self.n} m={self.m} p={self.p} q={self.q}>"


def samples(nominal: Sequence[float], spread: float = SPREAD) -> Float[Tensor, "3 n"]:
    """The nominal parameters and two perturbations by at most `spread`, relative (absolute where the nominal is 0)."""
    base = torch.tensor(nominal, dtype=torch.float64)
    place = torch.arange(1, base.numel() + 1, dtype=torch.float64)
    scale = spread * torch.where(base == 0, torch.ones_like(base), base)
    # Fractional parts of multiples of an irrational number: spread evenly, the same everywhere, no generator needed.
    shifts = [2 * torch.frac(place * GOLDEN + draw * SILVER) - 1 for draw in (1, 2)]
    return torch.stack([base, *(base + scale * shift for shift in shifts)])


def declare(
    name: str,
    *,
    group: str,
    source: str,
    x: Sequence[float] | Tensor,
    start: Sequence[float],
    objective: Function | None = None,
    equality: Function | None = None,
    inequality: Function | None = None,
    p: int = 0,
    q: int = 0,
    y: Sequence[float] | None = None,
    f: float | None = None,
    kind: Kind = "regular",
    nonconvex: bool = False,
    spread: float = SPREAD,
) -> TestProblem:
    """A test problem from plain numbers; `x` is the nominal sample, or a tensor (S, n) of chosen samples."""
    return TestProblem(
        name=name,
        group=group,
        kind=kind,
        source=source,
        objective=objective,
        equality=equality,
        inequality=inequality,
        x=x if isinstance(x, Tensor) else samples(x, spread),
        start=torch.tensor(start, dtype=torch.float64),
        p=p,
        q=q,
        y=None if y is None else torch.tensor(y, dtype=torch.float64),
        f=f,
        nonconvex=nonconvex,
    )


def constant(values: float | Sequence[float] | Sequence[Sequence[float]], like: Tensor) -> Tensor:
    """Published numbers in the dtype and on the device of `like`."""
    return torch.tensor(values, dtype=like.dtype, device=like.device)


def rows(*values: Tensor) -> Tensor:
    """Scalars as one vector of rows."""
    return torch.stack(values)


def join(*blocks: Tensor) -> Tensor:
    """Vectors of rows, one after the other."""
    return torch.cat(blocks)


def at_least(u: Tensor, lower: float | Sequence[float]) -> Tensor:
    """Rows that are <= 0 where u >= lower."""
    return constant(lower, u) - u


def at_most(u: Tensor, upper: float | Sequence[float]) -> Tensor:
    """Rows that are <= 0 where u <= upper."""
    return u - constant(upper, u)


def within(u: Tensor, lower: float | Sequence[float], upper: float | Sequence[float]) -> Tensor:
    """Rows that are <= 0 where lower <= u <= upper: all the lower ones, then all the upper ones."""
    return torch.cat([at_least(u, lower), at_most(u, upper)])
