"""Commands are killed, interrupted, without room, or meet another run: a short `make torture`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from torture.acts import ACTS
from torture.writers import WRITERS

from outbid.formats import WRITTEN

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and gives up the rights of root"),
]
TRIALS = examples(24, least=12)
SLOW = ("report", "convert .geff")
"""A run of these takes a second or more: the long run has them."""


@pytest.fixture(scope="module")
def report(repository: Path) -> dict[str, Any]:
    """In a process of its own, which forks: no thread may run there."""
    quick = [writer.name for writer in WRITERS if writer.name not in SLOW]
    command = [sys.executable, "-m", "torture", "--count", str(TRIALS), "--seed", "7", "--writers", *quick]
    done = subprocess.run(
        command, cwd=repository / "tests" / "bench", capture_output=True, text=True, check=False, timeout=380
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_outputs_are_old_or_new_and_nothing_is_left(report: dict[str, Any]) -> None:
    assert report["finds"] == []
    assert {*report["tried"]} == {*ACTS}
    assert sum(report["tried"].values()) == TRIALS


def test_every_format_that_is_written_has_an_entry() -> None:
    written = {suffix for suffix in WRITTEN if suffix != ".pq"}
    assert sorted(written - {name.removeprefix("convert ") for name in (one.name for one in WRITERS)}) == []
