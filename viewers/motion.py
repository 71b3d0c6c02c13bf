"""Plots of what was measured: mean square displacement with its fit, velocity autocorrelation, speeds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from outbid.errors import ResourceError
from outbid.formats.atomic import write_whole
from outbid.measuring import Measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "msd": "Mean square displacement",
    "velocity_autocorrelation": "Velocity autocorrelation",
    "speed_distribution": "Speeds",
}
_COLOURS = ("#0072b2", "#d55e00", "#00875f", "#c2185b", "#8a6d00", "#56b4e9", "#7a52a1", "#5f5f5f")


def plot(found: Measures) -> Any:
    """A matplotlib figure of three panels: mean square displacement with fit, autocorrelation, speeds.

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

        from .plots import style
    except ImportError:
        raise ResourceError("A plot needs matplotlib. Install it: pip install 'outbid[report]'.") from None
    rows = found.curves.to_pylist()
    names = list(dict.fromkeys(row["group"] for row in rows))
    with style():
        figure = Figure((12, 3.5), layout="constrained")
        for axes, (curve, title) in zip(figure.subplots(1, 3), _TITLES.items(), strict=True):
            some = [row for row in rows if row["curve"] in (curve, f"{curve}_fit")]
            for number, name in enumerate(names):
                _draw(axes, [row for row in some if row["group"] == name], _COLOURS[number % 8])
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
    buffer = io.BytesIO()
    plot(found).savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    write_whole(path, lambda file: file.write(buffer.getvalue()), overwrite=overwrite)


def _label(curve: str, unit: str) -> str:
    return f"{'speed' if curve == 'speed_distribution' else 'time'} ({unit})"


def _draw(axes: Axes, rows: list[dict[str, Any]], colour: str) -> None:
    """Points with error bars, and the fit as a line."""
    fit = [row for row in rows if row["curve"].endswith("_fit")]
    points = [row for row in rows if not row["curve"].endswith("_fit")]
    if fit:
        axes.plot([row["x"] for row in fit], [row["value"] for row in fit], color=colour, lw=1)
    if points:
        error = [row["error"] or np.nan for row in points]
        x, value, name = [row["x"] for row in points], [row["value"] for row in points], points[0]["group"]
        axes.errorbar(x, value, error, fmt="o", ms=3, lw=1, color=colour, label=name)
