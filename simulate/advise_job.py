"""Advice on linking distances for many movies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from outbid import formats
from outbid.formats.files.outputs import write_whole
from outbid.formats.files.records import marked_bytes
from outbid.formats.tables.columns import AS_NAMED
from outbid.work.jobs import Job, run_record

from .advise import Advice, advise


@dataclass(frozen=True)
class AdviseJob(Job):
    """Preview the effect of linking distances; see `outbid.simulate.advise.advise`.

    Parameters
    ----------
    spacing : tuple of 3 float
    max_distances : tuple of float
    columns : mapping of str to str
        As for `outbid.read_detections`.
    column : mapping of str to str or None
        As for `outbid.simulate.advise`.
    """

    command: ClassVar[str] = "advise"

    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    max_distances: tuple[float, ...] = ()
    columns: Mapping[str, str] = field(default_factory=lambda: AS_NAMED)
    column: Mapping[str, str] | None = None

    def request(self) -> dict[str, object]:
        chosen = {"spacing": list(self.spacing), "max_distances": list(self.max_distances)}
        more = {} if self.column is None else {"features": dict(self.column)}
        return {**chosen, "columns": dict(self.columns), **more}

    def origin(self, source: str) -> dict[str, str]:
        return formats.input_of(source, self.columns)

    def advice(self, source: str) -> Advice:
        """The advice for one file."""
        detections = formats.read_detections(source, columns=self.columns)
        gates = self.max_distances
        return advise(detections, spacing=self.spacing, max_distances=gates, features=self.column)

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        found = self.advice(source)
        whole = run_record("advise", self.origin(source)) | {"advice": found.as_dict()} | dict(record)
        write_whole(output, lambda file: file.write(marked_bytes(whole)), overwrite=overwrite)
        return {"kappa": found.kappa, "best": found.gates[found.best].max_distance if found.gates else None}
