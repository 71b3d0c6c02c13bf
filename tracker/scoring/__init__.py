"""Scores of tracks against the truth: detections are matched once, then each file computes one family.

`links` scores single links, `particles` gives the scores of the ISBI 2012 challenge, and `identity` scores
whether a track stays on the same particle; `divisions` and `merges` score these events. A link score hides
how long a particle is followed: report an identity score together with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from numbers import Real
from typing import Any

from ..errors import ResourceError, SettingsError, refuse_unlike
from ..formats.coerce import TracksLike, tracks_of
from ..particles.html import html_table
from ..particles.tracks import Tracks
from .divisions import division_scores
from .gate import Gate, gate_for
from .identity import identity_scores
from .links import link_scores
from .matched import MatchedTracks, pair_up
from .merges import merge_scores
from .particles import particle_scores, skipped_frames
from .unmatched import exchanged_axes, unlike_lengths, why_nothing

__all__ = ["FAMILIES", "Scores", "score"]

FAMILIES: Mapping[str, Callable[[MatchedTracks], dict[str, float]]] = {
    "links": link_scores,
    "particles": particle_scores,
    "identity": identity_scores,
    "divisions": division_scores,
    "merges": merge_scores,
}
"""Families of scores by name."""

_WHY = "unmatched_because"
"""Key in the provenance with the reason why few or no detections were matched, if there is one."""


@dataclass(frozen=True, repr=False)
class Scores:
    """Scores and where they come from; printed, they are a table.

    Parameters
    ----------
    values : dict of str to float
        NaN where a score is 0 / 0. Counts are whole numbers; rmse is in the unit of the positions. All
        other scores are 1 for perfect tracks, except alpha, beta and jsc where true tracks skip frames.
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

    def __getitem__(self, name: str) -> float:
        """Value of the score of the given name."""
        return self.values[name]

    def __str__(self) -> str:
        shown = self.shown()
        left = max((len(name) for name in shown), default=0)
        right = max((len(value) for value in shown.values()), default=0)
        return "\n".join(f"{name:<{left}}  {value:>{right}}" for name, value in shown.items())

    def _repr_html_(self) -> str:
        """The table that is printed, for notebooks."""
        return html_table("Scores", self.shown())

    def __repr__(self) -> str:
        first = [f"{name} {value}" for name, value in self.shown().items()][:6]
        return f"<Scores: {', '.join(first)}, …>"

    def to_dataframe(self) -> Any:
        """A pandas DataFrame of one row, with a column for each score: runs stack with `pandas.concat`.

        Raises
        ------
        ResourceError
            If pandas is not installed.
        """
        import pyarrow as pa

        from ..particles.tables import pandas_of

        return pandas_of(pa.table({name: [value] for name, value in self.values.items()}))

    @property
    def remark(self) -> str:
        """Text with reasons for low scores, and with scores that the table leaves out; may be empty.

        Examples
        --------
        >>> Scores({"division_f1": float("nan"), "n_true_divisions": 0, "n_found_divisions": 0}, {}).remark
        'Neither the tracks nor the truth have divisions, so divisions have no score.'
        """
        messages = [str(self.provenance[_WHY])] if _WHY in self.provenance else []
        units = [self.provenance[side]["unit"] for side in ("tracks", "truth") if side in self.provenance]
        if not messages and len({*units}) > 1:
            messages.append(f"The tracks are in {units[0]}, the truth in {units[1]}: compared as they are.")
        skipped = self.provenance.get("skipped_frames", 0)
        if skipped and not messages:
            messages.append(
                f"True tracks skip {skipped} frame{'s' * (skipped > 1)}; alpha, beta and jsc count each as "
                "missed unless the tracks have it, as the program of the ISBI challenge does."
            )
        over = self.values.get("n_correct_links_over_missed_frames", 0)
        if over:
            messages.append(
                f"{over:,} right link{'s' * (over > 1)} over a missed frame; challenges count such links as "
                'wrong: --link-rule edge (Python: link_rule="edge").'
            )
        if self._without("division"):
            messages.append("Neither the tracks nor the truth have divisions, so divisions have no score.")
        return " ".join(messages)

    @property
    def gate(self) -> Gate:
        """The gate, and how it was chosen."""
        made = self.provenance
        return Gate(made["gate"], made["truth"]["unit"], made["gate_from"])

    def _without(self, kind: str) -> bool:
        """Whether neither the found nor the true tracks have events of this kind."""
        return [self.values.get(f"n_{side}_{kind}s") for side in ("true", "found")] == [0, 0]

    def shown(self) -> dict[str, str]:
        """Counts as they are, other scores to four places; without divisions and merges where none are."""
        left_out = [kind for kind in ("division", "merge") if self._without(kind)]
        return {
            name: f"{value:d}" if isinstance(value, int) else f"{value:.4f}"
            for name, value in self.values.items()
            if not any(kind in name for kind in left_out) and (value or "over_missed" not in name)
        }


def score(
    tracks: TracksLike,
    truth: TracksLike,
    *,
    gate: float | None = None,
    families: Sequence[str] = tuple(FAMILIES),
    link_rule: str = "particle",
    progress: Callable[[int, int], object] | None = None,
) -> Scores:
    """Score tracks against the truth.

    If both hold the same detections (in any order inside a frame), each is paired with itself. If found
    and true tracks have different detections, the detections of each frame are paired by distance. The
    scores of the ISBI challenge (`particles`) always pair detections by distance.

    Parameters
    ----------
    tracks : Tracks, TrackingRun, path, data frame, mapping or array
        What was found; see `outbid.formats.coerce.tracks_of` for what holds tracks.
    truth : the same
        What is true, in the same unit and with the same frame numbers.
    gate : float, optional
        Detections this far apart or farther are never the same, in the unit of the positions. Default: half
        of the median distance from a true detection to the nearest in its frame (`gate_for`).
    families : sequence of {"links", "particles", "identity", "divisions", "merges"}
        Which scores to compute.
    link_rule : {"particle", "edge"}
        Which links are right: with "particle", also those over frames in which `tracks` lack the particle;
        with "edge", as challenges count, only those that the truth has.
    progress : callable, optional
        Given the number of families done, and of all, before each of them; what it raises ends the scoring.

    Returns
    -------
    Scores

    Raises
    ------
    TypeError
        If either holds no tracks.
    SettingsError
        If the gate is not positive and finite, or a family or rule is unknown.
    ResourceError
        If the gate is so wide that the pairs within it would fill the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1, 2], [[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    >>> truth, tracks = Tracks(seen, np.array([[0, 1], [1, 2]])), Tracks(seen, np.array([[0, 1]]))
    >>> found = score(tracks, truth)
    >>> round(found.values["link_f1"], 3), found.values["alpha"], found.values["idf1"]
    (0.667, 0.6666666666666666, 0.6666666666666666)
    """
    tracks, truth = tracks_of(tracks), tracks_of(truth, "truth")
    refuse_unlike(Real, "a number", {"gate": gate})
    if isinstance(families, str) or not isinstance(families, Sequence):
        raise SettingsError(f"families is {families!r}; it must be a list of: {', '.join(FAMILIES)}.")
    unknown = [name for name in families if not isinstance(name, str) or name not in FAMILIES]
    if unknown:
        raise SettingsError(f"There are no scores {unknown[0]!r}. Choose from: {', '.join(FAMILIES)}.")
    truth = replace(truth, detections=truth.detections.placed())
    tracks = replace(tracks, detections=tracks.detections.in_unit(truth.detections.unit))
    reach = gate_for(gate, truth)
    matched = pair_up(tracks, truth, reach.distance, link_rule)
    values: dict[str, float] = {}
    try:
        for done, name in enumerate(families):
            if progress is not None:
                progress(done, len(families))
            values |= FAMILIES[name](matched)
        reason = _why_unmatched(matched)
    except ResourceError as error:
        raise ResourceError(f"{error} {_lower(tracks, truth)}") from None
    where = _provenance(matched, families) | {"gate_from": reach.origin}
    if "particles" in families:
        where["skipped_frames"] = skipped_frames(truth)
    if reason:
        where[_WHY] = reason
    return Scores(values, where)


def _why_unmatched(matched: MatchedTracks) -> str:
    """The reason why no detections, or less than half of them, were matched; empty if none is found."""
    found, true = matched.tracks.detections, matched.truth.detections
    hits = len(true) if matched.known is not None else int((matched.true_of >= 0).sum())
    if hits == 0 and len(found) + len(true):
        return why_nothing(found, true, matched.gate)
    if 2 * hits < min(len(found), len(true)):
        return exchanged_axes(found, true, matched.gate)
    return ""


def _lower(tracks: Tracks, truth: Tracks) -> str:
    """Advice for a gate that has too many pairs within it."""
    usual = gate_for(None, truth).distance
    unlike = unlike_lengths(tracks.detections, truth.detections)
    return f"That is the gate of the scores; from the truth it would be {usual:g}. {unlike}".strip()


def _provenance(matched: MatchedTracks, families: Sequence[str]) -> dict[str, Any]:
    def sizes(of: Tracks) -> dict[str, object]:
        counts = {"detections": len(of.detections), "links": len(of.links), "tracks": of.track_count}
        return counts | {"unit": of.detections.unit}

    pairing = "by distance" if matched.known is None else "same detections"
    return {
        "version": version("outbid"), "gate": matched.gate, "families": list(families),
        "link_rule": matched.link_rule, "pairing": pairing,
        "tracks": sizes(matched.tracks), "truth": sizes(matched.truth),
    }  # fmt: skip
