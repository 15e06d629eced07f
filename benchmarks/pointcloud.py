"""What robust pooling costs in training: clouds a second of PointNet with each pooling, against max pooling.

    python benchmarks/pointcloud.py [--points 2048] [--batch 24] [--device cuda] [--out docs/results/speed/pointcloud]

The poolings take turns, a few steps each, so that whatever else the machine does falls on all alike; the median of the
turns counts. A step is everything: drawing the batch, forward, backward, the optimiser. On a CPU it is taken with one
thread and with all of them.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator

import torch
from _table import add_out, tell

from tacit.experiments.common.distributed import World, pick_device
from tacit.experiments.common.loop import Task
from tacit.experiments.pointcloud.config import POOLINGS, Config
from tacit.experiments.pointcloud.data.embedded import embedded
from tacit.experiments.pointcloud.train import task_of


def steps(task: Task, world: World) -> Iterator[None]:
    """Train, a step at a time."""
    task.model.train()
    for epoch in itertools.count():
        for batch in task.batches(epoch, 0):
            loss, _ = task.loss(task.model, batch)
            task.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            task.optimiser.step()
            yield


def seconds(run: Iterator[None], count: int, device: torch.device) -> float:
    """Time `count` steps; return seconds a step."""
    before = time.perf_counter()
    for _ in range(count):
        next(run)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - before) / count


def main() -> None:
    """Measure all poolings in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="steps of a turn")
    parser.add_argument("--tf32", action="store_true", help="TensorFloat-32 in products of matrices")
    parser.add_argument("--device", default="cpu")
    add_out(parser)
    options = parser.parse_args()
    world = World(pick_device(options.device))
    cores = torch.get_num_threads()
    threads = sorted({1, cores}) if world.device.type == "cpu" else [cores]
    torch.set_float32_matmul_precision("high" if options.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = options.tf32

    data, test = (part.to(world.device) for part in embedded(train=336, test=26, points=options.points))
    runs = {}
    for pooling in POOLINGS:
        config = Config(pooling=pooling, points=options.points, batch=options.batch)
        runs[pooling] = steps(task_of(data, test, config, world), world)
        seconds(runs[pooling], 2, world.device)  # the first steps compile and allocate
    times: dict[tuple[int, str], list[float]] = {(count, pooling): [] for count in threads for pooling in POOLINGS}
    for _, count in itertools.product(range(options.turns), threads):
        torch.set_num_threads(count)
        for pooling, run in runs.items():
            times[count, pooling].append(seconds(run, options.steps, world.device))

    rows = []
    for (count, pooling), each in times.items():
        ratio = statistics.median(own / base for own, base in zip(each, times[count, "max"]))
        step = statistics.median(each)
        rows.append([pooling, count, f"{1e3 * step:.1f}", f"{options.batch / step:.1f}", f"{ratio:.2f}"])
    columns = ["pooling", "threads", "ms a step", "clouds a second", "times max pooling"]
    scale = f"{options.batch} x {options.points} points, median of {options.turns} turns of {options.steps} steps"
    tell("A training step with each pooling", columns, rows, options.out, world.device, scale=scale, tf32=options.tf32)


if __name__ == "__main__":
    main()
