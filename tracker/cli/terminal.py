"""Terminal handling shared by all commands: how they are found, their messages and exit codes."""

from __future__ import annotations

import difflib
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib import metadata
from typing import Any, NoReturn, TypeVar

import click

from ..compute import compiling
from ..compute.interrupt import asked, disturbed, end_if_asked, forget, interrupt, undisturbed
from ..errors import OutbidError, ResourceError, one_line

Function = TypeVar("Function", bound=Callable[..., object])

_BUG = OutbidError.exit_code  # EX_SOFTWARE of sysexits.h
_INTERRUPTED = 130
_NOBODY_READS = 141  # as a shell says of a program that SIGPIPE ends


# ---------------------------------------------------------------- how commands are found and end


class Commands(click.Group):
    """A group whose commands are the entry points named ``outbid.commands`` of all installed packages.

    This class handles all exceptions of a command. The exit codes are 0 done, 1 below a threshold that
    the user set, 2 usage or configuration, 3 bad input, 4 resources, 5 solver, 70 a bug, 130 interrupted,
    141 nobody reads stdout any more.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *entry_points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = entry_points().get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        try:
            command = entry.load()
        except (Exception, SystemExit) as error:  # one broken package must not break the other commands
            return _broken(entry, f"{type(error).__name__}: {error}")
        return command if isinstance(command, click.Command) else _broken(entry, "it is no click command")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None

    def main(self, args: Any = None, prog_name: str | None = None) -> Any:  # type: ignore[override]
        """Run a command like click's `main`; signals (Ctrl-C) wait, except while the command runs."""
        try:
            with _signals_as_interrupts(), undisturbed():
                return super().main(args, prog_name)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            sys.exit(_INTERRUPTED)

    def invoke(self, ctx: click.Context) -> object:
        with _own_log_alone():
            try:
                with disturbed():
                    done = super().invoke(ctx)
                    end_if_asked()  # what was asked for during the last stage counts as well
                return done
            except (click.ClickException, click.Abort, click.exceptions.Exit):
                raise  # click knows what to do with these
            except BaseException as error:
                if ctx.meta.get("outbid.debug"):
                    traceback.print_exc()
                _end(KeyboardInterrupt() if asked() else error)  # a library may raise what it makes of one


def _end(error: BaseException) -> NoReturn:
    """The one place that gives errors their exit codes."""
    match error:
        case OutbidError():
            message, code = f"Error: {error}", error.exit_code
        case KeyboardInterrupt():
            message, code = "Interrupted.", _INTERRUPTED
        case BrokenPipeError():
            with suppress(OSError, ValueError):  # else Python complains when it flushes what is left
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(_NOBODY_READS) from None
        case MemoryError():
            advice = "Lower the distances, split the input by frames, or take a larger machine."
            remedy = str(error) if str(error).endswith(".") else advice  # our own say what to do
            message, code = f"Error: Out of memory. {remedy}", ResourceError.exit_code
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            advice = "Make room, or choose another place for the output."
            message, code = f"Error: {where}{error.strerror or error}. {advice}", ResourceError.exit_code
        case Exception():
            what = f"{type(error).__name__}: {error}".removesuffix(": ")
            message, code = f"A bug in Outbid: {what}. Run again with --debug and report it.", _BUG
        case _:
            raise error
    click.echo(one_line(message), err=True)
    raise click.exceptions.Exit(code) from None


@cache  # each reading opens a file of every installed package; the help asks 16 times
def entry_points() -> dict[str, metadata.EntryPoint]:
    """Entry points of the commands by name; Outbid's take precedence over those of other packages."""
    # All distributions, for `metadata.entry_points` sees one of a name: in a checkout that may be an
    # outdated outbid.egg-info.
    found = [
        entry
        for distribution in metadata.distributions()
        for entry in distribution.entry_points
        if entry.group == "outbid.commands"
    ]
    found.sort(key=lambda entry: entry.dist is not None and entry.dist.name == "outbid")
    return {entry.name: entry for entry in found}


def _broken(entry: metadata.EntryPoint, reason: str) -> click.Command:
    """A command that replaces one that cannot be loaded; it states the reason when it is run."""

    def complain() -> None:
        package = entry.dist.name if entry.dist else entry.value
        raise ResourceError(f"The command {entry.name!r} cannot be loaded: {reason}. Install {package} anew.")

    return click.Command(
        entry.name, callback=complain, short_help=f"(cannot be loaded: {reason})", add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )  # fmt: skip


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that temporary files are removed; record both signals."""
    if threading.current_thread() is not threading.main_thread():  # others may not set handlers
        yield
        return
    forget()
    complain, cut_short = sys.unraisablehook, False

    def unless_interrupted(lost: sys.UnraisableHookArgs) -> None:
        # That one is remembered; what it cut short in llvmlite's constructors, their finalisers report.
        if not (issubclass(lost.exc_type, KeyboardInterrupt) or cut_short or asked()):
            complain(lost)

    caught = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # what a shell runs behind ignores it
        caught.append(signal.SIGINT)
    before = {number: signal.signal(number, interrupt) for number in caught}
    sys.unraisablehook = unless_interrupted
    try:
        yield
    finally:
        cut_short = asked()
        forget()  # else what the same process does next would end at once
        if not cut_short:  # finalisers run later than this
            sys.unraisablehook = complain
        for number, handler in before.items():
            signal.signal(number, handler)


# ---------------------------------------------------------------- options that act by themselves


def common_options(function: Function) -> Function:
    """Add ``-q``, ``-v`` and ``--debug`` to a command; the last counts even where another option is wrong."""
    for names, act, eager, text in (
        (["--debug"], _remember, True, "Show the traceback of an error."),
        (["-v", "--verbose"], partial(_log_from, logging.INFO), False, "Print more on stderr."),
        (["-q", "--quiet"], partial(_log_from, logging.ERROR), True, "Print only errors on stderr."),
    ):
        function = click.option(
            *names, is_flag=True, expose_value=False, is_eager=eager, callback=act, help=text
        )(function)
    return function


def columns_option(name: str, of: str) -> Callable[[Function], Function]:
    """Add an option that names the columns of a table, which comes as a mapping of role to name."""
    return click.option(
        name, multiple=True, callback=_columns, metavar="ROLE=NAME,…",
        help=f"Names of columns in {of}: z=posZ,y=posY. Roles are frame, z, y, x, track_id, "
        "parent; z= states that there is no z.",
    )  # fmt: skip


def _columns(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    if not given:
        return {}
    from ..formats.tables.columns import columns_from

    return columns_from(given)


def _remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[f"outbid.{param.name}"] = value


def _log_from(level: int, ctx: click.Context, param: click.Parameter, value: bool) -> None:
    _remember(ctx, param, value)
    if value:
        logging.getLogger("outbid").setLevel(level)


@contextmanager
def _own_log_alone() -> Iterator[None]:
    """Send warnings and errors of Outbid's logger, and of no other package, to stderr."""
    ours, everything = logging.getLogger("outbid"), logging.getLogger()
    shown, nothing, before = logging.StreamHandler(sys.stderr), logging.NullHandler(), ours.level
    ours.addHandler(shown)
    everything.addHandler(nothing)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        everything.removeHandler(nothing)
        ours.removeHandler(shown)
        ours.setLevel(before)


# ---------------------------------------------------------------- what a command says on stderr


def say(text: str) -> None:
    """Print a line on stderr, unless --quiet is given."""
    if not click.get_current_context().meta.get("outbid.quiet"):
        click.echo(text, err=True)


class Stopwatch:
    """Measures the seconds since it was created.

    Examples
    --------
    >>> Stopwatch().seconds < 1
    True
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[..., None] | None]:
    """A progress bar on stderr, shown if stderr is a terminal and the work takes over a second.

    It is moved by a call with (done, in all), and renamed by a third argument.
    """
    if click.get_current_context().meta.get("outbid.quiet") or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(text, total=None)
    start = threading.Timer(1.0, bar.start)
    start.daemon = True
    start.start()
    try:
        yield lambda done, total, text=text: bar.update(task, completed=done, total=total, description=text)
    finally:
        start.cancel()
        start.join()
        bar.stop()


@contextmanager
def compilation_reported() -> Iterator[None]:
    """Print a message when kernels are compiled, which happens at their first use on a machine."""
    context = click.get_current_context()

    def begin() -> None:
        with context.scope(cleanup=False):  # a worker thread, which may be compiling, has none of its own
            if compiling.first_time():
                say(compiling.MESSAGE)

    with compiling.compilation_reported(begin), compilation_ends_at_signals():
        yield


@contextmanager
def compilation_ends_at_signals() -> Iterator[None]:
    """End a compilation before its next pass when a signal has arrived, in any thread.

    A pass takes up to two seconds; a kernel needs many passes.
    """
    from numba.core import event

    class Ender(event.Listener):
        def on_start(self, _event: object) -> None:
            if asked():
                raise KeyboardInterrupt

        def on_end(self, _event: object) -> None:
            """Do nothing at the end of a compilation."""

    with event.install_listener("numba:run_pass", Ender()):
        yield
