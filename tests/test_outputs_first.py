"""Outputs that cannot be written are refused before anything is read."""

import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from commands import assert_refused, run

from outbid import Detections, Tracks, write_tracks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX locks and modes")

TWO = Tracks(Detections.from_table([0, 1], [[0, 5, 7], [1, 5, 8]]), np.array([[0, 1]]))


@pytest.fixture
def folder(here: Path) -> Path:
    """A working folder with tracks in st.csv and their record beside it."""
    write_tracks("st.csv", TWO, record={"rows": 2})
    return here


# ---------------------------------------------------------------- what cannot be written is found first

LONG = "n" * 240
"""Fits into a folder, but not with the ending of a temporary name."""


@pytest.mark.parametrize(
    "command",
    [
        "track broken.csv -o {}.csv",
        "track broken.parquet -o {}.parquet --stream --max-distance 4",
        "detect broken.tif -o {}.csv",
        "learn broken.csv -o {}.json",
        "filter broken.csv -o {}.csv",
        "convert broken.csv {}.csv",
        "convert broken.csv {}.geff",
        "convert broken.tif st.csv {}.tif",
        "convert broken.tif st.csv {}_RES",
        "convert broken.csv {}.tif --image broken.tif",
        "measure broken.csv -o {}.csv",
        "measure broken.csv -o m.csv --plot {}.png",
        "report broken.csv -o {}.html",
        "view broken.tif --screenshot {}.png",
        "simulate -o {}.csv --particles 1000000000",
        "simulate -o t.csv --movie {}.tif --particles 1000000000",
    ],
)
def test_a_name_that_is_too_long_is_refused_before_anything_is_read(command: str, folder: Path) -> None:
    for name in ("broken.csv", "broken.parquet", "broken.tif"):
        (folder / name).write_bytes(b"\x00 nothing")
    assert_refused(run(*command.format(LONG).split()), 2, LONG, "too long")
    assert len(list(folder.iterdir())) == 5


def test_a_folder_that_cannot_be_written_is_found_before_anything_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "broken.csv").write_bytes(b"\x00 nothing")
    monkeypatch.setattr(Path, "touch", Mock(side_effect=PermissionError(13, "Permission denied")))
    for command in (
        "track broken.csv -o out.csv",
        "convert broken.csv out.geff",
        "report broken.csv -o a.html",
    ):
        done = run(*command.split())
        assert_refused(done, 4, command.split()[3 if "-o" in command else 2], "Permission denied")
        assert ".tmp" not in done.stderr
