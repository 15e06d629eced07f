from __future__ import annotations

import torch

from tacit.solvers.barrier import Model, barrier_errors, largest_step, new_direction

generator = torch.Generator().manual_seed(0)


def model(b: int = 6, m: int = 5, p: int = 2, q: int = 3) -> Model:
    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    H = normal(b, m, m)
    return Model(
        f_Y=normal(b, m),
        A=normal(b, p + q, m),
        H=H + H.mT,
        h=normal(b, p),
        g=normal(b, q),
        s=normal(b, q).abs() + 0.1,
        y=normal(b, p),
        z=normal(b, q).abs() + 0.1,
    )


def test_a_direction_solves_the_linearised_conditions() -> None:
    at, mu = model(), torch.full((6,), 0.1, dtype=torch.float64)
    found = new_direction(at, mu, torch.zeros_like(mu))
    assert not found.failed.any()
    force = torch.cat([found.dy, found.dz], 1)[:, None, :] @ at.A
    H = at.H + found.delta[:, None, None] * torch.eye(5)
    dual = (H @ found.du[:, :, None]).squeeze(2) + force.squeeze(1) + at.dual
    primal = (at.A @ found.du[:, :, None]).squeeze(2) + at.primal
    primal[:, 2:] += found.ds
    assert max(dual.abs().max(), primal.abs().max()) < 1e-7
    products = at.s * at.z + at.s * found.dz + at.z * found.ds
    torch.testing.assert_close(products, mu[:, None].expand(6, 3), rtol=1e-9, atol=1e-9)


def test_the_corrected_matrix_has_as_many_positive_eigenvalues_as_unknowns() -> None:
    at, mu = model(), torch.full((6,), 0.1, dtype=torch.float64)
    found = new_direction(at, mu, torch.zeros_like(mu))
    reduced = (
        at.H + found.delta[:, None, None] * torch.eye(5) + at.A[:, 2:].mT @ (at.z / at.s)[:, :, None].mul(at.A[:, 2:])
    )
    _, _, basis = torch.linalg.svd(at.A[:, :2])
    Z = basis[:, 2:]
    assert (torch.linalg.eigvalsh(Z @ reduced @ Z.mT) > 0).all()
    assert (found.delta > 0).any() and (found.delta == 0).any()


def test_steps_stop_short_of_the_boundary() -> None:
    value, change = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[-2.0, 1.0], [1.0, 1.0]])
    torch.testing.assert_close(largest_step(value, change, torch.tensor([0.9, 0.9])), torch.tensor([0.45, 1.0]))


def test_errors_vanish_on_the_central_path() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    at = Model(f_Y=-one, A=one[None], H=one[None], h=one[:, :0], g=-2 * one, s=2 * one, y=one[:, :0], z=one)
    assert barrier_errors(at, torch.tensor([2.0], dtype=torch.float64)).item() == 0.0
    assert barrier_errors(at, torch.tensor([0.0], dtype=torch.float64)).item() == 2.0
