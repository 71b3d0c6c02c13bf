"""The links of a whole movie with a gate: frame to frame, then over gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..compute.arrays import free_device_memory, free_memory, to_device
from ..compute.timing import lap
from ..particles.detections import Detections
from ..settings.tracking import TrackingSettings
from .gaps import close_gaps
from .linking import LinkCosts, Links, link_frames
from .pins import held_in


def gated_links(
    detections: Detections,
    used: TrackingSettings,
    workers: int,
    progress: Callable[[int, int], None] | None = None,
    cache: dict[tuple[int, int], Links] | None = None,
) -> Links:
    """Link frame to frame within the gate that is set, then over gaps, on the device that is set."""
    costs, gap_costs = costs_of(used)
    gap = used.max_gap or 0
    position = detections.position if used.spacing == (1, 1, 1) else detections.position * used.spacing
    place = to_device if used.device == "gpu" else np.asarray
    if used.stated:
        gates = costs.max_distance, gap_costs.max_distance
        pins = held_in(used.pins_in(detections), detections, position, gates, gap)
        costs, gap_costs = (replace(each, pins=pins) for each in (costs, gap_costs))
    memory = int(0.8 * (free_device_memory() if used.device == "gpu" else free_memory()))
    links = link_frames(
        detections, position, costs, place=place, workers=workers, progress=progress, memory=memory,
        cache=cache,
    )  # fmt: skip
    lap("linking")
    links = close_gaps(
        detections, position, links, gap, gap_costs, place=place, workers=workers, memory=memory
    )
    if gap:
        lap("gaps")
    return links


def costs_of(used: TrackingSettings) -> tuple[LinkCosts, LinkCosts]:
    """Costs of links from frame to frame, and over gaps, with a given `max_distance`."""
    assert used.max_distance is not None
    costs = LinkCosts(
        used.max_distance, used.cost, used.unmatched_cost, used.solver, used.exact_margins, used.periodic
    )
    # A gap has a gate of its own, and so an unmatched cost of its own unless one was set.
    return costs, costs if used.gap_distance is None else replace(costs, max_distance=used.gap_distance)
