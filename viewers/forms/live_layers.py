"""Layers of image and tracks that grow while a movie is recorded; what is drawn does not grow with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Layer as NapariLayer
from qtpy.QtCore import QObject, QTimer

from outbid import formats
from outbid.errors import OutbidError
from outbid.watching.choice import source_of
from outbid.watching.following import Followed
from outbid.watching.reading import Reading
from outbid.watching.rows import GrowingTable
from outbid.watching.showing import LOOKS, LiveFrames, joined
from outbid.work.jobs import Opening

from ..layers import Layer, image_attributes
from ..scene import contrast_of
from .napari_layers import show, transform_of
from .windowed import show_tracks

_TAIL, _AHEAD = 30, 1
"""Frames before and after the one that is shown, whose tracks are drawn: napari's tails are as long."""
_RECENT = 150
"""Guard: frames that are kept, for the lineage."""
_SETTLED = 60  # milliseconds without a step after which other tracks are drawn


class LiveLayers(QObject):
    """The image and the tracks; the time follows the last frame, unless the user has moved it away.

    Parameters
    ----------
    form : QWidget
        With a viewer.
    reading : Reading
        What a watch writes.
    source : str
        What is watched, if it is of images.
    opening : Opening
    """

    def __init__(self, form: Any, reading: Reading, source: str, opening: Opening) -> None:
        super().__init__(form)
        self.viewer, self.reading = form.viewer, reading
        self.name = Path(source or reading.output).name
        self.recent: deque[Followed] = deque(maxlen=_RECENT)
        self.image: Any = None
        self.tracks: Any = None
        self._source = source_of(source, opening, {}, Path()) if source else None
        self._frames: LiveFrames | None = None
        self._end, self._drawn = -1, -1
        self._settled = QTimer(self, singleShot=True, interval=_SETTLED)
        self._settled.timeout.connect(lambda: self._draw(self._shown()))
        self.viewer.dims.events.current_step.connect(self._moved)

    @property
    def follows(self) -> bool:
        """Whether the last frame is shown."""
        return self._end < 0 or self._shown() >= self._end

    def look(self) -> None:
        """Show what was written since the last look."""
        self.recent.extend(self.reading.new())
        end, follows = max(self.reading.last, -1), self.follows
        end = end if end >= 0 else self.reading.tail.taken
        if end == self._end:
            return
        self._end = end
        if self._frames is None:
            self._open()
        else:
            self._frames.length = end + 1
        reaches = follows and self._draw(end)
        if not reaches:
            self._settle()
        if follows:
            self.go(end)

    def go(self, frame: int) -> None:
        """Show a frame."""
        self.viewer.dims.set_point(self._axis, frame)

    def close(self) -> None:
        """Follow no longer: the layers stay as they are."""
        self.viewer.dims.events.current_step.disconnect(self._moved)
        self._settled.stop()

    def end(self) -> None:
        """Show the tracks of the last pass in place of those that were linked live."""
        self._settle()
        if self.tracks in self.viewer.layers:
            output, at = self.reading.output, transform_of(self.tracks)
            record, made = formats.read_record(output), formats.read_tracks(output)
            self.tracks = show_tracks(
                self.viewer, made, at, output.name, record=record, instead_of=self.tracks
            )
            self.tracks.name = output.name

    @property
    def _axis(self) -> int:
        """The axis of time."""
        shown = self.image if self.image is not None else self.tracks
        return 0 if shown is None else int(self.viewer.dims.ndim - shown.ndim)

    def _shown(self) -> int:
        return round(self.viewer.dims.point[self._axis])

    def _moved(self, _: object = None) -> None:
        if self._shown() != self._drawn and not self._settled.isActive():
            self._settled.start()

    def _settle(self) -> None:
        """Have napari see how long the image is; where tracks reach as far it need not, which takes time."""
        if self.image is not None and self.image in self.viewer.layers:
            self.image.data = self._frames

    def _open(self) -> None:
        """Show the images, once there are some."""
        source = self._source
        if source is None or isinstance(source, GrowingTable):
            return
        try:
            if not any(source.poll() for _ in range(LOOKS)):
                return
        except OutbidError:  # the process that watches says why
            return
        movie, self._frames = source.movie(), LiveFrames(source, self.reading.tail)
        assert movie is not None
        self._frames.length = self._end + 1
        limits = contrast_of(self._frames.read(self._end))
        look = {"contrast_limits": limits, "rgb": False, "multiscale": False}
        known = image_attributes(self.name, movie.calibration, flat=movie.shape[0] == 1)
        self.image = self.viewer.add_layer(NapariLayer.create(self._frames, known | look, "image"))

    def _draw(self, frame: int) -> bool:
        """Draw the tracks around a frame; whether there are any."""
        frames = self._around(frame)
        removed = self.tracks is not None and self.tracks not in self.viewer.layers
        if removed or not any(len(one.track) for one in frames):
            return False
        unit = "pixel" if self.image is None else str(self.image.units[-1])
        layer = _layer(frames, f"Tracks of {self.name}", unit, self._end)
        flat = self.image.ndim == 3 if self.image is not None else not layer.data[:, -3].any()
        self.tracks = show(self.viewer, layer.in_plane() if flat else layer, instead_of=self.tracks)
        self._drawn = frame
        return True

    def _around(self, frame: int) -> list[Followed]:
        first, last = frame - _TAIL, frame + _AHEAD
        known = [one for one in self.recent if first <= one.frame <= last]
        begin = self.recent[0].frame if self.recent else last + 1
        return known if begin <= first else self.reading.between(first, min(begin - 1, last)) + known


def _layer(frames: Sequence[Followed], name: str, unit: str, end: int) -> Layer:
    """Tracks of some frames, in places, with the numbers that they have live.

    Two points that are not drawn have the layer reach from frame 0 to the end.
    """
    seen, track, chance, parent = joined(frames)
    order = np.lexsort((seen.frame, track))
    track, parent = track[order], parent[order]
    graph = {int(track[row]): [int(parent[row])] for row in np.flatnonzero(parent >= 0)}
    data = np.column_stack([track, seen.frame[order], seen.position[order]])
    ends = np.repeat(data[:1], 2, axis=0)
    ends[:, 0], ends[:, 1] = track[-1] + np.array([1, 2]), (0, end)
    sure = {"confidence": np.append(np.nan_to_num(chance[order], nan=1.0), [1.0, 1.0])}
    return Layer("tracks", name, np.append(data, ends, axis=0), sure, (1.0,) * 4, unit, graph, "confidence")
