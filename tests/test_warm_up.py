"""Kernels are compiled beforehand, and their compilation at first use is reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from checkout import REPOSITORY
from commands import run, succeed
from numba import njit

import outbid
from outbid import track, tracking, warm_up
from outbid.compute.compiling import MESSAGE, SecondProcess, compilation_reported, first_time
from outbid.compute.signatures import LATE, LITTLE, SECONDS, SIGNATURES, halves, signatures_in

pytestmark = pytest.mark.timeout(900)  # the first compiles all


def _compile_one() -> None:
    njit(lambda x: x + 1)(np.float32(1))


@pytest.fixture(scope="module")
def seen() -> list[tuple[str, int, int]]:
    """What was reported while all was compiled."""
    reported: list[tuple[str, int, int]] = []
    warm_up(lambda *given: reported.append(given))
    return reported


@pytest.fixture
def unused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for kernels that nobody has used."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_the_bar_ends_at_its_total(seen: list[tuple[str, int, int]]) -> None:
    total = len(signatures_in(SIGNATURES))
    done = [count for _, count, _ in seen]
    assert {in_all for _, _, in_all in seen} <= {total}
    assert done == list(range(total - len(done) + 1, total + 1))


@pytest.mark.usefixtures("seen")
def test_after_it_no_command_compiles_and_each_kernel_of_the_table_is_called(tmp_path: Path) -> None:
    script = REPOSITORY / "tests" / "first_use.py"
    without_gpu = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False,
        env=without_gpu,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"failed": [], "compiled": [], "unlisted": [], "superfluous": []}


@pytest.mark.usefixtures("seen")
def test_the_command_says_that_nothing_is_left() -> None:
    assert succeed("warm-up").stderr.splitlines() == ["All kernels are compiled."]
    assert run("warm-up", "-q").stderr == ""


@pytest.mark.smoke
@pytest.mark.usefixtures("unused")
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


@pytest.mark.usefixtures("seen", "unused")
def test_python_says_that_kernels_are_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`track` in Python was silent for minutes. All its kernels are there, so that another one compiles."""
    linking = tracking.gated_links
    monkeypatch.setattr(tracking, "gated_links", lambda *given: (_compile_one(), linking(*given))[1])
    track({"frame": [0, 1], "y": [5, 5], "x": [1, 2]}, max_distance=3.0)
    assert capsys.readouterr().err == f"{MESSAGE}\n"


@pytest.mark.usefixtures("unused")
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


def test_it_is_announced_once_a_version(unused: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [first_time(), first_time(), first_time()] == [True, False, False]
    (note,) = unused.rglob("*.announced")
    assert note.name == f"outbid-{outbid.__version__}.announced"
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9")
    assert [first_time(), first_time()] == [True, False]


def test_a_second_command_that_compiles_says_nothing(
    unused: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with compilation_reported():
            _compile_one()
    assert capsys.readouterr().err == f"{MESSAGE}\n"
    assert unused.is_dir()


@pytest.mark.usefixtures("unused")
@pytest.mark.parametrize("named", ["pathlib.Path.mkdir", "numba.core.caching.FunctionCache"])
@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_a_folder_that_cannot_be_written_is_no_error(
    named: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is none, Numba raises RuntimeError."""

    def refuse(*_given: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(named, refuse)
    assert first_time()
    assert first_time()


def test_what_learned_linking_calls_last_is_of_the_table() -> None:
    late, every = signatures_in(LATE), signatures_in(SIGNATURES)
    assert set(late) < set(every)
    assert len(set(late)) == len(late)


def test_halves_take_about_as_long_and_share_no_module() -> None:
    one, other = halves(signatures_in(SIGNATURES))
    assert sorted(map(str, (*one, *other))) == sorted(SIGNATURES.strip().splitlines())
    modules, others = ({each.module for each in half} for half in (one, other))
    assert not modules & others
    taken = [sum(SECONDS.get(name, LITTLE) for name in names) for names in (modules, others)]
    assert max(taken) < 1.1 * min(taken)


FEW = "learned.inference.powers.raised f8:1 f8\nparticles.tracks.first_wrong i8:2 i4:1"
COMPILE_FEW = (
    "from outbid.compute import signatures, warming; names = []; "
    f"few = signatures.signatures_in({FEW!r}); "
    "print(warming.compile_all(few, lambda name, *_: names.append(name)), sorted(names))"
)


def _fresh(code: str, folder: Path) -> str:
    """What a new interpreter prints whose kernels are in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_two_processes_fill_one_cache(tmp_path: Path) -> None:
    """Each compiles one of two kernels, and a later process none."""
    reported = "['learned.inference.powers.raised', 'particles.tracks.first_wrong']"
    own = f"{COMPILE_FEW}; print(len(few[0].kernel.overloads), len(few[1].kernel.overloads))"
    assert _fresh(own, tmp_path) == f"2 {reported}\n0 1"
    assert _fresh(COMPILE_FEW, tmp_path) == "0 []"


@pytest.mark.parametrize("broken", ["sys.executable = '/nowhere'", "compiling._START = '1 / 0 # {!r}'"])
def test_without_a_second_process_the_first_compiles_all(broken: str, tmp_path: Path) -> None:
    """Whether it cannot start, or ends early."""
    code = f"import sys; from outbid.compute import compiling; {broken}; {COMPILE_FEW}"
    assert _fresh(code, tmp_path).startswith("2 ")


def test_the_second_process_ends_with_the_context() -> None:
    with SecondProcess(SIGNATURES.strip().splitlines()) as second:
        process = second.process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None


def test_the_second_process_ends_where_the_first_is_killed(tmp_path: Path) -> None:
    """Its stdin ends then; else it would compile on."""
    command = [sys.executable, "-c", "from outbid.compute.compiling import compile_lines; compile_lines()"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.communicate(f"{SIGNATURES.strip()}\n\n".encode(), timeout=60)
    assert process.returncode == 1
