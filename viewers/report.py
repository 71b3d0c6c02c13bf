"""A report page about tracks: reliability, scores, pictures, and links to check."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files
from types import ModuleType
from typing import Any

import numpy as np

from outbid.errors import ResourceError, refuse_unlike
from outbid.formats.coerce import TracksLike, tracks_of
from outbid.formats.images.frames import Images
from outbid.particles.calibration import Calibration, checked_spacing
from outbid.particles.reliability import DOUBTFUL, sentence_on, warning_on
from outbid.particles.tracks import Tracks
from outbid.scoring import Scores, score

from . import curves
from .crops import Crops
from .explained import why
from .headline import LABELS, meaning
from .judged import JudgedLinks, judge_links
from .lineage import trees
from .projections import colours, projections

_Spacing = tuple[float, float, float]
_Context = dict[str, Any]

_GALLERY = 12
_MOST_VALUES = 8
"""Longest list of numbers shown in the details; longer lists are shown as count and range."""


def report(
    tracks: TracksLike,
    truth: TracksLike | None = None,
    *,
    title: str = "Tracks",
    record: Mapping[str, object] | None = None,
    inputs: Mapping[str, Mapping[str, str]] | None = None,
    gate: float | None = None,
    spacing: _Spacing | None = None,
    movie: Images | None = None,
) -> str:
    """Write a page about tracks, complete in itself: nothing is loaded, and its one script zooms.

    Parameters
    ----------
    tracks : Tracks, TrackingRun, path, data frame, mapping or array
    truth : the same, optional
        To score the tracks against, in the same unit and with the same frame numbers.
    title : str
        What the page is called.
    record : mapping, optional
        The run record of the tracks, as `outbid.read_record` gives it.
    inputs : mapping, optional
        Name and sha256 of the files, by what they are.
    gate : float, optional
        Of the scores, in the unit of the positions. Default: half of the usual distance between neighbours in
        the truth.
    spacing : (float, float, float), optional
        By which positions are multiplied before lengths are taken. Default: that of the record, else 1.
        Scores take the positions as they are, as `outbid score` does.
    movie : Images, optional
        The page shows a part of it around each uncertain link.

    Returns
    -------
    str
        HTML, the same for the same input. Whatever comes from a file is escaped.

    Raises
    ------
    ResourceError
        If matplotlib or jinja2 is not installed, or the pairs within the gate would fill the memory.
    SettingsError
        If the gate is not above 0, or the units of the movie and of the positions do not fit together.

    Examples
    --------
    >>> from outbid.particles.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    >>> page = report(Tracks(seen, np.array([[0, 1]])), title="a < b")
    >>> "<h1>a &lt; b</h1>" in page
    True
    """
    jinja2, plots = _needed()
    refuse_unlike(Mapping, "a mapping", {"record": record, "inputs": inputs})
    for name, stated in (inputs or {}).items():
        refuse_unlike(Mapping, "a mapping of name and sha256", {str(name): stated})
    refuse_unlike(Images, "what open_images() returns", {"movie": movie})
    refuse_unlike(str, "a text", {"title": title})
    spacing = None if spacing is None else checked_spacing(spacing)
    tracks = tracks_of(tracks)
    known = None if truth is None else tracks_of(truth, "truth")
    tracked = (record or {}).get("command", "track") == "track"
    scaled = spacing or spacing_of(record if tracked else None)
    tracks = replace(tracks, detections=tracks.detections.placed())
    unit = tracks.detections.unit if scaled == (1, 1, 1) else "unit of the spacing"
    of = replace(tracks.detections.calibration, unit=unit, spacing=scaled)
    scores = None if known is None else score(tracks, known, gate=gate)
    judged = None if known is None or scores is None else judge_links(tracks, known, scores.gate.distance)
    script = _packed("report.js")
    context: _Context = {
        "title": title, "version": version("outbid"), "unit": unit, "recorded": record is not None,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **_about(tracks), **_scored(scores), **_drawn(tracks, of),
        "groups": [group for group in _details(record, scores, inputs or {}) if group["rows"]],
    }  # fmt: skip
    with plots.style():
        context["plots"] = [
            {"uri": plots.image(figure), "caption": caption}
            for figure, caption in _figures(plots, tracks, judged, of)
        ]
        crops = None if movie is None else Crops.of(movie, tracks.detections, of)
        context["worst"] = _worst(plots, tracks, judged, of, crops)
    made = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    page = made.from_string(_packed("report.html.jinja"))
    # The script is ours, and its hash is in the page's policy: it must not be escaped.
    return str(page.render(context | {"script": jinja2.utils.markupsafe.Markup(script)}))


def spacing_of(record: Mapping[str, object] | None) -> _Spacing:
    """Size of a voxel along z, y, x in a run record; 1 if it states none.

    Examples
    --------
    >>> spacing_of({"settings": {"spacing": [2, 0.5, 0.5]}}), spacing_of({"settings": {"spacing": "wide"}})
    ((2.0, 0.5, 0.5), (1.0, 1.0, 1.0))
    """
    settings = (record or {}).get("settings")
    size = settings.get("spacing") if isinstance(settings, Mapping) else None
    if isinstance(size, Sequence) and len(size) == 3 and all(isinstance(one, int | float) for one in size):
        z, y, x = (float(one) for one in size)
        if all(math.isfinite(one) and one > 0 for one in (z, y, x)):
            return z, y, x
    return 1.0, 1.0, 1.0


def _needed() -> tuple[Any, ModuleType]:
    try:
        import jinja2
        import jinja2.utils

        from . import plots
    except ImportError as error:
        raise ResourceError(
            f"A report needs matplotlib and jinja2 ({error}). Install them: pip install 'outbid[report]'."
        ) from None
    return jinja2, plots


def _packed(name: str) -> str:
    return (files("outbid.viewers") / name).read_text("utf-8")


# ---------------------------------------------------------------- parts of the page


def _about(tracks: Tracks) -> _Context:
    """Top of the page: the summary sentence, the warning, and the main facts."""
    seen, lengths = tracks.detections, np.bincount(tracks.track_id)
    divisions, merges = int((tracks.successors >= 2).sum()), int((tracks.predecessors >= 2).sum())
    facts = [f"{seen.frame_count:,} frames", f"positions in {seen.unit}"]
    facts += [] if seen.calibration.interval is None else [f"{seen.calibration.interval:g} s a frame"]
    if len(lengths):
        facts.append(f"median track length {np.median(lengths):g} detections")
    facts += [f"{count:,} {what}" for count, what in ((divisions, "divisions"), (merges, "merges")) if count]
    return {
        "summary": sentence_on(tracks), "warning": warning_on(tracks), "facts": facts,
        "detections": len(seen), "first_frame": seen.first_frame,
        "last_frame": seen.first_frame + max(seen.frame_count - 1, 0),
    }  # fmt: skip


def _scored(scores: Scores | None) -> _Context:
    if scores is None:
        return {"scores": [], "score_remarks": []}
    shown = scores.shown()
    cards = [(label, shown[name], meaning(name)) for name, label in LABELS.items() if name in shown]
    return {"scores": cards, "score_remarks": [str(scores.gate), *filter(None, [scores.remark])]}


def _drawn(tracks: Tracks, of: Calibration) -> _Context:
    """Pictures of the projections and lineage trees."""
    found, families = trees(tracks)
    return {
        "views": projections(tracks, of), "colours": colours(), "trees": found,
        "more_trees": families if families > len(found) else 0,
    }  # fmt: skip


def _figures(
    plots: ModuleType, tracks: Tracks, judged: JudgedLinks | None, of: Calibration
) -> Iterator[tuple[Any, str]]:
    """Plots of the report, each with its caption."""
    if len(tracks.detections) == 0:
        return
    if judged is not None:
        yield (
            plots.accuracy(*curves.accuracy_over_time(judged)),
            "Link accuracy over time. Precision is the share of the links found that are right, recall the "
            "share of the true links that were found, by the frame in which a link starts.",
        )
    frame, count = curves.detections_a_frame(tracks)
    yield plots.counts(frame, {"detections": count}), "Detections per frame."
    frame, starts, ends = curves.starts_and_ends(tracks)
    yield (
        plots.counts(frame, {"starts": starts, "ends": ends}),
        "Track starts and ends per frame. A peak at one frame indicates a fault of the recording.",
    )
    yield (
        plots.speed_histogram(curves.step_lengths(tracks, of), of),
        "Speeds from frame to frame. A sharp cut at the right end shows that the gate is too narrow.",
    )
    yield (
        plots.speeds(curves.speed_over_time(tracks, of), of),
        "Speed over time. The line is the median of all links that start in a frame; the band holds the "
        "middle half.",
    )
    yield (
        plots.displacement(curves.mean_square_displacement(tracks, of), of),
        "Mean square displacement of all tracks together, and the fit of `outbid measure`: "
        "a power of the lag, and localisation error.",
    )
    yield (
        plots.lengths_of_tracks(np.bincount(tracks.track_id)),
        "Track lengths, in detections. A detection without links is a track of length 1.",
    )


def _worst(
    plots: ModuleType,
    tracks: Tracks,
    judged: JudgedLinks | None,
    of: Calibration,
    crops: Crops | None,
) -> _Context | None:
    worst = curves.worst_links(tracks, _GALLERY, of)
    if len(worst.row) == 0:
        return None
    caption = (
        "The thick line is the link, seen along z. Circles are detections of the frame in which it starts, "
        "crosses those of the frame in which it ends; thin lines are the other links."
    ) + ("" if judged is None else " Green dots are the true links.")
    if crops is not None:
        caption += " The image is red in the frame in which the link starts, green in that in which it ends."
    header = ["track", "frame", "z", "y", "x", "to frame", "z", "y", "x", worst.measure, "remark"]
    seen, rows = tracks.detections, []
    for link, value in zip(worst.row.tolist(), worst.value, strict=True):
        ends = tracks.links[link]
        places = [[str(seen.frame[row]), *(f"{x:.6g}" for x in seen.position[row])] for row in ends]
        said = [f"{value:.3g}", why(tracks, link, of)]
        verdict = [] if judged is None else ["right" if judged.right[link] else "wrong"]
        rows.append([str(tracks.track_id[ends[1]]), *places[0], *places[1], *said, *verdict])
    return {
        "uri": plots.image(plots.gallery(tracks, worst, of, judged, crops)), "caption": caption,
        "meaning": _meaning(worst), "rows": rows,
        "header": header if judged is None else [*header, "by the truth"],
    }  # fmt: skip


def _meaning(worst: curves.WorstLinks) -> str:
    """Text above the least certain links: how they were selected, and why they can be wrong."""
    if worst.measure != "probability":
        least = "smallest" if worst.measure == "margin" else "largest"
        return f"The {len(worst.row)} links with the {least} {worst.measure}."
    text = f"The {len(worst.row)} links with the smallest probability."
    if worst.value[0] < DOUBTFUL:
        text += (
            " A link below 0.5 is more likely wrong than right. It is chosen all the same where every "
            "alternative, including no link, would lower the probability of the set of links as a whole."
        )
    return text


# ---------------------------------------------------------------- the details


def _details(
    record: Mapping[str, object] | None, scores: Scores | None, inputs: Mapping[str, Mapping[str, str]]
) -> Iterator[_Context]:
    """Groups of names and values, folded at the end of the page."""
    rest = dict(record or {})
    learned = rest.pop("learned", {})
    yield {"title": "What was learned", "rows": list(flat(learned))}
    yield {"title": "How the tracks were made", "rows": list(flat(rest))}
    yield {
        "title": "Files",
        "rows": [(what, f"{file['name']}, sha256 {file['sha256']}") for what, file in inputs.items()],
    }
    if scores is not None:
        yield {"title": "All scores", "rows": list(scores.shown().items())}
        yield {"title": "How the scores were taken", "rows": list(flat(scores.provenance))}


def flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """A nested record as pairs of dotted name and text; a long list of numbers as its range.

    Examples
    --------
    >>> list(flat({"settings": {"spacing": [1, 2], "seed": None}}))
    [('settings.spacing', '1, 2'), ('settings.seed', 'none')]
    >>> list(flat({"step_scale": [0.5] * 139 + [2.0], "curve": [[1, 2]] * 99}))
    [('step_scale', '140 values from 0.5 to 2'), ('curve', '99 values')]
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, _text(value)


def _text(value: object) -> str:
    """A value as text, numbers in their shortest readable form; a long list as its count and range."""
    if not isinstance(value, list | tuple):
        return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    if len(value) <= _MOST_VALUES and not any(isinstance(one, list | tuple | Mapping) for one in value):
        return ", ".join(map(_text, value))
    numbers = all(isinstance(one, int | float) for one in value)
    return f"{len(value)} values" + (f" from {_text(min(value))} to {_text(max(value))}" if numbers else "")
