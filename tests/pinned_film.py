"""A film with many wrong links, the models that are held of it, and pins on its detections."""

from functools import cache

from accuracy.film import View, bordered, cast
from accuracy.walkers import diffusing

from outbid import Detections, TrackingSettings, Tracks
from outbid.edit.proofreading import FrozenModel, hold
from outbid.pins import Pin

WAYS = {"gated": TrackingSettings(max_distance=0.8, max_gap=2), "learned": TrackingSettings()}


@cache
def film() -> Tracks:
    """Particles in two dimensions, some missed, with clutter: many links are wrong."""
    the = cast([59, 0], count=60, frames=8, axes=2)
    return bordered(the, the.start + diffusing(the, 0.24), View((0.02,), 0.05, 0.03))


@cache
def held(way: str, workers: int = 1) -> FrozenModel:
    return hold(film().detections, WAYS[way], workers=workers)


def pin(kind: str, *rows: int, seen: Detections | None = None) -> Pin:
    seen = film().detections if seen is None else seen
    return Pin(kind, tuple((int(seen.frame[row]), tuple(seen.position[row].tolist())) for row in rows))


def same(one: Tracks, other: Tracks) -> bool:
    """Whether all that is written of two tracks is the same to the last bit."""
    return one.links.tobytes() == other.links.tobytes() and all(
        values.tobytes() == other.measures[name].tobytes() for name, values in one.measures.items()
    )
