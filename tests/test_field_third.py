"""Inputs of the kinds met in the field, at further doors: forms, many files, Python."""

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed

import outbid
from outbid import InputError, SettingsError, open_images
from outbid.particles.calibration import Calibration
from outbid.particles.detections import with_time

PLACES = np.array([(10, 10), (30, 50), (50, 20), (20, 35)], float)


def spots(*, white: bool = False, name: str = "m.tif") -> np.ndarray:
    """Four bright spots in four frames, in a TIFF file; the grey values."""
    yy, xx = np.mgrid[:64, :64]
    image = np.full((4, 64, 64), 20.0)
    for frame, (y, x) in [(t, place + 0.7 * t) for t in range(4) for place in PLACES]:
        image[frame] += 150 * np.exp(-((yy - y) ** 2 + (xx - x) ** 2) / 4.5)
    grey = np.random.default_rng(0).poisson(image).clip(0, 255).astype("u1")
    kind = "miniswhite" if white else "minisblack"
    tifffile.imwrite(name, 255 - grey if white else grey, photometric=kind, metadata={"axes": "TYX"})
    return grey


SCALE, SHIFT = (
    {"type": "scale", "scale": [20.0, 0.5, 0.5]},
    {"type": "translation", "translation": [0, 10, 20]},
)


def ome_zarr(name: str, of_level: list[dict], of_all: list[dict] | None = None) -> str:
    """The four spots as OME-Zarr in micrometers and seconds, with these coordinate transformations."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(name, mode="w", zarr_format=2)
    group.create_array("0", data=spots())
    axes = [{"name": "t", "type": "time", "unit": "second"}]
    axes += [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "yx"]
    each = {"path": "0", "coordinateTransformations": of_level}
    whole = {"version": "0.4", "axes": axes, "datasets": [each]}
    group.attrs["multiscales"] = [whole | ({} if of_all is None else {"coordinateTransformations": of_all})]
    return name


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("of_level", "of_all", "size", "origin"),
    [
        ([SCALE, SHIFT], None, 0.5, (10, 20)),
        ([SCALE, {"type": "identity"}], [SHIFT], 0.5, (10, 20)),
        (
            [{"type": "scale", "scale": [1, 0.5, 0.5]}, SHIFT],
            [{"type": "scale", "scale": [20, 1, 1]}],
            0.5,
            (10, 20),
        ),
        ([SCALE, SHIFT], [{"type": "scale", "scale": [1, 2, 2]}, SHIFT], 1.0, (30, 60)),
    ],
)  # fmt: skip
def test_transformations_of_a_level_and_of_all(
    of_level: list[dict], of_all: list[dict] | None, size: float, origin: tuple[float, float]
) -> None:
    movie = open_images(ome_zarr("m.zarr", of_level, of_all))
    assert movie.calibration == Calibration("micrometer", (1, size, size), 20.0, (0, *origin))
    succeed("detect", "m.zarr", "-o", "s.csv")
    found = outbid.read_detections("s.csv")
    first = found.position[found.frame == 0][:, 1:]
    assert np.abs(first[:, None] - (PLACES * size + origin)).max(axis=2).min(axis=1).max() < 0.2 * size


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "odd", [{"type": "scale", "scale": [20, 0.5]}, {"type": "scale", "path": "s"}, {"type": "affine"}]
)
def test_transformations_that_are_not_read_are_said(odd: dict, caplog: pytest.LogCaptureFixture) -> None:
    movie = open_images(ome_zarr("m.zarr", [SCALE, odd]))
    assert movie.spacing == (1, 0.5, 0.5)
    assert "is not read" in caplog.text


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("size", [0, -0.5, np.nan])
def test_sizes_of_voxels_must_be_above_0(size: float) -> None:
    name = ome_zarr("m.zarr", [{"type": "scale", "scale": [20, 0.5, size]}])
    with pytest.raises(InputError, match="--spacing"):
        open_images(name)
    assert open_images(name, spacing=(1, 2, 2)).spacing == (1, 2, 2)


# ---------------------------------------------------------------- radius, white is zero, labels


@pytest.mark.usefixtures("here")
def test_a_radius_larger_than_the_image_is_refused_in_python() -> None:
    grey = spots()
    for movie in ("m.tif", open_images("m.tif"), grey[:, None], list(grey[:, None]), iter(grey[:, None])):
        with pytest.raises(SettingsError, match=r"larger than half.*another unit"):
            outbid.detect(movie, radius=500)


@pytest.mark.usefixtures("here")
def test_remarks_reach_python_many_files_and_chunks(caplog: pytest.LogCaptureFixture) -> None:
    spots(white=True)
    spots(white=True, name="n.tif")
    outbid.detect("m.tif", radius=0.2, threshold=8)
    assert "white is zero" in caplog.text
    assert "0.2 px is smaller than half a voxel" in caplog.text
    done = succeed("detect", "m.tif", "n.tif", "--out-dir", "many", "--radius", 0.2, "--threshold", 8)
    for name in ("m.tif", "n.tif"):
        assert f"{name}: The file says that white is zero" in done.stderr
        assert f"{name}: The radius of 0.2 px" in done.stderr
    assert "white" not in succeed("detect", "m.tif", "--out-dir", "dark", "--dark").stderr
    outcome = run("detect", "m.tif", "--out-dir", "wide", "--radius", 500)
    assert outcome.exit_code == 3
    assert "another unit" in outcome.stderr


@pytest.mark.usefixtures("here")
def test_grey_values_of_little_noise_and_classes_are_said() -> None:
    rng = np.random.default_rng(1)
    smooth = np.cumsum(np.cumsum(rng.normal(0, 1, (2, 64, 64)), axis=1), axis=2)
    grey = np.rint(smooth / 40 + 30 + rng.normal(0, 0.3, smooth.shape)).clip(0).astype("u1")
    classes = np.kron(rng.integers(0, 3, (2, 12, 12)), np.ones((1, 5, 5), "i8")).astype("u1")
    labels = np.kron(np.arange(144).reshape(1, 12, 12), np.ones((2, 5, 5), "i8")).astype("u1")
    for name, image, said in (("g", grey, True), ("c", classes, True), ("l", labels, False)):
        tifffile.imwrite(f"{name}.tif", image, metadata={"axes": "TYX"})
        done = succeed("detect", f"{name}.tif", "--labels", "-o", f"{name}.csv")
        assert ("separate parts" in done.stderr) == said, name


def test_a_movie_in_one_array_is_named() -> None:
    with pytest.raises(InputError, match="open_images"):
        outbid.detect(np.zeros((3, 8, 8)))


# ---------------------------------------------------------------- tables

TRACKS = "track_id,frame,y,x,type,well no,code\n" + "".join(
    f"{track},{frame},{10 * track},{frame},{'B b' if track else 'A'},{'yes' if frame else 'no'},0{track}\n"
    for track in range(2)
    for frame in range(3)
)


@pytest.mark.usefixtures("here")
def test_rows_that_are_repeated_are_refused_as_such() -> None:
    head, *rows = TRACKS.splitlines(keepends=True)
    doubled = [row for row in rows for _ in range(2)]
    for count, lines in ((2, [*rows, *rows[2:4]]), (6, doubled), (6, [*rows[::-1], *rows])):
        Path("t.csv").write_text("".join([head, *lines]))
        with pytest.raises(InputError, match=rf"{count} rows repeat another one .* drop_duplicates"):
            outbid.read_tracks("t.csv")
    Path("t.csv").write_text("".join([head, *rows, "0,2,0,9,A,no,0\n"]))
    with pytest.raises(InputError, match="Track 0 has two detections in frame 2"):
        outbid.read_tracks("t.csv")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("type == A", 3), ("type=='A'", 3), ('type != "B b"', 3), ("type == B b", 3), ("'type' == A", 3),
        ("well no == yes", 4), ('"well no" == "no"', 2), ("code == 01", 3), ("code == 1", 3), ("y < 5", 3),
        ("y<=10", 6), ("mean(y)>5", 3), ("frame == '1'", 2), ("max( x ) == 2", 6),
    ],
)  # fmt: skip
def test_conditions_as_users_write_them(condition: str, kept: int) -> None:
    Path("t.csv").write_text(TRACKS)
    assert len(outbid.filter("t.csv", where=condition).detections) == kept
    succeed("filter", "t.csv", "-o", "o.csv", "--where", condition)
    assert len(outbid.read_detections("o.csv")) == kept


@pytest.mark.usefixtures("here")
def test_conditions_that_cannot_be_met_say_why(caplog: pytest.LogCaptureFixture) -> None:
    Path("t.csv").write_text(TRACKS)
    assert len(outbid.filter("t.csv", where="type == C").detections) == 0
    assert "No detection has 'C' in column 'type'. There are: 'A', 'B b'" in caplog.text
    for condition, code, said in (
        ("Type == A", 3, "Is 'type' meant?"), ("first(type) == A", 3, "type, well no"), ("== A", 2, "not a"),
        ("type > A", 2, "not a condition"), ("mean(type) == 3", 2, "texts"), ("x == A", 2, "holds numbers"),
        ("type == A and x > 1 or y", 0, ""),
    ):  # fmt: skip
        done = run("filter", "t.csv", "-o", "o.csv", "--overwrite", "--where", condition)
        assert (done.exit_code, said in done.stderr) == (code, True), (condition, done.output)
    assert "No detection has 'A and x > 1 or y'" in done.stderr


@pytest.mark.usefixtures("here")
def test_tables_of_motion_are_packed() -> None:
    Path("t.csv").write_text(TRACKS)
    succeed("measure", "t.csv", "-o", "m.csv.gz", "--groups", "g.tsv.gz")
    succeed("measure", "t.csv", "-o", "m.csv", "--groups", "g.tsv")
    for name in ("m.csv", "g.tsv"):
        assert gzip.decompress(Path(f"{name}.gz").read_bytes()) == Path(name).read_bytes()
    assert outbid.read_record("m.csv.gz")["command"] == "measure"


@pytest.mark.usefixtures("here")
def test_axes_in_several_units_are_converted_or_refused() -> None:
    rows = "0,100,1,1\n1,200,1,2\n"
    for names, unit, depth in (
        ("z_nm,y_um,x_um", "micrometer", 0.1), ("z [nm],y [px],x [px]", None, 0),
        ("z,y [um],x [um]", "micrometer", 100),
        ("z (nm),y (pixel),x (pixel)", None, 0), ("z,y,x", "pixel", 100),
    ):  # fmt: skip
        Path("t.csv").write_text(f"frame,{names}\n{rows}")
        z, *others = names.split(",")
        if z != "z" or "[" in names:
            assert_refused(run("track", "t.csv", "-o", "o.csv", "--overwrite"), 3, "another unit")
        done = run(
            "track", "t.csv", "-o", "o.csv", "--overwrite", "--max-distance", 500, "--columns", f"z={z}"
        )
        if unit is None:
            assert_refused(done, 3, "several units", "nanometer")
            continue
        found = outbid.read_tracks("o.csv").detections
        assert (found.unit, found.position[0].tolist()) == (unit, [depth, 1, 1]), others


# ---------------------------------------------------------------- units that differ or are lost


def walk_in(unit: str, factor: float = 1, interval: float | None = 20.0) -> outbid.Tracks:
    """Ten particles over six frames in this unit."""
    place = (
        np.cumsum(np.random.default_rng(0).normal(0, 0.3, (6, 10, 3)), axis=0) + 10 * np.arange(10)[:, None]
    )
    seen = outbid.Detections.from_table(np.repeat(np.arange(6), 10), factor * place.reshape(-1, 3), unit=unit)
    seen = seen if interval is None else with_time(seen, interval)
    return outbid.Tracks.from_track_ids(seen, np.tile(np.arange(10), 6))


def test_scores_of_tracks_in_another_unit() -> None:
    truth = walk_in("micrometer")
    found = outbid.score(walk_in("nanometer", 1000), truth)
    assert (found["link_f1"], found.gate.unit, found.remark.count("compared")) == (1, "micrometer", 0)
    assert "in pixel, the truth in micrometer" in outbid.score(walk_in("pixel"), truth).remark


@pytest.mark.usefixtures("here")
def test_one_table_of_a_set_in_several_units() -> None:
    outbid.write_tracks("a.csv", walk_in("micrometer"))
    outbid.write_tracks("b.csv", walk_in("nanometer", 1000))
    succeed("measure", "a.csv", "b.csv", "-o", "m.csv", "--groups", "g.csv")
    groups = np.genfromtxt("g.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    one, other = groups["diffusion_um2_per_s"]
    assert one == pytest.approx(other)
    outbid.write_tracks("c.csv", walk_in("micrometer", 1, 10.0))
    outbid.write_tracks("d.csv", walk_in("pixel"))
    outbid.write_tracks("e.csv", walk_in("micrometer"))
    done = run("measure", "a.csv", "c.csv", "e.csv", "-o", "n.csv")
    assert_refused(done, 2, "(10 s: c; 20 s: a and 1 more)", "once for each interval")
    succeed("measure", "a.csv", "c.csv", "-o", "o.csv", "--interval", 20)
    assert_refused(run("measure", "a.csv", "d.csv", "-o", "n.csv"), 2, "px, 20 s", "--spacing")


@pytest.mark.usefixtures("here")
def test_a_table_whose_record_is_gone_says_so(caplog: pytest.LogCaptureFixture) -> None:
    outbid.write_tracks("a.csv", walk_in("micrometer"))
    outbid.write_tracks("b.csv", walk_in("pixel", 1, None))
    outbid.read_tracks("a.csv")
    outbid.read_tracks("b.csv")
    assert not caplog.records
    Path("a.csv.json").unlink()
    outbid.read_tracks("a.csv")
    assert "no run record (a.csv.json) states the unit: positions are taken for pixels" in caplog.text
    done = succeed("measure", "a.csv", "-o", "m.csv")
    assert done.stderr.count("states the unit") == 1


@pytest.mark.usefixtures("here")
def test_names_that_are_not_utf8_at_further_doors() -> None:
    def name(end: str) -> str:
        return os.fsdecode(b"5\xb5m") + end

    spots(name=name(".tif"))
    outbid.write_tracks(name(".csv"), walk_in("pixel", 1, None))
    Path("sub").mkdir()
    shutil.copy(name(".csv"), "sub")
    succeed(
        "measure", name(".csv"), f"sub/{name('.csv')}", "-o", "m.csv", "--groups", "g.xlsx", "--plot", "p.png"
    )
    succeed("report", name(".csv"), "--movie", name(".tif"), "-o", name(".html"))
    succeed("convert", name(".csv"), name(".xml"), "--image", name(".tif"))
    succeed("convert", name(".csv"), name(".pq"))
    succeed("track", name(".pq"), "-o", name("_t.pq"), "--stream", "--max-distance", 3)
    assert outbid.read_tracks(name(".xml")).track_count == 10
    Path(ome_zarr("z.zarr", [SCALE])).rename(name(".zarr"))
    done = run("detect", name(".zarr"), "-o", "s.csv")
    assert done.exit_code == 0 or "Rename it" in done.stderr
