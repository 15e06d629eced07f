"""Training crops follow the distribution they are meant to, and depend on their draws alone."""

from __future__ import annotations

import math

import pytest
import torch

from tacit.experiments.common.seeds import generator
from tacit.experiments.image.crops import DRAWS, boxes, draws, flips

N = 20_000


def crops(height: int, width: int, least: float = 0.08) -> tuple[torch.Tensor, ...]:
    drawn = draws(N, generator(0, "test"))
    sides = torch.tensor([height, width]).expand(N, 2)
    return boxes(drawn, sides[:, 0], sides[:, 1], (least, 1.0)).unbind(1)


@pytest.mark.parametrize(("height", "width"), [(224, 224), (64, 64), (300, 200), (1, 1), (2, 90), (1, 1000)])
def test_a_crop_lies_within_its_image(height, width):
    top, left, high, wide = crops(height, width)
    assert (top >= 0).all() and (left >= 0).all() and (high >= 1).all() and (wide >= 1).all()
    assert (top + high <= height).all() and (left + wide <= width).all()


def test_area_and_ratio_are_spread_as_asked_where_the_image_does_not_forbid_it():
    # Small shares always fit into a square, whatever their ratio, so their distribution is the one asked for.
    _, _, high, wide = crops(4000, 4000)
    area, ratio = (high * wide).double() / 4000**2, wide.double() / high
    assert ((ratio > 0.745) & (ratio < 1.342)).all() and ((area > 0.079) & (area <= 1)).all()
    small = area < 0.6
    spread = (area[small] - 0.08) / 0.52
    for q in (0.25, 0.5, 0.75):  # three standard errors of a quantile
        assert abs(spread.quantile(q).item() - q) < 3 * math.sqrt(q * (1 - q) / small.sum().item())
        middle = (ratio[small].log().quantile(q).item() / math.log(4 / 3) + 1) / 2
        assert abs(middle - q) < 3 * math.sqrt(q * (1 - q) / small.sum().item())


def test_positions_are_uniform():
    top, left, high, wide = crops(1000, 1000, 0.08)
    for begin, extent in ((top, high), (left, wide)):
        room = (1000 - extent + 1).double()
        share = (begin.double() + 0.5) / room
        assert abs(share.mean().item() - 0.5) < 3 * math.sqrt(1 / 12 / N)


def test_half_of_the_images_are_mirrored():
    share = flips(draws(N, generator(0, "test"))).double().mean().item()
    assert abs(share - 0.5) < 3 * math.sqrt(0.25 / N)


def test_where_no_try_fits_the_largest_central_crop_is_taken():
    top, left, high, wide = crops(10, 1000, 0.9)
    assert (high == 10).all() and (wide == 13).all() and (top == 0).all() and (left == 493).all()


def test_draws_depend_on_their_place_alone():
    one, same, other = (draws(3, generator(0, "crop", epoch, 5)) for epoch in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert one.shape == (3, DRAWS)
