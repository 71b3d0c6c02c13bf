"""Pictures of experiments: their panels side by side, by matplotlib."""

from __future__ import annotations

from itertools import count, cycle
from math import ceil, sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from outbid.simulate.experiment import Panel

from .plots import COLOURS, saved, style

_MARKERS = "osD^vPX"
"""One fewer, so that 56 curves differ."""
_ABREAST = 3


def picture(panels: list[Panel]) -> bytes:
    """The panels as a PNG, the same bytes for the same panels.

    Examples
    --------
    >>> from outbid.simulate.experiment import Curve
    >>> png = picture([Panel("", "kappa", "link F1", [Curve("outbid", [0.1, 0.2], [1.0, 0.9])])])
    >>> png[1:4]
    b'PNG'
    """
    columns = min(ceil(sqrt(len(panels))), _ABREAST) or 1
    rows = max(ceil(len(panels) / columns), 1)
    with style():
        figure = Figure((4.4 * columns, 3.5 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for one, panel in zip(axes, panels, strict=False):
            _draw(one, panel)
        for one in axes[len(panels) :]:
            one.set_visible(False)
        return saved(figure)


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    looks = ((COLOURS[k % 8], _MARKERS[k % 7]) for k in count())
    dashes = cycle(("--", ":", "-."))
    for curve in sorted(panel.curves, key=lambda one: one.kind != "measured"):
        if curve.kind != "measured":
            axes.plot(curve.x, curve.y, next(dashes), color="black", lw=1, label=curve.label, zorder=1)
            continue
        colour, marker = next(looks)
        if len(curve.low):
            errors = np.abs(np.array([curve.low, curve.high]) - np.asarray(curve.y))
            axes.errorbar(curve.x, curve.y, errors, fmt="none", ecolor=colour, elinewidth=1, capsize=2)
        axes.plot(curve.x, curve.y, marker=marker, ms=4, lw=1.2, color=colour, label=curve.label)
    if panel.curves:
        axes.legend(frameon=False, fontsize=6.5)
