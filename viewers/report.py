"""One page about a set of tracks: what was run, scores, plots and the least certain links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from types import ModuleType

import numpy as np

from outbid.errors import ResourceError
from outbid.scoring import Scores, score
from outbid.tracks import Tracks

from . import curves
from .judged import JudgedLinks, judge_links

_Spacing = tuple[float, float, float]

_GALLERY = 12
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1, h2 {{ line-height: 1.2; overflow-wrap: anywhere; }}
h2 {{ margin-top: 2.2rem; border-bottom: 1px solid #ddd; }}
table {{ border-collapse: collapse; margin: .5rem 0; font-size: .92em; }}
th, td {{ text-align: left; padding: .15rem 1.2rem .15rem 0; border-bottom: 1px solid #eee;
  vertical-align: top; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }}
th {{ font-weight: 600; }}
.side {{ display: flex; flex-wrap: wrap; gap: 0 3rem; }}
.wide {{ overflow-x: auto; }}
figure {{ margin: 0 0 1rem; max-width: 100%; }}
figure img {{ max-width: 100%; }}
figcaption {{ max-width: 32rem; color: #555; font-size: .9em; }}
.wide-figure figcaption {{ max-width: none; }}
</style>
</head>
<body>
"""


def report(
    tracks: Tracks,
    truth: Tracks | None = None,
    *,
    title: str = "Tracks",
    record: Mapping[str, object] | None = None,
    inputs: Mapping[str, Mapping[str, str]] | None = None,
    gate: float | None = None,
    spacing: _Spacing | None = None,
) -> str:
    """Write a page about tracks, complete in itself: no script, and nothing that is loaded.

    Parameters
    ----------
    tracks : Tracks
    truth : Tracks, optional
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

    Returns
    -------
    str
        HTML, the same for the same input. Whatever comes from a file is escaped.

    Raises
    ------
    ResourceError
        If matplotlib is not installed, or the pairs within the gate would fill the memory.
    SettingsError
        If the gate is not above 0.

    Examples
    --------
    >>> from outbid.detections import Detections
    >>> seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]])
    >>> page = report(Tracks(seen, np.array([[0, 1]])), title="a < b")
    >>> "<h1>a &lt; b</h1>" in page
    True
    """
    plots = _plots()
    scaled = spacing or spacing_of(record)
    unit = tracks.detections.unit if scaled == (1, 1, 1) else "unit of the spacing"
    scores = None if truth is None else score(tracks, truth, gate=gate)
    judged = None if truth is None or scores is None else judge_links(tracks, truth, scores.gate.distance)
    with plots.style():
        pictures = [
            *_figures(plots, tracks, judged, scaled, unit), *_worst(plots, tracks, judged, scaled),
        ]  # fmt: skip
    parts = [
        _HEAD.format(title=escape(title)), f"<h1>{escape(title)}</h1>\n",
        _what_was_run(tracks, record, inputs or {}), *_scores(scores), *pictures,
        f"<p>Made by Outbid {escape(version('outbid'))}.</p>\n</body>\n</html>\n",
    ]  # fmt: skip
    return "".join(parts)


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


def _plots() -> ModuleType:
    try:
        from . import plots
    except ImportError as error:
        raise ResourceError(
            f"A report needs matplotlib ({error}). Install it: pip install 'outbid[report]'."
        ) from None
    return plots


# ---------------------------------------------------------------- parts of the page


def _what_was_run(
    tracks: Tracks, record: Mapping[str, object] | None, inputs: Mapping[str, Mapping[str, str]]
) -> str:
    lengths = curves.track_lengths(tracks)
    facts = {
        "detections": len(tracks.detections),
        "frames": tracks.detections.frame_count,
        "links": len(tracks.links),
        "tracks": tracks.track_count,
        "median track length": f"{np.median(lengths):g}" if len(lengths) else "",
        "divisions": int((tracks.successors >= 2).sum()),
        "merges": int((tracks.predecessors >= 2).sum()),
        "unit of the positions": tracks.detections.unit,
    } | {f"file of {what}": f"{file['name']}, sha256 {file['sha256']}" for what, file in inputs.items()}
    run = "<p>The tracks carry no run record.</p>\n" if record is None else _pairs(flat(record))
    return f"<h2>Tracks</h2>\n{_pairs(facts.items())}<h2>What was run</h2>\n{run}"


def _scores(scores: Scores | None) -> Iterator[str]:
    if scores is None:
        return
    shown = [line.split() for line in str(scores).splitlines()]
    third = -(-len(shown) // 3)
    yield '<h2>Scores</h2>\n<div class="side">\n'
    for begin in range(0, len(shown), max(third, 1)):
        yield _pairs((name, value) for name, value in shown[begin : begin + third])
    yield "</div>\n" + "".join(
        f"<p>{escape(said)}</p>\n" for said in (str(scores.gate), scores.remark) if said
    )
    yield "<details><summary>How they were taken</summary>\n"
    yield _pairs(flat(scores.provenance)) + "</details>\n"


def _figures(
    plots: ModuleType, tracks: Tracks, judged: JudgedLinks | None, spacing: _Spacing, unit: str
) -> Iterator[str]:
    if len(tracks.detections) == 0:
        yield "<p>There are no detections to draw.</p>\n"
        return
    yield "<h2>Plots</h2>\n"
    picture = plots.image(plots.overview(tracks, unit, spacing), "png")
    yield _figure(picture, "All tracks, coloured by the frame in which each link starts.", wide=True)
    yield '<div class="side">\n'
    if judged is not None:
        yield _figure(
            plots.image(plots.accuracy(curves.accuracy_over_time(judged))),
            "Link accuracy over time. Precision: the share of the found links that is right; recall: the "
            "share of the true links that was found; by the frame in which a link starts.",
        )
    yield _figure(plots.image(plots.detections(*curves.detections_a_frame(tracks))), "Detections a frame.")
    yield _figure(
        plots.image(plots.steps(curves.step_lengths(tracks, spacing), unit)),
        "Step lengths. A sharp cut at the right end shows that the gate is too narrow.",
    )
    yield _figure(
        plots.image(plots.displacement(curves.mean_square_displacement(tracks, spacing), unit)),
        "Mean square displacement of all tracks together.",
    )
    yield _figure(
        plots.image(plots.lengths_of_tracks(curves.track_lengths(tracks))),
        "Track lengths. A detection without a link is a track of 1.",
    )
    yield "</div>\n"


def _worst(plots: ModuleType, tracks: Tracks, judged: JudgedLinks | None, spacing: _Spacing) -> Iterator[str]:
    worst = curves.worst_links(tracks, _GALLERY, spacing)
    if len(worst.row) == 0:
        return
    least = "of least" if worst.measure in ("probability", "margin") else "of greatest"
    caption = (
        f"The links {least} {worst.measure}, seen along z: circles are the detections of the frame in "
        "which the link starts, crosses those of the frame in which it ends, grey lines the other links."
    ) + ("" if judged is None else " Green dots are the true links.")
    picture = plots.image(plots.gallery(tracks, worst, spacing, judged))
    yield f"<h2>Links to look at</h2>\n{_figure(picture, caption, wide=True)}"
    header = ["frame", "z", "y", "x", "to frame", "z", "y", "x", worst.measure]
    rows = [[*_place(tracks, source), *_place(tracks, target)] for source, target in tracks.links[worst.row]]
    for row, link, value in zip(rows, worst.row, worst.value, strict=True):
        row.append(f"{value:.4g}")
        if judged is not None:
            row.append("right" if judged.right[link] else "wrong")
    yield _table(header if judged is None else [*header, "by the truth"], rows)


def _place(tracks: Tracks, row: int) -> list[str]:
    return [str(tracks.detections.frame[row]), *(f"{value:.6g}" for value in tracks.detections.position[row])]


# ---------------------------------------------------------------- plain HTML


def flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """A nested record as pairs of dotted name and text.

    Examples
    --------
    >>> list(flat({"settings": {"spacing": [1, 2], "seed": None}}))
    [('settings.spacing', '1, 2'), ('settings.seed', 'none')]
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        yield name, ", ".join(map(_text, value))
    else:
        yield name, _text(value)


def _text(value: object) -> str:
    """A plain value, numbers as short as they can be read."""
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _pairs(rows: Iterable[tuple[str, object]]) -> str:
    cells = (f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>\n" for name, value in rows)
    return f"<table>\n{''.join(cells)}</table>\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}</table></div>\n'


def _figure(uri: str, caption: str, *, wide: bool = False) -> str:
    alternative = escape(caption.split(".")[0])
    kind = ' class="wide-figure"' if wide else ""
    return (
        f'<figure{kind}><img src="{uri}" alt="{alternative}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )
