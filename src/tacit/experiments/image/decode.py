"""Any image file as RGB bytes; what cannot be decoded is named."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
from PIL import Image

from tacit.experiments.common.errors import DataError

__all__ = ["decode", "resized_square"]

# What Pillow raises for a broken file depends on the format and on where the file is broken.
BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, Image.DecompressionBombError)


def decode(source: bytes | Path, name: str) -> Image.Image:
    """Return the image in RGB, whatever its mode: greyscale, 16 bits, palette, CMYK, with transparency (dropped).

    Raises:
        DataError: the file is missing, truncated or no image; the message begins with `name`.
    """
    try:
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source)) as image:
            image.load()
            return _rgb(image)
    except BROKEN as error:
        raise DataError(
            f"{name}: expected an image; {error or type(error).__name__}. Replace the file, or leave such files out, "
            "counted, with corrupt = 'skip'."
        ) from error


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith(("I", "F")):  # Pillow's own conversion clips 16 bits at 255
        values = np.asarray(image).astype(np.float64)
        top = 65535.0 if image.mode.startswith("I") and values.max(initial=0) > 255 else 255.0
        return Image.fromarray((values.clip(0, top) * (255 / top)).round().astype(np.uint8)).convert("RGB")
    if "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def resized_square(image: Image.Image, resize: int, size: int) -> Image.Image:
    """Return the central square of `size` pixels, after the shorter side was brought to `resize` pixels."""
    width, height = image.size
    short = min(width, height)
    if (
        max(width, height) > 8 * short
    ):  # a thread of an image would grow beyond all memory; its middle is all that counts
        edge_x, edge_y = (max(0, (side - 8 * short) // 2) for side in (width, height))
        image = image.crop((edge_x, edge_y, width - edge_x, height - edge_y))
        width, height = image.size
    ratio = resize / short
    wide, high = max(resize, round(width * ratio)), max(resize, round(height * ratio))
    if (wide, high) != image.size:
        image = image.resize((wide, high), Image.Resampling.BILINEAR)
    left, top = (wide - size) // 2, (high - size) // 2
    if (wide, high) == (size, size):
        return image
    return image.crop((left, top, left + size, top + size))
