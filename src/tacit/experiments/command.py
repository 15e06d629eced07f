"""The command `tacit`: the experiments' own commands under one name.

Each experiment has a `command.py` with `register(experiments)`, which adds its parsers; a parser's default `run` is a
function of the parsed arguments. It needs the standard library alone, as `python -m tacit.experiments` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from tacit.errors import TacitError, nearest
from tacit.experiments.common.errors import Interrupted
from tacit.experiments.image import command as image
from tacit.experiments.pointcloud import command as pointcloud

__all__ = ["main"]

EXPERIMENTS = (pointcloud, image)


class _Parser(argparse.ArgumentParser):
    """A parser that takes options by their whole names alone, and has a suggestion for one that does not exist."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "allow_abbrev": False})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, or say which option there may be in the place of one that there is not."""
        found, unknown = super().parse_known_args(args, namespace)
        for word in unknown:
            if word.startswith("--"):
                self.error(f"there is no option {word}.{nearest(word.partition('=')[0], self._option_string_actions)}")
        return found, unknown


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    top = _Parser(prog="tacit", description="The experiments of the paper on deep declarative networks.")
    experiments = top.add_subparsers(title="experiments", required=True, metavar="EXPERIMENT")
    for experiment in EXPERIMENTS:
        experiment.register(experiments)
    return top


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 for an error and 130 for a run that was stopped, each told in a sentence."""
    arguments = parser().parse_args(words)
    try:
        arguments.run(arguments)
    except Interrupted as stopped:
        print(f"tacit: {stopped}", file=sys.stderr)
        return 130
    except KeyboardInterrupt:
        print("tacit: stopped. What was saved is whole; a training goes on with --resume.", file=sys.stderr)
        return 130
    except TacitError as error:
        print(f"tacit: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # a disk that is full, a folder one may not write to
        print(f"tacit: the system says: {error}.", file=sys.stderr)
        return 1
    return 0
