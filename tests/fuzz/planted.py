"""Faults that are put into the readers, in memory, to judge the fuzzer: it has to find every one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType


@dataclass(frozen=True)
class Planted:
    """A piece of a reader's source, and what stands there instead.

    `kind` is the format whose cases must show it, and `harm` what those do to the file: "" for seeds that are
    not harmed.
    """

    name: str
    kind: str
    harm: str
    module: str
    good: str
    bad: str


FAULTS = (
    Planted("decimal commas are not seen", "csv", "", "csv_layout", '"," if commas else "."', '"."'),
    Planted(
        "frames beyond 2^31 wrap",
        "csv",
        "number",
        "table",
        "(frame < 0) | (frame > _LARGEST_FRAME)",
        "frame < 0",
    ),
    Planted("0x10 is 16", "csv", "number", "csv", 'r"^\\s*[+-]?0[xX]"', 'r"^never$"'),
    Planted(
        "rows are sorted, positions are not", "csv", "", "table", "position[order], _unit", "position, _unit"
    ),
    Planted(
        "damaged UTF-16 is no surprise",
        "csv",
        "end",
        "csv_layout",
        "except UnicodeDecodeError as error:",
        "except KeyError as error:",
    ),
    Planted(
        "half frames are cut",
        "csv",
        "number",
        "table",
        "(values == np.rint(values)) & (np.abs(values) < 2**53)",
        "np.abs(values) < 2**53",
    ),
    Planted(
        "checksums are not looked at",
        "parquet",
        "set_byte",
        "parquet",
        "page_checksum_verification=True",
        "page_checksum_verification=False",
    ),
    Planted(
        "a detection belongs to the particle before it",
        "isbi",
        "move_line",
        "isbi",
        "        current = -1\n\n    refuse",
        "        pass\n\n    refuse",
    ),
    Planted(
        "document types are read", "isbi", "declare", "xml_stream", "forbid_dtd=True", "forbid_dtd=False"
    ),
    Planted("1_0 is 10", "isbi", "number", "decimals", 'if "_" in text or not text.isascii():', "if False:"),
    Planted(
        "hidden spots are shown", "trackmate", "", "trackmate", 'not in ("0", "0.0")', 'not in ("none",)'
    ),
    Planted(
        "hidden tracks are shown", "trackmate", "", "trackmate", "if self._filters else", "if False else"
    ),
    Planted(
        "numbers of spots are cut",
        "trackmate",
        "number",
        "trackmate",
        "value != np.rint(value) or abs",
        "abs",
    ),
    Planted(
        "the first edges may be anything",
        "trackmate_csv",
        "number",
        "trackmate_csv",
        "if line > 4 or any(map(_is_number, row)):",
        "if line > 4:",
    ),
    Planted(
        "lost chunks are zeros",
        "geff",
        "lose_file",
        "geff",
        "if numbers or (position and",
        "if False and (position and",
    ),
    Planted(
        "frames without an image are skipped", "ctc", "lose_file", "ctc", "    if count > 0:", "    if False:"
    ),
    Planted(
        "a label has two rows", "ctc", "double_line", "ctc", "(np.diff(table[:, 0]) == 0).any()", "False"
    ),
    Planted(
        "a file that is cut short",
        "openptv",
        "lose_line",
        "openptv",
        "if len(rows) != int(count):",
        "if False:",
    ),
    Planted(
        "track numbers are cut", "myptv", "number", "graph", "(label == np.rint(label))", "(label == label)"
    ),
    Planted(
        "labels stay where the rows were",
        "npy",
        "",
        "graph",
        'label[np.argsort(frame, kind="stable")].astype',
        "label.astype",
    ),
    Planted(
        "a count is believed", "mastodon", "member", "mastodon", "count < 0 or stop > len(data)", "count < 0"
    ),
    Planted(
        "pages in a circle",
        "tiff",
        "tag",
        "tiff",
        "if offset in found or offset >= size:",
        "if offset >= size:",
    ),
    Planted(
        "fewer planes than declared",
        "tiff",
        "tag",
        "tiff",
        "                _refuse_if_cut_short(path, tiff, series, partial)",
        "                pass",
    ),
    Planted(
        "frame 10 comes before frame 2",
        "png",
        "",
        "counters",
        "int(each) for each in part",
        "int(each[:1]) for each in part",
    ),
    Planted("transparency is a colour", "png", "", "stacks", "samples[..., :3].mean", "samples.mean"),
    Planted(
        "damaged JSON is no surprise",
        "record",
        "cut",
        "records",
        "except (ValueError, RecursionError) as error:",
        "except KeyError as error:",
    ),
)


@contextmanager
def planted(fault: Planted) -> Iterator[None]:
    """Have the fault in the reader: functions keep their names and get other code.

    Raises
    ------
    ValueError
        If the reader has no such piece any more.
    """
    module = import_module(f"outbid.formats.{fault.module}")
    source = Path(str(module.__file__)).read_text("utf-8")
    if source.count(fault.good) < 1:
        raise ValueError(f"{fault.module} has no {fault.good!r}: plant {fault.name!r} anew")
    other = ModuleType(module.__name__)
    other.__dict__.update(module.__dict__)
    exec(compile(source.replace(fault.good, fault.bad), str(module.__file__), "exec"), other.__dict__)
    undo = list(_exchange(module, other))
    try:
        yield
    finally:
        for holder, name, before in reversed(undo):
            setattr(holder, name, before)


def _exchange(module: ModuleType, other: ModuleType) -> Iterator[tuple[object, str, object]]:
    """Give functions the code of the other module, and constants its values; yields what was before."""
    for name, new in vars(other).items():
        old = vars(module).get(name)
        if isinstance(new, FunctionType) and isinstance(old, FunctionType):
            yield from _code(unwrap(old), unwrap(new))
        elif isinstance(new, type) and isinstance(old, type):
            for method, of in vars(new).items():
                mine = vars(old).get(method)
                if isinstance(of, FunctionType) and isinstance(mine, FunctionType):
                    yield from _code(mine, of)
        elif isinstance(new, str | int) and new != old:
            yield module, name, old
            setattr(module, name, new)


def _code(old: FunctionType, new: FunctionType) -> Iterator[tuple[object, str, object]]:
    if old.__code__ != new.__code__ and old.__code__.co_freevars == new.__code__.co_freevars:
        yield old, "__code__", old.__code__
        old.__code__ = new.__code__
