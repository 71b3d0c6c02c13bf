"""What files hold beside positions is kept or named: units, times, contours, texts, lists."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import run, succeed

from outbid import Detections, Tracks, read_detections, read_record, read_tracks, write_tracks

SPOT = (
    '<SpotsInFrame frame="{t}"><Spot ID="{id}" name="{name}" QUALITY="1.0" POSITION_X="{x}" POSITION_Y="9.0" '
    'POSITION_Z="0.0" POSITION_T="{time}" FRAME="{t}" RADIUS="2.0" VISIBILITY="1" ROI_N_POINTS="3">'
    "-1 -1 1 -1 0 1</Spot></SpotsInFrame>"
)
NAMES = ("QUALITY", "POSITION_X", "POSITION_Y", "POSITION_Z", "POSITION_T", "FRAME", "RADIUS", "VISIBILITY")


def trackmate(path: Path, clock: str = "sec", interval: float = 2.0) -> Path:
    """Case 17: three spots with contours and names, two seconds apart."""
    spots = "".join(
        SPOT.format(t=t, id=t + 1, x=5 + t, time=t * interval, name="ab"[t % 2]) for t in range(3)
    )
    edges = "".join(f'<Edge SPOT_SOURCE_ID="{t + 1}" SPOT_TARGET_ID="{t + 2}"/>' for t in range(2))
    declared = "".join(
        f'<Feature feature="{name}" name="{name}" shortname="{name}" dimension="NONE" isint="false"/>'
        for name in NAMES
    )
    path.write_text(
        f'<?xml version="1.0" encoding="UTF-8"?><TrackMate version="7.11.1"><Model spatialunits="micron" '
        f'timeunits="{clock}"><FeatureDeclarations><SpotFeatures>{declared}</SpotFeatures><EdgeFeatures/>'
        f'<TrackFeatures/></FeatureDeclarations><AllSpots nspots="3">{spots}</AllSpots><AllTracks>'
        f'<Track name="T" TRACK_ID="0">{edges}</Track></AllTracks><FilteredTracks><TrackID TRACK_ID="0"/>'
        f'</FilteredTracks></Model><Settings><ImageData filename="m.tif" folder="/x/" width="64" height="64" '
        f'nslices="1" nframes="3" pixelwidth="0.5" pixelheight="0.5" voxeldepth="1.0" '
        f'timeinterval="{interval}"/></Settings></TrackMate>'
    )
    return path


@pytest.mark.smoke
@pytest.mark.parametrize(("clock", "seconds"), [("sec", 2.0), ("min", 120.0), ("s", 2.0)])
def test_trackmate_keeps_times_contours_and_names(clock: str, seconds: float, tmp_path: Path) -> None:
    """Case 17."""
    path = trackmate(tmp_path / "m.xml", clock)
    succeed("convert", path, tmp_path / "o.xml")
    text = (tmp_path / "o.xml").read_text()
    assert text.count('ROI_N_POINTS="3">-1 -1 1 -1 0 1</Spot>') == 3
    assert 'timeunits="sec"' in text
    assert f'timeinterval="{seconds}"' in text
    assert [f'POSITION_T="{t * seconds}"' in text for t in range(3)] == [True] * 3
    for suffix in (".csv", ".parquet", ".geff", ".xml"):
        succeed("convert", path, tmp_path / f"a{suffix}")
        kept = read_tracks(tmp_path / f"a{suffix}").detections.features
        assert kept["time"].tolist() == [0, seconds, 2 * seconds], suffix
        assert kept["contour"].tolist() == ["-1 -1 1 -1 0 1"] * 3
        assert kept["name"].tolist() == ["a", "b", "a"]


def test_contours_are_drawn_as_labels(tmp_path: Path) -> None:
    trackmate(tmp_path / "m.xml")
    xml = (tmp_path / "m.xml").read_text().replace("-1 -1 1 -1 0 1<", "-1.2 -1.2 1.2 -1.2 1.2 1.2 -1.2 1.2<")
    (tmp_path / "m.xml").write_text(xml)
    metadata = {"axes": "TYX", "unit": "um"}
    tifffile.imwrite(
        tmp_path / "m.tif", np.zeros((3, 40, 40), np.uint8), imagej=True, metadata=metadata, resolution=(2, 2)
    )
    succeed("convert", tmp_path / "m.xml", tmp_path / "l.tif", "--image", tmp_path / "m.tif")
    labels = tifffile.imread(tmp_path / "l.tif").reshape(3, 40, 40)
    for t in range(3):
        y, x = np.nonzero(labels[t] == 1)
        assert (y.mean(), x.mean(), len(y)) == (18, 10 + 2 * t, 25)
    assert run("convert", tmp_path / "m.xml", tmp_path / "k.tif").exit_code == 2


def test_measurements_of_links_that_have_no_place_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = trackmate(tmp_path / "m.xml")
    feature = (
        '<EdgeFeatures><Feature feature="SPEED" name="s" dimension="NONE" isint="false"/></EdgeFeatures>'
    )
    path.write_text(path.read_text().replace("<EdgeFeatures/>", feature))
    read_tracks(path)
    assert "SPEED" in caplog.text
    caplog.clear()
    write_tracks(tmp_path / "o.isbi.xml", read_tracks(trackmate(tmp_path / "n.xml")))
    assert all(name in caplog.text for name in ("QUALITY", "time", "contour", "left out"))


def test_features_of_these_names_may_be_something_else(tmp_path: Path) -> None:
    features = {"time": np.array(["a", "b"]), "contour": np.array([1.5, 2.5]), "name": np.array([7, 8])}
    seen = Detections.from_table([0, 1], [[0, 0, 0], [0, 0, 1]], features=features)
    write_tracks(tmp_path / "a.xml", Tracks(seen, np.array([[0, 1]])))
    back = read_tracks(tmp_path / "a.xml").detections.features
    assert (back["contour"].tolist(), back["name"].tolist()) == ([1.5, 2.5], [7, 8])


@pytest.mark.smoke
def test_texts_go_through_all_commands(tmp_path: Path) -> None:
    rows = "".join(
        f"{t},{i},{10 * i},{10 * i + 0.3 * t},cell {i}\n" for t in (0, 1, 2, 4, 5) for i in range(4)
    )
    (tmp_path / "a.csv").write_text("frame,track_id,y,x,name\n" + rows)
    words = ("track", tmp_path / "a.csv", "-o", tmp_path / "t.csv", "--max-distance", 3, "--max-gap", 1)
    succeed(*words)
    for after in (
        ("filter", tmp_path / "t.csv", "-o", tmp_path / "f.csv", "--min-length", 2),
        ("convert", tmp_path / "t.csv", tmp_path / "g.csv", "--fill-gaps"),
        ("convert", tmp_path / "t.csv", tmp_path / "g.parquet"),
        ("track", tmp_path / "g.parquet", "-o", tmp_path / "s.parquet", "--stream", "--max-distance", 3),
        ("convert", tmp_path / "s.parquet", tmp_path / "s.geff"),
    ):
        succeed(*after)
    filled = read_tracks(tmp_path / "g.csv").detections
    assert filled.features["name"][filled.frame == 3].tolist() == [""] * 4
    assert sorted(read_tracks(tmp_path / "s.geff").detections.features["name"]) == sorted(
        read_tracks(tmp_path / "a.csv").detections.features["name"]
    )


# ---------------------------------------------------------------- GEFF


def geff_of(path: Path, *, named: bool = True, scaled: bool = False) -> None:
    """Cases 03 and 18: 40 particles in 8 frames, in voxels of 5 x 0.25 x 0.25; names and boxes."""
    geff, networkx = pytest.importorskip("geff"), pytest.importorskip("networkx")
    graph, rng = networkx.DiGraph(), np.random.default_rng(0)
    place = rng.random((40, 3)) * 50
    for t in range(8):
        for i, (z, y, x) in enumerate((place / [5, 0.25, 0.25]).tolist()):
            graph.add_node(t * 40 + i, t=t, z=z, y=y, x=x, name=f"A{i}", box=np.array([i, i + 1]))
        place = place + rng.normal(0, 0.8, place.shape)
    graph.add_edges_from((t * 40 + i, (t + 1) * 40 + i) for t in range(7) for i in range(40))
    axes = {}
    if named:
        axes = {"axis_names": ["t", "z", "y", "x"], "axis_types": ["time", "space", "space", "space"]}
    if scaled:
        axes |= {"axis_units": ["frame", "pixel", "pixel", "pixel"], "axis_scales": [30.0, 5.0, 0.25, 0.25],
                 "scaled_units": ["second", "micrometer", "micrometer", "micrometer"]}  # fmt: skip
    geff.write(graph, path, **axes)


def test_the_scale_of_axes_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Case 03."""
    geff_of(tmp_path / "a.geff", scaled=True)
    found = read_tracks(tmp_path / "a.geff")
    assert "multiplied by the scale" in caplog.text
    assert found.detections.unit == "micrometer"
    assert np.ptp(found.detections.position, axis=0).max() < 60
    assert np.unique(found.detections.features["time"]).tolist() == [30 * t for t in range(8)]
    succeed("track", tmp_path / "a.geff", "-o", tmp_path / "t.csv", "--max-distance", 5)
    ours = {tuple(link) for link in read_tracks(tmp_path / "t.csv").links.tolist()}
    theirs = {tuple(link) for link in found.links.tolist()}
    assert len(ours & theirs) > 0.99 * len(ours | theirs)
    succeed("convert", tmp_path / "a.geff", tmp_path / "b.geff")
    again = read_tracks(tmp_path / "b.geff").detections
    np.testing.assert_array_equal(again.position, found.detections.position)
    assert (again.unit, again.features["time"].max()) == ("micrometer", 210)
    assert '"scaled_unit": "second"' in (tmp_path / "b.geff/.zattrs").read_text()


@pytest.mark.parametrize("command", ["track", "measure"])
def test_a_second_scale_is_said(command: str, tmp_path: Path) -> None:
    geff_of(tmp_path / "a.geff", scaled=True)
    gate = ["--max-distance", 5] if command == "track" else []
    said = "already in micrometer, and --spacing multiplies them again"
    for spacing in ((), ("--spacing", 5, 0.25, 0.25)):
        done = run(command, tmp_path / "a.geff", "-o", tmp_path / "t.csv", *gate, *spacing, "--overwrite")
        assert (done.exit_code, said in done.stderr) == (0, bool(spacing)), done.stderr


@pytest.mark.parametrize("named", [True, False])
def test_names_of_nodes_and_axes_without_a_list(named: bool, tmp_path: Path) -> None:
    """Case 18."""
    geff_of(tmp_path / "a.geff", named=named)
    found = read_tracks(tmp_path / "a.geff")
    assert (len(found.detections), len(found.links)) == (320, 280)
    succeed("convert", tmp_path / "a.geff", tmp_path / "b.geff")
    kept = read_tracks(tmp_path / "b.geff").detections.features
    assert kept["name"][:3].tolist() == ["A0", "A1", "A2"]
    assert (kept["box_1"] - kept["box_0"] == 1).all()


# ---------------------------------------------------------------- time from images to tables


def test_the_interval_of_a_movie_reaches_the_tracks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y, x = np.ogrid[:48, :48]
    frames = [300 * np.exp(-((y - 12 - t) ** 2 + (x - 24) ** 2) / 4) + 20 for t in range(6)]
    voxels = rng.poisson(np.array(frames)).astype(np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", voxels, imagej=True, metadata={"axes": "TYX", "finterval": 0.5})
    succeed("detect", tmp_path / "a.tif", "-o", tmp_path / "s.csv", "--radius", 2)
    assert read_record(tmp_path / "s.csv")["interval"] == 0.5
    for suffix in (".csv", ".geff", ".xml"):
        succeed("track", tmp_path / "s.csv", "-o", tmp_path / f"t{suffix}", "--max-distance", 3)
        seen = read_detections(tmp_path / f"t{suffix}")
        np.testing.assert_allclose(seen.features["time"], seen.frame * 0.5)


# ---------------------------------------------------------------- the Cell Tracking Challenge's results


def ends_of(tracks: Tracks) -> set[tuple[float, ...]]:
    """Frames and places of the two ends of each link."""
    seen = np.column_stack([tracks.detections.frame, tracks.detections.position])
    return set(map(tuple, seen[tracks.links].reshape(-1, 8).tolist()))


def test_results_of_the_cell_tracking_challenge_are_read_back(tmp_path: Path) -> None:
    """A division after frame 1, a gap of one frame, and an object of no track."""
    masks = np.zeros((5, 20, 20), np.uint16)
    boxes = [(0, 5, 3, 3), (1, 7, 3, 4), (2, 2, 2, 5), (2, 9, 8, 4), (3, 2, 2, 6), (4, 4, 8, 4), (4, 6, 2, 7)]
    for t, label, y, x in boxes:
        masks[t, y : y + 3, x : x + 3] = label
    masks[0, 15:18, 15:18] = 3
    tifffile.imwrite(tmp_path / "m.tif", masks, photometric="minisblack", metadata={"axes": "TYX"})
    frame, label, y, x = np.array(boxes).T
    seen = Detections.from_table(
        frame, np.stack([0 * y, y + 1, x + 1], axis=1).astype(float), features={"label": label}
    )
    truth = Tracks(seen, np.array([[0, 1], [1, 2], [1, 3], [2, 4], [3, 5], [4, 6]]))
    write_tracks(tmp_path / "t.csv", truth)
    succeed("convert", tmp_path / "m.tif", tmp_path / "t.csv", tmp_path / "01_RES")
    assert (tmp_path / "01_RES/res_track.txt").read_text().splitlines()[0] == "1 0 1 0"
    back = read_tracks(tmp_path / "01_RES")
    assert ends_of(back) == ends_of(truth)
    assert run("convert", tmp_path / "m.tif", tmp_path / "t.csv", tmp_path / "01_RES").exit_code == 2
    (tmp_path / "01_RES/notes.txt").write_text("mine")
    done = run("convert", tmp_path / "m.tif", tmp_path / "t.csv", tmp_path / "01_RES", "--overwrite")
    assert (done.exit_code, (tmp_path / "01_RES/notes.txt").read_text()) == (2, "mine")
