"""Pins: what a person states about tracks, which holds exactly in every linking.

`pin`     one statement, and contradictions between statements
`edits`   detections that are added, moved or removed
`table`   the append-only table of pins, next to the tracks
`rows`    statements on detections of a movie, by row: which links they force and forbid
`paths`   chains of links between detections of one particle
`gated`   the same in linking with a gate

Tracks under pins are a function of detections, model and pins; `outbid.edit.proofreading` solves again.
"""

from .edits import Edited, edited, edits_in, taken_back
from .pin import EDITS, KINDS, Pin, check_pins, followed, pin_of
from .rows import Found, PinnedRows, resolve_pins
from .table import append_pin, drop_last, read_pins

__all__ = [
    "EDITS",
    "KINDS",
    "Edited",
    "Found",
    "Pin",
    "PinnedRows",
    "append_pin",
    "check_pins",
    "drop_last",
    "edited",
    "edits_in",
    "followed",
    "pin_of",
    "read_pins",
    "resolve_pins",
    "taken_back",
]
