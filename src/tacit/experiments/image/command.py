"""`tacit image train | evaluate | scale | table | plot`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tacit.errors import OptionError
from tacit.experiments.common.config import add_arguments, from_arguments, listed, number, read, to_dict
from tacit.experiments.common.report import markdown
from tacit.experiments.image import plot, scale, table, train
from tacit.experiments.image.config import Config, config_of

__all__ = ["register"]


def register(experiments: Any) -> None:
    """Add the commands to the experiments' parser."""
    image = experiments.add_parser("image", help="ResNet-18 with features projected before the classifier: table 3")
    actions = image.add_subparsers(title="actions", required=True, metavar="ACTION")

    training = actions.add_parser("train", help="train one model")
    add_arguments(training, Config)
    training.add_argument("--folder", type=Path, default=Path("runs/image/run"), help="of checkpoints, log and result")
    training.add_argument("--resume", action="store_true", help="go on from the last checkpoint in the folder")
    training.add_argument("--quiet", action="store_true", help="no progress")
    training.set_defaults(run=_train)

    evaluating = actions.add_parser("evaluate", help="measure a trained model on the validation images")
    add_arguments(evaluating, Config)
    evaluating.add_argument("--folder", type=Path, help="of the run; its options hold unless others are given")
    evaluating.add_argument("--weights", type=Path, help="a state dict instead, such as pre-trained weights")
    evaluating.set_defaults(run=_evaluate)

    scaling = actions.add_parser("scale", help="measure the radii on a trained plain model")
    add_arguments(scaling, Config)
    scaling.add_argument("--folder", type=Path, required=True, help="of the plain model's run")
    scaling.set_defaults(run=_scale)

    tabulating = actions.add_parser("table", help="train what is missing of table 3, and write it")
    add_arguments(tabulating, Config)
    tabulating.add_argument("--folder", type=Path, default=Path("runs/image/table"), help="of the runs and the table")
    tabulating.add_argument("--seeds", type=listed(int), default=(0,), metavar="N,...", help="with commas (default: 0)")
    tabulating.add_argument(
        "--models",
        type=listed(str, table.PAPER),
        default=tuple(table.PAPER),
        metavar="TEXT,...",
        help="with commas (default: all seven)",
    )
    tabulating.add_argument(
        "--at-once", type=number(int, least=1), default=1, metavar="N", help="trainings at a time (default: 1)"
    )
    tabulating.add_argument(
        "--time-limit",
        type=number(float, above=0),
        metavar="SECONDS",
        help="then save and stop; call again to go on",
    )
    tabulating.add_argument("--no-run", action="store_true", help="only report what is there")
    tabulating.set_defaults(run=_table)

    plotting = actions.add_parser("plot", help="draw precision and reliability of the table's runs")
    plotting.add_argument(
        "--folder", type=Path, default=Path("runs/image/table"), help="of the runs, or of results.json"
    )
    plotting.add_argument("--out", type=Path, help="folder of the figures (default: the same)")
    plotting.set_defaults(run=_plot)


def _train(arguments: argparse.Namespace) -> None:
    config = from_arguments(Config, arguments)
    result = train.train(config, arguments.folder, resume=arguments.resume, quiet=arguments.quiet)
    _show(result)


def _evaluate(arguments: argparse.Namespace) -> None:
    _show(train.evaluate(_config(arguments), arguments.folder, arguments.weights))


def _scale(arguments: argparse.Namespace) -> None:
    found = scale.scale(_config(arguments), arguments.folder)
    print(json.dumps(found, indent=1))


def _table(arguments: argparse.Namespace) -> None:
    for name in ("model", "radius", "seed"):
        if hasattr(arguments, name):
            raise OptionError(f"table sets --{name} itself, run by run; use --models and --seeds.")
    config = from_arguments(Config, arguments)
    try:
        if not arguments.no_run:
            table.run(
                config,
                arguments.folder,
                arguments.seeds,
                models=arguments.models,
                at_once=arguments.at_once,
                limit=arguments.time_limit,
            )
    finally:  # what is finished is shown, whatever became of the rest
        found = table.collect(arguments.folder)
        if found.get("runs"):
            table.write(found, arguments.folder / "table3")
            print((arguments.folder / "table3.md").read_text("utf-8"))
        else:
            print(f"{arguments.folder} holds no finished run yet.", file=sys.stderr)


def _plot(arguments: argparse.Namespace) -> None:
    for path in plot.draw(table.collect(arguments.folder), arguments.out or arguments.folder):
        print(path)


def _config(arguments: argparse.Namespace) -> Config:
    """Return the options of the run in the folder, where one is given, under those of the command line."""
    given = from_arguments(Config, arguments)
    if arguments.folder is None:
        return given
    file = read(arguments.config) if arguments.config else {}
    named = {key: value for key, value in to_dict(given).items() if hasattr(arguments, key) or key in file}
    return config_of(arguments.folder, named)


def _show(measured: dict[str, Any]) -> None:
    """Print the measures, and what was left out."""
    rows = [[name, f"{measured[key] * factor:.2f}"] for name, (key, factor) in table.MEASURES.items()]
    print(markdown(["measure", "value"], rows))
    if measured["skipped"]:
        print(f"{len(measured['skipped'])} broken images were left out, the first: {measured['skipped'][0]}")
