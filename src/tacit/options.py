"""Options are checked where they are written down: the name, the type and the value, each with advice."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterable
from typing import Any, TypeVar

from tacit.errors import OptionError, OptionTypeError, nearest

__all__ = ["check_choice", "check_count", "check_flag", "check_number", "strict_options"]

T = TypeVar("T", bound=type)


def strict_options(cls: T) -> T:
    """Class decorator: an unknown keyword raises `OptionTypeError` and names the nearest known one.

    >>> from dataclasses import dataclass
    >>> @strict_options
    ... @dataclass(frozen=True)
    ... class Newton:
    ...     tol: float = 1e-8
    >>> Newton(toll=1)
    Traceback (most recent call last):
    tacit.errors.OptionTypeError: Newton has no option 'toll'. Did you mean 'tol'? Its options: tol.
    """
    plain = cls.__init__  # type: ignore[misc]
    known = [name for name in inspect.signature(plain).parameters if name != "self"]

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in known:
                raise OptionTypeError(
                    f"{cls.__name__} has no option '{name}'.{nearest(name, known)} Its options: {', '.join(known)}."
                )
        if len(args) > len(known):
            raise OptionTypeError(f"{cls.__name__} takes at most {len(known)} options; received {len(args)}.")
        plain(self, *args, **kwargs)

    cls.__init__ = init  # type: ignore[misc]
    return cls


def check_choice(owner: str, name: str, value: Any, choices: Iterable[str]) -> None:
    """Insist on one of a few words."""
    choices = tuple(choices)
    if not isinstance(value, str):
        raise OptionTypeError(f"{owner}({name}=...) expects one of {choices}; received {value!r}.")
    if value not in choices:
        raise OptionError(f"{owner}({name}=...) expects one of {choices}; received {value!r}.{nearest(value, choices)}")


def check_number(owner: str, name: str, value: Any, *, zero: bool = False) -> None:
    """Insist on a positive finite number; `zero=True` admits 0."""
    word = "non-negative" if zero else "positive"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise OptionTypeError(f"{owner}({name}=...) expects a {word} number; received {value!r}.")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise OptionError(f"{owner}({name}=...) expects a {word} finite number; received {value!r}.")


def check_count(owner: str, name: str, value: Any, *, zero: bool = False) -> None:
    """Insist on a whole number of at least one; `zero=True` admits 0."""
    least = 0 if zero else 1
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionTypeError(f"{owner}({name}=...) expects a whole number; received {value!r}.")
    if value < least:
        raise OptionError(f"{owner}({name}=...) expects a whole number of at least {least}; received {value!r}.")


def check_flag(owner: str, name: str, value: Any) -> None:
    """Insist on True or False."""
    if not isinstance(value, bool):
        raise OptionTypeError(f"{owner}({name}=...) expects True or False; received {value!r}.")
