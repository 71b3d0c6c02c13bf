"""A movie larger than the memory: some frames at a time are read, linked and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ._arrays import lap
from .detections import Detections
from .device import device_for
from .errors import SettingsError
from .formats.parquet import detections_in_parts, row_count
from .formats.parts import Parts
from .track import WORTH_A_GPU, TrackingSettings, track
from .tracks import Tracks

_ROWS = 4_000_000
"""Detections read at a time: enough to fill a GPU, about a gigabyte of memory in all."""


@dataclass(frozen=True)
class _End:
    """What the next frames need to know of those before: the last frame, and the numbers of its tracks."""

    seen: Detections
    track_id: NDArray[np.int64]
    next_id: int


def settings_for(source: Path, output: Path, settings: TrackingSettings) -> TrackingSettings:
    """The settings with which a file will be streamed: its size chooses the device.

    Raises
    ------
    SettingsError
        If the files are no Parquet, or the settings ask for what needs the whole movie.
    """
    if {source.suffix, output.suffix} != {".parquet"}:
        raise SettingsError(
            f"--stream reads and writes Parquet; got {source.name} and {output.name}. Convert the input "
            "(outbid convert) and name the output .parquet."
        )
    if settings.max_distance is None or settings.max_gap:
        raise SettingsError(
            "Frames that are streamed are linked one to the next: set --max-distance, and leave out "
            "--max-gap. Learning and gaps need the whole movie (no --stream)."
        )
    used = replace(settings, device=device_for(settings.device, row_count(source), WORTH_A_GPU), max_gap=0)
    lap("device")
    return used


def track_stream(
    source: Path,
    output: Path,
    settings: TrackingSettings,
    *,
    record: Mapping[str, object],
    overwrite: bool = False,
    resume: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    rows: int = _ROWS,
) -> dict[str, int | float | str]:
    """Link the detections of a Parquet file to tracks in another, as `track` would, in little memory.

    What is done is kept beside the output, in a folder with ``.parts`` after its name, until all is done.

    Parameters
    ----------
    source : Path
        A Parquet table of detections whose frames do not decrease.
    output : Path
        A Parquet file.
    settings : TrackingSettings
        With a `max_distance`, and without gaps, which need frames far apart at the same time.
    record : mapping
        Goes into the output. What is kept of an earlier run is used only if its record is the same.
    overwrite : bool
        Whether the output may be there already.
    resume : bool
        Go on where an earlier run was interrupted; the result is the same to the byte.
    workers, progress
        As in `track`.
    rows : int
        Detections read at a time, and at least one whole frame; they do not change the tracks. Margins may be
        other lower bounds, as good as those of the whole movie.

    Returns
    -------
    dict
        Counts, worst gap, device and fallbacks, as `TrackingRun.stats`.

    Raises
    ------
    SettingsError
        If the settings ask for what needs the whole movie, the output may not be written, or there is no
        earlier run with this record to resume.
    InputError
        If the source is no such table, or its frames decrease.
    """
    used = settings_for(source, output, settings)
    parts = Parts(output, record, overwrite=overwrite, resume=resume)
    total, done = row_count(source), 0
    end = _End(Detections.from_table([], []), np.empty(0, np.int64), 0)
    # One thread reads ahead, one writes parts and one the output, while this one links.
    with parts, ThreadPoolExecutor(2) as pool:
        pieces = detections_in_parts(source, rows)
        coming: Future[Detections | None] = pool.submit(next, pieces, None)
        writing: Future[None] | None = None
        number = -1
        while (piece := coming.result()) is not None:
            number += 1
            coming = pool.submit(next, pieces, None)
            lap("read")
            if number < parts.done:
                track_id = parts.track_id(number, len(piece))
            else:
                run = track(_joined(end.seen, piece), used, workers=workers)
                track_id = _numbered(run.tracks, end)
                lap("tracks")
                if writing is not None:
                    writing.result()  # stops here if the part before could not be written
                lap("write")
                writing = pool.submit(parts.add, number, run.tracks, track_id, len(end.seen), run.stats)
                track_id = track_id[len(end.seen) :]
            end = _end_of(piece, track_id, end)
            done += len(piece)
            if progress is not None:
                progress(done, total)
        if writing is not None:
            writing.result()
        facts = parts.join()
        lap("write")
    return {
        "links": sum(fact["links"] for fact in facts),
        "gap_links": 0,
        "divisions": 0,
        "tracks": end.next_id,
        "worst_gap": max((fact["worst_gap"] for fact in facts), default=0.0),
        "device": used.device,
        "fallbacks": sum(fact["fallbacks"] for fact in facts),
    }


def _joined(before: Detections, after: Detections) -> Detections:
    """Detections of two times as one."""
    if len(before) == 0:
        return after
    features = {name: np.concatenate([before.features[name], of]) for name, of in after.features.items()}
    return Detections(
        np.concatenate([before.frame, after.frame]),
        np.concatenate([before.position, after.position]),
        after.unit,
        features,
    )


def _numbered(tracks: Tracks, end: _End) -> NDArray[np.int64]:
    """Track numbers of the whole movie: those of the frame before go on, others begin after the last one.

    The frame before comes first and holds no links within itself, so its detections begin the first tracks.
    """
    begun = tracks.track_count - len(end.seen)
    number = np.concatenate([end.track_id, np.arange(end.next_id, end.next_id + begun)])
    return number[tracks.track_id]


def _end_of(piece: Detections, track_id: NDArray[np.int64], before: _End) -> _End:
    last = piece.rows_of(int(piece.frame[-1]))
    return _End(piece.take(last), track_id[last], max(before.next_id, int(track_id.max()) + 1))
