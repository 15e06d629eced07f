"""A convex program written in CVXPY as a layer: its parameters come in, its solution goes out, both differentiable.

A disciplined parametrised program (DPP) is brought by CVXPY to a cone program whose matrices are affine in the parameters,

    minimise 1/2 x'Px + c'x   subject to   A x + s = b,   s in a product of cones,

once and for all. A call evaluates the affine maps in torch, and `tacit.nn.functional.cone_program` does the rest: so the
gradient, of any order, comes from the same engine as every other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tacit.errors import InputTypeError, InputValueError, MissingDependencyError
from tacit.nn.functional import cone_program
from tacit.nn.functional.arguments import need_floating
from tacit.problem import describe
from tacit.shapes import Bool, Float, Int, Shaped, Tensor
from tacit.solvers.external import Cones

__all__ = ["ConvexProgram"]


class ConvexProgram(torch.nn.Module):
    """Solutions of a CVXPY problem as functions of its parameters; `pip install tacit[cvxpy]`.

    Linear, quadratic, second-order and exponential cone programs, whatever CVXPY makes of the problem's atoms.

    Args:
        problem: a `cvxpy.Problem` that is DPP: convex, and parameters enter affinely (`problem.is_dcp(dpp=True)`).
        parameters: its `cvxpy.Parameter`s, in the order in which `forward` takes their values.
        variables: the `cvxpy.Variable`s whose values `forward` returns.
        gradient, on_failure, max_iter, threads: as in `tacit.nn.functional.cone_program`.

    Raises:
        MissingDependencyError: CVXPY or Clarabel is not installed.
        InputTypeError, InputValueError: the problem is not DPP, needs other cones, or the lists do not match it.

    >>> import cvxpy as cp
    >>> x, a = cp.Variable(2), cp.Parameter(2)
    >>> nearest = ConvexProgram(cp.Problem(cp.Minimize(cp.norm(x - a)), [cp.norm(x) <= 1]), [a], [x])
    >>> nearest(torch.tensor([[3.0, 4.0], [0.0, -2.0]]))
    tensor([[ 0.6000,  0.8000],
            [ 0.0000, -1.0000]])
    """

    def __init__(
        self,
        problem: Any,
        parameters: Sequence[Any],
        variables: Sequence[Any],
        *,
        gradient: Any = None,
        on_failure: str | None = None,
        max_iter: int = 200,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.form = _canonical(problem, list(parameters), list(variables))
        self.names = [p.name() for p in parameters]
        self.options = {"gradient": gradient, "on_failure": on_failure, "max_iter": max_iter, "threads": threads}

    def forward(self, *values: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."] | tuple[Tensor, ...]:
        """Return the value of the variable, or a tuple of several.

        Args:
            values: one tensor per parameter, of its shape, or with a batch axis in front; what has none is shared.

        Raises:
            InputTypeError, InputValueError: about a value's type or shape.
            ConvergenceError: with `on_failure="raise"`, for samples without an answer.
        """
        theta, batched = self._stacked(values)
        P, c, A, b = self.form.matrices(theta)
        form = self.form
        x = cone_program(P, c, A, b, form.cones, wanted=form.wanted, constant=form.constant, **self.options)
        out = tuple(_unflatten(x[:, start : start + _size(shape)], shape) for start, shape in form.outputs)
        if not batched:
            out = tuple(u[0] for u in out)
        return out[0] if len(out) == 1 else out

    def _stacked(self, values: tuple[Tensor, ...]) -> tuple[Float[Tensor, "b k"], bool]:
        """All parameters as one vector a sample, column by column as CVXPY counts, and a 1 at the end."""
        shapes = self.form.shapes
        if len(values) != len(shapes):
            raise InputValueError(
                f"ConvexProgram expects {len(shapes)} values, for {', '.join(self.names)}; received {len(values)}."
            )
        sizes = set()
        for name, value, shape in zip(self.names, values, shapes, strict=True):
            need_floating(value, name)
            if value.dtype != values[0].dtype or value.device != values[0].device:
                raise InputTypeError(
                    f"{name} expects the dtype and device of {self.names[0]}, {values[0].dtype} on {values[0].device}; "
                    f"received {value.dtype} on {value.device}. Use {name}.to({self.names[0]})."
                )
            fits = value.dim() in (len(shape), len(shape) + 1) and value.shape[value.dim() - len(shape) :] == shape
            if not fits:
                raise InputValueError(
                    f"{name} expects shape {tuple(shape)}, or that with a batch axis in front; received "
                    f"{tuple(value.shape)}."
                )
            if value.dim() > len(shape):
                sizes.add(value.shape[0])
        if len(sizes) > 1:
            raise InputValueError(f"batched values expect one batch size; received {sorted(sizes)}.")
        batch = sizes.pop() if sizes else None
        rows = batch if batch is not None else 1
        # CVXPY counts entries column by column.
        flat = [
            value.reshape(-1, *shape).expand(rows, *shape).transpose(1, -1).reshape(rows, _size(shape))
            if len(shape) > 1
            else value.reshape(-1, _size(shape)).expand(rows, -1)
            for value, shape in zip(values, shapes, strict=True)
        ]
        like = values[0] if values else torch.zeros((), dtype=torch.float64)
        return torch.cat([*flat, like.new_ones(rows, 1)], 1), batch is not None

    def extra_repr(self) -> str:
        """Say what comes in, and how large the cone program is."""
        cones = self.form.cones
        return f"{', '.join(self.names)}; {self.form.c.size} unknowns, {cones.rows} rows: {cones}"


@dataclass(frozen=True)
class _Affine:
    """A vector that is affine in the parameters: `out[row] += value * theta[column]`."""

    row: Int[Tensor, " k"]
    column: Int[Tensor, " k"]
    value: Float[Tensor, " k"]
    size: int

    def __call__(self, theta: Float[Tensor, "b t"]) -> Float[Tensor, "b size"]:
        row, column = self.row.to(theta.device), self.column.to(theta.device)
        terms = theta[:, column] * self.value.to(theta)
        return terms.new_zeros(len(theta), self.size).index_add(1, row, terms)


@dataclass(frozen=True)
class _Form:
    """The cone program of a problem: its matrices as affine maps, and where its variables are."""

    P: _Affine
    c: _Affine
    A: _Affine
    cones: Cones
    shapes: tuple[torch.Size, ...]
    outputs: tuple[tuple[int, torch.Size], ...]

    @property
    def wanted(self) -> Bool[Tensor, " n"]:
        """Which unknowns of the cone program are looked at."""
        mask = torch.zeros(self.c.size, dtype=torch.bool)
        for start, shape in self.outputs:
            mask[start : start + _size(shape)] = True
        return mask

    @property
    def constant(self) -> Bool[Tensor, " m"]:
        """Which rows of A and b no parameter enters."""
        m, parameters = self.cones.rows, sum(_size(shape) for shape in self.shapes)
        mask = torch.ones(m, dtype=torch.bool)
        mask[self.A.row[self.A.column < parameters] % max(m, 1)] = False
        return mask

    def matrices(self, theta: Float[Tensor, "b t"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """P, c, A and b of every sample. CVXPY says `A x + b in the cones`, hence the signs."""
        n, m = self.c.size, self.cones.rows
        P = self.P(theta).reshape(-1, n, n).mT
        whole = self.A(theta).reshape(-1, n + 1, m)  # column by column
        return P, self.c(theta), -whole[:, :n].mT, whole[:, n]


def _size(shape: torch.Size) -> int:
    return int(torch.Size(shape).numel())


def _unflatten(flat: Float[Tensor, "b k"], shape: torch.Size) -> Tensor:
    """Entries counted column by column, in their shape."""
    return flat.reshape(len(flat), *reversed(shape)).permute(0, *range(len(shape), 0, -1))


def _canonical(problem: Any, parameters: list[Any], variables: list[Any]) -> _Form:
    try:
        import cvxpy
    except ImportError as error:
        raise MissingDependencyError(
            "ConvexProgram expects the package cvxpy, which is not installed. Run: pip install 'tacit[cvxpy,clarabel]'"
        ) from error
    _check_problem(cvxpy, problem, parameters, variables)
    # A variable with attributes is rewritten by CVXPY; a plain copy of it can be found again.
    copies = [v if not any(v.attributes.values()) else cvxpy.Variable(v.shape) for v in variables]
    equal = [copy == v for copy, v in zip(copies, variables, strict=True) if copy is not v]
    whole = cvxpy.Problem(problem.objective, [*problem.constraints, *equal])
    values = [p.value for p in parameters]
    try:
        data, *_ = whole.get_problem_data(cvxpy.CLARABEL)
    except cvxpy.error.SolverError as error:
        raise InputValueError(
            f"ConvexProgram expects a continuous convex program; Clarabel cannot take this one. CVXPY said: {error}"
        ) from error
    finally:
        for parameter, value in zip(parameters, values, strict=True):
            if value is not None:
                parameter.value = value
    return _read(data, parameters, copies)


def _check_problem(cvxpy: Any, problem: Any, parameters: list[Any], variables: list[Any]) -> None:
    if not isinstance(problem, cvxpy.Problem):
        raise InputTypeError(f"ConvexProgram expects a cvxpy.Problem; received {describe(problem)}.")
    if not problem.is_dcp(dpp=True):
        word = "DPP: parameters enter otherwise than affinely" if problem.is_dcp() else "convex by CVXPY's rules"
        raise InputValueError(
            f"ConvexProgram expects a disciplined parametrised convex program; this one is not {word}. See "
            "https://www.cvxpy.org/tutorial/dpp; a quadratic form with a parameter in it can be written as a sum of squares."
        )
    for what, given, own in (
        ("parameters", parameters, problem.parameters()),
        ("variables", variables, problem.variables()),
    ):
        strangers = [p.name() for p in given if p.id not in {q.id for q in own}]
        if strangers:
            raise InputValueError(f"{what} expects those of the problem; {', '.join(strangers)} does not occur in it.")
    missing = [p.name() for p in problem.parameters() if p.id not in {q.id for q in parameters}]
    if missing or not variables:
        lacking = f"parameters misses {', '.join(missing)}" if missing else "variables is empty"
        raise InputValueError(f"ConvexProgram expects all parameters and at least one variable; {lacking}.")


def _read(data: dict[str, Any], parameters: list[Any], copies: list[Any]) -> _Form:
    program, dims = data["param_prob"], data["dims"]
    others = {"positive semidefinite": dims.psd, "power": dims.p3d, "n-dimensional power": getattr(dims, "pnd", [])}
    for kind, sizes in others.items():
        if len(sizes):
            raise InputValueError(
                f"ConvexProgram expects linear, second-order and exponential cones; the problem needs {kind} cones, whose "
                "derivative it does not have. tacit.argmin with a smooth form of the problem may serve instead."
            )
    if data.get("lower_bounds") is not None or data.get("upper_bounds") is not None:
        raise InputValueError("ConvexProgram expects bounds written as constraints; received bounded variables.")
    lost = [p.name() for p in parameters if p.id not in program.param_id_to_col]
    if lost:
        raise InputValueError(
            f"parameters expects plain ones; {', '.join(lost)} has an attribute (symmetric, diag, sparsity, ...) that "
            "changes its entries. Declare it without, and give a value that has the property."
        )
    # Where CVXPY puts each entry, in terms of where we put it: parameter by parameter, and the 1 last.
    total = int(program.total_param_size)
    place = torch.full((total + 1,), total, dtype=torch.int64)
    at = 0
    for p in parameters:
        begin = program.param_id_to_col[p.id]
        place[begin : begin + p.size] = torch.arange(at, at + p.size)
        at += p.size
    n = int(program.x.size)

    def affine(tensor: Any, size: int) -> _Affine:
        if tensor is None:
            empty = torch.zeros(0, dtype=torch.int64)
            return _Affine(empty, empty, torch.zeros(0, dtype=torch.float64), size)
        coo = tensor.tocoo()
        row, column = (torch.as_tensor(t, dtype=torch.int64) for t in (coo.row, coo.col))
        inside = row < size  # the objective's last row is its constant
        return _Affine(row[inside], place[column[inside]], torch.as_tensor(coo.data).double()[inside], size)

    cones = Cones(int(dims.zero), int(dims.nonneg), tuple(int(k) for k in dims.soc), int(dims.exp))
    return _Form(
        P=affine(program.P, n * n),
        c=affine(program.q, n),
        A=affine(program.A, cones.rows * (n + 1)),
        cones=cones,
        shapes=tuple(torch.Size(p.shape) for p in parameters),
        outputs=tuple((int(program.var_id_to_col[v.id]), torch.Size(v.shape)) for v in copies),
    )
