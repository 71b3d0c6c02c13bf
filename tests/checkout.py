"""The checkout that is tested, and the files that git knows."""

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLES = {file.name: file for file in sorted((REPOSITORY / "tests" / "samples").iterdir())}
"""Files of formats, which all hold the same tracks: tests that concern every format take each of them."""


def git_files(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "-z", "--", *patterns]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [REPOSITORY / name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).exists()]
