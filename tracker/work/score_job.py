"""Score many tracks: find the truth of each, and write the scores as a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from .. import formats
from ..errors import InputError
from ..formats.files.outputs import write_whole
from ..formats.files.records import marked_bytes
from ..formats.tables.columns import AS_NAMED
from ..scoring import Scores, score
from .jobs import Job, run_record, stem_of


@dataclass(frozen=True)
class Truth:
    """Location of the true tracks for each of many tracked movies.

    Parameters
    ----------
    path : str
        One file for all of them, or a folder with one of the same name for each.
    columns : mapping of str to str
        As for `outbid.read_tracks`.
    """

    path: str
    columns: Mapping[str, str] = field(default_factory=lambda: AS_NAMED)

    def of(self, source: str) -> Path:
        """The file with the truth for a file of tracks.

        Raises
        ------
        InputError
            If the folder has none, or several.
        """
        path = Path(self.path)
        if not path.is_dir() or _is_read(path):
            return path
        name = stem_of(source)
        found = [
            file for file in sorted(path.iterdir()) if file.suffix != ".json" and stem_of(str(file)) == name
        ]
        if len(found) != 1:
            said = ", ".join(file.name for file in found) or "none"
            raise InputError(f"{path} must hold one truth named {name}, like {source}; it holds {said}.")
        return found[0]

    def origin(self, source: str, columns: Mapping[str, str]) -> dict[str, str]:
        """The entries of a run record about tracks and their truth."""
        truth = formats.input_of(self.of(source), self.columns)
        return formats.input_of(source, columns) | {f"truth_{name}": of for name, of in truth.items()}


@dataclass(frozen=True)
class ScoreJob(Job):
    """Score tracks against their truth.

    Parameters
    ----------
    truth : Truth
    gate : float or None
        As for `outbid.score`.
    columns : mapping of str to str
        Of the tracks.
    link_rule : str
        As for `outbid.score`.
    """

    command: ClassVar[str] = "score"

    truth: Truth
    gate: float | None = None
    columns: Mapping[str, str] = field(default_factory=lambda: AS_NAMED)
    link_rule: str = "particle"

    def request(self) -> dict[str, object]:
        named = {"columns": dict(self.columns), "truth_columns": dict(self.truth.columns)}
        return {"gate": self.gate, "link_rule": self.link_rule, **named}

    def origin(self, source: str) -> dict[str, str]:
        return self.truth.origin(source, self.columns)

    def scores(self, source: str) -> Scores:
        """The scores of a file."""
        found = formats.read_tracks(source, columns=self.columns)
        known = formats.read_tracks(self.truth.of(source), columns=self.truth.columns)
        return score(found, known, gate=self.gate, link_rule=self.link_rule)

    def run(
        self, source: str, output: Path, record: Mapping[str, object], *, overwrite: bool
    ) -> Mapping[str, object]:
        scores = self.scores(source)
        whole = run_record("score", self.origin(source)) | dict(record)
        whole |= {"values": values_in_json(scores), "provenance": scores.provenance}
        write_whole(output, lambda file: file.write(marked_bytes(whole)), overwrite=overwrite)
        return values_in_json(scores)


def values_in_json(scores: Scores) -> dict[str, float | None]:
    """The scores with None for those that are 0 / 0: JSON has no NaN.

    Examples
    --------
    >>> values_in_json(Scores({"link_f1": 0.5, "division_f1": math.nan}, {}))
    {'link_f1': 0.5, 'division_f1': None}
    """
    return {name: None if math.isnan(value) else value for name, value in scores.values.items()}


def too_low(values: Mapping[str, float | None], limits: Mapping[str, float]) -> list[str]:
    """A sentence for each score that is below its limit or 0 / 0.

    Examples
    --------
    >>> too_low({"link_f1": 0.5, "idf1": 0.9}, {"link_f1": 0.99, "idf1": 0.9})
    ['link_f1 is 0.5, under 0.99.']
    """
    numbers = {name: math.nan if (of := values[name]) is None else of for name in limits}
    low = {name: value for name, value in numbers.items() if not value >= limits[name]}
    return [f"{name} is {value:.6g}, under {limits[name]:.6g}." for name, value in low.items()]


def _is_read(folder: Path) -> bool:
    """Whether the folder itself is a file of a supported format."""
    try:
        formats.check_input(folder)
    except InputError:
        return False
    return True
