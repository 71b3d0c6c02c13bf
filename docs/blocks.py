"""The fenced ``sh`` and ``python`` blocks of a page, run one after the other in one folder.

The build shows beneath each block what it printed, and the tests run the same blocks, so neither commands
nor figures on a page can grow stale. A line of ``sh`` is a command of Outbid, run in this process, or one
of `make` and `pip install`, of which only target and extras are checked. ``# exit code N`` behind a command
says how it ends, if not with 0. Blocks of other languages are only shown.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tomllib
import traceback
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from outbid.cli import main

REPOSITORY = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^```(?P<language>sh|python)\n(?P<code>.*?)^```\n", re.DOTALL | re.MULTILINE)
_EXIT = re.compile(r"#.*exit code (\d+)")
_COMPILING = re.compile(r"^Compiling the kernels .*\n", re.MULTILINE)


class BlockError(Exception):
    """A block that does not do what its page says."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its code, the line of the page where it starts and where it ends."""

    language: str
    code: str
    line: int
    end: int


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page that can be run."""
    return [
        Block(found["language"], found["code"], text[: found.start()].count("\n") + 1, found.end())
        for found in _FENCE.finditer(text)
    ]


def run_blocks(blocks: list[Block], folder: Path) -> list[str]:
    """What each block prints, run in a folder that exists.

    Raises
    ------
    BlockError
        If a command ends otherwise than it should, or Python raises.
    """
    printed, names = [], {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in blocks:
            run = _shell if block.language == "sh" else _python
            printed.append(_COMPILING.sub("", run(block, names)))
    return printed


def with_output(text: str, folder: Path) -> str:
    """A page with what its blocks print beneath each of them."""
    blocks = blocks_of(text)
    parts, begin = [], 0
    for block, printed in zip(blocks, run_blocks(blocks, folder), strict=True):
        parts.append(text[begin : block.end])
        if printed.strip():
            parts.append(f"\n```{{code-block}} text\n:class: output\n\n{printed.rstrip()}\n```\n")
        begin = block.end
    return "".join([*parts, text[begin:]])


def _shell(block: Block, _names: dict) -> str:
    lines = block.code.replace("\\\n", " ").splitlines()
    return "".join(_command(line, block) for line in lines if line.strip() and not line.startswith("#"))


def _command(line: str, block: Block) -> str:
    words = shlex.split(line, comments=True)
    if words[0] == "outbid":
        due = _EXIT.search(line)
        done = CliRunner().invoke(main, words[1:])
        if done.exit_code != (int(due[1]) if due else 0):
            raise BlockError(f"line {block.line}: `{line}` ends with {done.exit_code}: {done.output}")
        return done.output
    asked = re.match(r"make (\S+)|pip install '?(?:\.|outbid)(?:\[([\w,]*)\])?(?:'| |$)", line)
    if asked is None:
        raise BlockError(f"line {block.line}: `{line}` cannot be run here; give the block another language")
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    if asked[1] and not re.search(rf"^{re.escape(asked[1])}:", makefile, re.MULTILINE):
        raise BlockError(f"line {block.line}: the Makefile has no target {asked[1]}")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    if unknown := set((asked[2] or "").split(",")) - {"", *project["optional-dependencies"]}:
        raise BlockError(f"line {block.line}: there is no extra {unknown}")
    return ""


def _python(block: Block, names: dict) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, f"block at line {block.line}", "exec"), names)
    except Exception as error:
        raise BlockError(f"line {block.line}: {traceback.format_exc(limit=-1)}") from error
    return printed.getvalue()
