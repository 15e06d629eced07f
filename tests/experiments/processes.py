"""Processes for the tests: alone or several of one training, to be waited for, killed, or found hanging.

They are forked from a server that has loaded torch once, so that one starts in milliseconds and not in the seconds that
an import takes; the server has run nothing, so they are as good as fresh.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["torch", "torch.distributed", "tacit.experiments.common.loop"])


class Process:
    """One process that calls a function of a module; what it says is kept.

    Args:
        target: found by name in its module, which the process imports.
        given: its arguments.
        place: variables of the environment.
    """

    def __init__(self, target: Callable[..., object], *given: Any, place: dict[str, str] | None = None) -> None:
        self.said = Path(tempfile.mkstemp(suffix=".txt")[1])
        self.process = _SERVER.Process(target=_run, args=(target, given, place or {}, str(self.said)), daemon=True)
        self.process.start()

    def kill(self, kind: int = signal.SIGKILL) -> None:
        """Send a signal, if it is not too late."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, kind)

    def end(self, limit: float = 120) -> tuple[int, str]:
        """Wait for the end; return the code, negative for a signal, and what was said.

        A process that has not ended in time is killed, and its stacks are shown.
        """
        self.process.join(limit)
        late = self.process.is_alive()
        if late:
            self.kill(signal.SIGCONT)
            self.kill(signal.SIGABRT)  # faulthandler writes the stack of every thread
            self.process.join(5)
            self.process.kill()
            self.process.join()
        code, said = self.process.exitcode, self.said.read_text(errors="replace")
        self.process.close()
        self.said.unlink()
        assert not late, f"the process did not end in {limit:.0f} s; it said, and was at:\n{said}"
        return code, said


def several(size: int, target: Callable[..., object], *given: Any) -> list[Process]:
    """Start the processes of one training, as `torchrun` would."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size)}
    return [
        Process(target, *given, place={**place, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(size)
    ]


def _run(target: Callable[..., object], given: tuple[Any, ...], place: dict[str, str], said: str) -> None:
    output = os.open(said, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    faulthandler.enable(2)
    os.environ.update(place)
    import torch

    torch.set_num_threads(1)
    target(*given)
