"""Plots of what was measured: mean square displacement with fit, autocorrelation, speeds, movies, lineage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outbid.errors import ResourceError, SettingsError
from outbid.formats.files.outputs import write_whole
from outbid.measuring import Measures

from .lineage import Spans, Tree, trees_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "msd": "Mean square displacement",
    "velocity_autocorrelation": "Velocity autocorrelation",
    "speed_distribution": "Speeds",
}


PLOTS = (".png", ".svg", ".pdf")
"""Kinds of files of a plot, by their suffixes."""


def plot(found: Measures, columns: int | None = None) -> Any:
    """A matplotlib figure: mean square displacement with fit, autocorrelation, speeds, the largest lineage.

    If groups have several movies, another panel shows their tracks (small) and the means of movies (large).

    Parameters
    ----------
    found : Measures
    columns : int, optional
        Panels beside each other. Default: all of them.

    Raises
    ------
    ResourceError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure

        from .plots import COLOURS, style
    except ImportError:
        raise ResourceError("A plot needs matplotlib. Install it: pip install 'outbid[report]'.") from None
    rows = found.curves.to_pylist()
    names = list(dict.fromkeys(row["group"] for row in rows))
    with style():
        tree, unit_of_time = _largest_tree(found)
        replicated = found.movies.num_rows > found.groups.num_rows
        panels = len(_TITLES) + replicated + (tree is not None)
        beside = min(columns or panels, panels)
        rows_of_panels = -(-panels // beside)
        figure = Figure((4 * beside, 3.5 * rows_of_panels), layout="constrained")
        every = figure.subplots(rows_of_panels, beside, squeeze=False).ravel()
        for axes in every[panels:]:
            axes.set_axis_off()
        if replicated:
            _draw_movies(every[len(_TITLES)], found)
        if tree is not None:
            _draw_tree(every[panels - 1], tree, unit_of_time, COLOURS[0])
        for axes, (curve, title) in zip(every, _TITLES.items(), strict=False):
            some = [row for row in rows if row["curve"] in (curve, f"{curve}_fit")]
            for number, name in enumerate(names):
                _draw(axes, [row for row in some if row["group"] == name], COLOURS[number % 8])
            unit = some[0] if some else {"x_unit": "", "value_unit": ""}
            axes.set(title=title, xlabel=_label(curve, unit["x_unit"]), ylabel=_typeset(unit["value_unit"]))
            if curve == "msd" and some:
                _on_logarithms(axes)
        if len(names) > 1:
            figure.axes[0].legend(frameon=False)
    return figure


def write_plot(path: Path, found: Measures, *, overwrite: bool = False) -> None:
    """Write the plot as PNG, SVG or PDF, by the suffix, the same bytes for the same measures.

    Raises
    ------
    ResourceError
        If matplotlib is not installed.
    SettingsError
        If the suffix is another one, or the output exists and may not be replaced.
    """
    if path.suffix.lower() not in PLOTS:
        raise SettingsError(
            f"{path} is a picture of an unknown kind. Let its name end in {', '.join(PLOTS)}."
        )
    figure = plot(found)
    from .plots import saved

    content = saved(figure, path.suffix.lower().removeprefix("."))
    write_whole(path, lambda file: file.write(content), overwrite=overwrite)


def _largest_tree(found: Measures) -> tuple[Tree | None, str]:
    """The family of most tracks, if tracks divide, with times in their unit."""
    table, unit = found.tracks, ""
    columns = {}
    for field in table.schema:
        name = next((name for name in ("start", "duration") if field.name.startswith(name)), field.name)
        columns[name] = table[field.name].to_numpy(zero_copy_only=False)
        unit = field.metadata[b"unit"].decode() if name == "start" else unit
    # Conditions number their tracks each for itself.
    group = columns.get("group", np.zeros(table.num_rows))
    row = {key: k for k, key in enumerate(zip(group, columns["track_id"].tolist(), strict=True))}
    parent = np.array([row.get(key, -1) for key in zip(group, columns["mother"].tolist(), strict=True)])
    start = columns["start"]
    trees, _ = trees_of(Spans(parent, start, start + columns["duration"]))
    return (trees[0] if trees else None), unit


def _draw_tree(axes: Axes, tree: Tree, unit: str, colour: str) -> None:
    """Draw the lines of a family, time to the right."""
    time, height = tree.ends
    axes.plot(time.T, height.T, color=colour, lw=1)
    axes.set(title=f"Lineage of {tree.tracks} tracks", xlabel=f"time ({unit})", yticks=[])


def _label(curve: str, unit: str) -> str:
    return f"{'speed' if curve == 'speed_distribution' else 'time'} ({_typeset(unit)})"


def _typeset(unit: str) -> str:
    """A unit as it is printed: µm²/s for um^2/s."""
    return unit.replace("um", "µm").replace("^2", "²")


def _on_logarithms(axes: Axes) -> None:
    """Both axes logarithmic, with labels that do not overlap: at 1, 2 and 5 times the powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _draw_movies(axes: Axes, found: Measures) -> None:
    """Tracks of every group as small points, the means of its movies as large ones, and their mean.

    What is drawn is the diffusion coefficient, or the speed if a group has none.
    """
    from .plots import COLOURS

    rng = np.random.default_rng(0)  # where points lie beside each other
    names = [field.name for field in found.movies.schema]
    diffusion, speed = (
        next(name for name in names if name.startswith(word)) for word in ("diffusion", "speed_mean")
    )
    column = speed if found.groups[diffusion].null_count else diffusion
    error = found.groups.column_names[found.groups.column_names.index(column) + 1]
    tracks, movies = (table.to_pylist() for table in (found.tracks, found.movies))
    for place, group in enumerate(found.groups.to_pylist()):
        own = [row for row in movies if row["group"] == group["group"]]
        for number, movie in enumerate(own):
            some = [
                row[column]
                for row in tracks
                if (row["group"], row["movie"]) == (group["group"], movie["movie"])
            ]
            values, colour = np.array(some, float), COLOURS[number % len(COLOURS)]
            axes.plot(place + rng.uniform(-0.3, 0.3, len(values)), values, ".", ms=2, color=colour, alpha=0.4)
            at = place + 0.4 * (number + 0.5) / len(own) - 0.2
            axes.plot(at, movie[column] or np.nan, "o", ms=8, color=colour, mec="black", zorder=3)
        axes.errorbar(place, group[column], group[error] or 0.0, fmt="_", ms=24, color="black", zorder=4)
    unit = _typeset(found.movies.schema.field(column).metadata[b"unit"].decode())
    title = "Speeds of movies" if column == speed else "Diffusion of movies"
    axes.set(title=title, ylabel=unit, xticks=range(found.groups.num_rows))
    axes.set_xticklabels(found.groups["group"].to_pylist())


def _draw(axes: Axes, rows: list[dict[str, Any]], colour: str) -> None:
    """Points with error bars, and the fit as a line."""
    fit = [row for row in rows if row["curve"].endswith("_fit")]
    points = [row for row in rows if not row["curve"].endswith("_fit")]
    if fit:
        axes.plot([row["x"] for row in fit], [row["value"] for row in fit], color=colour, lw=1)
    if points:
        columns = ("x", "value", "error")  # null is nan
        x, value, error = (np.array([row[name] for row in points], float) for name in columns)
        axes.errorbar(x, value, error, fmt="o", ms=3, lw=1, color=colour, label=points[0]["group"])
