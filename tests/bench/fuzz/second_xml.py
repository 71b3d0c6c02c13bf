"""Second readers of XML: libxml2's trees, searched from the outside to the inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lxml import etree

from .cases import Seed
from .second import Broken, Found, Unsure, by_label, by_number, decimal, row_of, whole, with_links

_DEEPEST = 64


def _root(path: Path) -> Any:
    content = path.read_bytes()
    if b"xmlns" in content or b"xml:" in content:
        raise Unsure("name spaces")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        if (error.lineno <= 1 and content[:5] != b"<root") or (
            b"encoding" in content[:200] and "ncoding" in str(error)
        ):
            raise Unsure("a declaration or an encoding that libxml2 does not take") from None
        raise Broken(f"no XML: {error}") from None
    except ValueError:
        raise Unsure("libxml2 does not take it") from None
    if root.getroottree().docinfo.doctype:
        raise Broken("a document type")
    if any(sum(1 for _ in element.iterancestors()) >= _DEEPEST for element in root.iter(etree.Element)):
        raise Broken("too deep")
    return root


def _attribute(element: Any, name: str) -> float:
    given = element.get(name)
    if given is None or not given.isascii():
        raise Broken(f"{name} is {given!r}")
    if given.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(given)
    return decimal(given)


def read_isbi(path: Path, seed: Seed) -> Found:
    """Detections inside particles or tracks."""
    root = _root(path)
    if root.tag not in ("root", "Tracks"):
        raise Broken("another root")
    rows, labels, numbers = [], [], dict[Any, int]()
    for element in root.iter("detection"):
        holder = next((one for one in element.iterancestors() if one.tag in ("particle", "track")), None)
        if holder is None:
            raise Broken("a detection outside any particle")
        rows.append(row_of(*(_attribute(element, axis) for axis in "tzyx")))
        labels.append(numbers.setdefault(holder, len(numbers)))
    return with_links(rows, lambda: by_label(labels, rows))


def read_trackmate(path: Path, seed: Seed) -> Found:
    """Spots that are visible or on a link that is shown, and those links."""
    root = _root(path)
    if root.tag != "TrackMate":
        raise Unsure("another root")
    tracks = {whole(_attribute(one, "TRACK_ID")) for one in root.iter("Track") if "TRACK_ID" in one.attrib}
    shown = tracks
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
        if "TRACK_ID" not in track.attrib or whole(_attribute(track, "TRACK_ID")) in shown:
            edges.append(ends)
    if shown - tracks:
        raise Broken("a track that is not there")
    return _spots(root, edges)


def _spots(root: Any, edges: list[list[int]]) -> Found:
    linked = {number for ends in edges for number in ends}
    rows, numbers = [], []
    for spot in root.iter("Spot"):
        frame, around = spot.get("FRAME"), spot.getparent()
        if frame is None and around.tag != "SpotsInFrame":
            raise Unsure("a spot that is in no frame")
        values = [_attribute(spot, f"POSITION_{axis}") for axis in "ZYX"]
        time = _attribute(spot, "FRAME") if frame is not None else _attribute(around, "frame")
        number = whole(_attribute(spot, "ID"))
        visible = spot.get("VISIBILITY", "1")
        if visible not in ("0", "1", "0.0", "1.0"):
            raise Unsure("half visible")
        if visible in ("0", "0.0") and number not in linked:
            row_of(0, time, *values)
            continue
        rows.append(row_of(time, *values))
        numbers.append(number)
    if len(numbers) > len({*numbers}) or not linked <= {*numbers}:
        raise Unsure("a number twice, or a link to a spot that is not there")
    return with_links(rows, lambda: by_number(numbers, edges))
