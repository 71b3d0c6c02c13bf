"""The pages of a TIFF file: a linked list, of which each page is read once, also while the file grows."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ...errors import InputError

_DECIDING = {256, 257, 258, 259, 266, 277, 278, 284, 317, 322, 323, 338, 339}
"""Tags that determine how the bytes of an image are decoded."""
_SINGLE = _DECIDING - {258, 338, 339}
"""Those of them that hold one whole number; the others hold one for each sample."""
_LSM = 34412
"""Tag of Zeiss' files, whose strips are not divided as their header says."""
_STRIPS_AND_TILES = {273, 324}
"""Tags with the offsets of the data; readers differ in which of the two they use."""
_OFFSETS = {273, 279, 324, 325}
"""Tags with the offsets and with the lengths of the data."""
_UNSIGNED = {3, 4, 13, 16, 18}
"""Tag types of unsigned whole numbers: data at a negative offset are read as a page of zeros."""
_NUMBERS = {1: "B", 3: "H", 4: "I", 8: "h", 9: "i", 16: "Q"}  # tag types of whole numbers
_WIDTHS = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}  # their sizes


def pages_in(path: Path) -> dict[int, dict[int, int]]:
    """Tags that determine how each page is decoded, by the offset of the page.

    Raises
    ------
    InputError
        If the file is cut short, or readers differ in how they decode a page.
    """
    pages = Pages(path)
    pages.read_on()
    return pages.tags


@dataclass
class Pages:
    """The pages of a file that were read so far.

    Parameters
    ----------
    path : Path
    tags : dict
        Tags that determine how each page is decoded, by the offset of the page.
    offsets : list of int
        Of the pages, in their order.
    """

    path: Path
    tags: dict[int, dict[int, int]] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    _link: int = 0  # where the offset of the next page stands

    def __len__(self) -> int:
        return len(self.offsets)

    def read_on(self) -> None:
        """Read the pages that were added since.

        The pages form a linked list. If the last page is not marked as such, the file is truncated: the
        pages before stay, and the next call goes on after them.

        Raises
        ------
        InputError
            If the file is cut short, or readers differ in how they decode a page.
        """
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            head = file.read(16)
            order = {b"II": "<", b"MM": ">"}.get(head[:2])
            if order is None or len(head) < 8:
                raise InputError(f"{self.path} does not begin as TIFF does. Check what it is.")
            (version,) = struct.unpack(order + "H", head[2:4])
            form = _Form(order, *((20, "Q", "Q", 8) if version == 43 else (12, "H", "I", 4)))
            if len(head) < 16:
                return
            self._link = self._link or form.link
            while offset := form.read(file, self._link):
                if offset in self.tags or offset >= size:
                    raise InputError(self._cut(offset, size))
                deciding, self._link = self._page(file, form, offset, size)
                like = next(iter(self.tags.values()), deciding)
                self.tags[offset] = like if like == deciding else deciding  # those that are alike are one
                self.offsets.append(offset)

    def _cut(self, offset: int, size: int) -> str:
        return (
            f"{self.path} is cut short: page {len(self)} would be at byte {offset} of {size}. Copy it again."
        )

    def _page(self, file: BinaryIO, form: _Form, offset: int, size: int) -> tuple[dict[int, int], int]:
        """The tags of a page, and where the offset of the one after it stands."""
        file.seek(offset)
        start = file.read(struct.calcsize(form.count))
        if len(start) < struct.calcsize(form.count):
            raise InputError(self._cut(offset, size))
        (tags,) = struct.unpack(form.order + form.count, start)
        link = offset + len(start) + tags * form.entry
        if link + struct.calcsize(form.offset) > size:
            raise InputError(self._cut(offset, size))
        counts: dict[int, int] = {}
        deciding: dict[int, int] = {}
        for tag in range(tags):
            content = file.read(form.entry)
            name, kind, count, value = struct.unpack(form.order + "HH" + 2 * form.offset, content)
            _refuse_odd_entry(self.path, len(self), (name, kind, count), counts)
            counts[name] = count
            number, value_at = form.order + _NUMBERS.get(kind, "Q"), 4 + struct.calcsize(form.offset)
            if name in _DECIDING and count == 1 and struct.calcsize(number) <= form.entry - value_at:
                (deciding[name],) = struct.unpack_from(number, content, value_at)
            length = count * _WIDTHS.get(kind, 1)
            if length > struct.calcsize(form.offset) and value + length > size:
                raise InputError(
                    f"{self.path} is cut short: tag {tag} of page {len(self)} would end at byte "
                    f"{value + length} of {size}. Copy it again."
                )
        _refuse_odd_page(self.path, len(self), counts, deciding)
        return deciding, link


@dataclass(frozen=True)
class _Form:
    """How TIFF or BigTIFF counts: byte order, bytes of a tag, forms of numbers, place of the first link."""

    order: str
    entry: int
    count: str
    offset: str
    link: int

    def read(self, file: BinaryIO, at: int) -> int:
        """The offset that stands at a place of the file."""
        file.seek(at)
        content = file.read(struct.calcsize(self.offset))
        whole = len(content) == struct.calcsize(self.offset)  # else it was cut since its size was asked for
        return int(struct.unpack(self.order + self.offset, content)[0]) if whole else 0


def _refuse_odd_entry(path: Path, page: int, entry: tuple[int, int, int], before: Mapping[int, int]) -> None:
    """Refuse an entry (tag, type, number of values) that readers understand in different ways.

    `before`: the number of values of each tag that precedes it in the page.
    """
    name, kind, count = entry
    if name in _SINGLE and (count != 1 or kind not in _NUMBERS or name in before):
        reason = f"is not one whole number (type {kind}, {count + before.get(name, 0)} values)"
    elif name in _DECIDING and kind not in _NUMBERS:
        reason = f"holds values of type {kind}, not whole numbers"
    elif name in _OFFSETS and (kind not in _UNSIGNED or name in before):
        reason = f"places its data by values of type {kind}, not by unsigned numbers given once"
    else:
        return
    raise InputError(f"{path}: tag {name} of page {page} {reason}. It may be damaged; save the file again.")


def _refuse_odd_page(path: Path, page: int, counts: Mapping[int, int], deciding: Mapping[int, int]) -> None:
    """Refuse a page whose tags contradict each other. `counts`: number of values of each tag."""
    pieces = 0 if _LSM in counts else counts.get(273, counts.get(324, 0))
    sizes = counts.get(279, counts.get(325, pieces))
    if counts.keys() >= _STRIPS_AND_TILES:
        reason = "is in strips and in tiles, which none can be"
    elif deciding.get(317, 1) != 1 == deciding.get(259, 1):  # readers differ in whether they apply it
        reason = "has a predictor (tag 317), but no compression that uses it"
    elif pieces > 0 and pieces != sizes:
        reason = f"has {pieces} strips or tiles, but the sizes of {sizes}"
    elif 0 < pieces < (needed := _pieces(deciding)):
        reason = f"is in {pieces} strips or tiles where its header needs {needed}"
    else:
        return
    raise InputError(f"{path}: page {page} {reason}. It may be damaged; save the file again.")


def _pieces(tags: Mapping[int, int]) -> int:
    """How many strips or tiles make a page with these tags.

    Examples
    --------
    >>> _pieces({256: 100, 257: 90, 278: 20})
    5
    >>> _pieces({256: 100, 257: 90, 322: 64, 323: 64, 277: 3, 284: 2})
    12
    """
    width, length = tags.get(256, 0), tags.get(257, 0)
    wide, high = (tags.get(322), tags.get(323)) if 322 in tags else (width, tags.get(278))
    planes = tags.get(277, 1) if tags.get(284) == 2 else 1
    return -(-width // (wide or width or 1)) * -(-length // (high or length or 1)) * planes
