"""One cycle of each method: what it minimises, and that an element that has stopped keeps every bit."""

from __future__ import annotations

import functools

import pytest
import torch

from tacit.linalg.krylov_cycles import cg_cycle, gmres_cycle, minres_cycle, norm

gmres = functools.partial(gmres_cycle, restart=10)
CYCLES = [cg_cycle, minres_cycle, gmres]


def system(N: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    M = torch.randn(2, N, N, dtype=torch.float64, generator=generator)
    return M @ M.mT + torch.eye(N, dtype=M.dtype), torch.randn(2, N, dtype=M.dtype, generator=generator)


def run(cycle, K, r, budget, live=(True, True), preconditioner=None):
    return cycle(
        lambda v: (K @ v[..., None])[..., 0],
        preconditioner,
        r,
        torch.zeros(2, dtype=r.dtype),
        torch.tensor(budget),
        torch.tensor(live),
    )


@pytest.mark.parametrize("cycle", CYCLES)
def test_as_many_steps_as_unknowns_solve_a_definite_system(cycle):
    K, r = system()
    x = run(cycle, K, r, [6, 6]).x
    torch.testing.assert_close((K @ x[..., None])[..., 0], r, atol=1e-9, rtol=0)


@pytest.mark.parametrize("cycle", [minres_cycle, gmres])
def test_every_step_takes_the_least_residual_of_its_krylov_space(cycle):
    K, r = system()
    for steps in (1, 2, 3):
        space = torch.stack([(torch.linalg.matrix_power(K, k) @ r[..., None])[..., 0] for k in range(steps)], -1)
        best = space @ torch.linalg.lstsq(K @ space, r[..., None]).solution
        found = run(cycle, K, r, [steps, steps]).x
        torch.testing.assert_close(found, best[..., 0], atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("cycle", CYCLES)
def test_an_element_that_is_not_live_is_left_at_zero(cycle):
    K, r = system()
    result = run(cycle, K, r, [6, 6], live=(True, False))
    assert not result.x[1].any() and int(result.iterations[1]) == 0
    assert torch.equal(result.x[0], run(cycle, K, r, [6, 6]).x[0])


@pytest.mark.parametrize("cycle", CYCLES)
def test_a_budget_is_an_elements_own(cycle):
    K, r = system()
    assert run(cycle, K, r, [2, 4]).iterations.tolist() == [2, 4]


@pytest.mark.parametrize("cycle", CYCLES)
def test_an_operator_of_nan_breaks_its_own_element_only(cycle):
    K, r = system()
    broken = run(cycle, torch.stack([K[0], torch.full_like(K[1], torch.nan)]), r, [6, 6])
    assert broken.broken.tolist() == [False, True]
    assert torch.equal(broken.x[0], run(cycle, K, r, [6, 6]).x[0])


def test_the_norm_is_over_the_last_axis():
    assert norm(torch.tensor([[3.0, 4.0]])).tolist() == [5.0]
