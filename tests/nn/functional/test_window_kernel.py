"""Windows on an accelerator are those of the search in plain torch; `kernels.py` says where these tests run."""

from __future__ import annotations

import pytest
import torch

from nn.functional.kernels import DEVICE, MARKS
from tacit.nn.functional import exact_location
from tacit.nn.functional.window_kernel import locate_windows

pytestmark = MARKS


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 30, 200])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_rows_of_every_size_and_place_have_the_answer_of_the_search_in_plain_torch(dtype, n, weighted):
    generator = torch.Generator().manual_seed(n)
    sizes = torch.tensor([1e-6, 1e-2, 1, 5, 30, 70, 1e3, 1e5, 1e8, 1, 1, 1, 1, 1, 1], dtype=torch.float64)[:, None]
    places = torch.tensor([0.0] * 12 + [20, 5e3, 1e6], dtype=torch.float64)[:, None]
    x = torch.randn(15, n, generator=generator, dtype=torch.float64) * sizes + places
    x[9, 0], x[10, 0], x[11] = torch.nan, torch.inf, -torch.inf
    weight = torch.rand(15, n, generator=generator, dtype=torch.float64) if weighted else None
    x, weight = x.to(DEVICE, dtype), None if weight is None else weight.to(DEVICE, dtype)
    one = torch.ones_like(x[:, :1])
    expected = exact_location._careful_windows(x, one, weight)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(locate_windows(x, one, weight), expected, atol=8 * eps, rtol=4 * eps, equal_nan=True)


def test_points_exactly_two_alphas_apart_share_a_window_and_of_equal_windows_the_left_one_wins():
    x = torch.tensor([[0.0, 2.0, 9.0, 11.0, 30.0]], device=DEVICE)
    one = torch.ones_like(x[:, :1])
    expected = exact_location.truncated_quadratic(x.cpu(), one.cpu(), None)
    assert torch.equal(locate_windows(x, one, None).cpu(), expected)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_scale_of_the_weights_does_not_matter(scale):
    x = torch.tensor([[0.0, 0.5, 10.0, 10.0, 10.5, 11.0]], dtype=torch.float64, device=DEVICE)
    weight = scale * torch.tensor([[1.0, 1.0, 1.0, 1.0, 0.0, 1.0]], dtype=torch.float64, device=DEVICE)
    y = locate_windows(x, torch.ones_like(x[:, :1]), weight)
    torch.testing.assert_close(y, torch.full_like(y, 31 / 3), rtol=1e-14, atol=0)


@pytest.mark.parametrize("side", [0, 1], ids=["left", "right"])
def test_among_many_lone_points_the_better_pair_is_found_at_either_end(side):
    lone = 10 + 3.5 * torch.arange(3000, dtype=torch.float64)
    width = [0.5 + 1e-5, 0.5 + 1e-5]
    width[side] = 0.5
    ends = [torch.tensor([0.0, width[0]]), torch.tensor([0.0, width[1]]) + lone[-1] + 10]
    x = torch.cat([ends[0].double(), lone, ends[1].double()])[None].to(DEVICE)
    y = locate_windows(x, torch.ones_like(x[:, :1]), None)
    assert abs(y.item() - ends[side].mean().item()) < 1e-6
