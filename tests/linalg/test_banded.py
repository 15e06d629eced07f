from __future__ import annotations

import pytest
import torch

from tacit.linalg.banded import reduce_cyclically, to_blocks


def bands_of(K: torch.Tensor, w: int) -> torch.Tensor:
    m = K.shape[-1]
    padded = torch.nn.functional.pad(K, (w, w))
    return torch.stack([padded[:, i, i : i + 2 * w + 1] for i in range(m)], 1)


@pytest.mark.parametrize("w", [0, 1, 2, 3])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 9, 31])
def test_reduction_agrees_with_a_dense_solve_whatever_the_number_of_blocks(m: int, w: int) -> None:
    gen = torch.Generator().manual_seed(m)
    index = torch.arange(m)
    K = torch.randn(3, m, m, generator=gen, dtype=torch.float64) * ((index[:, None] - index).abs() <= w)
    K = K + 2 * (w + 1) * torch.eye(m, dtype=torch.float64)
    v = torch.randn(3, m, 2, generator=gen, dtype=torch.float64)
    x = reduce_cyclically(to_blocks(bands_of(K, w)), m).solve(v)
    torch.testing.assert_close(x, torch.linalg.solve(K, v), atol=1e-12, rtol=0)


def test_a_singular_last_block_means_a_singular_matrix_and_is_not_hidden() -> None:
    laplacian = torch.tensor([[[1.0, -1.0], [-1.0, 1.0]]], dtype=torch.float64)
    x = reduce_cyclically(to_blocks(bands_of(laplacian, 1)), 2).solve(torch.ones(1, 2, 1, dtype=torch.float64))
    assert not x.isfinite().all() or x.abs().max() > 1e12


def test_memory_grows_like_the_size() -> None:
    numbers = []
    for m in (1000, 8000):
        levels = reduce_cyclically(to_blocks(torch.tensor([1.0, 3.0, 1.0]).repeat(1, m, 1)), m).levels
        kept = [(v.lu, v.pivots, v.to_previous, v.to_next, v.lower, v.upper) for v in levels]
        # What is kept may be a view of something larger; that is what occupies memory.
        numbers.append(sum(t.untyped_storage().nbytes() for level in kept for t in level))
    assert numbers[1] < 10 * numbers[0]
