"""Ways to harm text: numbers, fields and lines of tables, attributes and elements of XML, JSON, encodings."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

from .cases import Files, Harm

ODD_NUMBERS = (
    "", "nan", "NaN", "inf", "-inf", "1e400", "-1", "-3", "0", "0x10", "1_0", "1.5", "1,5", "\u0663",
    "\uff11", "9007199254740993", "2147483648", "2147483647", "99999999999999999999", " 7 ", "+3", "1e2",
    "-0", "1e-320", "null", "None", "NA", "abc", '"4"', "'4'", "4 5", "1e", ".", "-", "1.", ".5", "True",
    "\x1b[31m", "\u202e5",
)  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ATTRIBUTE = re.compile(r'\s[\w:]+="[^"]*"')
_ELEMENT = re.compile(r"[^\n]*\n")
_NAMES = (
    "frame", "t", "x", "y", "z", "Y", "posZ", "z_um", "x [µm]", "track_id", "parent", "parent_2", "id",
    "parent_id", "unit", "link_cost", "mass", "", "axis-0", "Unnamed: 0", "time",
)  # fmt: skip
_JSON = (
    None,
    True,
    0,
    -1,
    1.5,
    1e300,
    2**70,
    "",
    "x",
    "<f8",
    "|O",
    [],
    {},
    [5],
    {"a": 1},
    [[0]],
    10**9,
    [10**9],
)


def _text(change: Callable[[str, random.Random], str]) -> Harm:
    """A harm of the text of one file; what is no text is left alone."""

    def harm(files: Files, rng: random.Random) -> None:
        names = [name for name, content in files.items() if content and b"\0" not in content[:200]]
        if names:
            name = rng.choice(names)
            changed = change(files[name].decode("utf-8", "surrogateescape"), rng)
            files[name] = changed.encode("utf-8", "surrogateescape")

    return harm


def _instead(text: str, pattern: re.Pattern[str], rng: random.Random, other: Callable[[str], str]) -> str:
    """The text with another piece for one that the pattern finds."""
    places = [found.span() for found in pattern.finditer(text)]
    if not places:
        return text
    first, last = rng.choice(places)
    return text[:first] + other(text[first:last]) + text[last:]


def _number(text: str, rng: random.Random) -> str:
    return _instead(text, _NUMBER, rng, lambda _: rng.choice(ODD_NUMBERS))


def _near(text: str, rng: random.Random) -> str:
    """Another number of the same file: often one that makes sense."""
    every = _NUMBER.findall(text)
    return _instead(text, _NUMBER, rng, lambda _: rng.choice(every))


def _lose_line(text: str, rng: random.Random) -> str:
    return _instead(text, _ELEMENT, rng, lambda _: "")


def _double_line(text: str, rng: random.Random) -> str:
    return _instead(text, _ELEMENT, rng, lambda line: line + line)


def _move_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return "".join(lines)


def _blank_line(text: str, rng: random.Random) -> str:
    return _instead(
        text, _ELEMENT, rng, lambda line: line + rng.choice(["\n", " \n", ",,\n", "# no\n", "\t\n"])
    )


def _ends(text: str, rng: random.Random) -> str:
    return text.replace("\n", rng.choice(["\r\n", "\r", "\n\n", "\x0b", "\u2028"]))


def _separator(text: str, rng: random.Random) -> str:
    return text.replace(rng.choice([",", ";", "\t", "."]), rng.choice([",", ";", "\t", ".", " "]))


def _quote(text: str, rng: random.Random) -> str:
    return _instead(
        text, re.compile(r"[^,;\t\n]+"), rng, lambda field: f'"{field}{rng.choice(["", chr(10)])}"'
    )


def _lose_field(text: str, rng: random.Random) -> str:
    return _instead(text, re.compile(r"[,;\t][^,;\t\n]*"), rng, lambda _: "")


def _more_fields(text: str, rng: random.Random) -> str:
    return _instead(
        text, re.compile(r"[,;\t][^,;\t\n]*"), rng, lambda field: field + rng.choice([field, ","])
    )


def _rename(text: str, rng: random.Random) -> str:
    """Another name for a column: a field that begins with a letter."""
    named = re.compile(r"(?<![^,;\t\n])[A-Za-z][^,;\t\n]*")
    return _instead(text, named, rng, lambda _: rng.choice(_NAMES))


def _swap_names(text: str, rng: random.Random) -> str:
    """Two names of columns change places."""
    lines = text.splitlines(keepends=True)
    row = next((k for k, line in enumerate(lines) if re.match(r"[A-Za-z]", line)), None)
    if row is None:
        return text
    fields = re.split(r"([,;\t])", lines[row].rstrip("\r\n"))
    a, b = rng.randrange(0, len(fields), 2), rng.randrange(0, len(fields), 2)
    fields[a], fields[b] = fields[b], fields[a]
    lines[row] = "".join(fields) + "\n"
    return "".join(lines)


def _lose_attribute(text: str, rng: random.Random) -> str:
    return _instead(text, _ATTRIBUTE, rng, lambda _: "")


def _double_attribute(text: str, rng: random.Random) -> str:
    return _instead(text, _ATTRIBUTE, rng, lambda given: given + rng.choice([given, ' extra="1"']))


def _wrap(text: str, rng: random.Random) -> str:
    """A line inside a new element, closed where it belongs or at once."""
    name = rng.choice(["a", "particle", "Track", "Spot", "SpotsInFrame", "FilteredTracks", "detection"])
    return _instead(text, _ELEMENT, rng, lambda line: f"<{name}>{line.strip()}</{name}>\n")


def _close_early(text: str, rng: random.Random) -> str:
    """An element that ends before what belongs to it."""
    return _instead(text, re.compile(r"(?<=[\"\w])>(?=\s*<)"), rng, lambda _: "/>")


def _declare(text: str, rng: random.Random) -> str:
    """A document type, a name space, another encoding, an entity, deep nesting."""
    deep = "<a>" * 70 + "</a>" * 70
    head = rng.choice(["<!DOCTYPE a>", '<!DOCTYPE a [<!ENTITY b "1">]>', "<!-- no -->", "<?no?>", deep])
    if rng.random() < 0.3:
        return re.sub("UTF-8", rng.choice(["utf-16", "latin-1", "none", "ascii"]), text, flags=re.IGNORECASE)
    return _instead(text, re.compile(r"<(?=\w)"), rng, lambda mark: head + mark)


def _encoding(files: Files, rng: random.Random) -> None:
    names = [name for name, content in files.items() if content]
    if names:
        name = rng.choice(names)
        code = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1", "utf-32"])
        files[name] = files[name].decode("latin-1").encode(code)


def _json(files: Files, rng: random.Random) -> None:
    """A value of JSON, however deep, becomes another or is lost."""
    names = [name for name, content in files.items() if content.lstrip()[:1] == b"{"]
    if not names:
        return
    name = rng.choice(names)
    try:
        top = json.loads(files[name])
    except ValueError:
        return
    spots: list[tuple[object, object]] = []
    _walk(top, spots)
    if spots:
        holder, key = rng.choice(spots)
        if rng.random() < 0.3:
            del holder[key]  # type: ignore[attr-defined]
        else:
            holder[key] = rng.choice(_JSON)  # type: ignore[index]
    files[name] = json.dumps(top).encode()


def _walk(value: object, spots: list[tuple[object, object]]) -> None:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        spots.append((value, key))
        _walk(value[key], spots)  # type: ignore[index]


NUMBERS: dict[str, Harm] = {"number": _text(_number), "near": _text(_near)}
LINES: dict[str, Harm] = {
    change.__name__.strip("_"): _text(change)
    for change in (_lose_line, _double_line, _move_line, _blank_line, _ends)
}
FIELDS: dict[str, Harm] = {
    change.__name__.strip("_"): _text(change)
    for change in (_separator, _quote, _lose_field, _more_fields, _rename, _swap_names)
}
XML: dict[str, Harm] = {
    change.__name__.strip("_"): _text(change)
    for change in (_lose_attribute, _double_attribute, _wrap, _close_early, _declare)
}
ENCODING: dict[str, Harm] = {"encoding": _encoding}
JSON: dict[str, Harm] = {"json": _json}
