"""Running the commands in tests, and what a refusal looks like."""

import os
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from outbid.tracker.cli import main


def run(*arguments: object, env: dict[str, str] | None = None) -> Result:
    """Run `outbid` with these arguments."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env=env)


def track(path: Path, *options: str, distance: str = "5") -> Result:
    """Run `outbid track` on a file."""
    output = path.parent / "out" / "tracks.csv"
    output.parent.mkdir(exist_ok=True)
    return run("track", path, "-o", output, "--max-distance", distance, *options)


def assert_refused(done: Result, exit_code: int, *said: str) -> None:
    """One line on stderr that holds all of `said`, nothing on stdout; kernels may be compiled before."""
    error = re.sub(r"\ACompiling the kernels.*\n", "", done.stderr)
    assert done.exit_code == exit_code, done.output
    assert done.stdout == ""
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    for part in said:
        assert part in error


def headless(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `outbid view` in a process of its own, as a server without a display does."""
    dropped = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "NAPARI_CONFIG"}
    without = {name: value for name, value in os.environ.items() if name not in dropped}
    command = [str(Path(sys.executable).with_name("outbid")), "view", *map(str, arguments)]
    return subprocess.run(command, env=without | (env or {}), capture_output=True, text=True, check=False)
