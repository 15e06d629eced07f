"""Outside, the answer is the one found by halving; inside, a stationary point that no search of the sphere improves."""

from __future__ import annotations

import math

import pytest
import torch

from nn.functional.lp_cases import CURVED, curved_by_bisection, generic_rows, hard_rows, norm
from tacit.nn.functional import lp_curved
from tacit.nn.functional.lp_curved import project_curved

F64 = torch.float64


def unit(rows):
    return torch.ones(len(rows), 1, dtype=rows.dtype)


def slopes(p, x, radius):
    x = x.clone().requires_grad_()
    y = project_curved(x, radius, p)
    return torch.stack([torch.autograd.grad(y[:, i].sum(), x, retain_graph=True)[0] for i in range(x.shape[1])], 1)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("p", [1.01, 1.1, 1.5, 1.999, 2.001, 3.0, 7.0, 50.0])
def test_from_outside_the_answer_is_that_of_halving(p, n):
    x = 3 * hard_rows(n, 105)
    x = x[norm(x, p) > 1]
    wanted = x.sign() * curved_by_bisection(x.abs(), p)
    torch.testing.assert_close(project_curved(x, unit(x), p), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("p", CURVED)
def test_rows_are_solved_alike_alone_in_company_and_in_units_of_the_radius(p):
    x = generic_rows(4, 30)
    y = project_curved(x, unit(x), p)
    alone = torch.cat([project_curved(row[None], unit(row[None]), p) for row in x[:4]])
    torch.testing.assert_close(alone, y[:4], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(project_curved(7 * x, 7 * unit(x), p) / 7, y, rtol=1e-12, atol=1e-12)


def sphere_in_space(p, fine=120):
    """Points of the positive part of ||u||_p = 1 in three dimensions, densely."""
    grid = torch.linspace(0, 1, fine, dtype=F64)
    a, b = (part.flatten() for part in torch.meshgrid(grid, grid, indexing="ij"))
    rest = 1 - a.pow(p) - b.pow(p)
    a, b, rest = a[rest >= 0], b[rest >= 0], rest[rest >= 0]
    u = torch.stack([a, b, rest.pow(1 / p)], -1)
    return torch.cat([u, u[:, [0, 2, 1]], u[:, [2, 1, 0]]])


@pytest.mark.parametrize("p", CURVED)
def test_from_inside_no_point_of_a_dense_net_is_nearer(p):
    generator = torch.Generator().manual_seed(0)
    a, length = torch.rand(200, 3, dtype=F64, generator=generator), torch.rand(200, 1, dtype=F64, generator=generator)
    a = a * length / norm(a, p)[:, None]
    y = project_curved(a, unit(a), p)
    torch.testing.assert_close(norm(y, p), torch.ones(200, dtype=F64))
    assert ((y - a).norm(dim=1) <= torch.cdist(a, sphere_in_space(p)).amin(1)).all()


@pytest.mark.parametrize("p", CURVED)
def test_from_inside_the_answer_is_stationary_in_the_orthant_of_x(p):
    x = generic_rows(6, 100)
    x = 0.6 * x / norm(x, p)[:, None]
    y = project_curved(x, unit(x), p)
    assert (y.sign() == x.sign()).all()
    normal = y.sign() * y.abs().pow(p - 1)
    along = ((x - y) * normal).sum(1, keepdim=True) / normal.square().sum(1, keepdim=True)
    torch.testing.assert_close(x - y, along * normal, rtol=0, atol=1e-11)


def test_inside_where_the_hessian_of_the_lagrangian_is_singular_the_derivative_is_still_right():
    x = torch.tensor([[0.5], [-0.5]], dtype=F64)  # u (1 - 2 kappa u) has slope 0 at the answer for p = 3
    assert project_curved(x, unit(x), 3.0).tolist() == [[1.0], [-1.0]]
    assert not slopes(3.0, x, unit(x)).any()
    x = torch.tensor([[0.5, 0.0, 0.0]], dtype=F64)
    assert slopes(3.0, x, unit(x)).tolist() == [torch.diag(torch.tensor([0.0, 1.0, 1.0])).tolist()]
    x = torch.tensor([[0.5, 0.01]], dtype=F64)
    step = torch.tensor([[1e-6, 0.0]], dtype=F64)
    by_difference = (project_curved(x + step, unit(x), 3.0) - project_curved(x - step, unit(x), 3.0)) / 2e-6
    torch.testing.assert_close(slopes(3.0, x, unit(x))[:, :, 0], by_difference, rtol=1e-6, atol=1e-8)


def test_a_coordinate_at_zero_is_held_below_two_and_follows_above():
    x = torch.tensor([[2.0, 0.0]], dtype=F64)
    assert slopes(1.5, x, unit(x)).tolist() == [[[0.0, 0.0], [0.0, 0.0]]]
    found = slopes(3.0, x, unit(x))
    assert found[0, 1, 1] == 1.0 and not found[0, 0].any()


@pytest.mark.parametrize("p", CURVED)
def test_far_out_only_the_direction_counts(p):
    near = 1e20 * generic_rows(3, 20)
    radius = unit(near)
    y = project_curved(near, radius, p)
    torch.testing.assert_close(project_curved(near * 1e150, radius, p), y)
    torch.testing.assert_close(project_curved(near, radius * 1e-250, p) * 1e250, y)
    scaled = slopes(p, near * 1e150, radius) * 1e150
    assert scaled.isfinite().all()
    torch.testing.assert_close(scaled, slopes(p, near, radius), rtol=1e-6, atol=1e-28)


@pytest.mark.parametrize("p", CURVED)
def test_stopping_early_changes_no_digit_that_counts(p, monkeypatch):
    x = generic_rows(5, 60)
    y = project_curved(x, unit(x), p)
    monkeypatch.setattr(lp_curved, "_finished", lambda _: False)  # as on an accelerator, which is not asked
    torch.testing.assert_close(project_curved(x, unit(x), p), y, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("p", CURVED)
def test_float32_is_float64_rounded(p):
    x = generic_rows(5, 60).float()
    y = project_curved(x, unit(x), p)
    assert y.dtype == torch.float32
    assert torch.equal(y, project_curved(x.double(), unit(x).double(), p).float())


@pytest.mark.parametrize("p", CURVED)
def test_nan_and_infinity_stay_in_their_rows(p):
    x = torch.tensor([[1.0, 2.0], [math.nan, 2.0], [math.inf, 2.0]], dtype=F64)
    y = project_curved(x, unit(x), p)
    assert y[1:].isnan().all() and y[0].isfinite().all()


@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_the_search_is_an_operation_that_the_compiler_and_vmap_can_take(in_dim):
    a = generic_rows(5, 12).abs().reshape(3, 4, 5)
    mapped = torch.vmap(lambda a: lp_curved._search(a, 3.0), in_dims=in_dim)(a.movedim(0, in_dim))
    flat = lp_curved._search(a.reshape(12, 5), 3.0)
    for own, wanted in zip(mapped, flat, strict=True):
        torch.testing.assert_close(own, wanted.reshape(own.shape))
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.tacit.curved_search, (a[0], 3.0), test_utils=tests)
