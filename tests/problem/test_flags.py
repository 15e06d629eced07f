"""Flags: what each bit means is said in words that tell what to do."""

from __future__ import annotations

from tacit.problem.flags import MEANING, Flag


def test_bits_are_distinct_powers_of_two_in_order():
    assert [int(f) for f in Flag] == [2**k for k in range(8)]


def test_every_flag_says_what_it_means():
    assert set(MEANING) == set(Flag)
    assert all("gradient" in text or "multipliers" in text for text in MEANING.values())
