"""The command `tacit`: the experiments' own commands under one name.

Each experiment has a `command.py` with `register(experiments)`, which adds its parsers; a parser's default `run` is a
function of the parsed arguments. It needs the standard library alone, as `python -m tacit.experiments` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tacit.errors import TacitError
from tacit.experiments.common.errors import Interrupted
from tacit.experiments.image import command as image
from tacit.experiments.pointcloud import command as pointcloud

__all__ = ["main"]

EXPERIMENTS = (pointcloud, image)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    top = argparse.ArgumentParser(
        prog="tacit", description="The experiments of the paper on deep declarative networks."
    )
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
        print("tacit: stopped.", file=sys.stderr)
        return 130
    except TacitError as error:
        print(f"tacit: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0
