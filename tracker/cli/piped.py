"""`-` in the place of a file: stdin for an input, stdout for an output."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

_HEAD = 1024
"""Number of bytes of stdin from which its format is recognised."""
_MAGIC = ((b"PAR1", ".parquet"), (b"PK\x03\x04", ".xlsx"))


class _PipedFile(click.Path):
    """A path; ``-`` is the file that `piped` makes."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        if value == "-" and ctx is not None:
            return self.piped(param, ctx)
        return Path(str(super().convert(value, param, ctx)))

    def piped(self, param: click.Parameter | None, ctx: click.Context) -> Path:
        """The file that stands for stdin or stdout."""
        raise NotImplementedError


class InputFile(_PipedFile):
    """A path; ``-`` copies stdin to a temporary file for the duration of the command."""

    def piped(self, param: click.Parameter | None, ctx: click.Context) -> Path:
        if "outbid.stdin" in ctx.meta:
            self.fail("stdin can be read once only.", param, ctx)
        ctx.meta["outbid.stdin"] = True
        return _spooled(ctx)


class OutputFile(_PipedFile):
    """A path; ``-`` copies the command's output, a CSV, to stdout when the command ends."""

    def piped(self, param: click.Parameter | None, ctx: click.Context) -> Path:  # noqa: ARG002
        return to_stdout(ctx)


def to_stdout(ctx: click.Context) -> Path:
    """A file whose content is copied to stdout at the end, if the command wrote it."""
    file = _folder(ctx) / "stdout.csv"
    ctx.meta["outbid.stdout"] = file

    def copy() -> None:
        if file.exists():
            with file.open("rb") as content:
                shutil.copyfileobj(content, sys.stdout.buffer)
            sys.stdout.buffer.flush()

    ctx.call_on_close(copy)
    return file


def default_output(source: Path, ending: str) -> Path:
    """Default output of a command: beside its input, or stdout if the input is stdin."""
    ctx = click.get_current_context()
    return to_stdout(ctx) if "outbid.stdin" in ctx.meta else source.with_name(f"{source.stem}{ending}")


def shown(output: Path) -> str:
    """The name of an output in a message."""
    return "stdout" if click.get_current_context().meta.get("outbid.stdout") == output else str(output)


def refuse_json_beside_data(as_json: bool) -> None:
    """Raise a click.UsageError if both the data and the JSON summary would go to stdout."""
    if as_json and "outbid.stdout" in click.get_current_context().meta:
        raise click.UsageError("--json prints on stdout, where the output goes: name a file with -o.")


def _spooled(ctx: click.Context) -> Path:
    stream = sys.stdin.buffer
    if sys.stdin.isatty():
        click.echo("Reading a table from the terminal; end it with Ctrl-D.", err=True)
    head = stream.read(_HEAD)
    file = _folder(ctx) / f"stdin{_suffix_of(head)}"
    with file.open("wb") as copy:
        copy.write(head)
        shutil.copyfileobj(stream, copy)
    return file


def _suffix_of(head: bytes) -> str:
    """The suffix for data that begin with these bytes: Parquet, Excel, XML, else a text table."""
    text = ".xml" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else ".csv"
    return next((suffix for magic, suffix in _MAGIC if head.startswith(magic)), text)


def _folder(ctx: click.Context) -> Path:
    """A temporary folder, removed when the command has ended."""
    folder = Path(tempfile.mkdtemp(prefix="outbid-"))
    # What is asked for first is done last: the output is copied before.
    ctx.call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder
