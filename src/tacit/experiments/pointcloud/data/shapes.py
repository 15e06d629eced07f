"""Classes of shapes, each a few surfaces whose sizes are drawn anew every time.

Some classes differ by a part alone: a mug is a cylinder with a handle, a chair a table with a back, a stool a round
table, a desk a table with drawers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.experiments.pointcloud.data.surfaces import Part, Points, Random, ball, box, disc, tube, wall

__all__ = ["MAKERS"]


def _sphere(random: Random) -> list[Part]:
    return [ball(random, 1.0)]


def _crate(random: Random) -> list[Part]:
    a, b, c = random.uniform(0.6, 1.4, 3)
    return [box(random, (a, b, c))]


def _cylinder(random: Random) -> list[Part]:
    radius, height = random.uniform(0.4, 0.7), random.uniform(0.9, 1.6)
    return [wall(random, radius, radius, height), disc(random, radius), disc(random, radius, height)]


def _cone(random: Random) -> list[Part]:
    low, high, height = random.uniform(0.6, 0.9), random.uniform(0.0, 0.3), random.uniform(1.0, 1.6)
    return [wall(random, low, high, height), disc(random, low)]


def _ring(random: Random) -> list[Part]:
    def curve(t: Points) -> Points:
        return np.stack((np.cos(2 * np.pi * t), 0 * t, np.sin(2 * np.pi * t)), 1)

    return [tube(random, curve, random.uniform(0.15, 0.45))]


def _knot(random: Random) -> list[Part]:
    size = random.uniform(0.25, 0.4)

    def curve(t: Points) -> Points:
        s = 2 * np.pi * t
        flat = np.stack((np.sin(s) + 2 * np.sin(2 * s), -np.sin(3 * s), np.cos(s) - 2 * np.cos(2 * s)), 1)
        return size * flat

    return [tube(random, curve, random.uniform(0.06, 0.16))]


def _spring(random: Random) -> list[Part]:
    turns, height = random.uniform(2.5, 5), random.uniform(1.2, 2.2)

    def curve(t: Points) -> Points:
        s = 2 * np.pi * turns * t
        return np.stack((0.5 * np.cos(s), height * t, 0.5 * np.sin(s)), 1)

    return [tube(random, curve, random.uniform(0.04, 0.1))]


def _table(random: Random) -> list[Part]:
    return _top_on_legs(random)[0]


def _top_on_legs(random: Random) -> tuple[list[Part], tuple[float, float, float]]:
    """A board on four legs, and its length, the height of its upper side, its width."""
    a, c, height, thick = (*random.uniform(0.8, 1.6, 2), random.uniform(0.6, 1.1), random.uniform(0.05, 0.12))
    leg = random.uniform(0.06, 0.12)
    corners = [(x * (a / 2 - leg), height / 2, z * (c / 2 - leg)) for x in (-1, 1) for z in (-1, 1)]
    board, legs = box(random, (a, thick, c), (0, height, 0)), [box(random, (leg, height, leg), at) for at in corners]
    return [board, *legs], (a, height + thick / 2, c)


def _chair(random: Random) -> list[Part]:
    (parts, (deep, seat, wide)), back = _top_on_legs(random), random.uniform(0.6, 1.2)
    return [*parts, box(random, (0.07, back, wide), (-deep / 2, seat + back / 2, 0))]


def _lamp(random: Random) -> list[Part]:
    height, foot, shade = random.uniform(1.2, 1.8), random.uniform(0.25, 0.45), random.uniform(0.35, 0.6)
    return [
        disc(random, foot),
        wall(random, 0.05, 0.05, height),
        wall(random, shade, shade * random.uniform(0.4, 0.8), random.uniform(0.35, 0.6), height * 0.8),
    ]


def _mug(random: Random) -> list[Part]:
    radius, height = random.uniform(0.4, 0.6), random.uniform(0.8, 1.2)
    reach = random.uniform(0.25, 0.4)

    def handle(t: Points) -> Points:
        s = np.pi * (t - 0.5)
        return np.stack((radius + reach * np.cos(s), height / 2 + 0.35 * height * np.sin(s), 0 * t), 1)

    return [wall(random, radius, radius, height), disc(random, radius), tube(random, handle, 0.07)]


def _plane(random: Random) -> list[Part]:
    length, span, depth = random.uniform(1.6, 2.2), random.uniform(1.4, 2.4), random.uniform(0.25, 0.45)
    sweep = random.uniform(-0.1, 0.3)

    def body(t: Points) -> Points:
        return np.stack((length * (t - 0.5), 0 * t, 0 * t), 1)

    return [
        tube(random, body, random.uniform(0.09, 0.16)),
        box(random, (depth, 0.04, span), (sweep - 0.1, 0, 0)),
        box(random, (0.2, 0.03, span / 3), (0.45 * length, 0.05, 0)),
        box(random, (0.2, 0.35, 0.03), (0.45 * length, 0.2, 0)),
    ]


def _stairs(random: Random) -> list[Part]:
    steps, width = int(random.integers(3, 7)), random.uniform(0.6, 1.2)
    rise, tread = random.uniform(0.8, 1.4) / steps, 1.4 / steps
    return [
        box(random, (tread, rise * (i + 1), width), (tread * (i + 0.5), rise * (i + 1) / 2, 0)) for i in range(steps)
    ]


def _shelf(random: Random) -> list[Part]:
    boards, width, height, depth = (
        int(random.integers(3, 6)),
        random.uniform(0.7, 1.2),
        random.uniform(1.2, 2),
        random.uniform(0.25, 0.5),
    )
    levels = np.linspace(0, height, boards)
    sides = [box(random, (0.05, height, depth), (x * width / 2, height / 2, 0)) for x in (-1, 1)]
    return [*sides, *(box(random, (width, 0.05, depth), (0, level, 0)) for level in levels)]


def _bed(random: Random) -> list[Part]:
    long, wide, high = random.uniform(1.6, 2.2), random.uniform(0.8, 1.6), random.uniform(0.25, 0.5)
    board, thick = random.uniform(0.5, 1.0), random.uniform(0.15, 0.3)
    feet = [(x * (long / 2 - 0.06), high / 2, z * (wide / 2 - 0.06)) for x in (-1, 1) for z in (-1, 1)]
    return [
        box(random, (long, thick, wide), (0, high, 0)),
        box(random, (0.06, board, wide), (-long / 2, high + board / 2 - thick, 0)),
        *(box(random, (0.08, high, 0.08), at) for at in feet),
    ]


def _bench(random: Random) -> list[Part]:
    long, deep, high = random.uniform(1.6, 2.4), random.uniform(0.3, 0.5), random.uniform(0.4, 0.6)
    ends = [box(random, (0.08, high, deep), (x * long * random.uniform(0.35, 0.48), high / 2, 0)) for x in (-1, 1)]
    return [box(random, (long, 0.08, deep), (0, high, 0)), *ends]


def _bottle(random: Random) -> list[Part]:
    radius, high, neck = random.uniform(0.25, 0.4), random.uniform(0.8, 1.3), random.uniform(0.06, 0.14)
    shoulder = random.uniform(0.15, 0.4)
    return [
        disc(random, radius),
        wall(random, radius, radius, high),
        wall(random, radius, neck, shoulder, high),
        wall(random, neck, neck, random.uniform(0.2, 0.5), high + shoulder),
    ]


def _bowl(random: Random) -> list[Part]:
    foot, rim, high = random.uniform(0.25, 0.45), random.uniform(0.7, 1.0), random.uniform(0.35, 0.7)
    middle = random.uniform(0.75, 0.9) * rim
    return [
        disc(random, foot),
        wall(random, foot, middle, 0.4 * high),
        wall(random, middle, rim, 0.6 * high, 0.4 * high),
    ]


def _car(random: Random) -> list[Part]:
    long, wide, high = random.uniform(1.8, 2.3), random.uniform(0.7, 1.0), random.uniform(0.3, 0.45)
    cabin, roof, wheel = random.uniform(0.7, 1.2), random.uniform(0.25, 0.45), random.uniform(0.16, 0.24)
    tyres = [(x * 0.33 * long, 0.0, z * wide / 2) for x in (-1, 1) for z in (-1, 1)]
    return [
        box(random, (long, high, wide), (0, high / 2 + 0.1, 0)),
        box(random, (cabin, roof, 0.9 * wide), (random.uniform(-0.2, 0.1), high + roof / 2 + 0.1, 0)),
        *(tube(random, _circle(wheel, at), 0.06) for at in tyres),
    ]


def _circle(radius: float, at: tuple[float, float, float]) -> Callable[[Points], Points]:
    """An upright circle around `at`, to be seen from the third axis."""

    def curve(t: Points) -> Points:
        s = 2 * np.pi * t
        return np.stack((at[0] + radius * np.cos(s), at[1] + radius * np.sin(s), at[2] + 0 * s), 1)

    return curve


def _desk(random: Random) -> list[Part]:
    wide, deep, high = random.uniform(1.2, 1.8), random.uniform(0.6, 0.9), random.uniform(0.6, 0.9)
    drawers = random.uniform(0.3, 0.5)
    leg = [(wide / 2 - 0.05, high / 2, z * (deep / 2 - 0.05)) for z in (-1, 1)]
    return [
        box(random, (wide, 0.06, deep), (0, high, 0)),
        box(random, (drawers, 0.9 * high, 0.95 * deep), (-(wide - drawers) / 2, 0.5 * high, 0)),
        *(box(random, (0.08, high, 0.08), at) for at in leg),
    ]


def _guitar(random: Random) -> list[Part]:
    neck, low, high = random.uniform(1.0, 1.5), random.uniform(0.35, 0.5), random.uniform(0.25, 0.38)
    thick, waist = random.uniform(0.1, 0.2), random.uniform(0.5, 0.7)
    parts = [box(random, (neck, 0.06, 0.1), (waist + neck / 2, thick, 0))]
    for radius, x in ((low, 0.0), (high, waist)):
        drum = wall(random, radius, radius, thick), disc(random, radius), disc(random, radius, thick)
        parts += [_moved(part, (x, 0, 0)) for part in drum]
    return parts


def _moved(part: Part, by: tuple[float, float, float]) -> Part:
    return Part(part.area, lambda n: part.draw(n) + by)


def _monitor(random: Random) -> list[Part]:
    wide, high, thick = random.uniform(1.0, 1.6), random.uniform(0.6, 0.9), random.uniform(0.05, 0.15)
    stem = random.uniform(0.15, 0.4)
    return [
        box(random, (thick, high, wide), (0, stem + high / 2, 0)),
        box(random, (0.08, stem + 0.2, 0.12), (-0.05, (stem + 0.2) / 2, 0)),
        box(random, (random.uniform(0.3, 0.5), 0.04, random.uniform(0.4, 0.7))),
    ]


def _person(random: Random) -> list[Part]:
    leg, trunk, head = random.uniform(0.7, 0.95), random.uniform(0.5, 0.7), random.uniform(0.12, 0.16)
    parts = [
        ball(random, head, (0, leg + trunk + 1.3 * head, 0)),
        _moved(wall(random, 0.16, random.uniform(0.18, 0.25), trunk), (0, leg, 0)),
    ]
    for side in (-1, 1):
        step, swing, spread = random.uniform(-0.25, 0.25), random.uniform(-0.4, 0.4), random.uniform(0.05, 0.5)
        parts.append(tube(random, _line((0, leg, 0.1 * side), (step, 0, 0.14 * side)), 0.08))
        shoulder, hand = (0, leg + trunk - 0.05, 0.22 * side), (swing, leg + 0.1, (0.25 + spread) * side)
        parts.append(tube(random, _line(shoulder, hand), 0.05))
    return parts


def _line(first: tuple[float, float, float], last: tuple[float, float, float]) -> Callable[[Points], Points]:
    a, b = np.array(first), np.array(last)
    return lambda t: a + t[:, None] * (b - a)


def _sofa(random: Random) -> list[Part]:
    wide, deep, seat = random.uniform(1.4, 2.2), random.uniform(0.6, 0.8), random.uniform(0.3, 0.45)
    back, arm, thick = random.uniform(0.4, 0.6), random.uniform(0.15, 0.3), random.uniform(0.12, 0.25)
    arms = [(0, (seat + arm) / 2, z * (wide / 2 + thick / 2)) for z in (-1, 1)]
    return [
        box(random, (deep, seat, wide), (0, seat / 2, 0)),
        box(random, (thick, seat + back, wide), (-deep / 2, (seat + back) / 2, 0)),
        *(box(random, (deep, seat + arm, thick), at) for at in arms),
    ]


def _stool(random: Random) -> list[Part]:
    radius, high, thick = random.uniform(0.3, 0.45), random.uniform(0.7, 1.2), random.uniform(0.04, 0.1)
    legs, spread = int(random.integers(3, 5)), random.uniform(0.7, 1.2)
    angles = 2 * np.pi * (np.arange(legs) + random.uniform()) / legs
    ends = [(np.cos(angle), np.sin(angle)) for angle in angles]
    return [
        disc(random, radius, high),
        disc(random, radius, high + thick),
        wall(random, radius, radius, thick, high),
        *(
            tube(
                random,
                _line((0.8 * radius * x, high, 0.8 * radius * z), (spread * radius * x, 0, spread * radius * z)),
                0.04,
            )
            for x, z in ends
        ),
    ]


def _vase(random: Random) -> list[Part]:
    foot, belly, neck, rim = (random.uniform(*ends) for ends in ((0.15, 0.3), (0.35, 0.6), (0.1, 0.25), (0.2, 0.4)))
    first, second, third = random.uniform(0.3, 0.6), random.uniform(0.4, 0.7), random.uniform(0.1, 0.3)
    return [
        disc(random, foot),
        wall(random, foot, belly, first),
        wall(random, belly, neck, second, first),
        wall(random, neck, rim, third, first + second),
    ]


MAKERS: dict[str, Callable[[Random], list[Part]]] = {
    "bed": _bed,
    "bench": _bench,
    "bottle": _bottle,
    "bowl": _bowl,
    "car": _car,
    "chair": _chair,
    "cone": _cone,
    "crate": _crate,
    "cylinder": _cylinder,
    "desk": _desk,
    "guitar": _guitar,
    "knot": _knot,
    "lamp": _lamp,
    "monitor": _monitor,
    "mug": _mug,
    "person": _person,
    "plane": _plane,
    "ring": _ring,
    "shelf": _shelf,
    "sofa": _sofa,
    "sphere": _sphere,
    "spring": _spring,
    "stairs": _stairs,
    "stool": _stool,
    "table": _table,
    "vase": _vase,
}
