"""Plots of what was measured: mean square displacement with fit, autocorrelation, speeds, lineage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outbid.errors import ResourceError
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


def plot(found: Measures) -> Any:
    """A matplotlib figure: mean square displacement with fit, autocorrelation, speeds, the largest lineage.

    Parameters
    ----------
    found : Measures

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
        panels = len(_TITLES) + (tree is not None)
        figure = Figure((4 * panels, 3.5), layout="constrained")
        every = figure.subplots(1, panels)
        if tree is not None:
            _draw_tree(every[-1], tree, unit_of_time, COLOURS[0])
        for axes, (curve, title) in zip(every, _TITLES.items(), strict=False):
            some = [row for row in rows if row["curve"] in (curve, f"{curve}_fit")]
            for number, name in enumerate(names):
                _draw(axes, [row for row in some if row["group"] == name], COLOURS[number % 8])
            unit = some[0] if some else {"x_unit": "", "value_unit": ""}
            axes.set(title=title, xlabel=_label(curve, unit["x_unit"]), ylabel=unit["value_unit"])
            if curve == "msd" and some:
                axes.set(xscale="log", yscale="log")
        if len(names) > 1:
            figure.axes[0].legend(frameon=False)
    return figure


def write_plot(path: Path, found: Measures, *, overwrite: bool = False) -> None:
    """Write the plot as PNG, the same bytes for the same measures.

    Raises
    ------
    ResourceError
        If matplotlib is not installed.
    SettingsError
        If the output exists and may not be replaced.
    """
    figure = plot(found)
    from .plots import saved

    content = saved(figure)
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
    return f"{'speed' if curve == 'speed_distribution' else 'time'} ({unit})"


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
