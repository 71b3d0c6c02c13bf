"""Scores of tracks against the truth: matched once, then one file a family of scores.

`links` asks which links are right, `particles` what the ISBI 2012 challenge asks, and `identity`
whether what is followed stays the same particle; `divisions` and `merges` ask which of those are found. A
link score hides how long a particle is followed: report an identity score beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from typing import Any

from ..errors import SettingsError
from ..tracks import Tracks, refuse_others
from .divisions import division_scores
from .identity import identity_scores
from .links import link_scores
from .matched import MatchedTracks, pair_up
from .merges import merge_scores
from .particles import particle_scores

__all__ = ["FAMILIES", "Scores", "score"]

FAMILIES: Mapping[str, Callable[[MatchedTracks], dict[str, float]]] = {
    "links": link_scores,
    "particles": particle_scores,
    "identity": identity_scores,
    "divisions": division_scores,
    "merges": merge_scores,
}
"""Families of scores by name."""


@dataclass(frozen=True)
class Scores:
    """Scores and where they come from; printed, they are a table.

    Parameters
    ----------
    values : dict of str to float
        NaN where a score is 0 / 0. Counts are whole numbers; rmse is in the unit of the positions, all
        other scores are 1 for perfect tracks.
    provenance : dict
        Version, settings, and what was compared; plain values, ready for JSON.

    Examples
    --------
    >>> print(Scores({"link_f1": 0.5, "n_true_links": 12, "mota": float("nan")}, {}))
    link_f1       0.5000
    n_true_links      12
    mota             nan
    """

    values: dict[str, float]
    provenance: dict[str, Any]

    def __str__(self) -> str:
        shown = self._shown()
        left = max((len(name) for name in shown), default=0)
        right = max((len(value) for value in shown.values()), default=0)
        return "\n".join(f"{name:<{left}}  {value:>{right}}" for name, value in shown.items())

    def _repr_html_(self) -> str:
        """The table that is printed, for notebooks."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in self._shown().items()
        )
        return f"<table><caption>Scores</caption>{rows}</table>"

    @property
    def remark(self) -> str:
        """A sentence on scores that the table leaves out; empty if it shows all.

        Examples
        --------
        >>> Scores({"division_f1": float("nan"), "n_true_divisions": 0, "n_found_divisions": 0}, {}).remark
        'Neither the tracks nor the truth have divisions: there are none to score.'
        """
        if not self._without("division"):
            return ""
        return "Neither the tracks nor the truth have divisions: there are none to score."

    def _without(self, kind: str) -> bool:
        """Whether there are none of a kind to score."""
        return [self.values.get(f"n_{side}_{kind}s") for side in ("true", "found")] == [0, 0]

    def _shown(self) -> dict[str, str]:
        """Counts as they are, other scores to four places; without divisions and merges where none are."""
        left_out = [kind for kind in ("division", "merge") if self._without(kind)]
        return {
            name: f"{value:d}" if isinstance(value, int) else f"{value:.4f}"
            for name, value in self.values.items()
            if not any(kind in name for kind in left_out)
        }


def score(
    tracks: Tracks,
    truth: Tracks,
    *,
    gate: float = 5.0,
    families: Sequence[str] = tuple(FAMILIES),
    progress: Callable[[int, int], object] | None = None,
) -> Scores:
    """Score tracks against the truth.

    If both hold the same detections (in any order inside a frame), each is paired with itself.
    Otherwise the detections of each frame are paired by distance. `particles` pairs by distance in
    both cases, as the ISBI challenge does.

    Parameters
    ----------
    tracks : Tracks
        What was found.
    truth : Tracks
        What is true, in the same unit and with the same frame numbers.
    gate : float
        Detections this far apart or farther are never the same, in the unit of the positions.
    families : sequence of {"links", "particles", "identity", "divisions", "merges"}
        Which scores to compute.
    progress : callable, optional
        Given the number of families done, and of all, before each of them; what it raises ends the scoring.

    Returns
    -------
    Scores

    Raises
    ------
    SettingsError
        If the gate is not positive and finite, or a family is unknown.
    ResourceError
        If the gate is so wide that the pairs within it would fill the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> truth, tracks = Tracks(seen, np.array([[0, 1], [1, 2]])), Tracks(seen, np.array([[0, 1]]))
    >>> found = score(tracks, truth)
    >>> round(found.values["link_f1"], 3), found.values["alpha"], found.values["idf1"]
    (0.667, 0.6666666666666666, 0.6666666666666666)
    """
    refuse_others({"tracks": tracks, "truth": truth}, "score")
    if not (math.isfinite(gate) and gate > 0):
        raise SettingsError(f"The gate is {gate}; it must be a distance above 0.")
    unknown = [name for name in families if name not in FAMILIES]
    if unknown:
        raise SettingsError(f"There are no scores {unknown[0]!r}. Choose from: {', '.join(FAMILIES)}.")
    matched = pair_up(tracks, truth, float(gate))
    values: dict[str, float] = {}
    for done, name in enumerate(families):
        if progress is not None:
            progress(done, len(families))
        values |= FAMILIES[name](matched)
    return Scores(values, _provenance(matched, families))


def _provenance(matched: MatchedTracks, families: Sequence[str]) -> dict[str, Any]:
    return {
        "version": version("outbid"),
        "gate": matched.gate,
        "families": list(families),
        "pairing": "by distance" if matched.known is None else "same detections",
    } | {
        side: {
            "detections": len(given.detections),
            "links": len(given.links),
            "tracks": given.track_count,
            "unit": given.detections.unit,
        }
        for side, given in (("tracks", matched.tracks), ("truth", matched.truth))
    }
