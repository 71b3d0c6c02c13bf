"""Ways to harm any file: bytes, pieces, and the files of a folder as a whole."""

from __future__ import annotations

import random

from .cases import Files, Harm

_ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b"\x1b",
    b"<",
    b"&",
    b",",
    b"\xef\xbb\xbf",
)
_ODD_WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1)
_HEAD = 600
"""Bytes at the beginning of a file, where most of what describes it stands."""


def one_of(files: Files, rng: random.Random) -> str:
    """A file to harm; "" if there is none with content."""
    return rng.choice([name for name, content in files.items() if content] or [""])


def _place(content: bytes, rng: random.Random) -> int:
    """A byte: in the head or the end of the file more often than in the middle."""
    part = rng.random()
    if part < 0.3:
        return rng.randrange(min(len(content), _HEAD))
    if part < 0.4:
        return len(content) - 1 - rng.randrange(min(len(content), 64))
    return rng.randrange(len(content))


def _piece(content: bytes, rng: random.Random) -> tuple[int, int]:
    first = _place(content, rng)
    return first, min(len(content), first + 1 + int(rng.expovariate(0.05)))


def _bytewise(change: object) -> Harm:
    """A harm of the content of one file."""

    def harm(files: Files, rng: random.Random) -> None:
        name = one_of(files, rng)
        if name:
            files[name] = bytes(change(files[name], rng))  # type: ignore[operator]

    return harm


def _flip_bit(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def _set_byte(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]


def _set_word(content: bytes, rng: random.Random) -> bytes:
    place, width = _place(content, rng), rng.choice([1, 2, 4, 8])
    word = (rng.choice(_ODD_WORDS) % 256**width).to_bytes(width, rng.choice(["little", "big"]))
    return content[:place] + word + content[place + width :]


def _cut(content: bytes, rng: random.Random) -> bytes:
    first, last = _piece(content, rng)
    return content[:first] + content[last:]


def _double(content: bytes, rng: random.Random) -> bytes:
    first, last = _piece(content, rng)
    return content[:last] + content[first:]


def _insert(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + rng.choice(_ODD_BYTES) + content[place:]


def _zero(content: bytes, rng: random.Random) -> bytes:
    first, last = _piece(content, rng)
    return content[:first] + bytes(last - first) + content[last:]


def _swap(content: bytes, rng: random.Random) -> bytes:
    first, last = _piece(content, rng)
    other = min(len(content), 2 * last - first)
    return content[:first] + content[last:other] + content[first:last] + content[other:]


def _end(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _lose_file(files: Files, rng: random.Random) -> None:
    files.pop(one_of(files, rng), None)


def _empty_file(files: Files, rng: random.Random) -> None:
    name = one_of(files, rng)
    if name:
        files[name] = b""


def _swap_files(files: Files, rng: random.Random) -> None:
    first, second = one_of(files, rng), one_of(files, rng)
    if first and second:
        files[first], files[second] = files[second], files[first]


def _copy_file(files: Files, rng: random.Random) -> None:
    """One more file, with a number in its name that is another."""
    name = one_of(files, rng)
    digits = [place for place, mark in enumerate(name) if mark.isdigit()]
    if digits:
        place = digits[-1]
        files[name[:place] + str(rng.randrange(10)) + name[place + 1 :]] = files[name]


BYTES: dict[str, Harm] = {
    change.__name__.strip("_"): _bytewise(change)
    for change in (_flip_bit, _set_byte, _set_word, _cut, _double, _insert, _zero, _swap, _end)
}
WHOLE: dict[str, Harm] = {
    "lose_file": _lose_file, "empty_file": _empty_file, "swap_files": _swap_files, "copy_file": _copy_file,
}  # fmt: skip
