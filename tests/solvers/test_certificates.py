from __future__ import annotations

import pytest
import torch

from solvers.cases import doubles
from tacit.solvers.certificates import has_multipliers, is_infeasible


def rows(b: int, p: int, q: int, m: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    A, G, u = normal(b, p, m), normal(b, q, m), normal(b, m, 1)
    return A, (A @ u)[:, :, 0], G, (G @ u)[:, :, 0], u


@pytest.mark.parametrize(("p", "q", "m"), [(0, 3, 2), (2, 3, 4), (4, 0, 4), (3, 12, 5)])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_a_feasible_point_is_proof_against_infeasibility(p: int, q: int, m: int, size: float):
    A, b, G, h, _ = rows(20, p, q, m)
    assert not is_infeasible(A, b * size, G, h * size).any()
    assert not is_infeasible(A * size, b * size, G, h).any()


def test_contradictions_are_found():
    A, b, G, h, _ = rows(20, 2, 3, 5)
    contrary = torch.cat([G, -G[:, :1] - A[:, :1]], 1)  # the last row says: the first plus an equality is too large
    right = torch.cat([h, -h[:, :1] - b[:, :1] - 1e-3], 1)
    assert is_infeasible(A, b, contrary, right).all()
    assert not is_infeasible(A, b, contrary, torch.cat([h, -h[:, :1] - b[:, :1] + 1e-3], 1)).any()


def test_rows_without_unknowns_speak_for_themselves():
    zero, none = torch.zeros(1, 1, 2, dtype=torch.float64), torch.zeros(1, 0, 2, dtype=torch.float64)
    assert is_infeasible(zero, doubles((1.0,)), none, none[:, :, 0]).item()
    assert is_infeasible(none, none[:, :, 0], zero, doubles((-1.0,))).item()
    assert not is_infeasible(none, none[:, :, 0], zero, doubles((1.0,))).item()
    assert not is_infeasible(none, none[:, :, 0], none, none[:, :, 0]).item()


def test_a_way_down_is_found_in_what_nothing_holds():
    Q = torch.diag(torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))[None].repeat(3, 1, 1)
    G = doubles((0.0, 1.0, 0.0))[None].repeat(3, 1, 1)
    q = doubles((5.0, -1.0, 0.0), (5.0, 1.0, 0.0), (0.0, -1.0, 1e-3))
    assert has_multipliers(Q, q, G[:, :0], G).tolist() == [True, False, False]
