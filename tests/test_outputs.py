"""No data lost: what an output never replaces, and what is left of a run that was killed."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from commands import assert_refused, run, succeed, written

from outbid import Detections, SettingsError, Tracks, read_record, read_tracks, write_tracks
from outbid.formats import read_detections, write_detections
from outbid.formats.files import outputs
from outbid.formats.files.outputs import write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX locks and modes")

STREAM = "track st.parquet -o out.parquet --max-distance 4 --stream"
TWO = Tracks(Detections.from_table([0, 1], [[0, 5, 7], [1, 5, 8]]), np.array([[0, 1]]))


@pytest.fixture
def folder(here: Path) -> Path:
    """A working folder with tracks in st.csv and their record beside it."""
    write_tracks("st.csv", TWO, record={"rows": 2})
    return here


def content(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---------------------------------------------------------------- the record beside an output


@pytest.mark.smoke
@pytest.mark.parametrize("precious", ["precious\n", '{"mine": 1}\n', "[1]", '{"version": 1, "command": "x"}'])
@pytest.mark.parametrize("overwrite", [(), ("--overwrite",)])
@pytest.mark.parametrize("output", ["out.csv", "out.isbi.xml"])
def test_a_file_that_is_no_record_of_ours_stays(
    output: str, overwrite: tuple[str, ...], precious: str, folder: Path
) -> None:
    (folder / "mine.json").write_text(precious)
    (folder / f"{output}.json").symlink_to("mine.json")
    before = content(folder)
    done = run("convert", "st.csv", output, *overwrite)
    assert_refused(done, 2, f"{output}.json", "choose another name")
    assert content(folder) == before


@pytest.mark.parametrize("record", [None, {"rows": 2}])
def test_python_neither_replaces_nor_deletes_it(record: dict[str, object] | None, folder: Path) -> None:
    write_tracks("out.csv", TWO)
    (folder / "out.csv.json").write_text("precious")
    with pytest.raises(SettingsError, match=r"out\.csv\.json"):
        write_tracks("out.csv", TWO, record=record, overwrite=True)
    with pytest.raises(SettingsError, match=r"out\.csv\.json"):
        write_detections("out.csv", TWO.detections, record=record, overwrite=True)
    assert (folder / "out.csv.json").read_text() == "precious"


def test_every_command_that_writes_leaves_it(folder: Path) -> None:
    for output in ("out.csv", "kappa.csv"):
        (folder / f"{output}.json").write_text("precious")
    (folder / "masks").mkdir()
    for command in (
        "track st.csv -o out.csv --max-distance 4",
        "detect masks -o out.csv",
        "simulate -o truth.csv --detections out.csv",
        "simulate -o out.csv",
        "experiment kappa --quick -o .",
    ):
        assert_refused(run(*command.split(), "--overwrite"), 2, ".csv.json")
    assert {path.name for path in folder.iterdir()} == {
        "st.csv", "st.csv.json", "masks", "out.csv.json", "kappa.csv.json"
    }  # fmt: skip


def test_a_record_is_a_part_of_the_output(folder: Path) -> None:
    (folder / "st.csv").rename("moved.csv")
    assert_refused(run("convert", "moved.csv", "st.csv"), 2, "st.csv.json", "--overwrite")
    assert read_record("st.csv.json") == {"rows": 2}
    succeed("convert", "moved.csv", "st.csv", "--overwrite")
    assert read_record("st.csv")["command"] == "convert"
    write_tracks("st.csv", TWO, overwrite=True)
    assert not (folder / "st.csv.json").exists()


def test_records_of_the_first_version_are_known(folder: Path) -> None:
    (folder / "st.csv.json").write_text('{"command": "track", "version": "0.1.0", "input": null}')
    write_tracks("st.csv", TWO, overwrite=True)
    assert not (folder / "st.csv.json").exists()


# ---------------------------------------------------------------- an output that is an input


@pytest.mark.smoke
@pytest.mark.parametrize("link", [None, Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("command", ["track {} -o {} --max-distance 4", "convert {} {}"])
def test_an_input_is_never_replaced(command: str, link: object, folder: Path) -> None:
    before = content(folder)
    output = "st.csv"
    if link is not None:
        output = "link.csv"
        link(folder / output, folder / "st.csv")  # type: ignore[operator]
        before[output] = before["st.csv"]
    assert_refused(run(*command.format("st.csv", output).split(), "--overwrite"), 2, output, "input st.csv")
    assert content(folder) == before


def test_a_stream_never_replaces_its_input(folder: Path) -> None:
    write_tracks("st.parquet", TWO)
    before = content(folder)
    assert_refused(run(*STREAM.replace("out", "st").split(), "--overwrite"), 2, "input st.parquet")
    assert content(folder) == before


def test_what_is_read_beside_an_input_or_in_its_folder_stays(folder: Path) -> None:
    (folder / "a-spots.csv").write_text("ID,frame,y,x\n1,0,1,1\n2,1,1,1\n")
    (folder / "a-edges.csv").write_text("SPOT_SOURCE_ID,SPOT_TARGET_ID\n1,2\n")
    (folder / "page.html").symlink_to("st.csv")
    (folder / "movie").mkdir()
    (folder / "movie" / "0.png").write_text("a picture")
    before = content(folder)
    for command, named in (
        ("convert a-spots.csv a-edges.csv", "a-edges.csv"),
        ("report st.csv -o page.html", "st.csv"),
        ("view movie --screenshot movie/0.png", "movie"),
    ):
        assert_refused(run(*command.split(), "--overwrite"), 2, f"input {named}")
    assert content(folder) == before


def test_two_outputs_are_two_files(folder: Path) -> None:
    (folder / "link.csv").symlink_to("truth.csv")
    assert_refused(run("simulate", "-o", "truth.csv", "--detections", "link.csv"), 2, "file of --output")


def test_a_link_that_leads_nowhere_is_refused_at_once(folder: Path) -> None:
    (folder / "round.csv").symlink_to("round.csv")
    (folder / "away.csv").symlink_to("gone/away.csv")
    for output, said in (("round.csv", "to itself"), ("away.csv", "gone")):
        assert_refused(run("convert", "st.csv", output, "--overwrite"), 2, output, said)


# ---------------------------------------------------------------- folders


@pytest.fixture
def geff(folder: Path) -> Path:
    """A GEFF of ours."""
    pytest.importorskip("geff", reason="GEFF is not installed: pip install 'outbid[geff]'")
    write_tracks("a.geff", TWO, record={"rows": 2})
    return folder / "a.geff"


@pytest.mark.parametrize(
    "foreign", ["notes.txt", "image/.zarray", "image/0.0", "nodes/notes.txt", "nodes/props/x/values/a.png"]
)
def test_a_geff_with_more_in_it_is_not_replaced(foreign: str, geff: Path) -> None:
    (geff / foreign).parent.mkdir(exist_ok=True)
    (geff / foreign).write_text("{}")
    before = content(geff)
    assert_refused(run("convert", "st.csv", geff, "--overwrite"), 2, "a.geff", "another kind", foreign)
    assert content(geff) == before


def test_no_other_zarr_is_replaced(geff: Path, folder: Path) -> None:
    box = folder / "box.geff"
    (box / "image").mkdir(parents=True)
    for group in (box, box / "image"):
        (group / ".zgroup").write_text('{"zarr_format": 2}')
    assert_refused(run("convert", "st.csv", box, "--overwrite"), 2, "box.geff", "another kind")
    shutil.copytree(geff, box / "tracks")  # it reads as a GEFF, and is more
    assert_refused(run("convert", "st.csv", box, "--overwrite"), 2, "box.geff", "another kind")
    assert len(read_tracks(box).links) == 1


def test_a_geff_is_replaced_also_in_zarr_3_or_damaged(geff: Path) -> None:
    from geff.core_io import read_to_memory, write_arrays

    found = read_to_memory(geff)
    shutil.rmtree(geff)
    write_arrays(
        geff, found["node_ids"], found["node_props"], found["edge_ids"], found["edge_props"],
        found["metadata"], zarr_format=3,
    )  # fmt: skip
    write_tracks(geff, TWO, overwrite=True)
    shutil.rmtree(geff / "nodes/ids")
    write_tracks(geff, TWO, overwrite=True)
    assert len(read_tracks(geff).links) == 1


@pytest.mark.parametrize(
    "name", ["formats/intracktive/ctc_hela_example.geff", "mouse_geff/mouse-20250719.zarr/tracks"]
)
def test_real_geffs_are_known(name: str, real_data: Path) -> None:
    from outbid.formats.graphs.geff_checks import foreign

    assert foreign(real_data / name) is None


def test_a_geff_is_replaced_through_a_link(geff: Path, folder: Path) -> None:
    geff.chmod(0o750)
    (folder / "link.geff").symlink_to("a.geff")
    write_tracks("link.geff", TWO, record={"rows": 3}, overwrite=True)
    assert (folder / "link.geff").is_symlink()
    assert read_record(geff) == {"rows": 3}
    assert stat.S_IMODE(geff.stat().st_mode) == 0o750
    assert {path.name for path in folder.iterdir()} == {"st.csv", "st.csv.json", "a.geff", "link.geff"}


def test_a_geff_that_is_the_input_stays(geff: Path, folder: Path) -> None:
    (folder / "link.geff").symlink_to("a.geff")
    before = content(geff)
    for source, output in (("a.geff", "a.geff"), ("a.geff", "link.geff"), ("link.geff", "a.geff")):
        assert_refused(run("convert", source, output, "--overwrite"), 2, f"input {source}")
    assert content(geff) == before


# ---------------------------------------------------------------- what a killed run leaves


KILLED = """
import os, sys
from pathlib import Path
from outbid.formats.files.outputs import write_whole
touch = Path.touch
def die(self, **how):
    touch(self, **how)
    os.kill(os.getpid(), 9)
if sys.argv[2] == "at the trial":
    Path.touch = die
write_whole(Path(sys.argv[1]), lambda file: os.kill(os.getpid(), 9), overwrite=True)
"""


@pytest.mark.parametrize("when", ["at the trial", "while it writes"])
def test_the_next_run_removes_what_a_killed_one_left(
    when: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, "out.csv", when], check=False)
    (left,) = folder.glob("out.csv.*.tmp")
    assert killed.returncode == -9
    other = written(folder / "out.csv.notes.tmp", "precious")

    def write(_file: object) -> None:
        """Another run at the same output leaves alone what one that lives has begun."""
        write_tracks("out.csv", TWO)
        assert len(list(folder.glob("out.csv.*.tmp"))) == 2

    write_whole(folder / "out.csv", write, overwrite=True)
    assert caplog.messages == [f"{left} was left by a run that was killed: removed."]
    assert {path.name for path in folder.iterdir()} == {"st.csv", "st.csv.json", "out.csv", other.name}


@pytest.mark.smoke
@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_geff_survives_a_kill_between_its_moves(
    moves: int, geff: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, discard, done = Path.replace, outputs._discard, []

    def left(
        temporary: Path, final: Path
    ) -> bool:  # what is killed removes nothing; a trial file is gone by then
        return False if temporary.is_dir() else discard(temporary, final)

    def die(self: Path, target: Path) -> Path:
        if self.name in (geff.name, outputs.AFTER):  # zarr moves files of its own
            if len(done) == moves:
                raise SystemExit
            done.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        patch.setattr(outputs, "_discard", left)
        if moves == 2:
            write_tracks(geff, TWO, record={"rows": 3}, overwrite=True)
        else:
            with pytest.raises(SystemExit):
                write_tracks(geff, TWO, record={"rows": 3}, overwrite=True)
    assert geff.exists() == (moves != 1)
    done = run("convert", "st.csv", geff)
    report, refusal = done.stderr.splitlines()
    assert (done.exit_code, f"{geff} exists" in refusal) == (2, True)
    assert ("what it was replacing is at" in report) == (moves == 1)
    assert read_record(geff) == {"rows": 3 if moves == 2 else 2}
    assert len(list(folder.iterdir())) == 3


def test_an_interruption_between_the_moves_puts_the_folder_back(
    geff: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == outputs.AFTER:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_tracks(geff, TWO, record={"rows": 3}, overwrite=True)
    assert read_record(geff) == {"rows": 2}
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_the_mode_of_what_is_replaced_is_kept(mode: int, folder: Path) -> None:
    write_tracks("st.parquet", TWO)
    names = ["st.csv", "st.csv.json", "st.parquet", "out.parquet"]
    shutil.copy("st.parquet", "out.parquet")
    for name in names:
        (folder / name).chmod(mode)
    write_tracks("st.csv", TWO, record={"rows": 3}, overwrite=True)
    succeed(*STREAM.split(), "--overwrite")
    write_tracks("st.parquet", TWO, overwrite=True)
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in names} == {mode}
    assert read_record("st.csv") == {"rows": 3}


# ---------------------------------------------------------------- runs that are resumed


RESUMED = """
import sys, time
from pathlib import Path
from outbid.formats.tables.parts import Parts
with Parts(Path("out.parquet"), {"rows": 2}, overwrite=False, resume=False) as parts:
    while not list(parts.folder.glob("whole.parquet.*.tmp")):  # until its thread has begun the output
        time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_no_run_is_resumed_beside_one_that_lives(folder: Path) -> None:
    write_tracks("st.parquet", TWO)
    with subprocess.Popen(
        [sys.executable, "-c", RESUMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    ) as living:
        assert living.stdout.readline() == b"ready\n"
        before = content(folder)
        for option in ("--resume", "--stream"):
            done = run(*STREAM.split(), option)
            assert_refused(done, 2, "out.parquet.parts", f"process {living.pid} on")
        assert content(folder) == before
        living.kill()
    report, refusal = run(*STREAM.split()).stderr.splitlines()
    assert f"process {living.pid}" in report
    assert "which was killed: its lock is taken" in report
    assert "left of an interrupted run" in refusal


def test_a_folder_of_parts_without_its_record_is_in_the_way(folder: Path) -> None:
    write_tracks("st.parquet", TWO)
    (folder / "out.parquet.parts").mkdir()
    for option in ("--resume", "--stream"):
        assert_refused(run(*STREAM.split(), option), 2, "out.parquet.parts", "run.json", "Remove it")
    (folder / "out.parquet.parts").rmdir()
    assert_refused(run(*STREAM.split(), "--resume"), 2, "nothing to resume", "Leave out --resume")
    succeed(*STREAM.split())


def test_what_cannot_be_locked_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems of networks have no locks."""
    monkeypatch.setattr("filelock.lock_descriptor", Mock(side_effect=OSError(95, "Operation not supported")))
    write_tracks("st.parquet", TWO)
    succeed(*STREAM.split())
    assert len(read_detections("out.parquet")) == 2
    (folder / "st.csv.01234567.tmp").write_text("perhaps of a run that lives")
    write_tracks("st.csv", TWO, overwrite=True)
    assert (folder / "st.csv.01234567.tmp").exists()
