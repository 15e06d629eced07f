"""One process or several: the same file runs alone and under `torchrun`.

    with World.start(device="auto", timeout=600) as world:
        model = world.prepare(model)       # on the device, batch normalisation over all processes
        ...
        world.share(n)                     # which of n rows are this process's: a slice
        world.sum(tensor)                  # the sum over the processes
        if world.first: ...                # only one process writes

gloo on CPU, NCCL on GPU. Everything that is drawn is drawn for the whole batch from the same seed, and each process
takes its share: two processes see together what one would see alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from tacit.errors import OptionError
from tacit.experiments.common.errors import WorkerLostError
from tacit.experiments.common.synced_norm import SyncedBatchNorm1d
from tacit.shapes import Tensor

__all__ = ["World", "pick_device"]


def pick_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU where there is one.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    there = torch.cuda.is_available()
    kind, _, index = name.partition(":")
    if name not in ("auto", "cpu", "cuda") and not (kind == "cuda" and index.isdigit()):
        raise OptionError(f"device expects auto, cpu, cuda or cuda:N; received {name!r}.")
    device = torch.device(("cuda" if there else "cpu") if name == "auto" else name)
    if device.type == "cuda" and not there:
        raise OptionError(f"device={name!r}: torch {torch.__version__} sees no GPU here. Use --device cpu.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise OptionError(f"device={name!r}: there are {torch.cuda.device_count()} GPUs here, counted from 0.")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    return device


@dataclass(frozen=True)
class World:
    """The processes of one training, seen from one of them."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    @classmethod
    @contextlib.contextmanager
    def start(cls, device: str = "auto", timeout: float = 600.0) -> Iterator[World]:
        """Join the processes that `torchrun` started, or be the only one; leave at the end of the block.

        `timeout` is in seconds: a process that is not heard of for so long is given up.
        """
        place = pick_device(device)
        if place.type == "cuda":
            torch.cuda.set_device(place)
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            yield cls(place)
            return
        backend = "nccl" if place.type == "cuda" else "gloo"
        with _workers_watched():
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
        try:
            with _workers_watched():
                yield cls(place, dist.get_rank(), dist.get_world_size())
        except WorkerLostError:
            # torchrun asks the others to end as soon as one has died; what happened is still to be said.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise
        finally:
            # gloo's threads need the interpreter's lock to let go of the last tensors they sent; whoever drops the last
            # reference to the group holds that lock while joining them, and both would wait for ever.
            time.sleep(0.2)
            dist.destroy_process_group()

    def prepare(self, model: torch.nn.Module) -> torch.nn.Module:
        """Return the model on the device; with several processes, its batch normalisation runs over all of them."""
        model = model.to(self.device)
        if self.size == 1:
            return model
        if self.device.type == "cuda":
            return torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        return SyncedBatchNorm1d.convert(model)

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        """Return the model such that `backward` averages gradients over the processes."""
        if self.size == 1:
            return model
        return torch.nn.parallel.DistributedDataParallel(model)

    def share(self, count: int) -> slice:
        """Return which of `count` rows belong to this process: equal parts, the first ones a row longer if need be.

        The rows of a training batch must be `shared_equally`: gradients are averaged over processes, not over rows.
        """
        parts, more = divmod(count, self.size)
        first = self.rank * parts + min(self.rank, more)
        return slice(first, first + parts + (self.rank < more))

    def shared_equally(self, batch: int) -> int:
        """Return `batch`, or raise OptionError where the processes cannot have equal parts of it."""
        if batch % self.size:
            raise OptionError(f"A batch of {batch} cannot be shared equally by {self.size} processes.")
        return batch

    def union(self, words: set[str]) -> set[str]:
        """Return what is in any process's set; all of them have to ask."""
        if self.size == 1:
            return words
        every: list[set[str]] = [set()] * self.size
        dist.all_gather_object(every, words)
        return set().union(*every)

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether any process says so; all of them have to ask."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(int(flag), device=self.device)).item())

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.size > 1:
            self.any(False)


@contextlib.contextmanager
def _workers_watched() -> Iterator[None]:
    """Turn what gloo and NCCL say of a peer that is gone into words for people."""
    signs = (
        "closed by peer",
        "Timed out",
        "timed out",
        "timeout",
        "Connection reset",
        "Broken pipe",
        "Connection refused",
    )
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and not any(sign in str(error) for sign in signs):
            raise
        raise WorkerLostError(
            f"Process {os.environ.get('RANK')} of {os.environ.get('WORLD_SIZE')} lost another one: it died or hangs "
            f"({str(error).splitlines()[0]}). Look at that process's own message first; then start the same command "
            "again with --resume: the last checkpoint is whole."
        ) from error
