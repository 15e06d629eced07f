"""`tacit pointcloud train | evaluate | table | plot`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from tacit.experiments.common.config import add_arguments, from_arguments, listed, number
from tacit.experiments.common.distributed import World
from tacit.experiments.common.errors import DataError
from tacit.experiments.common.report import markdown
from tacit.experiments.pointcloud.config import POOLINGS, SHARES, Config
from tacit.experiments.pointcloud.data.source import open_data
from tacit.experiments.pointcloud.evaluate import load_model, trials
from tacit.experiments.pointcloud.model import PointNet
from tacit.experiments.pointcloud.paper import PAPER
from tacit.experiments.pointcloud.plots import curves, draw_attention, draw_gallery
from tacit.experiments.pointcloud.table import TABLES, TRAINED, collect, finished, table, write_report
from tacit.experiments.pointcloud.table import run as run_table
from tacit.experiments.pointcloud.train import train

__all__ = ["register"]


def register(experiments: Any) -> None:
    """Add the experiment's commands to the parser."""
    about = "Robust pooling in PointNet, under outliers."
    commands = experiments.add_parser("pointcloud", help=about, description=about).add_subparsers(
        title="commands", required=True, metavar="COMMAND"
    )
    for name, options, run, text in (
        ("train", _train_arguments, _train, "train one model and test it under outliers"),
        ("evaluate", _evaluate_arguments, _evaluate, "test a trained model"),
        ("table", _table_arguments, _table, "do all trainings of a table of the paper that are not done yet"),
        ("plot", _plot_arguments, _plot, "draw accuracy against outliers, clouds, and what each pooling attends to"),
    ):
        parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        parser.set_defaults(run=run)
        options(parser)


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", default="", metavar="PATH", help="file or folder; default: ModelNet40 in $TACIT_DATA, or embedded"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: a GPU if there is one)")


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, Config)
    _common_arguments(parser)
    parser.add_argument("--folder", type=Path, default=Path("runs/pointcloud"), help="where all of it goes")
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    parser.add_argument(
        "--save-every",
        type=number(int, least=0),
        default=0,
        metavar="N",
        help="steps between checkpoints (0: an epoch)",
    )
    parser.add_argument(
        "--timeout", type=number(float, above=0), default=600, help="seconds until a silent process is given up"
    )
    parser.add_argument("--tensorboard", action="store_true", help="write TensorBoard's events too")
    parser.add_argument("--compile", action="store_true", help="compile the model")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _train(arguments: argparse.Namespace) -> None:
    config = from_arguments(Config, arguments)
    with World.start(arguments.device, arguments.timeout) as world:
        names = ("resume", "save_every", "tensorboard", "compile", "quiet")
        how = {name: getattr(arguments, name) for name in names}
        result = train(*open_data(arguments.data, config.points), config, arguments.folder, world, **how)
        if world.first:
            print(_shown(result["rows"]))
            print(f"{arguments.folder / 'result.json'}")


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="model.pt, or the folder of a finished training")
    parser.add_argument(
        "--shares", type=listed(float, least=0, most=1), default=SHARES, help="shares of outliers, with commas"
    )
    parser.add_argument("--points", type=int, metavar="N", help="points of a cloud that are used (default: as trained)")
    _common_arguments(parser)


def _evaluate(arguments: argparse.Namespace) -> None:
    with World.start(arguments.device) as world:
        model, config, classes = load_model(arguments.model, world.device)
        if arguments.points is not None:
            config = dataclasses.replace(config, points=arguments.points)
        clouds = open_data(arguments.data, config.points)[1].spread(config.clouds).to(world.device)
        if clouds.classes != classes:
            raise DataError(
                f"{arguments.model} knows the classes {_few(classes)}; the data have {_few(clouds.classes)}. Test it on "
                "data of the same classes (--data)."
            )
        rows = trials(model, clouds, config, world, arguments.shares)
        if world.first:
            print(_shown(rows))


def _table_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", choices=TABLES, help="1: the same outliers in training and test; 2: in the test alone")
    add_arguments(parser, Config)
    _common_arguments(parser)
    parser.add_argument("--folder", type=Path, default=Path("runs/pointcloud"), help="a folder a run is made in it")
    parser.add_argument(
        "--poolings", type=listed(str, POOLINGS), default=POOLINGS, metavar="TEXT,...", help="only these, with commas"
    )
    parser.add_argument(
        "--trained",
        type=listed(float, least=0, most=1),
        default=TRAINED,
        metavar="X,...",
        help="table 1: only these shares, with commas",
    )
    parser.add_argument("--at-once", type=number(int, least=1), default=1, metavar="N", help="trainings at a time")
    parser.add_argument(
        "--time-limit",
        type=number(float, above=0),
        metavar="SECONDS",
        help="then save and stop; call again to go on",
    )
    parser.add_argument("--no-run", action="store_true", help="only report what is there")
    parser.add_argument("--collect", type=Path, metavar="FILE", help="put all results into one small file too")


def _table(arguments: argparse.Namespace) -> None:
    config = from_arguments(Config, arguments)
    found = run_table(arguments.table, config, arguments)
    if arguments.collect:
        collect(found, arguments.collect)
    print(write_report(arguments.table, found, arguments.folder))


def _plot_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=Path("runs/pointcloud"), help="of the runs")
    parser.add_argument("--out", type=Path, help="where the figures go (default: the folder of the runs)")
    parser.add_argument("--suffix", default=".png", choices=(".png", ".svg", ".pdf"), help="the figures' form")
    parser.add_argument("--no-paper", action="store_true", help="without the paper's own curves")
    _common_arguments(parser)


def _plot(arguments: argparse.Namespace) -> None:
    if not arguments.folder.is_dir():
        raise DataError(f"The folder {arguments.folder} does not exist. Give that of the runs (--folder).")
    out = arguments.out or arguments.folder
    found, paths = finished(arguments.folder), []
    for name, title in (("1", "trained with the same outliers"), ("2", "trained without outliers")):
        cells = table(name, found)
        if len({share for _, share, _ in cells}) > 1:
            paths.append(out / f"table{name}{arguments.suffix}")
            curves(cells, paths[-1], None if arguments.no_paper else PAPER[name], f"PointNet, {title}")
    clouds = open_data(arguments.data)[1]
    paths.append(out / f"gallery{arguments.suffix}")
    draw_gallery(clouds, paths[-1])
    models: dict[str, PointNet] = {}
    for path in sorted(arguments.folder.glob("*/model.pt")):
        model, config, classes = load_model(path)
        if config.outliers == 0 and classes == clouds.classes:
            models.setdefault(config.pooling, model)
    if models:
        paths.append(out / f"attention{arguments.suffix}")
        draw_attention(dict(sorted(models.items(), key=lambda item: POOLINGS.index(item[0]))), clouds, paths[-1])
    print("\n".join(map(str, paths)))


def _few(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:4])}{', ...' if len(names) > 4 else ''} ({len(names)})"


def _shown(rows: list[dict[str, float]]) -> str:
    cells = [[f"{100 * row['share']:g}%", f"{row['top1']:.2%}", f"{row['mAP']:.2%}"] for row in rows]
    return markdown(["outliers", "top-1", "mAP"], cells)
