"""What is in a folder: each output as a whole, the record beside it, the inputs, and what was left over."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Content = Mapping[str, bytes]
"""Of a file: under the name ""; of a folder: of all its files, by their names. Empty if it is not there."""
_LEFT = re.compile(r".+\.([0-9a-f]{8}\.(tmp|old)|parts)")

_VARIES = re.compile(rb"urn:uuid:[0-9a-f-]{36}")
"""What tifffile makes anew in every file."""


@dataclass(frozen=True)
class State:
    """A folder at one moment: content by name, of what stands in it itself."""

    content: Mapping[str, Content]

    @property
    def left(self) -> list[str]:
        """Temporary files and folders."""
        return sorted(name for name in self.content if _LEFT.fullmatch(name))

    def without(self, names: Sequence[str]) -> dict[str, Content]:
        """All that is neither one of these, nor a record beside one of them, nor temporary."""
        own = {*names, *(f"{name}.json" for name in names)}
        return {
            name: of for name, of in self.content.items() if name not in own and not _LEFT.fullmatch(name)
        }

    def of(self, name: str) -> Content:
        """The content of a file or folder."""
        return self.content.get(name, {})


def state_of(folder: Path) -> State:
    """Read all of a folder."""
    return State({path.name: _content(path) for path in sorted(folder.iterdir())})


def _content(path: Path) -> Content:
    if path.is_file():
        return {"": _bytes(path)}
    return {
        file.relative_to(path).as_posix(): _bytes(file) for file in sorted(path.rglob("*")) if file.is_file()
    }


def _bytes(file: Path) -> bytes:
    return _VARIES.sub(b"", file.read_bytes())


def faults(name: str, now: State, wholes: Sequence[State], *, killed: bool) -> list[str]:
    """What is wrong with an output, which must be as it was in one of these states, and so must its record.

    A run that was killed may leave an output without its record, or the record of an output that is still to
    come; and what it was replacing inside its temporary folder. Never is a record that of another run.
    """
    own, record = now.of(name), now.of(f"{name}.json")
    for whole in wholes:
        if own == whole.of(name):
            if record == whole.of(f"{name}.json"):
                return []
            if killed and (
                not record or (not own and any(record == one.of(f"{name}.json") for one in wholes))
            ):
                return []
    if killed and not own and _inside_left(name, now, wholes):
        return []
    if any(own == whole.of(name) for whole in wholes):
        return [f"{name} has the record of another run, or none"]
    return [f"{name} is {'lost' if not own else 'half'}"]


def _inside_left(name: str, now: State, wholes: Sequence[State]) -> bool:
    """Whether a temporary folder holds what was there before, which the next run puts back."""
    for left in now.left:
        before = {
            file.removeprefix("old/"): of for file, of in now.of(left).items() if file.startswith("old/")
        }
        if left.startswith(f"{name}.") and before and any(before == whole.of(name) for whole in wholes):
            return True
    return False
