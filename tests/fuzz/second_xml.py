"""Second readers of XML: libxml2's trees, searched from the outside to the inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lxml import etree

from .cases import Seed
from .second import Broken, Found, Unsure, decimal, finite, frame_of, links_by_label, whole, with_links

_DEEPEST = 64


def _root(path: Path) -> Any:
    content = path.read_bytes()
    if b"xmlns" in content or b"xml:" in content:
        raise Unsure("name spaces")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        if error.lineno <= 1 and content[:5] != b"<root":
            raise Unsure("a declaration that libxml2 does not take") from None
        if b"encoding" in content[:200] and "ncoding" in str(error):
            raise Unsure("an encoding that libxml2 does not know") from None
        raise Broken(f"no XML: {error}") from None
    except ValueError:
        raise Unsure("libxml2 does not take it") from None
    if root.getroottree().docinfo.doctype:
        raise Broken("a document type")
    if max(_depth(element) for element in root.iter(etree.Element)) > _DEEPEST:
        raise Broken("too deep")
    return root


def _depth(element: Any) -> int:
    return 1 + sum(1 for _ in element.iterancestors())


def _attribute(element: Any, name: str) -> float:
    given = element.get(name)
    if given is None:
        raise Broken(f"no {name}")
    if given.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(given)
    if not given.isascii():
        raise Broken(f"{name} is {given!r}")
    return decimal(given)


def read_isbi(path: Path, seed: Seed) -> Found:
    """Detections inside particles or tracks."""
    root = _root(path)
    if root.tag not in ("root", "Tracks"):
        raise Broken("another root")
    rows, labels, numbers = [], [], {}
    for element in root.iter("detection"):
        holder = next((one for one in element.iterancestors() if one.tag in ("particle", "track")), None)
        if holder is None:
            raise Broken("a detection outside any particle")
        values = [_attribute(element, axis) for axis in "tzyx"]
        rows.append((frame_of(values[0]), *(finite(value) for value in values[1:])))
        labels.append(numbers.setdefault(holder, len(numbers)))
    return with_links(rows, lambda: links_by_label(labels, [row[0] for row in rows]))


def read_trackmate(path: Path, seed: Seed) -> Found:
    """Spots that are visible or on a link that is shown, and those links."""
    root = _root(path)
    if root.tag != "TrackMate":
        raise Unsure("another root")
    shown = None
    if root.find(".//FilteredTracks") is not None:
        shown = {whole(_attribute(one, "TRACK_ID")) for one in root.iter("TrackID")}
        if any(one.getparent().tag != "FilteredTracks" for one in root.iter("TrackID")):
            raise Unsure("TrackID elsewhere")
    edges = []
    for edge in root.iter("Edge"):
        ends = [whole(_attribute(edge, f"SPOT_{end}_ID")) for end in ("SOURCE", "TARGET")]
        track = edge.getparent()
        if track.tag != "Track":
            raise Unsure("an edge that is in no track")
        number = None if track.get("TRACK_ID") is None else whole(_attribute(track, "TRACK_ID"))
        if shown is None or number is None or number in shown:
            edges.append(ends)
    known = {
        whole(_attribute(one, "TRACK_ID")) for one in root.iter("Track") if one.get("TRACK_ID") is not None
    }
    if shown is not None and shown - known:
        raise Broken("a track that is not there")
    return _spots(root, edges)


def _spots(root: Any, edges: list[list[int]]) -> Found:
    linked = {number for ends in edges for number in ends}
    rows, place = [], {}
    for spot in root.iter("Spot"):
        frame = spot.get("FRAME")
        around = spot.getparent()
        if frame is None and around.tag != "SpotsInFrame":
            raise Unsure("a spot that is in no frame")
        values = [_attribute(spot, f"POSITION_{axis}") for axis in "ZYX"]
        time = _attribute(spot, "FRAME") if frame is not None else _attribute(around, "frame")
        number = whole(_attribute(spot, "ID"))
        visible = spot.get("VISIBILITY", "1")
        if visible not in ("0", "1", "0.0", "1.0"):
            raise Unsure("half visible")
        if visible in ("0", "0.0") and number not in linked:
            finite(time)
            for value in values:
                finite(value)
            continue
        if number in place:
            raise Unsure("a number twice")
        place[number] = len(rows)
        rows.append((frame_of(time), *(finite(value) for value in values)))
    if not linked <= set(place):
        raise Unsure("a link to a spot that is not there")
    return with_links(rows, lambda: [(place[a], place[b]) for a, b in edges])
