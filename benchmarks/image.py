"""What a projection adds to a training step of ResNet-18: forward, backward and update, against the plain model.

    python benchmarks/image.py [--device cuda --size 224 --batch 256 --amp] [--rounds 30] [--threads 1]

The seven models take turns, so that whatever else the machine does falls on all of them alike; "adds" is the median over
the rounds of a model's time over the plain model's of the same round, less 1, with the quartiles beside it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from _table import add_out, tell

from tacit.experiments.image.model import MODELS, build

RADIUS = {"l1": 250.0, "l2": 15.0, "linf": 3.0}  # the paper's


def stepper(
    name: str, images: torch.Tensor, labels: torch.Tensor, classes: int, stem: str, amp: bool
) -> Callable[[], None]:
    """Return a training step of a model."""
    torch.manual_seed(0)
    model = build(name, classes, radius=RADIUS.get(name.partition("-")[0]), stem=stem)
    model = model.to(images.device, memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, weight_decay=1e-4)

    def step() -> None:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()

    return step


def seconds(step: Callable[[], None], device: torch.device, repeats: int) -> float:
    """Time of a step, the device's work included."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(repeats):
        step()
    wait()
    return (time.perf_counter() - begin) / repeats


def main() -> None:
    """Time the models in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=1, help="steps timed together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--amp", action="store_true", help="bfloat16 where autocast deems it safe")
    add_out(parser)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    shape = (options.batch, 3, options.size, options.size)
    images = torch.randn(shape, device=device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(options.classes, (options.batch,), device=device)
    stem = "imagenet" if options.size >= 128 else "medium"
    steps = {name: stepper(name, images, labels, options.classes, stem, options.amp) for name in MODELS}
    for step in steps.values():
        seconds(step, device, 2)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(options.rounds):
        names = list(steps)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name].append(seconds(steps[name], device, options.repeats))
    rows = []
    for name, taken in times.items():
        added = [100 * (t / plain - 1) for t, plain in zip(taken, times["plain"])]
        low, middle, high = statistics.quantiles(added, n=4)
        cells = ["", ""] if name == "plain" else [f"{middle:+.1f}", f"{low:+.1f} to {high:+.1f}"]
        rows.append([name, f"{1e3 * statistics.median(taken):.2f}", f"{1e3 * min(taken):.2f}", *cells])
    facts = {"batch": options.batch, "size": options.size, "rounds": options.rounds, "threads": options.threads}
    columns = ["ResNet-18", "median ms", "least ms", "adds %", "quartiles"]
    tell("What a projection adds to a training step", columns, rows, options.out, device, **facts)


if __name__ == "__main__":
    main()
