"""Points from files: meshes in OFF, sampled by area; points in PLY and .npy.

Every reader takes a path and raises `DataError` with the path, and the line where there are lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from tacit.experiments.common.arrays import BROKEN
from tacit.experiments.common.errors import DataError
from tacit.shapes import Float, Tensor

__all__ = ["READERS", "read_cloud", "read_npy", "read_off", "read_ply", "sampled"]

Array = np.ndarray


def read_off(path: Path) -> tuple[Array, Array]:
    """Return the vertices (v, 3) and triangles (t, 3) of a mesh; a polygon is cut into a fan."""
    lines = [line for line in path.read_text("ascii", "replace").splitlines() if line.strip() and line[0] != "#"]
    if not lines or not lines[0].startswith("OFF"):
        raise DataError(f"{path} does not begin with OFF.")
    head = lines[0][3:].strip()  # some files of ModelNet have the counts on the first line
    counts, body = (head, lines[1:]) if head else (lines[1] if len(lines) > 1 else "", lines[2:])
    try:
        vertex_count, face_count = (int(word) for word in counts.split()[:2])
    except ValueError:
        raise DataError(f"{path}: its counts should be whole numbers; they are {counts!r}.") from None
    if min(vertex_count, face_count) < 0 or len(body) < vertex_count + face_count:
        raise DataError(
            f"{path} is truncated: {vertex_count} vertices and {face_count} faces are announced, {len(body)} lines follow."
        )
    try:
        vertices = np.array([line.split()[:3] for line in body[:vertex_count]], np.float64).reshape(-1, 3)
    except ValueError as error:
        raise DataError(f"{path}: a vertex cannot be read: {error}.") from None
    triangles = []
    for row, line in enumerate(body[vertex_count : vertex_count + face_count]):
        try:
            words = line.split()
            size = int(words[0])
            corners = [int(word) for word in words[1 : size + 1]]  # a colour may follow
        except ValueError:
            raise DataError(f"{path}: face {row} cannot be read: {line!r}.") from None
        if len(corners) < max(size, 3) or min(corners) < 0 or max(corners) >= vertex_count:
            raise DataError(f"{path}: face {row} names corners that are not there: {line!r}.")
        triangles += [(corners[0], b, c) for b, c in itertools.pairwise(corners[1:])]
    return vertices, np.array(triangles, int).reshape(-1, 3)


def sampled(vertices: Array, triangles: Array, points: int, random: np.random.Generator, path: Path) -> Array:
    """Return points drawn uniformly from the surface, (points, 3)."""
    a, b, c = (vertices[triangles[:, corner]] for corner in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    if not np.isfinite(area).all() or not area.sum() > 0:
        raise DataError(f"{path} has no surface to sample: the areas of its faces add up to {area.sum()}.")
    rows = random.choice(len(area), points, p=area / area.sum())
    u, v = random.uniform(size=(2, points, 1))
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    return a[rows] + u * (b[rows] - a[rows]) + v * (c[rows] - a[rows])


def read_npy(path: Path) -> Array:
    """Return the first three columns of an array (n, 3 or more)."""
    try:
        array = np.load(path, allow_pickle=False)
    except BROKEN as error:
        raise DataError(f"{path} ({path.stat().st_size} bytes) is truncated or corrupt: {error}.") from None
    if array.ndim != 2 or array.shape[1] < 3 or array.dtype.kind not in "fiu":
        raise DataError(f"{path} should hold points (n, 3); it holds {array.dtype} {array.shape}.")
    return array[:, :3].astype(np.float64)


_TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}


def read_ply(path: Path) -> Array:
    """Return x, y and z of the vertices, which have to be the first element of the file, as they are in practice."""
    content = path.read_bytes()
    head, mark, body = content.partition(b"end_header")
    lines = [line.split() for line in head.decode("ascii", "replace").splitlines() if line.strip()]
    if not mark or lines[0] != ["ply"] or len(lines) < 2 or lines[1][0] != "format" or lines[1][1] not in _ORDERS:
        raise DataError(f"{path} has no PLY header of a known format.")
    order, body = _ORDERS[lines[1][1]], body[body.index(b"\n") + 1 :] if b"\n" in body else b""
    elements = [at for at, line in enumerate(lines) if line[0] == "element"]
    if not elements or lines[elements[0]][1] != "vertex" or not lines[elements[0]][2].isdigit():
        raise DataError(f"{path}: the first element should be 'vertex'.")
    count = int(lines[elements[0]][2])
    end = elements[1] if len(elements) > 1 else len(lines)
    properties = [line[1:] for line in lines[elements[0] : end] if line[0] == "property"]
    names = [words[-1] for words in properties]
    if any(words[0] not in _TYPES for words in properties) or not {"x", "y", "z"} <= set(names):
        raise DataError(f"{path}: a vertex should have plain properties, x, y and z among them; it has {names}.")
    columns = [names.index(axis) for axis in "xyz"]
    if not order:
        rows = body.split(b"\n", count)[:count]
        try:
            return np.array([row.split() for row in rows], np.float64).reshape(count, len(names))[:, columns]
        except ValueError:
            raise DataError(
                f"{path} is truncated or corrupt: {count} vertices of {len(names)} numbers expected."
            ) from None
    kind = np.dtype([(name, order + _TYPES[words[0]]) for name, words in zip(names, properties)])
    if len(body) < count * kind.itemsize:
        raise DataError(
            f"{path} is truncated: {count} vertices need {count * kind.itemsize} bytes; {len(body)} follow."
        )
    vertices = np.frombuffer(body, kind, count)
    return np.stack([vertices[axis].astype(np.float64) for axis in "xyz"], 1)


def _mesh(path: Path, points: int, random: np.random.Generator) -> Array:
    return sampled(*read_off(path), points, random, path)


def _thinned(read: Callable[[Path], Array]) -> Callable[[Path, int, np.random.Generator], Array]:
    def read_at_most(path: Path, points: int, random: np.random.Generator) -> Array:
        cloud = read(path)
        return cloud if len(cloud) <= points else cloud[random.permutation(len(cloud))[:points]]

    return read_at_most


_FORMS = {".off": _mesh, ".npy": _thinned(read_npy), ".ply": _thinned(read_ply)}
READERS = tuple(_FORMS)


def read_cloud(path: Path, points: int, random: np.random.Generator) -> Float[Tensor, "n 3"]:
    """Return at most `points` points of a file: exactly as many where they are sampled from a mesh."""
    cloud = torch.from_numpy(_FORMS[path.suffix.lower()](path, points, random))
    if not len(cloud):
        raise DataError(f"{path} has no points.")
    if not bool(cloud.isfinite().all()):
        row = int((~cloud.isfinite().all(1)).nonzero()[0])
        raise DataError(f"{path}: row {row} has a coordinate that is not finite: {cloud[row].tolist()}.")
    if bool((cloud == cloud[0]).all()):
        raise DataError(f"{path} has all its points in one place.")
    return (cloud - cloud.mean(0)).float()  # centred first: of a place on a map, 32 bits would lose digits
