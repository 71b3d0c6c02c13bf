"""Movies that are watched while they are recorded: as they come, and what the last pass makes of them."""

import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile
from commands import assert_refused, run, succeed
from recordings import files_in, images_of, recorded, truth_of, write_frame

from outbid import InputError, SettingsError, read_detections, read_tracks, write_detections
from outbid.watching.account import How
from outbid.watching.ending import sentence_of
from outbid.watching.order import InOrder
from outbid.watching.watch import watch

FRAMES = 14
TRUTH = truth_of(FRAMES, particles=18, side=64)
IMAGES = images_of(TRUTH, FRAMES, (1, 64, 64))
QUICK = How(idle=1.5, wait=0.5, poll=0.02, learn=6, keep=True)


def same_as_the_commands(source: Path, made: Path, folder: Path, *options: object) -> None:
    """The last pass has written the bytes of `outbid detect` and `outbid track`."""
    folder.mkdir()
    spots, tracks = folder / f"{made.stem}_detections.parquet", folder / made.name
    succeed("detect", source, "-o", spots, *options)
    succeed("track", spots, "-o", tracks)
    before = files_in(made.parent)
    assert before[spots.name] == spots.read_bytes()
    assert before[made.name] == tracks.read_bytes()


@pytest.mark.smoke
def test_frames_in_the_order_of_their_numbers() -> None:
    order = InOrder(wait=5.0, hold=3)
    order.add([8, 4], now=0.0)
    assert order.next(now=0.0) is None
    order.add([6], now=0.1)
    taken = [(order.next(now=0.2), order.done()) for _ in range(3)]
    assert taken == [(4, 0), (6, 1), (8, 2)]
    order.add([12], now=1.0)
    assert order.next(now=5.9) is None
    assert (order.next(now=6.0), order.done(), order.missing) == (12, 4, 1)
    assert order.add([10, 11, 14], now=7.0) == [10, 11]
    assert (order.late, order.next(now=7.0)) == (2, 14)
    assert not order.failed(now=7.1)
    assert order.failed(now=12.0)
    assert (order.missing, order.frame, len(order)) == (2, 5, 0)
    other = InOrder(wait=5.0)
    other.add([14, 16], now=0.0)
    assert other.restore(order.state()) == [14]
    assert (other.next(now=0.0), other.done()) == (16, 6)


def test_numbers_that_do_not_count_frames() -> None:
    order = InOrder(wait=5.0, hold=3)
    order.add([101500, 101530, 101507], now=0.0)
    taken = []
    while (number := order.next(now=0.0)) is not None:
        taken.append((number, order.done()))
    assert taken == [(101500, 0), (101507, 1), (101530, 2)]
    assert order.missing == 0


def test_a_folder_with_half_files_others_out_of_order_and_one_that_never_comes(tmp_path: Path) -> None:
    folder, out = tmp_path / "images", tmp_path / "out"
    folder.mkdir()
    out.mkdir()

    def write() -> None:
        for k in (0, 1, 2, 3, 4, 5, 7, 6, 8, 10, 11, 12, 13):  # 9 is missing
            whole = io.BytesIO()
            tifffile.imwrite(whole, IMAGES[k, 0])
            path, content = folder / f"img_{k:04d}.tif", whole.getvalue()
            path.write_bytes(content[: len(content) // 2])
            time.sleep(0.06)
            path.write_bytes(content)
            time.sleep(0.02)

    record = recorded(write, lambda: watch(folder, out / "tracks.parquet", how=QUICK))
    live = record["live"]
    assert (live["frames"], live["missing"], live["late"], live["ended"]) == (13, 1, 0, "idle")
    assert (live["detection_learned_from"], live["linking_learned_from"]) == (6, 6)
    same_as_the_commands(folder, out / "tracks.parquet", tmp_path / "afterwards")
    as_linked, changed = read_tracks(out / "tracks.live.parquet"), record["links_changed"]
    assert 9 not in as_linked.detections.frame
    assert changed["links_live"] == len(as_linked.links)
    assert changed["kept"] > 0.85 * changed["links"]
    written = json.loads((out / "tracks.watch.json").read_text("utf-8"))
    assert written["links_changed"] == changed


def test_a_folder_whose_camera_begins_again_is_refused_and_its_tracks_stay(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()

    def write() -> None:
        for k in range(10):
            write_frame(folder, k, IMAGES[k])
        time.sleep(3)
        write_frame(folder, 0, IMAGES[3])

    with pytest.raises(InputError, match=r"img_0000\.tif was written again"):
        recorded(write, lambda: watch(folder, tmp_path / "tracks.parquet", how=How(poll=0.02, learn=6)))
    assert read_tracks(tmp_path / "tracks.parquet").detections.frame.max() == 9


def test_a_file_that_stays_half_counts_as_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for k in range(10):
        path = write_frame(folder, k, IMAGES[k])
        if k == 7:
            path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match="img_0007"):  # as `outbid detect` says of the whole movie
        watch(folder, tmp_path / "tracks.parquet", how=QUICK)
    assert "Frame 7 cannot be read" in caplog.text
    assert set(read_tracks(tmp_path / "tracks.parquet").detections.frame.tolist()) == {*range(10)} - {7}
    (folder / "img_0007.tif").unlink()
    done = succeed("watch", folder, "-o", tmp_path / "tracks.parquet", "--learn", 6, "--json")
    record = json.loads(done.stdout)
    assert record["links_changed"]["kept"] > 100
    assert f" Events: 0. {sentence_of(record, tmp_path / 'tracks.parquet')}" in done.stderr


def test_a_big_tiff_that_grows_page_by_page(tmp_path: Path) -> None:
    path, out = tmp_path / "movie.tif", tmp_path / "out"
    out.mkdir()

    def write() -> None:
        with tifffile.TiffWriter(path, bigtiff=True) as file:
            for image in IMAGES:
                file.write(image[0], contiguous=False)
                time.sleep(0.05)

    time.sleep(0.05)
    record = recorded(write, lambda: watch(path, out / "tracks.parquet", how=QUICK))
    assert (record["live"]["frames"], record["live"]["missing"]) == (FRAMES, 0)
    same_as_the_commands(path, out / "tracks.parquet", tmp_path / "afterwards")


def test_ome_tiff_of_several_files(tmp_path: Path) -> None:
    """One header names all files, which come one after the other."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    whole.mkdir()
    out.mkdir()
    names, half = ("a_0.ome.tif", "a_1.ome.tif"), FRAMES // 2
    planes = "".join(
        f'<TiffData FirstT="{t}" FirstZ="0" FirstC="0" IFD="{t % half}" PlaneCount="1">'
        f'<UUID FileName="{names[t // half]}">urn:uuid:0000000{t // half}-0000-0000-0000-000000000000</UUID>'
        "</TiffData>"
        for t in range(FRAMES)
    )
    header = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
        'UUID="urn:uuid:0000000{}-0000-0000-0000-000000000000"><Image ID="Image:0"><Pixels ID="Pixels:0" '
        f'DimensionOrder="XYZCT" Type="uint16" SizeX="64" SizeY="64" SizeZ="1" SizeC="1" SizeT="{FRAMES}">'
        f'<Channel ID="Channel:0:0" SamplesPerPixel="1"/>{planes}</Pixels></Image></OME>'
    )

    def write() -> None:
        for number, name in enumerate(names):
            with tifffile.TiffWriter(tmp_path / name) as file:
                for k in range(half):
                    text = header.format(number) if k == 0 else None
                    file.write(
                        IMAGES[number * half + k, 0], contiguous=False, description=text, metadata=None
                    )
                    time.sleep(0.04)

    source = tmp_path / names[0]
    record = recorded(write, lambda: watch(source, out / "tracks.parquet", how=QUICK))
    assert (record["live"]["frames"], record["live"]["missing"]) == (FRAMES, 0)
    same_as_the_commands(source, out / "tracks.parquet", tmp_path / "afterwards")


@pytest.mark.parametrize("grows", [False, True], ids=["sizes are stated", "sizes grow"])
def test_ome_zarr(tmp_path: Path, grows: bool) -> None:
    zarr = pytest.importorskip("zarr")
    path, out = tmp_path / "movie.ome.zarr", tmp_path / "out"
    out.mkdir()

    def write() -> None:
        group = zarr.open_group(path, mode="w")
        axes = [{"name": "t", "type": "time"}] + [{"name": a, "type": "space"} for a in "zyx"]
        scale = [{"type": "scale", "scale": [1.0, 1.0, 1.0, 1.0]}]
        stated = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        group.attrs["ome"] = {"version": "0.5", "multiscales": [stated]}
        frames = 0 if grows else FRAMES
        array = group.create_array(
            "0", shape=(frames, *IMAGES.shape[1:]), chunks=(1, 1, 32, 64), dtype="uint16",
            dimension_names=list("tzyx"),
        )  # fmt: skip
        for k, image in enumerate(IMAGES):
            if grows:
                array.resize((k + 1, *IMAGES.shape[1:]))
            array[k] = image
            time.sleep(0.05)

    record = recorded(write, lambda: watch(path, out / "tracks.parquet", how=QUICK))
    assert (record["live"]["frames"], record["live"]["missing"]) == (FRAMES, 0)
    same_as_the_commands(path, out / "tracks.parquet", tmp_path / "afterwards")


def table(tmp_path: Path) -> tuple[str, list[list[str]]]:
    """Header and rows by frame of a table of the true positions."""
    write_detections(tmp_path / "all.csv", TRUTH.detections)
    header, *rows = (tmp_path / "all.csv").read_text("utf-8").splitlines(keepends=True)
    return header, [[row for row in rows if row.startswith(f"{k},")] for k in range(FRAMES)]


def test_a_table_that_grows(tmp_path: Path) -> None:
    header, rows = table(tmp_path)
    path, out = tmp_path / "spots.csv", tmp_path / "out"
    out.mkdir()

    def write() -> None:
        with path.open("w", encoding="utf-8") as file:
            file.write(header)
            for row in (row for frame in rows for row in frame):
                file.write(row[: len(row) // 2])
                file.flush()
                file.write(row[len(row) // 2 :])
                file.flush()
                time.sleep(0.001)

    record = recorded(write, lambda: watch(path, out / "tracks.parquet", how=QUICK))
    assert (record["live"]["frames"], record["live"]["missing"]) == (FRAMES, 0)
    assert len(read_tracks(out / "tracks.live.parquet").detections) == len(TRUTH.detections)
    succeed("track", path, "-o", tmp_path / "tracks.parquet")
    assert (tmp_path / "tracks.parquet").read_bytes() == (out / "tracks.parquet").read_bytes()


def test_the_stop_file_the_last_frame_and_what_is_refused(tmp_path: Path) -> None:
    folder, output = tmp_path / "images", tmp_path / "tracks.parquet"
    folder.mkdir()
    for k in range(8):
        write_frame(folder, k, IMAGES[k])
    (tmp_path / "end").touch()
    record = watch(folder, output, how=How(stop_file=tmp_path / "end", poll=0.02))
    assert record["live"]["ended"] == "stop file"
    assert not (tmp_path / "end").exists()
    assert len(read_tracks(output).detections) > 100  # the last pass has all frames
    with pytest.raises(SettingsError, match="exists"):
        watch(folder, output)
    for k in range(8, 12):
        write_frame(folder, k, IMAGES[k])
    record = watch(folder, output, how=How(until=7, poll=0.02, learn=4), overwrite=True)
    assert (record["live"]["ended"], record["live"]["frames"]) == ("last frame", 8)
    watching = "watch", folder, "-o"
    assert_refused(run(*watching, tmp_path / "tracks.csv"), 2, ".parquet")
    assert_refused(run("watch", tmp_path / "none", "-o", tmp_path / "a.parquet"), 3, "is not there")
    assert_refused(run("watch", "s3://a/b.zarr", "-o", tmp_path / "a.parquet"), 2, "follows files")
    assert_refused(
        run(*watching, tmp_path / "a.parquet", "--when", "often"), 2, "not a condition", "division"
    )
    assert run(*watching, tmp_path / "a.parquet", "--do", "cat").exit_code == 2
    assert not list(tmp_path.glob("a.*"))


def test_a_frame_that_comes_while_nobody_looks_is_not_missing(tmp_path: Path) -> None:
    """Frame 8 is overtaken, and comes while the run is busy for longer than a frame is waited for."""
    folder, said = tmp_path / "images", list[str]()
    folder.mkdir()
    for k in range(8):
        write_frame(folder, k, IMAGES[k])

    def busy(done: int, known: int, _text: str = "") -> None:
        if done == 8 and not said:
            said.append("others come")
            for k in range(9, 12):
                write_frame(folder, k, IMAGES[k])
        elif done == 8 and known > 8 and len(said) == 1:
            said.append("it comes")
            write_frame(folder, 8, IMAGES[8])
            time.sleep(0.6)

    how = How(until=11, wait=0.3, poll=0.02, learn=6)
    live = watch(folder, tmp_path / "tracks.parquet", how=how, progress=busy)["live"]
    assert len(said) == 2
    assert (live["frames"], live["missing"], live["late"]) == (12, 0, 0)


def test_a_run_that_was_killed_in_the_last_pass_states_what_happened_before(tmp_path: Path) -> None:
    folder, output = tmp_path / "images", tmp_path / "tracks.parquet"
    folder.mkdir()
    for k in range(10):
        if k != 7:
            write_frame(folder, k, IMAGES[k])
    how, when = How(until=9, poll=0.02, learn=6, wait=0.1, keep=True), ["y > 32"]
    first = watch(folder, output, how=how, when=when)
    assert (first["live"]["frames"], first["live"]["missing"]) == (9, 1)
    assert first["live"]["events"] > 3
    before = files_in(tmp_path)
    output.unlink()  # it is not whole yet: the folder of the live tracks says that the recording has ended
    assert watch(folder, output, how=how, when=when) == first
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("name", ["empty", "none.tif", "none.zarr", "head.csv", "none.csv"])
def test_where_no_frame_comes_the_same_command_can_be_given_again(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "head.csv").write_text("frame,y,x\n")
    done = run("watch", tmp_path / name, "-o", tmp_path / "a.parquet", "--idle", 0.2, "--poll", 0.05)
    assert_refused(done, 3, "No frame came to", "give the same command again")
    assert not list(tmp_path.glob("a.*"))


def test_detections_as_they_come_are_nearly_those_of_the_last_pass(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    for k in range(FRAMES):
        write_frame(folder, k, IMAGES[k])
    watch(folder, tmp_path / "tracks.parquet", how=How(until=FRAMES - 1, poll=0.02, learn=6, keep=True))
    live = read_detections(tmp_path / "tracks.live.parquet")
    last = read_detections(tmp_path / "tracks_detections.parquet")
    assert abs(len(live) - len(last)) <= 0.02 * len(last)
    paired = [
        np.linalg.norm(live.position[live.rows_of(k)][:, None] - last.position[last.rows_of(k)], axis=2).min(
            axis=1
        )
        for k in range(FRAMES)
    ]
    assert np.median(np.concatenate(paired)) < 0.02
