"""Commands of `outbid`: how they are found, their exit codes, and the message about compilation."""

import ctypes
import logging
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import click
import numba
import pytest
from commands import assert_refused, run, succeed
from llvmlite.binding import ffi

from outbid import InputError, OutbidError, ResourceError, SettingsError, SolverError
from outbid.cli import main, terminal
from outbid.compute.interrupt import end_if_asked
from outbid.compute.timing import lap
from outbid.formats.files.outputs import write_whole


def entry_points(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    """Let another package bring commands: name=module:object."""
    own = terminal.entry_points()
    more = [metadata.EntryPoint(*value.split("=", 1), "outbid.commands") for value in values]
    monkeypatch.setattr(terminal, "entry_points", lambda: own | {entry.name: entry for entry in more})


def test_a_broken_command_of_another_package_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = "fine=outbid.cli.info:info"
    entry_points(monkeypatch, "gone=no_such_package.cli:main", "odd=math:pi", fine)
    shown = run()
    assert re.search(r"^  gone +\(cannot be loaded: ModuleNotFoundError", shown.output, re.MULTILINE)
    assert re.search(r"^  track +Link", shown.output, re.MULTILINE)
    succeed("fine")
    for command in ("gone", "odd"):
        assert_refused(run(command, "--whatever", "else"), 4, f"'{command}' cannot be loaded")


ENDS = [
    (SettingsError("Fix it."), 2, "Error: Fix it."), (InputError("Fix it."), 3, "Error: Fix it."),
    (ResourceError("Fix it."), 4, "Error: Fix it."), (SolverError("Fix it."), 5, "Error: Fix it."),
    (MemoryError(), 4, "Error: Out of memory."),
    (OSError(28, "No space left on device", "a.csv"), 4, "Error: a.csv: No space left on device."),
    (OSError(30, "Read-only file system"), 4, "Error: Read-only file system."),
    (KeyboardInterrupt(), 130, "Interrupted."), (OutbidError("Fix it."), 70, "Error: Fix it."),
    (ZeroDivisionError("x"), 70, "A bug in Outbid: ZeroDivisionError: x. Run again with --debug"),
    (click.UsageError("Fix it."), 2, "Error: Fix it."),
]  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize(("error", "exit_code", "said"), ENDS, ids=lambda value: type(value).__name__)
def test_exit_codes(error: BaseException, exit_code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @terminal.common_options
    def fail() -> None:
        raise error

    monkeypatch.setitem(main.commands, "fail", fail)
    done = run("fail")
    assert done.exit_code == exit_code
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert ("Traceback" in run("fail", "--debug").stderr) == (not isinstance(error, click.ClickException))


@pytest.mark.parametrize("kind", [InputError, ResourceError, MemoryError, ZeroDivisionError])
def test_what_files_hold_stays_on_one_line(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def fail() -> None:
        raise kind("a.csv: \x1b[2J\x07red\r\n  next\u2028\u202ethird\udcff\xa0" + "x" * 5000 + " Fix it.")

    monkeypatch.setitem(main.commands, "fail", fail)
    said = run("fail").stderr
    assert said.count("\n") == 1
    assert said.rstrip("\n").isprintable()
    assert len(said) < 1200
    assert r"a.csv: \x1b[2J\x07red next \u202ethird\udcff\xa0xxx" in said
    assert "Fix it." in said


@pytest.mark.smoke
def test_errors_in_python_are_one_line_as_well() -> None:
    assert str(InputError("a.csv:\n\x1bfix it.")) == r"a.csv: \x1bfix it."
    assert str(pickle.loads(pickle.dumps(InputError("a\nb")))) == "a b"
    assert str(SettingsError()) == ""


def test_stderr_has_our_log_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @terminal.common_options
    def chat() -> None:
        logging.getLogger("tifffile").error("<tifffile.TiffPage 0 @8> is odd")
        logging.getLogger("outbid").warning("frame 3 is odd")
        logging.getLogger("outbid").info("frame 3 is there")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("zarr is odd", stacklevel=1)
        raise InputError("Fix it.")

    monkeypatch.setitem(main.commands, "chat", chat)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of pytest
    assert run("chat").stderr == "frame 3 is odd\nError: Fix it.\n"
    assert run("chat", "-v").stderr == "frame 3 is odd\nframe 3 is there\nError: Fix it.\n"
    assert run("chat", "-q").stderr == "Error: Fix it.\n"
    assert logging.getLogger().handlers == logging.getLogger("outbid").handlers == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes")
def test_a_reader_that_is_gone_is_no_score_below_a_limit() -> None:
    ours, its = os.pipe()
    os.close(ours)
    code = "from outbid.cli import main; main(['score', '-h'])"
    done = subprocess.run([sys.executable, "-c", code], stdout=its, stderr=subprocess.PIPE, check=False)
    os.close(its)
    assert (done.returncode, done.stderr) == (141, b"")


class Finalised:
    """Python drops what is raised while it ends."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("then", ["lap", "write", "end"])
@pytest.mark.usefixtures("interruptible")
def test_a_signal_in_a_finaliser_is_not_lost(
    then: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = []

    @click.command()
    @terminal.common_options
    def end() -> None:
        Finalised(number)
        if then == "lap":
            lap("stage")
        if then == "write":
            write_whole(tmp_path / "out", reached.append, overwrite=True)
        if then != "end":
            reached.append(then)

    monkeypatch.setitem(main.commands, "end", end)
    monkeypatch.setattr(sys, "unraisablehook", reached.append)
    done = run("end")
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")
    assert then not in reached
    assert list(tmp_path.iterdir()) == []
    succeed("score", "-h")  # the next command begins anew


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_what_a_library_makes_of_a_signal_is_one_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def end() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt as error:
            raise ValueError("schema") from error  # as pydantic does

    monkeypatch.setitem(main.commands, "end", end)
    done = run("end")
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.smoke
def test_compilation_is_reported_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @click.command()
    @terminal.common_options
    def compile_two() -> None:
        with terminal.compilation_reported(), ThreadPoolExecutor(1) as thread:
            thread.submit(numba.njit(lambda x: x + 1), 1).result()  # the tracker compiles in threads
            numba.njit(lambda x: x + 2)(1)

    monkeypatch.setitem(main.commands, "compile-two", compile_two)
    assert run("compile-two", compiling=True).stderr.count("Compiling") == 1
    assert run("compile-two", compiling=True).stderr == ""  # not the first time any more
    shutil.rmtree(tmp_path)
    assert run("compile-two", "-q", compiling=True).stderr == ""
    numba.njit(lambda x: x + 3)(1)  # no command listens


# ---------------------------------------------------------------- what a newcomer tries


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        ("trak spots.csv", 2, "Did you mean 'track'?"),
        ("track movie.tif", 3, "outbid detect movie.tif"),
        ("track notes.txt", 3, "Call a table .csv or .tsv"),
        ("track two.csv --cost squared", 2, "needs a max_distance"),
        ("assign costs.npy --unmatched-cost inf", 2, "give a finite one"),
        ("simulate -o truth.csv --movie movie.png", 2, "it is a TIFF"),
        ("simulate -o truth.csv --movie huge.tif --box 1e9 1e9 1e9", 4, "Take larger voxels"),
        ("track one.csv", 0, "The only detection is in frame 0, so nothing is linked."),
        ("track still.csv", 0, "All 300 detections are at one position"),
        ("track still.csv", 0, "Nothing could be learned"),
        ("track still.csv --fixed noise=5 --fixed step=1", 0, "with noise, step as given"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_newcomers_try(words: str, exit_code: int, said: str) -> None:
    for name in ("movie.tif", "notes.txt", "costs.npy"):
        Path(name).write_text("what it holds is not looked at")
    Path("one.csv").write_text("frame,z,y,x\n0,1,2,3\n")
    Path("still.csv").write_text("frame,z,y,x\n" + "".join(f"{t // 30},1,2,3\n" for t in range(300)))
    Path("two.csv").write_text("frame,z,y,x\n0,1,2,3\n1,1,2,3\n")
    done = run(*words.split())
    assert done.exit_code == exit_code, done.output
    assert said in done.stderr
    assert not Path("truth.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("when", ["parse", "close"])
def test_a_signal_outside_the_work_of_a_command_ends_it_as_interrupted(
    when: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Click gives Ctrl-C the exit code 1 there, which says that a score is below a limit."""
    done = []

    def act(_context: click.Context, _parameter: click.Parameter, _value: object) -> None:
        if when == "parse":
            os.kill(os.getpid(), number)

    @click.command()
    @click.option("--odd", callback=act, expose_value=False)
    @click.pass_context
    def end(ctx: click.Context) -> None:
        if when == "close":
            ctx.find_root().call_on_close(lambda: os.kill(os.getpid(), number))
        done.append(when)

    monkeypatch.setitem(main.commands, "end", end)
    ended = run("end")
    assert (ended.exit_code, ended.stderr) in [(130, "Interrupted.\n"), (0, "")]
    assert (ended.exit_code == 0) == (when == "close")  # all is done by then
    assert done == ["close"] * (when == "close")
    end_if_asked()  # nothing of it is left for what this process does next


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_signal_while_memory_of_llvm_is_released_does_not_release_it_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = []

    def release(pointer: object) -> None:
        released.append(pointer)
        os.kill(os.getpid(), signal.SIGTERM)

    @click.command()
    def end() -> None:
        ffi.OutputString(init=ctypes.c_char_p(b"a")).close()  # then Python finalises it

    monkeypatch.setattr(ffi, "lib", SimpleNamespace(LLVMPY_DisposeString=release))
    monkeypatch.setitem(main.commands, "end", end)
    done = run("end")
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")
    assert len(released) == 1


_SIGNAL_WITHIN_LLVM = """
import os, signal, sys
from llvmlite.binding import ExecutionEngine

number, set_object_cache = signal.Signals[sys.argv[1]], ExecutionEngine.set_object_cache

def with_a_signal(called):
    def first(*given):
        os.kill(os.getpid(), number)
        return called(*given)
    return first

def with_signals(engine, notify, getbuffer):
    set_object_cache(engine, with_a_signal(notify), with_a_signal(getbuffer))

ExecutionEngine.set_object_cache = with_signals
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs the tests may ignore it

from outbid.cli import main
main(sys.argv[2:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_while_a_kernel_is_loaded_or_compiled_is_no_crash(number: str, tmp_path: Path) -> None:
    """LLVM drops what is raised in a function that it calls: it was the end with a segmentation fault."""
    (tmp_path / "tracks.csv").write_text("frame,y,x,track_id\n0,1,2,0\n1,1,2,0\n")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}

    def converted(*begin: str) -> tuple[int, str]:
        command = [sys.executable, "-c", *begin, "convert", "tracks.csv", "out.xml"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    for _ in range(2):  # it is compiled, then loaded
        assert converted(_SIGNAL_WITHIN_LLVM, number) == (130, "Interrupted.\n")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kernels", "tracks.csv"]
        assert converted("from outbid.cli import main; main()")[0] == 0
        (tmp_path / "out.xml").unlink()
