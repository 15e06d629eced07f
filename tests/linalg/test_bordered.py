from __future__ import annotations

import pytest
import torch

from tacit.linalg import BandedMatrix, DiagonalMatrix, StructuredMatrix, bordered_solve

DTYPES = [torch.float64, torch.float32]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def bordered(H: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    corner = A.new_zeros(A.shape[0], A.shape[1], A.shape[1])
    return torch.cat([torch.cat([H, A.mT], -1), torch.cat([A, corner], -1)], -2)


def tridiagonal(b: int, m: int, dtype: torch.dtype) -> StructuredMatrix:
    bands = torch.tensor([-1.0, 2.5, -1.0], dtype=dtype).repeat(b, m, 1)
    bands[:, 0, 0] = bands[:, -1, 2] = 0
    return BandedMatrix(bands)


def diagonal(b: int, m: int, dtype: torch.dtype) -> StructuredMatrix:
    return DiagonalMatrix(torch.linspace(-3, 2, m, dtype=dtype).expand(b, m) + 0.01)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [tridiagonal, diagonal])
@pytest.mark.parametrize(("m", "r"), [(1, 0), (1, 1), (10, 3), (30, 20)])
def test_agrees_with_the_dense_system(kind: type, m: int, r: int, dtype: torch.dtype) -> None:
    H, A = kind(3, m, dtype), randn(3, r, m, dtype=dtype)
    v, c = randn(3, m, 2, seed=1, dtype=dtype), randn(3, r, 2, seed=2, dtype=dtype)
    s = bordered_solve(H, A, v, c)
    K = bordered(H.matvec(torch.eye(m, dtype=dtype).expand(3, m, m)), A).double()
    w = torch.linalg.solve(K, torch.cat([v, c], 1).double())
    assert s.ok.all()
    # The way over the Schur complement squares what H and A do to the condition.
    bound = 20 * torch.finfo(dtype).eps / s.rcond.min() * w.abs().max()
    assert (torch.cat([s.dy, s.dnu], 1) - w).abs().max() < bound


def test_rows_that_are_zero_take_no_part() -> None:
    H, A = tridiagonal(2, 8, torch.float64), randn(2, 3, 8)
    v, c = randn(2, 8, 2, seed=1), randn(2, 3, 2, seed=2)
    padded = torch.zeros(2, 5, 8, dtype=torch.float64)
    padded[:, [0, 2, 4]] = A
    c_padded = torch.ones(2, 5, 2, dtype=torch.float64)
    c_padded[:, [0, 2, 4]] = c
    alone, s = bordered_solve(H, A, v, c), bordered_solve(H.factor(), padded, v, c_padded)
    torch.testing.assert_close(s.dy, alone.dy)
    torch.testing.assert_close(s.dnu[:, [0, 2, 4]], alone.dnu)
    assert s.dnu[:, [1, 3]].abs().max() == 0


def test_what_the_schur_complement_cannot_do_is_flagged_and_the_neighbours_do_not_notice() -> None:
    d = torch.ones(4, 3, dtype=torch.float64)
    d[0, 0] = 0  # H singular, although the bordered matrix is not
    A = torch.eye(3, dtype=torch.float64)[:2].repeat(4, 1, 1)
    A[1, 1] = A[1, 0]  # dependent rows
    A[2, 0, 0] = float("nan")
    v, c = randn(4, 3, 1), randn(4, 2, 1, seed=1)
    s = bordered_solve(DiagonalMatrix(d), A, v, c)
    assert s.ok.tolist() == [False, False, False, True]
    assert s.dy[:3].abs().max() == 0
    assert s.dnu[:3].abs().max() == 0
    assert (s.residual[:3] == float("inf")).all()
    alone = bordered_solve(DiagonalMatrix(d[3:]), A[3:], v[3:], c[3:])
    torch.testing.assert_close((s.dy[3:], s.dnu[3:]), (alone.dy, alone.dnu), atol=1e-12, rtol=0)
    assert s.residual[3] < 1e-14


def test_an_empty_batch_is_no_error() -> None:
    s = bordered_solve(DiagonalMatrix(torch.ones(0, 3)), torch.ones(0, 2, 3), torch.ones(0, 3, 1), torch.ones(0, 2, 1))
    assert s.dy.shape == (0, 3, 1)
    assert s.dnu.shape == (0, 2, 1)
