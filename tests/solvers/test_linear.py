from __future__ import annotations

import torch

from tacit.solvers.linear import bordered, eigen, factor_symmetric, solve_or_least_norm

generator = torch.Generator().manual_seed(0)


def symmetric(b: int, n: int) -> torch.Tensor:
    K = torch.randn(b, n, n, generator=generator, dtype=torch.float64)
    return K + K.mT


def test_negative_eigenvalues_are_counted_from_the_factors() -> None:
    K = symmetric(50, 7)
    factored = factor_symmetric(K)
    assert torch.equal(factored.negative, (torch.linalg.eigvalsh(K) < 0).sum(1))
    assert not factored.singular.any()
    v = torch.randn(50, 7, generator=generator, dtype=torch.float64)
    torch.testing.assert_close((K @ factored.solve(v)[:, :, None]).squeeze(2), v, rtol=1e-8, atol=1e-8)


def test_an_indefinite_matrix_without_a_diagonal_is_counted_right() -> None:
    K = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    factored = factor_symmetric(K)
    assert factored.negative[0].item() == 1 and factored.singular.tolist() == [False, True]


def test_a_spoiled_matrix_leaves_the_others_alone() -> None:
    K, v = symmetric(3, 4), torch.ones(3, 4, dtype=torch.float64)
    clean = solve_or_least_norm(K, v), eigen(K)[0]
    K[1, 0, 0] = float("nan")
    for before, after in zip(clean, (solve_or_least_norm(K, v), eigen(K)[0]), strict=True):
        assert torch.equal(before[[0, 2]], after[[0, 2]]) and after[1].isfinite().all()


def test_singular_systems_take_the_least_solution() -> None:
    K = torch.ones(1, 2, 2, dtype=torch.float64)
    w = solve_or_least_norm(K, torch.tensor([[2.0, 2.0]], dtype=torch.float64))
    torch.testing.assert_close(w, torch.ones(1, 2, dtype=torch.float64))


def test_blocks_are_where_they_belong() -> None:
    K = bordered(torch.full((1, 2, 2), 1.0), torch.full((1, 1, 2), 2.0), torch.full((1, 1), 3.0))
    assert K.tolist() == [[[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [2.0, 2.0, 3.0]]]
