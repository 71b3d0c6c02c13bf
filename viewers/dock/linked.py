"""The pages *Detect* and *Track*, around their forms."""

from __future__ import annotations

from typing import Any

from ..forms.detect import DetectForm
from ..forms.track import TrackForm
from .page import FormPage


class _SourcePage(FormPage):
    """A page around a form with a source; a result of another source does not count."""

    def __init__(self, viewer: Any, form: DetectForm | TrackForm) -> None:
        super().__init__(viewer, form)
        form.source.chosen.connect(self._forget)

    def take(self, layer: Any) -> None:
        """Work on a layer, if it is there."""
        if layer in self.viewer.layers and layer is not self.form.source.layers.layer():
            self.form.source.layers.choose(layer)

    def _forget(self) -> None:
        self.form.shown = None
        self.changed.emit()


class DetectPage(_SourcePage):
    """Spots of the movie; the preview of the frame that is shown comes by itself."""

    title = "Detect"
    does = "Detect finds the spots of all frames."

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, DetectForm(viewer))

    def enter(self, before: Any) -> None:
        """Take the movie of the first page."""
        self.take(before[0].layer())


class TrackPage(_SourcePage):
    """Tracks of the spots, or of what points there are."""

    title = "Track"
    does = "Track learns how the spots move, and links them to tracks."

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, TrackForm(viewer))

    def enter(self, before: Any) -> None:
        """Take the spots that were detected."""
        self.take(before[1].form.shown)
