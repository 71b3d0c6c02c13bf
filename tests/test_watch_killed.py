"""A run of `outbid watch` is killed at any moment, and goes on as if it had not been."""

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import succeed
from examples import examples
from recordings import images_of, truth_of, write_frame

from outbid import write_detections

FRAMES = 30
TRUTH = truth_of(FRAMES, particles=18, side=64)
IMAGES = images_of(TRUTH, FRAMES, (1, 64, 64))
WATCH = [sys.executable, "-c", "from outbid.cli import main; main()", "watch"]
WATCH += ["--poll", "0.02", "--learn", "6"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills processes")


def killed_and_begun_again(command: list[str], rng: random.Random, most: int, stdin: bytes = b"") -> int:
    """Run a command to its end, but kill it up to so many times; returns how often it was."""
    for kills in range(most + 1):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            _, said = process.communicate(stdin, timeout=rng.uniform(1.5, 6) if kills < most else 100)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        else:
            assert process.returncode == 0, said.decode()[-2000:]
            return kills
    raise AssertionError("it did not end")


def rows_of(path: Path) -> list[dict[str, object]]:
    """Rows of a table, or of one in parts."""
    files = sorted(path.glob("part-*")) if path.is_dir() else [path]
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(examples(2)))
def test_a_folder(tmp_path: Path, seed: int) -> None:
    """Kept parts are those of a run that nobody disturbed, and so are the outputs, byte by byte."""
    folder, rng = tmp_path / "images", random.Random(seed)
    folder.mkdir()

    def write() -> None:
        for k in range(FRAMES):
            write_frame(folder, k, IMAGES[k])
            time.sleep(0.25)

    outputs = [tmp_path / name / "tracks.parquet" for name in ("killed", "whole")]
    commands = []
    for output in outputs:
        output.parent.mkdir()
        options = ["--until", str(FRAMES - 1), "--keep", "--when", "speed > 1"]
        commands.append([*WATCH, str(folder), "-o", str(output), *options])
    writing = threading.Thread(target=write)
    writing.start()
    kills = killed_and_begun_again(commands[0], rng, 5)
    writing.join()
    assert killed_and_begun_again(commands[1], rng, 0) == 0
    assert kills >= 1
    for name in ("tracks.parquet", "tracks_detections.parquet"):
        one, other = (output.with_name(name) for output in outputs)
        assert one.read_bytes() == other.read_bytes()
    one, other = (output.with_name("tracks.live.parquet") for output in outputs)
    assert rows_of(one) == rows_of(other)
    assert (one / "events.jsonl").read_bytes() == (other / "events.jsonl").read_bytes()


def test_rows_from_stdin(tmp_path: Path) -> None:
    """A second stream goes on where the first one broke off."""
    write_detections(tmp_path / "all.csv", TRUTH.detections)
    text = (tmp_path / "all.csv").read_bytes()
    lines = text.splitlines(keepends=True)
    output = tmp_path / "tracks.parquet"
    command = [*WATCH, "-", "-o", str(output)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"".join(lines[:300]) + lines[300][:9])
    process.stdin.flush()
    end = time.monotonic() + 60
    while not output.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    done = subprocess.run(command, input=b"".join([lines[0], *lines[300:]]), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "tracks_detections.csv").read_bytes() == text
    succeed("track", tmp_path / "tracks_detections.csv", "-o", tmp_path / "again.parquet")
    assert output.read_bytes() == (tmp_path / "again.parquet").read_bytes()
