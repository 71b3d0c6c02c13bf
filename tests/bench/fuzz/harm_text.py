"""Ways to harm text: numbers, fields and lines of tables, attributes and elements of XML, JSON, encodings."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from .cases import Harm
from .harm import in_one

ODD_NUMBERS = (
    "", "nan", "NaN", "inf", "-inf", "1e400", "-1", "-3", "0", "0x10", "1_0", "1.5", "1,5", "\u0663",
    "\uff11", "9007199254740993", "2147483648", "2147483647", "99999999999999999999", " 7 ", "+3", "1e2",
    "-0", "1e-320", "null", "None", "NA", "abc", '"4"', "'4'", "4 5", "1e", ".", "-", "1.", ".5", "True",
    "\x1b[31m", "\u202e5",
)  # fmt: skip
_NAMES = (
    "frame", "t", "x", "y", "z", "Y", "posZ", "z_um", "x [µm]", "track_id", "parent", "parent_2", "id",
    "parent_id", "unit", "link_cost", "mass", "", "axis-0", "Unnamed: 0", "time",
)  # fmt: skip
_ELEMENTS = ("a", "particle", "Track", "Spot", "SpotsInFrame", "FilteredTracks", "detection")
_HEADS = (
    "<!DOCTYPE a>", '<!DOCTYPE a [<!ENTITY b "1">]>', "<!-- no -->", "<?no?>", "<a>" * 70 + "</a>" * 70,
)  # fmt: skip
_CODES = ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1", "utf-32")
_JSON = (
    None, True, 0, -1, 1.5, 1e300, 2**70, "", "x", "<f8", "|O", [], {}, [5], {"a": 1}, [[0]], 10**9, [10**9],
)  # fmt: skip
_NUMBER = r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_LINE = r"[^\n]*\n"
_FIELD = r"[,;\t][^,;\t\n]*"
_NAME = r"(?<![^,;\t\n])[A-Za-z][^,;\t\n]*"
_TWO_NAMES = rf"({_NAME})([,;\t])({_NAME})"
_ATTRIBUTE = r'\s[\w:]+="[^"]*"'


def _text(change: Callable[[str, random.Random], str]) -> Harm:
    """A harm of the text of one file; what is no text is left alone."""

    def harmed(content: bytes, rng: random.Random) -> bytes:
        changed = change(content.decode("utf-8", "surrogateescape"), rng)
        return changed.encode("utf-8", "surrogateescape")

    return in_one(harmed, lambda content: content and b"\0" not in content[:200])


def _instead(pattern: str, other: Callable[[re.Match[str], random.Random], str]) -> Harm:
    """Something else in place of one piece that the pattern finds."""

    def change(text: str, rng: random.Random) -> str:
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        one = rng.choice(found)
        return text[: one.start()] + other(one, rng) + text[one.end() :]

    return _text(change)


def _move_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return "".join(lines)


def _json(content: bytes, rng: random.Random) -> bytes:
    """A value of JSON, however deep, becomes another or is lost."""
    try:
        top = json.loads(content)
    except ValueError:
        return content
    if places := list(_places(top)):
        holder, key = rng.choice(places)
        if rng.random() < 0.3:
            del holder[key]
        else:
            holder[key] = rng.choice(_JSON)
    return json.dumps(top).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object inside, with each of its keys."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


NUMBERS: dict[str, Harm] = {
    "number": _instead(_NUMBER, lambda one, rng: rng.choice(ODD_NUMBERS)),
    # Another number of the same file: often one that makes sense.
    "near": _instead(_NUMBER, lambda one, rng: rng.choice(re.findall(_NUMBER, one.string))),
}
LINES: dict[str, Harm] = {
    "lose_line": _instead(_LINE, lambda one, rng: ""),
    "double_line": _instead(_LINE, lambda one, rng: 2 * one[0]),
    "move_line": _text(_move_line),
    "blank_line": _instead(_LINE, lambda one, rng: one[0] + rng.choice(["", " ", ",,", "# no", "\t"]) + "\n"),
    "ends": _text(lambda text, rng: text.replace("\n", rng.choice(["\r\n", "\r", "\n\n", "\v", "\u2028"]))),
}
FIELDS: dict[str, Harm] = {
    "separator": _text(lambda text, rng: text.replace(rng.choice(",;\t."), rng.choice(",;\t. "))),
    "quote": _instead(r"[^,;\t\n]+", lambda one, rng: f'"{one[0]}{rng.choice(["", chr(10)])}"'),
    "lose_field": _instead(_FIELD, lambda one, rng: ""),
    "more_fields": _instead(_FIELD, lambda one, rng: one[0] + rng.choice([one[0], ","])),
    "rename": _instead(_NAME, lambda one, rng: rng.choice(_NAMES)),
    "swap_names": _instead(_TWO_NAMES, lambda one, rng: one[3] + one[2] + one[1]),
}


def _wrapped(one: re.Match[str], rng: random.Random) -> str:
    """A line inside a new element, closed where it belongs."""
    name = rng.choice(_ELEMENTS)
    return f"<{name}>{one[0].strip()}</{name}>\n"


XML: dict[str, Harm] = {
    "lose_attribute": _instead(_ATTRIBUTE, lambda one, rng: ""),
    "double_attribute": _instead(_ATTRIBUTE, lambda one, rng: one[0] + rng.choice([one[0], ' extra="1"'])),
    "wrap": _instead(_LINE, _wrapped),
    # An element that ends before what belongs to it.
    "close_early": _instead(r"(?<=[\"\w])>(?=\s*<)", lambda one, rng: "/>"),
    # A document type, an entity, deep nesting; and another encoding.
    "declare": _instead(r"<(?=\w)", lambda one, rng: rng.choice(_HEADS) + "<"),
    "declare_code": _instead(
        "(?i)utf-8", lambda one, rng: rng.choice(["utf-16", "latin-1", "none", "ascii"])
    ),
}
ENCODING: dict[str, Harm] = {
    "encoding": in_one(lambda content, rng: content.decode("latin-1").encode(rng.choice(_CODES)))
}
JSON: dict[str, Harm] = {"json": in_one(_json, lambda content: content.lstrip()[:1] == b"{")}
