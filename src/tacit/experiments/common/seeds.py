"""Random numbers that depend on where one is, not on what came before.

Every draw is made by a generator seeded from names and numbers such as (seed, "augment", epoch, step). A run that
continues in the middle of an epoch therefore draws what it would have drawn, and no generator's state is ever saved.
"""

from __future__ import annotations

import hashlib

import torch

__all__ = ["generator", "seed_of"]


def seed_of(*where: int | float | str) -> int:
    """Return a number below 2^63 that is the same for the same place, on every machine.

    >>> seed_of(0, "shuffle", 3) == seed_of(0, "shuffle", 3) != seed_of(0, "shuffle", 4)
    True
    """
    return int.from_bytes(hashlib.sha256(repr(where).encode()).digest()[:8], "big") >> 1


def generator(*where: int | float | str, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator on `device`, seeded by `seed_of(*where)`."""
    return torch.Generator(device).manual_seed(seed_of(*where))
