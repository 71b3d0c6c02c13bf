"""The record of a session: files, settings, layers and pins; and the command lines that repeat the tracks.

No window and no layer is needed: `viewers/dock/export.py` fills a session, `reopened.py` shows it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from shlex import quote
from typing import Any

from outbid.errors import InputError
from outbid.formats.files.records import marked_bytes, record_from
from outbid.settings.columns import texts_of
from outbid.settings.declare import declared_in
from outbid.settings.detection import DetectionSettings
from outbid.settings.fixed import text_of
from outbid.settings.tracking import TrackingSettings

from ..layers import ASKED, CORRECTED

SUFFIX = ".session.json"
_SETTINGS = {"detect": DetectionSettings, "track": TrackingSettings}
_OF_IMAGES = ("axes", "channel", "scene", "level")
"""Settings of `outbid detect` that say which image of a file it is."""


@dataclass(frozen=True)
class SavedLayer:
    """A layer: the file that has its content, relative to the session where it lies beside it, and its looks.

    Parameters
    ----------
    name, kind : str
    file : str
    looks : mapping
        Attributes of the layer, as plain values.
    record : mapping
        The run record that it carries.
    """

    name: str
    kind: str
    file: str
    looks: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """What a session has.

    Parameters
    ----------
    layers : sequence of SavedLayer
        From below to above.
    settings : mapping of str to mapping
        Values of the forms, by their commands.
    pins : str
        Table of the answers of proofreading; empty without any.
    commands : sequence of str
        Lines for a shell, in the folder of the session.
    shown : mapping
        What the window shows: the frame and plane, the page of the dock.
    """

    layers: Sequence[SavedLayer]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pins: str = ""
    commands: Sequence[str] = ()
    shown: Mapping[str, Any] = field(default_factory=dict)

    def as_bytes(self) -> bytes:
        """The record as JSON."""
        version = metadata.version("outbid")
        return marked_bytes({"command": "session", "version": version, "input": {}, **asdict(self)})


def read_session(path: Path) -> Session:
    """Read the record of a session.

    Raises
    ------
    InputError
        If the file has none.
    """
    try:
        record = record_from(path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check the name.") from None
    if record.get("command") != "session":
        raise InputError(f"{path} is no session. Open a file that Export wrote: …{SUFFIX}.")
    layers = [SavedLayer(**layer) for layer in record["layers"]]
    return Session(layers, record["settings"], record["pins"], record["commands"], record["shown"])


def is_session(path: Path) -> bool:
    """Whether the file is the record of a session, by its name and its first bytes."""
    if not path.name.endswith(".json") or not path.is_file():
        return False
    try:
        return json.loads(path.read_text("utf-8")).get("command") == "session"
    except (ValueError, AttributeError, OSError):
        return False


def command_lines(layers: Sequence[SavedLayer]) -> list[str]:
    """The lines that make spots of movies, tracks of spots, and what filters keep of tracks, again.

    A layer whose source is in no file has no line.

    Examples
    --------
    >>> spots = SavedLayer("Spots", "points", "s.csv", {}, {
    ...     "command": "detect", "input": {"name": "a b.tif"}, "settings": {"radius": 1.5}})
    >>> tracks = SavedLayer("Tracks", "tracks", "t.csv", {}, {
    ...     "command": "track", "input": {"name": "Spots"}, "settings": {}, "corrected": "p.csv"})
    >>> kept = SavedLayer("Kept", "tracks", "k.csv", {}, {
    ...     "command": "filter", "input": {"name": "Tracks"}, "settings": {"conditions": ["z < 4"]}})
    >>> movie = SavedLayer("a b.tif", "image", "/data/a b.tif")
    >>> print(*command_lines([movie, spots, tracks, kept]), sep=chr(10))
    outbid detect '/data/a b.tif' -o s.csv --radius 1.5 --overwrite
    outbid track s.csv -o t.csv --pins p.csv --overwrite
    outbid filter t.csv -o k.csv --where 'z < 4' --overwrite
    """
    lines = []
    for command in ("detect", "track", "filter"):
        for layer in layers:
            source = _source_of(layer, layers) if layer.record.get("command") == command else ""
            if source:
                words = ["outbid", command, source, "-o", layer.file, *_options(layer.record), "--overwrite"]
                lines.append(" ".join(map(quote, words)))
    return lines


def _source_of(layer: SavedLayer, layers: Sequence[SavedLayer]) -> str:
    """The file that a layer was made of; of tracks of an image that with the spots that were detected."""
    name = (layer.record.get("input") or {}).get("name", "")
    made = [one for one in layers if one.name == name and one is not layer]
    if made and made[0].kind == "image" and layer.kind == "tracks":
        made = [one for one in layers if one.kind == "points" and one.name == f"Spots of {name}"]
    return made[0].file if made else ""


def _options(record: Mapping[str, Any]) -> list[str]:
    """Options of the command of a record."""
    settings = record.get("settings", {})
    if record["command"] == "filter":
        return [word for one in settings.get("conditions", ()) for word in ("--where", one)]
    pins = ["--pins", str(record[CORRECTED])] if record.get(CORRECTED) else []
    # Of what was estimated the last bit may differ where it is given.
    return options_of(record["command"], record.get(ASKED, settings)) + pins


def options_of(command: str, values: Mapping[str, Any]) -> list[str]:
    """Options of a command for the settings in a run record that are not its defaults.

    Examples
    --------
    >>> options_of("track", {"max_distance": 2.0, "merges": False, "divisions": True, "device": "cpu"})
    ['--max-distance', '2.0']
    """
    words: list[str] = []
    for one in declared_in(_SETTINGS[command]).values():
        value = values.get(one.name)
        value = tuple(value) if isinstance(value, list) else value
        if value is None or value == one.default or one.name in ("device", "pins"):
            continue
        name = one.setting.option.split("/")[0] or f"--{one.name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(name if value else name.replace("--", "--no-", 1))
        elif isinstance(value, Mapping):
            for text in (texts_of if one.name == "features" else text_of)(value):
                words += [name, text]
        else:
            words += [name, *map(str, value if isinstance(value, tuple) else (value,))]
    if values.get("no_features"):
        words.append("--no-features")
    if values.get("labels"):
        words.append("--labels")
    for name in _OF_IMAGES:
        if values.get(name):
            words += [f"--{name}", str(values[name])]
    return words
