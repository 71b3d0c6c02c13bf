"""Running the commands in tests, the files they are given, and what a refusal looks like."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from outbid import InputError
from outbid.cli import main

_COMPILING = re.compile(rb"^Compiling the kernels.*\n", re.MULTILINE)


def run(*arguments: object, env: dict[str, str] | None = None, compiling: bool = False) -> Result:
    """Run `outbid` with these arguments.

    The line on compilation is left out, unless `compiling`: no test may depend on what another compiled.
    """
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], env=env)
    if not compiling:
        done.stderr_bytes = _COMPILING.sub(b"", done.stderr_bytes)
        done.output_bytes = _COMPILING.sub(b"", done.output_bytes)
    return done


def succeed(*arguments: object, env: dict[str, str] | None = None) -> Result:
    """Run `outbid` with these arguments, which must succeed."""
    done = run(*arguments, env=env)
    assert done.exit_code == 0, done.output
    return done


def track(path: Path, *options: str, distance: str = "5") -> Result:
    """Run `outbid track` on a file."""
    output = path.parent / "out" / "tracks.csv"
    output.parent.mkdir(exist_ok=True)
    return run("track", path, "-o", output, "--max-distance", distance, *options)


def written(path: Path, content: str | bytes | bytearray) -> Path:
    """A file that holds this."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fresh_python(code: str, timeout: float | None = None) -> str:
    """What a new interpreter prints that runs `code`."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def assert_refused(done: Result, exit_code: int, *said: str) -> None:
    """One line on stderr that holds all of `said`, and nothing on stdout."""
    assert done.exit_code == exit_code, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    for part in said:
        assert part in done.stderr


def refused(said: str, read: Callable, *given: object, error: type = InputError, **named: object) -> None:
    """An error that says this is raised where a file is read, or written."""
    with pytest.raises(error, match=said):
        read(*given, **named)


def headless(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `outbid view` in a process of its own, as a server without a display does."""
    dropped = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "NAPARI_CONFIG"}
    without = {name: value for name, value in os.environ.items() if name not in dropped}
    command = [str(Path(sys.executable).with_name("outbid")), "view", *map(str, arguments)]
    return subprocess.run(command, env=without | (env or {}), capture_output=True, text=True, check=False)
