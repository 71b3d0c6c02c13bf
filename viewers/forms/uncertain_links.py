"""Navigation from one uncertain link to the next in a result without a truth, and the bar of colours."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtWidgets import QHBoxLayout, QLabel, QWidget

from outbid.particles.tracks import Tracks

from ..explained import why
from .fields import WayBox, paint_bar
from .napari_layers import CONFIDENCE, LayerTransform, go_to

_NEAR = 40.0
"""What the view spans, as a multiple of the median length of a link."""


class ConfidenceBar(QWidget):
    """A bar with the colours of confidence, from uncertain to certain links."""

    def __init__(self) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        bar = QLabel()
        paint_bar(bar, CONFIDENCE, 10)
        for widget, stretch in ((QLabel("0 uncertain"), 0), (bar, 1), (QLabel("certain 1"), 0)):
            row.addWidget(widget, stretch)


class UncertainLinks(WayBox):
    """Buttons that lead through the links of a result, the least certain one first.

    Parameters
    ----------
    viewer : napari.Viewer
    """

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        self._viewer = viewer
        self.where.setWordWrap(True)
        self.gone.connect(self._show)
        self.setVisible(False)

    def hold(self, tracks: Tracks, transform: LayerTransform) -> None:
        """Take the links of another result, with positions in voxels of this layer."""
        certainty = tracks.link_probability if tracks.link_probability is not None else tracks.link_margin
        self._tracks, self._transform = tracks, transform
        self._order = np.empty(0, np.int64) if certainty is None else np.argsort(certainty, kind="stable")
        self.lead(len(self._order), f"{len(self._order):,} links, the least certain first")
        self.setVisible(len(self._order) > 0)

    def _show(self, at: int) -> None:
        tracks, spacing, link = self._tracks, self._transform.spacing, int(self._order[at])
        seen, (source, target) = tracks.detections, tracks.links[link]
        steps = (seen.position[tracks.links[:, 1]] - seen.position[tracks.links[:, 0]]) * spacing
        near = _NEAR * (float(np.median(np.linalg.norm(steps, axis=1))) or max(spacing))
        go_to(self._viewer, [seen.frame[target], *seen.position[target]], self._transform, near)
        names = {"link_probability": "confidence", "link_margin": "margin"}
        known = next(name for name in names if name in tracks.measures)
        value = f"{names[known]} {tracks.measures[known][link]:.3g}"
        self.where.setText(
            f"link {at + 1:,} of {len(self._order):,}: track {tracks.track_id[target]}, frame "
            f"{seen.frame[source]} to {seen.frame[target]}, {value}. {why(tracks, link)}"
        )
