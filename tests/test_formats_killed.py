"""A process that is killed or interrupted while it writes leaves no half file."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from outbid import Detections, InputError, SettingsError, read_detections, read_record, write_detections
from outbid.formats.files.outputs import staged

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


@pytest.mark.smoke
@pytest.mark.parametrize("moves", [0, 1])
def test_killed_between_the_two_renames(moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is new has its record; one that is replaced is never seen with the record of another."""
    path = tmp_path / "spots.csv"
    first, second = (Detections.from_table([k], [[k, k, k]]) for k in (1, 2))
    done = []
    rename = Path.replace

    def die(self: Path, target: Path) -> Path:
        if len(done) == moves:
            raise SystemExit
        done.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(SystemExit):
            write_detections(path, first, record={"of": 1})
    assert not path.exists()
    write_detections(path, first, record={"of": 1}, overwrite=moves == 1)  # the record is there by then
    done.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(SystemExit):
            write_detections(path, second, record={"of": 2}, overwrite=True)
    assert read_detections(path).frame.tolist() == [2 if moves else 1]
    with pytest.raises(InputError, match="no run record"):
        read_record(path)
    assert [p.name for p in tmp_path.iterdir()] == ["spots.csv"]


@pytest.mark.smoke
@pytest.mark.parametrize("moves", [1, 2])
@pytest.mark.usefixtures("interruptible")
def test_interrupted_between_the_two_renames(
    moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two renames are one for a signal: it comes before or after."""
    path = tmp_path / "spots.csv"
    done = []
    rename = Path.replace

    def signalled(self: Path, target: Path) -> Path:
        done.append(target)
        moved = rename(self, target)
        if len(done) == moves:
            os.kill(os.getpid(), signal.SIGINT)
        return moved

    for frame in (1, 2):
        done.clear()
        seen = Detections.from_table([frame], [[1, 2, 3]])
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", signalled)
            with pytest.raises(KeyboardInterrupt):
                write_detections(path, seen, record={"of": frame}, overwrite=True)
        assert read_detections(path).frame.tolist() == [frame]
        assert read_record(path) == {"of": frame}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_of_parts_that_was_killed_at_its_beginning_leaves_nothing(
    overwrite: bool, tmp_path: Path
) -> None:
    """The folder of its parts has not got its name yet; any next run to that output removes it."""
    path = tmp_path / "out.parquet"
    seen = Detections.from_table([1], [[1, 2, 3]])
    write_detections(path, seen)
    (tmp_path / "out.parquet.parts.0123abcd.tmp" / "new").mkdir(parents=True)
    if overwrite:
        write_detections(path, seen, overwrite=True)
    else:
        with pytest.raises(SettingsError, match="exists"):
            write_detections(path, seen)
    assert [one.name for one in tmp_path.iterdir()] == ["out.parquet"]


_SLOW_COMMAND = """
import signal, sys, time
from pathlib import Path
import click
from outbid.cli import terminal
from outbid.cli import main
from outbid.formats.files.outputs import write_whole

def write(file):
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(60)

@main.command()
@terminal.common_options
def slow():
    write_whole(Path(sys.argv[2]), write, overwrite=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs behind may ignore it
main(["slow"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_writing(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "spots.csv"
    path.write_text("precious")
    command = [sys.executable, "-c", _SLOW_COMMAND, "slow", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 2
        writer.send_signal(number)
        _, said = writer.communicate(timeout=30)
    assert (writer.returncode, said) == (130, b"Interrupted.\n")
    assert [p.name for p in tmp_path.iterdir()] == ["spots.csv"]
    assert path.read_text() == "precious"


_WORK = """
import sys, time
import click
from outbid.cli import terminal
from outbid.cli import main

@main.command()
@terminal.common_options
@click.argument("seconds", type=float)
def work(seconds):
    with terminal.progress_bar("Linking") as progress:
        if progress is not None:
            progress(1, 4)
        time.sleep(seconds)

main(sys.argv[1:])
"""


def on_a_terminal(*arguments: str) -> str:
    """What the command shows on a terminal's stderr."""
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", _WORK, "work", *arguments]
    with subprocess.Popen(command, stderr=its, env=environment) as running:
        os.close(its)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            shown += part
            if not part:
                break
    os.close(ours)
    assert running.returncode == 0
    return shown.decode()


def test_progress_shows_on_a_terminal_after_a_second() -> None:
    shown = on_a_terminal("1.3")
    assert "Linking" in shown
    assert "1/4" in shown
    assert on_a_terminal("0.1") == ""
    assert on_a_terminal("1.3", "--quiet") == ""


def test_no_progress_where_stderr_is_no_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", _WORK, "work", "1.3"], capture_output=True, check=True)
    assert done.stdout + done.stderr == b""


def test_two_runs_do_not_mix_their_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits until the other has given both of its files their names."""
    path, renamed = tmp_path / "spots.csv", []
    seen = Detections.from_table([1], [[1, 1, 1]])
    rename = Path.replace

    def slow(self: Path, target: Path) -> Path:
        renamed.append(threading.get_ident())
        time.sleep(0.05)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", slow)
    write = partial(write_detections, path, seen, overwrite=True)
    runs = [threading.Thread(target=write, kwargs={"record": {"of": k}}) for k in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert renamed == [who for who in dict.fromkeys(renamed) for _ in range(2)]


def test_a_folder_to_which_a_thread_still_writes_is_removed_all_the_same(tmp_path: Path) -> None:
    def late(folder: Path) -> None:
        for k in range(30):
            with suppress(FileNotFoundError):
                (folder / str(k)).touch()
            time.sleep(0.002)

    with staged(tmp_path / "out.geff", Path.mkdir) as folder:
        writing = threading.Thread(target=late, args=[folder])
        writing.start()
        time.sleep(0.01)
    writing.join()
    assert list(tmp_path.iterdir()) == []
