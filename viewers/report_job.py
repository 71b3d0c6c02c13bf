"""Write report pages about many tracks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from outbid import formats
from outbid.errors import InputError
from outbid.formats.files.outputs import write_whole
from outbid.formats.files.records import record_beside, to_stand_beside
from outbid.formats.images.opening import open_images
from outbid.formats.tables.columns import AS_NAMED
from outbid.scoring.gate import Gate, gate_for
from outbid.work.jobs import run_record
from outbid.work.score_job import Truth

from .report import report


class Page(NamedTuple):
    """A page, how many tracks it is about, and the gate of its scores."""

    text: str
    tracks: int
    gate: Gate | None


@dataclass(frozen=True)
class ReportJob:
    """Write a page about tracks; see `outbid.viewers.report.report`.

    Parameters
    ----------
    truth : Truth or None
    gate : float or None
    spacing : tuple of 3 float or None
    columns : mapping of str to str
        Of the tracks.
    movie : str or None
        Path of the movie in which they were seen.
    """

    command: ClassVar[str] = "report"

    truth: Truth | None = None
    gate: float | None = None
    spacing: tuple[float, float, float] | None = None
    columns: Mapping[str, str] = field(default_factory=lambda: AS_NAMED)
    movie: str | None = None

    def request(self) -> dict[str, object]:
        known = None if self.truth is None else dict(self.truth.columns)
        chosen = {"gate": self.gate, "spacing": self.spacing, "movie": self.movie}
        return {**chosen, "columns": dict(self.columns), "truth_columns": known}

    def origin(self, source: str) -> dict[str, str]:
        if self.truth is None:
            return formats.input_of(source, self.columns)
        return self.truth.origin(source, self.columns)

    def page(self, source: str) -> Page:
        """The page for one file, with its number of tracks and its gate."""
        found, known, reach = formats.read_tracks(source, columns=self.columns), None, None
        inputs = {"the tracks": formats.input_of(source, self.columns)}
        if self.truth is not None:
            path = self.truth.of(source)
            known = formats.read_tracks(path, columns=self.truth.columns)
            reach = gate_for(self.gate, known)
            inputs["the truth"] = formats.input_of(path, self.truth.columns)
        try:
            record = formats.read_record(source)
        except InputError:
            record = None
        page = report(
            found, known, title=Path(source).name, record=record, inputs=inputs, gate=self.gate,
            spacing=self.spacing, movie=None if self.movie is None else open_images(Path(self.movie)),
        )  # fmt: skip
        return Page(page, found.track_count, reach)

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        page = self.page(source)
        content = page.text.encode("utf-8")
        beside = to_stand_beside(output, run_record("report", self.origin(source)) | dict(record))
        write_whole(output, lambda file: file.write(content), overwrite=overwrite, beside=beside)
        return {"tracks": page.tracks}

    def kept(self, output: Path) -> Mapping[str, object]:
        return record_beside(output) or {}
