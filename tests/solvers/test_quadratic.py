from __future__ import annotations

import pytest
import torch

from solvers.cases import doubles
from tacit.problem import Status
from tacit.shapes import Tensor
from tacit.solvers import Program, solve_quadratic


def random_programs(b: int, m: int, p: int, q: int, seed: int = 0) -> Program:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    L, inside = normal(b, m, m), normal(b, m, 1)
    A, G = normal(b, p, m), normal(b, q, m)
    right = (G @ inside).squeeze(2) + torch.rand(b, q, generator=generator, dtype=torch.float64)
    return Program(L @ L.mT / m + 0.01 * torch.eye(m), normal(b, m), A, (A @ inside).squeeze(2), G, right)


@pytest.mark.parametrize(("m", "p", "q"), [(1, 0, 0), (4, 2, 0), (4, 0, 6), (10, 3, 20), (30, 10, 30)])
def test_the_conditions_hold_to_rounding(m: int, p: int, q: int) -> None:
    program = random_programs(16, m, p, q)
    found = solve_quadratic(program)
    assert (found.status == Status.CONVERGED).all()
    stationarity = (
        program.Q @ found.u[:, :, None] + program.A.mT @ found.y[:, :, None] + program.G.mT @ found.z[:, :, None]
    )
    assert (stationarity.squeeze(2) + program.q).abs().max() < 1e-11
    gap = (program.G @ found.u[:, :, None]).squeeze(2) - program.h
    assert ((program.A @ found.u[:, :, None]).squeeze(2) - program.b).abs().sum() < 1e-10
    assert (gap.clamp(min=0.0).sum(), (found.z * gap).abs().sum(), (-found.z).clamp(min=0.0).sum()) < (1e-10,) * 3


def one(Q: object, q: object, G: object, h: object, A: object = None, b: object = None) -> Program:
    def tensor(value: object, *shape: int) -> Tensor:
        return torch.tensor(value, dtype=torch.float64).reshape(1, *shape)

    m = len(q)
    p = 0 if b is None else len(b)
    empty_A, empty_b = torch.zeros(1, 0, m, dtype=torch.float64), torch.zeros(1, 0, dtype=torch.float64)
    return Program(
        tensor(Q, m, m),
        tensor(q, m),
        tensor(A, p, m) if p else empty_A,
        tensor(b, p) if p else empty_b,
        tensor(G, len(h), m),
        tensor(h, len(h)),
    )


EYE, ZERO = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]


def test_a_weakly_active_row() -> None:
    found = solve_quadratic(one(EYE, [0.0, -1.0], [[-1.0, 0.0]], [0.0]))
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((0.0, 1.0)), rtol=0, atol=1e-8)


def test_a_row_stated_twice() -> None:
    found = solve_quadratic(one(EYE, [-3.0, 0.0], [[1.0, 0.0], [2.0, 0.0]], [1.0, 2.0], [[0.0, 1.0]] * 2, [0.5, 0.5]))
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((1.0, 0.5)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("equality", [False, True])
def test_contradicting_rows_are_infeasible(equality: bool) -> None:
    rows = ([[1.0, 1.0]] * 2, [1.0, 2.0]) if equality else (None, None)
    G, h = ([[1.0, 0.0]], [1.0]) if equality else ([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0])
    assert solve_quadratic(one(EYE, [1.0, 1.0], G, h, *rows)).status.item() == Status.INFEASIBLE


def test_a_descending_ray_is_unbounded() -> None:
    found = solve_quadratic(one(ZERO, [1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0]))
    assert found.status.item() == Status.UNBOUNDED


def test_a_linear_program_ends_in_its_vertex() -> None:
    found = solve_quadratic(one(ZERO, [1.0, -1.0], [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0]))
    assert found.status.item() == Status.CONVERGED
    torch.testing.assert_close(found.u, doubles((-1.0, 1.0)), rtol=0, atol=1e-12)


def test_an_indefinite_matrix_without_rows_is_not_solved() -> None:
    empty = torch.zeros(1, 0, dtype=torch.float64)
    program = one([[1.0, 0.0], [0.0, -1.0]], [1.0, 1.0], [[1.0, 0.0]], [1.0])
    program = Program(program.Q, program.q, program.A, program.b, program.G[:, :0], empty)
    assert solve_quadratic(program).status.item() != Status.CONVERGED


def test_a_spoiled_element_leaves_its_neighbours_alone() -> None:
    program = random_programs(5, 6, 2, 8)
    clean = solve_quadratic(program)
    program.q[3, 0] = float("nan")
    found = solve_quadratic(program)
    others = [0, 1, 2, 4]
    assert found.status[3].item() == Status.NONFINITE
    assert (found.u[others] - clean.u[others]).abs().max() <= 1e-12


def test_single_precision_is_kept_and_exhausted() -> None:
    program = random_programs(8, 6, 2, 8)
    double = solve_quadratic(program)
    names = ("Q", "q", "A", "b", "G", "h")
    found = solve_quadratic(Program(*(getattr(program, k).float() for k in names)))
    assert found.u.dtype == torch.float32 and (found.status == Status.CONVERGED).all()
    torch.testing.assert_close(found.u, double.u.float(), rtol=1e-3, atol=1e-3)
