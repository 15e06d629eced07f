"""Test problems y(x) = argmin_u f(x, u) s.t. h(x, u) = 0, g(x, u) <= 0 from the published literature, by name."""

from __future__ import annotations

from collections.abc import Iterable

from . import (
    classics,
    feasibility,
    hock_schittkowski_1,
    hock_schittkowski_2,
    hock_schittkowski_3,
    hock_schittkowski_4,
    hock_schittkowski_5,
    hock_schittkowski_6,
    irregular,
    more_garbow_hillstrom,
    more_garbow_hillstrom_2,
    nist,
    nist_2,
    paper,
)
from .base import KINDS, TestProblem

__all__ = ["GROUPS", "KINDS", "PROBLEMS", "TestProblem", "select"]

FAMILIES = (
    classics,
    feasibility,
    hock_schittkowski_1,
    hock_schittkowski_2,
    hock_schittkowski_3,
    hock_schittkowski_4,
    hock_schittkowski_5,
    hock_schittkowski_6,
    irregular,
    more_garbow_hillstrom,
    more_garbow_hillstrom_2,
    nist,
    nist_2,
    paper,
)
PROBLEMS: dict[str, TestProblem] = {given.name: given for family in FAMILIES for given in family.PROBLEMS}
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(given.group for given in PROBLEMS.values()))


def _wanted(value: str, wanted: str | Iterable[str] | None) -> bool:
    return wanted is None or value in ((wanted,) if isinstance(wanted, str) else tuple(wanted))


def select(
    kind: str | Iterable[str] | None = None,
    group: str | Iterable[str] | None = None,
    *,
    nonconvex: bool | None = None,
    constrained: bool | None = None,
    largest: int | None = None,
) -> list[TestProblem]:
    """The problems of these kinds and groups, in order; `largest` bounds the number of unknowns.

    >>> [given.name for given in select(kind="weak", group="hock_schittkowski", largest=2)]
    ['hs17']
    """
    return [
        given
        for given in PROBLEMS.values()
        if _wanted(given.kind, kind)
        and _wanted(given.group, group)
        and (nonconvex is None or given.nonconvex == nonconvex)
        and (constrained is None or (given.p + given.q > 0) == constrained)
        and (largest is None or given.m <= largest)
    ]
