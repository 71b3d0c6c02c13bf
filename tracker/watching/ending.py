"""The last pass: the whole movie, detected and linked with the future; and how the links have changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..edit.crop import Crop
from ..errors import InputError
from ..formats import read_tracks
from ..formats.files.outputs import write_whole
from ..formats.files.records import marked_bytes
from ..particles.tracks import Tracks
from ..scoring import score
from ..settings.detection import DetectionSettings
from ..settings.tracking import TrackingSettings
from ..tracking import TrackingRun
from ..work.jobs import DetectJob, Opening, TrackJob

_LOG = logging.getLogger("outbid")
LAST = "Last pass"
"""How texts of progress begin, once the recording has ended."""


@dataclass(frozen=True)
class LastPass:
    """What `outbid detect` and `outbid track` do with a movie that has been recorded.

    Parameters
    ----------
    source : str
        Images, or a table.
    detections, output : Path
        Outputs of the two commands; without images the first is the source.
    settings : DetectionSettings
    opening : Opening
    tracking : TrackingSettings
    columns : mapping of str to str
    workers : int
    """

    source: str
    detections: Path
    output: Path
    settings: DetectionSettings
    opening: Opening
    tracking: TrackingSettings
    columns: Mapping[str, str]
    workers: int

    def run(self, *, images: bool, progress: Callable[..., Any] | None = None) -> TrackingRun:
        """Write detections and tracks, the same bytes as the commands."""
        seen = self.detections if images else Path(self.source)
        if images:
            job = DetectJob(self.settings, opening=self.opening, workers=self.workers)
            try:
                movie = job.open(self.source)
            except InputError:  # it declares more frames than were recorded
                movie = self.opening.open(self.source, partial=True)
                job = replace(job, crop=Crop(frames=f"0:{movie.frame_count}"))
                _LOG.warning("%s holds %d frames and declares more", self.source, movie.frame_count)
            job.write(movie, self.source, seen, overwrite=True, progress=_named("detecting", progress))
        tracker = TrackJob(self.tracking, self.columns if not images else {}, workers=self.workers)
        named = _named("linking", progress)
        run, _ = tracker.link(str(seen), self.output, overwrite=True, progress=named)
        return run


def _named(what: str, progress: Callable[..., Any] | None) -> Callable[[int, int], None] | None:
    """What moves a bar, with a text that says what the last pass does."""
    if progress is None:
        return None
    return lambda done, total: progress(done, total, f"{LAST}: {what}")


def changes(live: Path, tracks: Tracks) -> dict[str, int]:
    """How many links of the live tracks, a folder of parts, the last pass has kept, and which it has not.

    Detections of the two are paired by distance, as `outbid.score` does.
    """
    if not any(live.glob("part-*.parquet")):
        return {
            "links_live": 0,
            "links": len(tracks.links),
            "kept": 0,
            "dropped": 0,
            "added": len(tracks.links),
        }
    before = read_tracks(live)
    values = score(before, tracks, families=["links"]).values
    kept = round(values["n_correct_links"])
    return {
        "links_live": len(before.links), "links": len(tracks.links), "kept": kept,
        "dropped": len(before.links) - kept, "added": len(tracks.links) - kept,
    }  # fmt: skip


def write_watch_record(output: Path, record: Mapping[str, Any]) -> Path:
    """Write what happened while a movie was watched beside its tracks, as ``tracks.watch.json``."""
    path = output.with_name(f"{output.stem}.watch.json")
    write_whole(path, lambda file: file.write(marked_bytes(record)), overwrite=True)
    return path


def sentence_of(record: Mapping[str, Any], output: Path) -> str:
    """What was followed, what was written where, and what the last pass has changed.

    Examples
    --------
    >>> live = {"frames": 9, "missing": 1, "late": 0, "ended": "idle"}
    >>> changed = {"links_live": 50, "links": 51, "kept": 48, "dropped": 2, "added": 3}
    >>> sentence_of({"live": live, "links_changed": changed}, Path("out/a.parquet")).split(". ")[0]
    'The recording has ended (idle): 9 frames, 1 missing, 0 late'
    """
    live, changed = record["live"], record["links_changed"]
    names = (output.name, f"{output.stem}_detections.parquet", f"{output.stem}.watch.json")
    there = ", ".join(name for name in names if output.with_name(name).exists())
    return (
        f"The recording has ended ({live['ended']}): {live['frames']} frames, {live['missing']} missing, "
        f"{live['late']} late. With the future, {changed['dropped']} of {changed['links_live']} links were "
        f"dropped and {changed['added']} added. In {output.parent}: {there}."
    )
