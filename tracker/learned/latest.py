"""Columns of frames that are linked as they are recorded: they count by their ranks in the latest frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .features import Kind, kinds_of, labels_in, scored, values_of
from .model.features import FeatureModel, Features
from .prepare import Reading

_LATEST = 1000
"""Prior: detections among which a frame's columns are ranked, which leaves ranks an error of .016."""


@dataclass(frozen=True, eq=False)
class LatestColumns:
    """Columns of the latest frames, at first those of an earlier recording, and what was learned of them.

    Parameters
    ----------
    model : FeatureModel
    wanted : mapping of str to (str, list of str)
        Kind and members of each column.
    labels : mapping of str to array
        The labels of the earlier recording.
    count : (F,) int64 array
        Detections of each frame.
    position : (N, A) float64 array
    values : mapping of str to (N, m) or (N,) array
        Numbers, or numbers of labels.
    """

    model: FeatureModel
    wanted: Mapping[str, Kind]
    labels: Mapping[str, NDArray]
    count: NDArray[np.int64]
    position: NDArray[np.float64]
    values: Mapping[str, NDArray]

    @classmethod
    def of(
        cls, features: Mapping[str, NDArray], reading: Reading, column: Mapping[str, str] | str | None,
        model: FeatureModel | None,
    ) -> LatestColumns | None:  # fmt: skip
        """The columns of a recording; None if they say nothing of links and clutter."""
        if model is None or not (model.links() or model.clutter.any()):
            return None
        wanted = kinds_of(features, column)
        labels = {
            name: labels_in(np.asarray(features[of[0]]))
            for name, (kind, of) in wanted.items()
            if kind == "label"
        }
        values = {name: all_[reading.order] for name, all_ in values_of(features, wanted).items()}
        whole = cls(model, wanted, labels, np.diff(reading.frame_start), reading.position, values)
        return whole._latest()

    def with_frame(
        self, position: NDArray[np.float64], given: Mapping[str, ArrayLike]
    ) -> tuple[LatestColumns, Features]:
        """With one more frame, of positions (M, A) and columns (M,); and the features of its detections.

        Raises
        ------
        InputError
            If a column is missing, or has another length.
        """
        columns = {name: np.atleast_1d(np.asarray(column)) for name, column in given.items()}
        needed = [member for _, members in self.wanted.values() for member in members]
        wrong = [
            name for name in needed if len(columns.get(name, ())) != len(position) or name not in columns
        ]
        if wrong:
            raise InputError(
                f"The earlier recording was linked with {', '.join(needed)}; of a frame of {len(position)} "
                f"detections {', '.join(wrong)} must have as many values. Give them, or none of the columns."
            )
        new = values_of(columns, self.wanted, self.labels)
        for name, values in self.values.items():
            if new[name].shape[1:] != values.shape[1:]:
                raise InputError(f"Column {name!r} had {values.shape[1]} numbers. Give as many.")
        grown = replace(
            self, count=np.append(self.count, len(position)),
            position=np.concatenate([self.position, position]),
            values={name: np.concatenate([values, new[name]]) for name, values in self.values.items()},
        )  # fmt: skip
        last = slice(len(self.position), None)
        return grown._latest(), scored(self.wanted, grown.values, grown._reading()).features.take("row", last)

    def unknown(self, count: int) -> Features:
        """The features of so many detections of which no column is known."""
        like = scored(self.wanted, self.values, self._reading()).features
        empty = like.take("row", slice(0, 0))
        return Features(*(
            np.full((count, getattr(empty, name).shape[1]), fill)
            for name, fill in (("value", 0.0), ("seen", False), ("clutter", 0.0), ("label", -1))
        ))  # fmt: skip

    def arrays(self) -> dict[str, NDArray]:
        """What changes from frame to frame, by name."""
        values = {f"column.{name}": values for name, values in self.values.items()}
        return {"column_count": self.count, "column_position": self.position, **values}

    def of_arrays(self, arrays: Mapping[str, NDArray]) -> LatestColumns:
        """The columns of `arrays`."""
        return replace(
            self, count=arrays["column_count"], position=arrays["column_position"],
            values={name: arrays[f"column.{name}"] for name in self.values},
        )  # fmt: skip

    def _latest(self) -> LatestColumns:
        """The last frames, which hold the latest detections."""
        after = np.cumsum(self.count[::-1])[::-1]  # in a frame and those after it
        first = max(int((after >= _LATEST).sum()) - 1, 0)
        row = int(self.count[:first].sum())
        return replace(
            self, count=self.count[first:], position=self.position[row:],
            values={name: values[row:] for name, values in self.values.items()},
        )  # fmt: skip

    def _reading(self) -> Reading:
        """The frames, one after the other."""
        start = np.append(0, np.cumsum(self.count))
        frame = np.repeat(np.arange(len(self.count)), self.count)
        order, axes = np.arange(len(frame)), "zyx"[-self.position.shape[1] :]
        return Reading(frame, self.position, order, start, axes)
