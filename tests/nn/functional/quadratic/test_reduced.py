"""The reduction to a least distance, and the KKT system solved through it."""

from __future__ import annotations

import pytest
import torch

from nn.functional.quadratic.cases import programs
from tacit.nn.functional.quadratic.reduced import factor_active, product, to_least_distance, transposed_product

EPS = torch.finfo(torch.float64).eps


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("n", "p", "q"), [(4, 0, 5), (4, 2, 5), (6, 1, 40)])
def test_the_system_is_solved_for_any_right_hand_side(n: int, p: int, q: int, shared: bool):
    six = programs(n, p, q)
    if shared:
        six = [t if i % 2 else t[:1] for i, t in enumerate(six)]
    form = to_least_distance(*six, EPS)
    assert bool(form.ok.all())
    active = torch.zeros(3, q, dtype=torch.bool)
    active[0, :2] = active[1, 1] = True
    reduced, independent = factor_active(form, active, EPS)
    assert bool(independent.all())
    generator = torch.Generator().manual_seed(5)
    v = torch.randn(3, n, 2, generator=generator, dtype=torch.float64)
    w = torch.randn(3, p + q, 2, generator=generator, dtype=torch.float64)
    w[:, p:][~active] = 0.0
    x, nu = reduced.solve(v, w)
    Q, A, G = (six[i].expand(3, -1, -1) for i in (0, 2, 4))
    rows = torch.cat([A, torch.where(active[:, :, None], G, 0.0)], 1)
    keep = torch.cat([torch.ones(3, p, dtype=torch.bool), active], 1)[:, :, None]
    torch.testing.assert_close(Q @ x + rows.mT @ torch.where(keep, nu, 0.0), v, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(rows @ x, w, rtol=1e-9, atol=1e-9)


def test_dependent_active_rows_are_noticed():
    six = programs(4, 0, 3)
    six[4][1, 1] = 2 * six[4][1, 0]
    form = to_least_distance(*six, EPS)
    active = torch.tensor([[True, True, False]] * 3)
    assert factor_active(form, active, EPS)[1].tolist() == [True, False, True]


def test_a_singular_matrix_or_dependent_equalities_are_not_reduced():
    six = programs(4, 2, 3)
    six[0][0] = torch.diag(torch.tensor([1.0, 1.0, 1.0, 0.0]))
    six[2][2, 1] = six[2][2, 0]
    assert to_least_distance(*six, EPS).ok.tolist() == [False, True, False]


def test_products_meet_shared_and_batched_matrices_alike():
    six = programs(4, 0, 3)
    G, v, w = six[4][:1], six[1], six[5]
    torch.testing.assert_close(product(G, v), product(G.expand(3, -1, -1), v))
    torch.testing.assert_close(transposed_product(G, w), transposed_product(G.expand(3, -1, -1), w))
