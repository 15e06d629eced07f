from __future__ import annotations

import pytest
import torch

from tacit.linalg import equilibrate

DTYPES = [torch.float64, torch.float32]


def badly_scaled(b: int, N: int, dtype: torch.dtype, spread: float) -> torch.Tensor:
    gen = torch.Generator().manual_seed(N)
    K = torch.randn(b, N, N, generator=gen, dtype=torch.float64)
    units = 10 ** (spread * (torch.rand(b, N, generator=gen, dtype=torch.float64) - 0.5))
    return (units[:, :, None] * (K + K.mT) * units[:, None, :]).to(dtype)


def scaled(K: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return s[:, :, None] * K * s[:, None, :]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("N", [1, 2, 7, 40])
def test_rows_come_near_one_whatever_their_units(N: int, dtype: torch.dtype) -> None:
    K = badly_scaled(5, N, dtype, 12.0)
    rows = scaled(K, equilibrate(K, iterations=5)).abs().amax(-1)
    assert rows.min() > 0.2
    assert rows.max() < 5.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_scales_are_powers_of_two_in_the_dtype_of_the_matrix(dtype: torch.dtype) -> None:
    s = equilibrate(badly_scaled(3, 9, dtype, 20.0))
    assert s.dtype == dtype
    assert torch.equal(torch.frexp(s).mantissa, torch.full_like(s, 0.5))


def test_a_row_without_entries_keeps_scale_one() -> None:
    K = torch.diag_embed(torch.tensor([[1e6, 0.0, 1e-6]]))
    s = equilibrate(K)
    assert s[0, 1] == 1.0
    assert s[0, 0] < 1e-2 < 1e2 < s[0, 2]


def test_noise_below_the_threshold_does_not_count() -> None:
    K = torch.diag_embed(torch.tensor([[4.0, 1e-17]], dtype=torch.float64))
    assert equilibrate(K)[0, 1] > 1e7
    assert equilibrate(K, ignore_below=1e-14)[0, 1] == 1.0
    assert equilibrate(K, ignore_below=torch.full((1, 1, 1), 1e-14, dtype=torch.float64))[0, 1] == 1.0
    assert equilibrate(K, ignore=K < 1e-14)[0, 1] == 1.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_element_that_is_not_finite_gets_scale_one_and_its_neighbours_their_own(bad: float) -> None:
    K = badly_scaled(3, 6, torch.float64, 6.0)
    alone = equilibrate(K[[0, 2]])
    K[1, 2, 3] = bad
    s = equilibrate(K)
    assert torch.equal(s[[0, 2]], alone)
    assert torch.equal(s[1], torch.ones_like(s[1]))


def test_the_matrix_is_left_as_it_was() -> None:
    K = badly_scaled(2, 5, torch.float64, 4.0)
    before = K.clone()
    equilibrate(K, ignore_below=1e-3)
    assert torch.equal(K, before)


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 0)])
def test_nothing_to_scale_is_no_error(shape: tuple[int, int, int]) -> None:
    assert equilibrate(torch.zeros(shape)).shape == shape[:2]


def test_extreme_magnitudes_neither_overflow_nor_vanish() -> None:
    K = torch.tensor([[[1e300, 1e-300], [1e-300, 1e-310]]], dtype=torch.float64)
    s = equilibrate(K)
    assert s.isfinite().all()
    assert (s > 0).all()
    assert scaled(K, s).isfinite().all()
