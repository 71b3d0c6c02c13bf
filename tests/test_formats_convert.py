"""`outbid convert` between all formats, on real files: detections, links and the record stay."""

from pathlib import Path

import numpy as np
import pytest

from outbid import read_record, read_tracks, write_tracks
from outbid.formats import WRITTEN

SOURCES = [
    "formats/pycellin/Ecoli_growth_on_agar_pad_with_fusions.xml",
    "formats/pycellin/Celegans-5pc-17timepoints.xml",
    "formats/laptrack/trackmate_tracks_with_splitting_merging_spots.csv",
    "faketracks/FakeTracks_ISBI.xml",
    "faketracks/two_tracks_napari.csv",
    "formats/pycellin/Ecoli_growth_on_agar_pad.geff",
]


@pytest.mark.smoke
@pytest.mark.parametrize("suffix", [suffix for suffix in WRITTEN if suffix not in (".tsv", ".pq")])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_into_every_format(source: str, suffix: str, real_data: Path, tmp_path: Path) -> None:
    if ".geff" in (suffix, Path(source).suffix):
        pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")
    tracks = read_tracks(real_data / source)
    write_tracks(tmp_path / f"a{suffix}", tracks, record={"command": "convert"})
    back = read_tracks(tmp_path / f"a{suffix}")
    assert read_record(tmp_path / f"a{suffix}")["command"] == "convert"
    assert back.detections.unit == tracks.detections.unit
    np.testing.assert_array_equal(back.detections.frame, tracks.detections.frame)
    if suffix == ".isbi.xml":  # neither divisions nor merges nor the order of a frame's rows
        assert back.track_count == tracks.track_count
        return
    np.testing.assert_array_equal(back.detections.position, tracks.detections.position)
    np.testing.assert_array_equal(back.links, tracks.links)
    known = tracks.detections.features
    texts = {name for name, values in known.items() if values.dtype.kind not in "biuf"} - {"name", "contour"}
    assert set(back.detections.features) == set(known) - (texts if suffix == ".xml" else set())
