"""Configuration: a frozen dataclass, filled from a TOML or YAML file and from the command line.

    @dataclass(frozen=True)
    class Config:
        epochs: int = option(60, "passes over the training set", least=1)
        shares: tuple[float, ...] = option((0.0, 0.1), "shares of outliers, with commas", least=0, most=1)

        def __post_init__(self) -> None:
            check(self)                          # numbers within their limits

    config = build(Config, path=Path("run.toml"), overrides={"epochs": 5})
    add_arguments(parser, Config)                # --epochs, --shares, and --config FILE
    config = from_arguments(Config, parser.parse_args())

A key that does not exist is refused with the nearest one that does; a value of the wrong type is refused with what
was expected. Types understood: bool, int, float, str, any of them `| None`, and `tuple[T, ...]`.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import MissingDependencyError, OptionError, nearest
from tacit.experiments.common.errors import ConfigError

__all__ = [
    "add_arguments",
    "build",
    "check",
    "differences",
    "from_arguments",
    "listed",
    "number",
    "option",
    "read",
    "to_dict",
    "words_of",
]

C = TypeVar("C")


def option(default: Any, help: str, choices: tuple[str, ...] | None = None, **limits: float) -> Any:
    """Return a dataclass field with a default, a sentence of help, and optionally the words or numbers it may take.

    `limits` are `least` and `most`, which may be reached, `above` and `below`, which may not.
    """
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices, "limits": limits})


def check(config: Any) -> None:
    """Raise OptionError where a number, or one of a tuple of them, is not finite or beyond the limits of its option."""
    for field in dataclasses.fields(config):
        value, limits = getattr(config, field.name), field.metadata.get("limits", {})
        if isinstance(value, tuple) and not value:
            raise OptionError(f"{field.name} expects at least one value; received none.")
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, (int, float)) and not _within(one, **limits):
                raise OptionError(f"{field.name} expects {_limits_in_words(**limits)}; received {one}.")


def _within(
    value: float,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> bool:
    return math.isfinite(value) and least <= value <= most and above < value < below


def _limits_in_words(
    least: float | None = None, most: float | None = None, above: float | None = None, below: float | None = None
) -> str:
    """Return what numbers are expected.

    >>> _limits_in_words(least=1), _limits_in_words(least=0, most=1), _limits_in_words(above=0)
    ('at least 1', 'a number from 0 to 1', 'a positive number')
    """
    if least is not None and most is not None:
        return f"a number from {least} to {most}"
    if above == 0 and most is None and below is None:
        return "a positive number"
    bounds = {"at least": least, "above": above, "at most": most, "below": below}
    return " and ".join(f"{word} {bound}" for word, bound in bounds.items() if bound is not None) or "a finite number"


def number(kind: type, **limits: float) -> Callable[[str], Any]:
    """Return a reader of one number within limits, for the `type` of an argument.

    >>> number(int, least=1)("3")
    3
    """

    def read_number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not _within(value, **limits):
            words = [*(["a whole number"] if kind is int else []), *([_limits_in_words(**limits)] if limits else [])]
            raise argparse.ArgumentTypeError(f"expects {', '.join(words) or 'a number'}; received {text!r}")
        return value

    return read_number


def listed(kind: type, choices: Iterable[str] = (), **limits: float) -> Callable[[str], Any]:
    """Return a reader of values with commas between them, each a number within limits or one of the choices.

    >>> listed(float, least=0, most=1)("0,0.5")
    (0.0, 0.5)
    """
    words = tuple(choices)

    def read_list(text: str) -> Any:
        items = [item.strip() for item in text.split(",") if item.strip()]
        if not items:
            raise argparse.ArgumentTypeError(f"expects at least one value; received {text!r}")
        for item in items:
            if words and item not in words:
                raise argparse.ArgumentTypeError(
                    f"expects some of {', '.join(words)}; received {item!r}.{nearest(item, words)}"
                )
        return tuple(items) if kind is str else tuple(map(number(kind, **limits), items))

    return read_list


def build(cls: type[C], path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> C:
    """Return `cls` with its defaults, over them what the file says, over that the overrides."""
    values: dict[str, Any] = {}
    for source, given in ((str(path), read(path) if path else {}), ("the command line", overrides or {})):
        known = _hints(cls)
        for name, value in given.items():
            key = str(name).replace("-", "_")
            if key not in known:
                raise ConfigError(
                    f"{source} has the key '{name}', which does not exist.{nearest(key, known)} "
                    f"The keys are: {', '.join(known)}."
                )
            values[key] = _checked(value, known[key], key, source, _field(cls, key).metadata.get("choices"))
    return cls(**values)


def read(path: Path) -> dict[str, Any]:
    """Return the table that a TOML or YAML file holds."""
    if not path.is_file():
        raise ConfigError(f"The configuration file {path} does not exist.")
    if path.suffix == ".toml":
        return _read_toml(path)
    if path.suffix in (".yaml", ".yml"):
        return _read_yaml(path)
    raise ConfigError(f"The configuration file {path} should end in .toml, .yaml or .yml.")


def _read_toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            return tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not TOML: {error}.") from None
    else:
        raise MissingDependencyError("TOML files need Python 3.11; write the same keys as YAML, or update Python.")


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise MissingDependencyError("YAML files need PyYAML: pip install pyyaml; TOML files need nothing.") from None
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {error}.") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} should hold keys and values; it holds {type(found).__name__}.")
    return found


def to_dict(config: Any) -> dict[str, Any]:
    """Return the configuration as plain values; tuples become lists, as they are when read back from a file."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in dataclasses.asdict(config).items()
    }


def words_of(config: Any, without: Iterable[str] = ()) -> list[str]:
    """Return the words of a command line that make this configuration: what is not as by default, but for `without`."""
    words: list[str] = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in without or value == field.default:
            continue
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{flag}")
        else:
            words += [f"--{flag}", ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    return words


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the keys in which two configurations differ, in words; an empty string when they agree.

    >>> differences({"epochs": 60, "seed": 0}, {"epochs": 15, "seed": 0})
    'epochs was 60 and is 15'
    """
    keys = [*old, *(key for key in new if key not in old)]
    changed = [key for key in keys if old.get(key) != new.get(key)]
    return "; ".join(f"{key} was {old.get(key)!r} and is {new.get(key)!r}" for key in changed)


def add_arguments(parser: argparse.ArgumentParser, cls: type) -> None:
    """Give the parser `--config FILE` and one option a field; a field that is not named keeps the file's value."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML or YAML file with any of the options below")
    hints = _hints(cls)
    for field in dataclasses.fields(cls):
        flag, hint = f"--{field.name.replace('_', '-')}", hints[field.name]
        shown = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
        help = f"{field.metadata.get('help', '')} (default: {shown})".replace("%", "%%")
        common: dict[str, Any] = {"default": argparse.SUPPRESS, "help": help}
        if hint is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
        else:
            choices = field.metadata.get("choices")
            parser.add_argument(flag, metavar="|".join(choices) if choices else _word(hint), **common)


def from_arguments(cls: type[C], arguments: argparse.Namespace, **fixed: Any) -> C:
    """Build the configuration from parsed arguments; `fixed` overrides them."""
    hints = _hints(cls)
    given = {name: value for name, value in vars(arguments).items() if name in hints}
    return build(cls, getattr(arguments, "config", None), {**given, **fixed})


def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _field(cls: type, name: str) -> dataclasses.Field[Any]:
    return next(field for field in dataclasses.fields(cls) if field.name == name)


def _word(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return f"{_word(args[0])},..."
    if origin in (types.UnionType, typing.Union):
        return _word(args[0])
    return str({int: "N", float: "X", str: "TEXT"}.get(hint, hint))


def _checked(value: Any, hint: Any, name: str, source: str, choices: tuple[str, ...] | None) -> Any:
    try:
        value = _converted(value, hint)
    except (TypeError, ValueError):
        raise ConfigError(f"{source}: {name} expects {_type_in_words(hint)}; received {value!r}.") from None
    if choices and value is not None and value not in choices:
        raise ConfigError(
            f"{source}: {name} expects one of {', '.join(choices)}; received {value!r}.{nearest(str(value), choices)}"
        )
    return value


def _type_in_words(hint: Any) -> str:
    """Return what a value should be.

    >>> _type_in_words(tuple[float, ...]), _type_in_words(int | None)
    ('several values, each a number', 'a whole number or none')
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return f"several values, each {_type_in_words(args[0])}"
    if origin in (types.UnionType, typing.Union):
        return f"{_type_in_words(args[0])} or none"
    return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[hint]


def _converted(value: Any, hint: Any) -> Any:
    """Return the value as the type asked for; text is read, as it comes from the command line."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None or value == "none" else _converted(value, args[0])
    if origin is tuple:
        items = [item for item in value.split(",") if item] if isinstance(value, str) else value
        return tuple(_converted(item, args[0]) for item in items)
    if hint is bool or hint is str:
        if not isinstance(value, hint):
            raise TypeError
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError
    if hint is int and isinstance(value, float):
        raise TypeError
    return hint(value)
