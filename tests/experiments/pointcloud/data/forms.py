"""A tiny data set of two classes, written in every form that is read."""

from __future__ import annotations

import numpy as np

CLASSES = ("cube", "stick")
TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"


def arrays(clouds=6, points=16, seed=0):
    """Points (clouds, points, 3) and labels, of the classes in turn."""
    random = np.random.default_rng(seed)
    labels = np.arange(clouds) % 2
    return random.uniform(-1, 1, (clouds, points, 3)).astype("f4") * np.where(labels, 0.1, 1)[:, None, None].astype(
        "f4"
    ), labels


def write_npz(path, **changes):
    points, labels = arrays()
    content = {"train_points": points, "train_labels": labels, "test_points": points, "test_labels": labels}
    content = {**content, "class_names": np.array(CLASSES), **changes}
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return path


def write_shards(folder, count=2):
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        for shard in range(count):
            points, labels = arrays(seed=shard)
            np.savez(folder / f"{split}-{shard:03d}.npz", points=points, labels=labels, class_names=np.array(CLASSES))
    return folder


def write_hdf5(folder):
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shape_names.txt").write_text("\n".join(CLASSES))
    for split in ("train", "test"):
        points, labels = arrays()
        with h5py.File(folder / f"ply_data_{split}0.h5", "w") as file:
            file["data"], file["label"] = points, labels[:, None].astype("u1")
        (folder / f"{split}_files.txt").write_text(f"data/somewhere/else/ply_data_{split}0.h5\n")
    return folder


def write_classes(folder, write, suffix, splits=("train", "test"), count=3):
    """`folder/class/split/i.suffix`, or `folder/class/i.suffix` with `splits=None`."""
    for label, name in enumerate(CLASSES):
        for split in splits or ("",):
            (folder / name / split).mkdir(parents=True)
            for i in range(count):
                write(folder / name / split / f"{name}_{split}{i}{suffix}", label)
    return folder


def npy(path, label, points=20):
    np.save(path, arrays(2, points, seed=len(path.name))[0][label])


def off(path, label):
    path.write_text(TETRAHEDRON)


def ply(path, label, points=20, order="binary_little_endian"):
    cloud = arrays(2, points, seed=len(path.name))[0][label]
    head = f"ply\nformat {order} 1.0\ncomment made here\nelement vertex {points}\nproperty float x\nproperty float y\n"
    head += "property uchar red\nproperty float z\nelement face 0\nproperty list uchar int vertex_indices\nend_header\n"
    if order == "ascii":
        body = "".join(f"{x} {y} 7 {z}\n" for x, y, z in cloud).encode()
    else:
        sign = "<" if "little" in order else ">"
        rows = np.zeros(points, [("x", sign + "f4"), ("y", sign + "f4"), ("r", "u1"), ("z", sign + "f4")])
        rows["x"], rows["y"], rows["z"] = cloud.T
        body = rows.tobytes()
    path.write_bytes(head.encode() + body)
    return cloud
