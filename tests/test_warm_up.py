"""Kernels are compiled beforehand, and their compilation at first use is reported."""

import numpy as np
import pytest
from commands import run, succeed
from numba import njit

import outbid
from outbid import track, tracking, warm_up
from outbid._compiling import MESSAGE, compilation_reported, kernels_counted
from outbid.warming import STAGES

pytestmark = pytest.mark.timeout(900)  # the first compiles all


def _compile_one() -> None:
    njit(lambda x: x + 1)(np.float32(1))


@pytest.fixture(scope="module")
def seen() -> list[tuple[str, int, int]]:
    """What was reported while all was compiled."""
    reported: list[tuple[str, int, int]] = []
    warm_up(lambda *given: reported.append(given))
    return reported


def test_the_stages_are_named_in_order(seen: list[tuple[str, int, int]]) -> None:
    assert list(dict.fromkeys(name for name, _, _ in seen)) == [stage.name for stage in STAGES]
    done = [count for _, count, _ in seen]
    assert done == sorted(done)
    assert done[-1] <= seen[-1][2] == sum(stage.kernels for stage in STAGES)


@pytest.mark.usefixtures("seen")
def test_after_it_track_detect_and_score_compile_nothing() -> None:
    walks = outbid.read_tracks(outbid.data.sample("walks"))
    counts: list[int] = []
    with kernels_counted(counts.append):
        assert warm_up() == 0
        found = track(walks.detections).tracks
        track(walks.detections, max_distance=1.5)
        outbid.score(found, walks)
    assert counts == []


@pytest.mark.usefixtures("seen")
def test_the_command_names_the_stages() -> None:
    done = succeed("warm-up")
    assert done.stderr.splitlines() == [*(f"Compiling: {stage.name}" for stage in STAGES), ALL]
    assert run("warm-up", "-q").stderr == ""


ALL = "All kernels are compiled."


@pytest.mark.smoke
def test_compilations_are_announced_once_by_the_outermost(capsys: pytest.CaptureFixture[str]) -> None:
    announced: list[int] = []
    with compilation_reported(lambda: announced.append(1)):
        with compilation_reported():
            _compile_one()
        _compile_one()
    assert announced == [1]
    assert capsys.readouterr().err == ""
    with compilation_reported():
        _compile_one()
        _compile_one()
    assert capsys.readouterr().err == f"{MESSAGE}\n"


@pytest.mark.usefixtures("seen")
def test_python_says_that_kernels_are_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`track` in Python was silent for minutes. All its kernels are there, so that another one compiles."""
    linking = tracking.gated_links
    monkeypatch.setattr(tracking, "gated_links", lambda *given: (_compile_one(), linking(*given))[1])
    track({"frame": [0, 1], "y": [5, 5], "x": [1, 2]}, max_distance=3.0)
    assert capsys.readouterr().err == f"{MESSAGE}\n"


def test_a_bar_moves_where_there_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with compilation_reported():
        _compile_one()
    shown = capsys.readouterr().err
    assert shown.startswith(MESSAGE)
    assert "Compiling: 1 kernels so far" in shown
