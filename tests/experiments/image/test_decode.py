"""Any image becomes RGB, and what is no image is named."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from experiments.image.samples import encoded, picture
from tacit.experiments.common.errors import DataError
from tacit.experiments.image.decode import decode, resized_square


@pytest.mark.parametrize(
    ("mode", "format"),
    [("L", "JPEG"), ("CMYK", "JPEG"), ("RGB", "JPEG"), ("P", "PNG"), ("RGBA", "PNG"), ("LA", "PNG"), ("1", "PNG")],
)
def test_every_mode_becomes_rgb(mode, format):
    image = decode(encoded(picture(0).convert(mode), format), "x")
    assert image.mode == "RGB" and image.size == (24, 20)


@pytest.mark.parametrize(("mode", "format"), [("CMYK", "JPEG"), ("RGB", "JPEG"), ("RGBA", "PNG")])
def test_colours_are_kept_and_not_inverted(mode, format):
    pixels, was = (
        np.asarray(image, dtype=float) for image in (decode(encoded(picture(0).convert(mode), format), "x"), picture(0))
    )
    assert np.abs(pixels - was).mean() < np.abs(255 - pixels - was).mean() / 4


def test_greyscale_has_three_equal_channels():
    pixels = np.asarray(decode(encoded(picture(0).convert("L")), "x"))
    assert (pixels == pixels[..., :1]).all()


def test_sixteen_bits_are_scaled_and_not_clipped():
    values = np.array([[0, 257 * 100, 65535]], dtype=np.uint16)
    pixels = np.asarray(decode(encoded(Image.fromarray(values)), "x"))
    assert pixels[0, :, 0].tolist() == [0, 100, 255]


def test_a_transparent_palette_decodes_without_a_word():
    image = picture(0).convert("P")
    image.info["transparency"] = b"\x00\x80"
    assert decode(encoded(image), "x").mode == "RGB"


def test_one_pixel_is_an_image():
    assert decode(encoded(picture(0, 1, 1)), "x").size == (1, 1)


WHOLE = encoded(picture(0), "JPEG")


@pytest.mark.parametrize("data", [b"", b"\x00" * 100, WHOLE[:40], WHOLE[: len(WHOLE) // 2], encoded(picture(1))[:60]])
def test_a_broken_file_is_named(data):
    with pytest.raises(DataError, match=r"cat/7\.jpg: expected an image"):
        decode(data, "cat/7.jpg")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gone\.jpg: expected an image"):
        decode(tmp_path / "gone.jpg", str(tmp_path / "gone.jpg"))


@pytest.mark.parametrize("size", [(24, 20), (20, 24), (32, 32), (1, 1), (300, 2)])
def test_the_central_square_has_the_size_asked_for(size):
    assert resized_square(picture(0, *size), 36, 32).size == (32, 32)


def test_a_thread_of_an_image_does_not_grow_beyond_memory_and_keeps_its_middle():
    wide = Image.new("RGB", (60_001, 1))
    wide.putpixel((30_000, 0), (255, 0, 0))
    square = np.asarray(resized_square(wide, 256, 224))
    assert square.shape == (224, 224, 3)
    assert square[:, 111:113, 0].min() > 200 and not square[..., 1:].any()


def test_an_image_of_the_right_size_is_left_alone():
    image = picture(0, 32, 32)
    assert resized_square(image, 32, 32) is image
    cut = np.asarray(resized_square(image, 32, 28))
    assert (cut == np.asarray(image)[2:30, 2:30]).all()
