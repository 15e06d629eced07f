from __future__ import annotations

import pytest
import torch

from tacit.linalg import independent_rows

DTYPES = [torch.float64, torch.float32]


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def rank(A: torch.Tensor) -> int:
    return int(torch.linalg.matrix_rank(A.double(), rtol=1e-6)) if A.numel() else 0


def test_independent_rows_are_all_kept() -> None:
    mask = torch.ones(3, 4, dtype=torch.bool)
    assert independent_rows(randn(3, 4, 6), mask).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("r", "m", "true_rank"), [(1, 1, 1), (6, 4, 2), (5, 8, 3), (9, 4, 4), (20, 30, 7)])
def test_the_kept_rows_are_independent_and_span_the_masked_ones(
    r: int, m: int, true_rank: int, dtype: torch.dtype
) -> None:
    A = (randn(6, r, true_rank) @ randn(6, true_rank, m, seed=1)).to(dtype)
    mask = randn(6, r, seed=2) > -0.3
    first = randn(6, r, seed=3) > 0
    keep = independent_rows(A, mask, first)
    assert not (keep & ~mask).any()
    for i in range(6):
        kept = A[i, keep[i]]
        assert rank(kept) == kept.shape[0] == rank(A[i, mask[i]])


def test_preferred_rows_are_taken_in_the_order_of_their_indices() -> None:
    A = torch.tensor([[[1.0, 0, 0], [5.0, 5.0, 0], [0, 1.0, 0], [0, 0, 9.0], [1.0, 2.0, 3.0]]])
    mask = torch.ones(1, 5, dtype=torch.bool)
    first = torch.tensor([[False, True, True, False, True]])
    assert independent_rows(A, mask, first).tolist() == [[False, True, True, False, True]]
    first = torch.tensor([[True, True, True, False, False]])
    assert independent_rows(A, mask, first).tolist() == [[True, True, False, True, False]]


def test_a_preferred_row_outside_the_mask_is_not_kept() -> None:
    A = torch.eye(2)[None]
    keep = independent_rows(A, torch.tensor([[False, True]]), torch.tensor([[True, False]]))
    assert keep.tolist() == [[False, True]]


def test_the_length_of_a_row_does_not_matter() -> None:
    A = randn(2, 5, 3)
    A[:, 4] = A[:, 0] + A[:, 1]
    mask = torch.ones(2, 5, dtype=torch.bool)
    first = torch.tensor([[True, True, False, False, False]]).expand(2, 5)
    units = torch.tensor([1e-200, 1e200, 1.0, 1e-8, 1e8], dtype=torch.float64)
    expected = independent_rows(A, mask, first)
    assert torch.equal(independent_rows(units[:, None] * A, mask, first), expected)


def test_the_tolerance_decides_about_nearly_dependent_rows() -> None:
    A = torch.tensor([[[1.0, 0.0], [1.0, 1e-5]]], dtype=torch.float64)
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert independent_rows(A, mask, tol=1e-6).sum() == 2
    assert independent_rows(A, mask, tol=1e-4).sum() == 1


def test_a_nearly_dependent_row_does_not_let_a_dependent_one_in() -> None:
    # After the second row only 1e-9 of a direction is known; the third lies in the plane of the first two.
    base = randn(3, 6)
    A = torch.stack([base[0], base[0] + 1e-9 * base[1], base[0] + 2e-9 * base[1], base[2]])[None]
    first = torch.ones(1, 4, dtype=torch.bool)
    keep = independent_rows(A, first, first, tol=1e-13)
    assert keep.tolist() == [[True, True, False, True]]


def test_rows_that_are_zero_or_not_finite_are_dropped_and_the_neighbours_do_not_notice() -> None:
    A = randn(3, 3, 4)
    mask = torch.ones(3, 3, dtype=torch.bool)
    A[1, 0, 2] = float("nan")
    A[1, 1] = 0
    assert independent_rows(A, mask).tolist() == [[True] * 3, [False, False, True], [True] * 3]


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_nothing_to_choose_from_is_no_error(shape: tuple[int, int, int]) -> None:
    assert not independent_rows(torch.ones(shape), torch.ones(shape[:2], dtype=torch.bool)).any()
