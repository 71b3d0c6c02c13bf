"""Ways to harm any file: bytes and pieces of one, and the files of a folder as a whole."""

from __future__ import annotations

import random
from collections.abc import Callable

from .cases import Files, Harm

_ODD_BYTES = (*(bytes([one]) for one in b"\0\xff\x7f\x80\n\r\"'\x1b<&,"), b"\xef\xbb\xbf")
_ODD_WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1)
_HEAD = 600
"""Bytes at the beginning of a file, where most of what describes it stands."""
Change = Callable[[bytes, random.Random], bytes]
"""The content of a file, or a piece of it, to another."""


def in_one(change: Change, fits: Callable[[bytes], object] = bool) -> Harm:
    """A harm of the content of one file of those that fit."""

    def harm(files: Files, rng: random.Random) -> None:
        if names := [name for name, content in files.items() if fits(content)]:
            name = rng.choice(names)
            files[name] = change(files[name], rng)

    return harm


def _piece(change: Change) -> Harm:
    """A harm of some bytes: in the head or the end of the file more often than in the middle."""

    def harmed(content: bytes, rng: random.Random) -> bytes:
        part, first = rng.random(), rng.randrange(len(content))
        if part < 0.3:
            first = rng.randrange(min(len(content), _HEAD))
        elif part < 0.4:
            first = len(content) - 1 - rng.randrange(min(len(content), 64))
        last = first + 1 + int(rng.expovariate(0.05))
        return content[:first] + change(content[first:last], rng) + content[last:]

    return in_one(harmed)


def _over(piece: bytes, other: bytes) -> bytes:
    """Other bytes in place of the first ones of a piece."""
    return (other + piece[len(other) :])[: len(piece)]


def _word(rng: random.Random) -> bytes:
    width = rng.choice([1, 2, 4, 8])
    return (rng.choice(_ODD_WORDS) % 256**width).to_bytes(width, rng.choice(["little", "big"]))


BYTES: dict[str, Harm] = {
    "flip_bit": _piece(lambda piece, rng: _over(piece, bytes([piece[0] ^ 1 << rng.randrange(8)]))),
    "set_byte": _piece(lambda piece, rng: _over(piece, rng.randbytes(1))),
    "set_word": _piece(lambda piece, rng: _over(piece, _word(rng))),
    "cut": _piece(lambda piece, rng: b""),
    "double": _piece(lambda piece, rng: 2 * piece),
    "insert": _piece(lambda piece, rng: rng.choice(_ODD_BYTES) + piece),
    "zero": _piece(lambda piece, rng: bytes(len(piece))),
    "swap": _piece(lambda piece, rng: piece[len(piece) // 2 :] + piece[: len(piece) // 2]),
    "end": in_one(lambda content, rng: content[: rng.randrange(len(content))]),
}


def _lose_file(files: Files, rng: random.Random) -> None:
    if files:
        del files[rng.choice(list(files))]


def _swap_files(files: Files, rng: random.Random) -> None:
    if files:
        first, second = rng.choices(list(files), k=2)
        files[first], files[second] = files[second], files[first]


def _copy_file(files: Files, rng: random.Random) -> None:
    """One more file, with a number in its name that is another."""
    name = rng.choice(list(files) or [""])
    if digits := [place for place, mark in enumerate(name) if mark.isdigit()]:
        files[name[: digits[-1]] + str(rng.randrange(10)) + name[digits[-1] + 1 :]] = files[name]


WHOLE: dict[str, Harm] = {
    "lose_file": _lose_file,
    "empty_file": in_one(lambda content, rng: b""),
    "swap_files": _swap_files,
    "copy_file": _copy_file,
}
