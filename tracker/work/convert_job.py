"""Convert many tables from one format to another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import ClassVar

from .. import formats
from ..edit.fill_gaps import with_gaps_filled
from ..errors import InputError, SettingsError, refuse_unlike
from ..formats.graphs.geff_write import can_be_written_in_parts, write_parts
from ..formats.tables.columns import AS_NAMED
from ..formats.tables.parquet import calibration_in, row_count
from ..measuring.scales import without_drift
from ..particles.detections import with_time
from ..particles.tracks import Tracks
from .jobs import run_record


def convert(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    fill_gaps: bool = False,
    frame_interval: float | None = None,
    subtract_drift: bool = False,
    overwrite: bool = False,
) -> dict[str, object]:
    """Write a file of tracks or detections in another format, as `outbid convert` does.

    Parameters
    ----------
    source, output : path-like
        The suffix of the output chooses the format.
    columns : mapping of str to str, optional
        As for `outbid.read_tracks`.
    fill_gaps, frame_interval, subtract_drift
        As for `ConvertJob`.
    overwrite : bool
        Whether an existing output may be replaced.

    Returns
    -------
    dict
        How many detections and tracks there are.

    Raises
    ------
    SettingsError, InputError, OSError
        As `outbid.write_tracks` and `outbid.read_tracks`.
    """
    refuse_unlike(Real, "a number", {"frame_interval": frame_interval})
    formats.check_input(source, columns=columns)
    formats.check_output(output, overwrite=overwrite, inputs=[source])
    job = ConvertJob(columns or AS_NAMED, fill_gaps, frame_interval, None, subtract_drift)
    return dict(job.run(os.fspath(source), Path(output), {}, overwrite=overwrite))


@dataclass(frozen=True)
class ConvertJob:
    """Write tracks or detections in the format given by the suffix of the output.

    Parameters
    ----------
    columns : mapping of str to str
        As for `outbid.read_tracks`.
    fill_gaps : bool
        Whether positions in gaps are interpolated.
    frame_interval : float or None
        Time from frame to frame, for a column of times.
    image : Path or None
        Movie that TrackMate shows under the tracks.
    subtract_drift : bool
        Whether the drift that tracking learned is taken out of the positions, and out of the record.
    """

    command: ClassVar[str] = "convert"

    columns: Mapping[str, str] = field(default_factory=lambda: AS_NAMED)
    fill_gaps: bool = False
    frame_interval: float | None = None
    image: Path | None = None
    subtract_drift: bool = False

    def request(self) -> dict[str, object]:
        chosen: dict[str, object] = {"fill_gaps": self.fill_gaps, "frame_interval": self.frame_interval}
        chosen |= {"subtract_drift": True} if self.subtract_drift else {}
        return {"columns": dict(self.columns), **chosen}

    def origin(self, source: str) -> dict[str, str]:
        return formats.input_of(source, self.columns)

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        """Convert a file and its run record; the options of the conversion are recorded under `conversion`.

        Raises
        ------
        SettingsError
            If it holds detections alone, and gaps are to be filled or an image goes with them.
        """
        try:
            whole: dict[str, object] = formats.read_record(source)
        except InputError:
            whole = run_record("convert", self.origin(source))
        if record:
            whole |= {"conversion": run_record("convert", self.origin(source)) | dict(record)}
        plain = not (self.columns or self.fill_gaps or self.subtract_drift) and self.frame_interval is None
        path = Path(source)
        if formats.format_of(output) == "graphs.geff" and plain and can_be_written_in_parts(path):
            count = write_parts(path, output, whole, overwrite=overwrite)
            return {"detections": row_count(path), "tracks": count, "units": str(calibration_in(path))}
        if formats.holds_tracks(source, columns=self.columns):
            tracks = self._tracks(source, whole)
            self._write(output, tracks, whole, overwrite)
            seen, count = tracks.detections, tracks.track_count
            return {"detections": len(seen), "tracks": count, "units": str(seen.calibration)}
        if self.fill_gaps or self.image is not None or self.subtract_drift:
            raise SettingsError(
                f"--fill-gaps, --image and --subtract-drift are for tracks; {source} holds detections alone."
            )
        found = formats.read_detections(source, columns=self.columns)
        if self.frame_interval is not None:
            found = with_time(found, self.frame_interval)
        formats.write_detections(output, found, record=whole, overwrite=overwrite)
        return {"detections": len(found), "units": str(found.calibration)}

    def kept(self, output: Path) -> Mapping[str, object]:
        made = formats.read_record(output).get("conversion")
        return made if isinstance(made, dict) else {}

    def _tracks(self, source: str, record: dict[str, object]) -> Tracks:
        """The tracks; a drift that is subtracted leaves the record."""
        found = formats.read_tracks(source, columns=self.columns)
        if self.subtract_drift:
            found, _ = without_drift(found, record)
            learned = record.get("learned")
            if not isinstance(learned, Mapping) or learned.get("drift") is None:
                raise SettingsError(
                    f"The run record of {source} states no drift. Leave --subtract-drift out."
                )
            record["learned"] = {**learned, "drift": None}
        if self.fill_gaps:
            found = with_gaps_filled(found)
        if self.frame_interval is not None:
            found = replace(found, detections=with_time(found.detections, self.frame_interval))
        return found

    def _write(self, output: Path, tracks: Tracks, record: Mapping[str, object], overwrite: bool) -> None:
        if self.image is None:
            formats.write_tracks(output, tracks, record=record, overwrite=overwrite)
            return
        from ..formats.graphs.trackmate_write import write_with_image
        from ..formats.images.opening import open_images

        movie = open_images(self.image)
        write_with_image(output, tracks, self.image, movie, record=record, overwrite=overwrite)
