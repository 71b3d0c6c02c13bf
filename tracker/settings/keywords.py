"""Settings as keyword arguments: their types, and how they replace fields of a settings object."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from .declare import present_names

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ..pins.pin import Pin

    _Settings = TypeVar("_Settings", bound=DataclassInstance)


class TrackingValues(TypedDict, total=False):
    """Keyword arguments of `outbid.track`: the fields of `outbid.TrackingSettings`."""

    max_distance: float | None
    cost: str
    unmatched_cost: float | None
    spacing: tuple[float, float, float]
    max_gap: int | None
    gap_distance: float | None
    divisions: bool
    merges: bool
    fixed: Mapping[str, float | tuple[float, ...]]
    exact_margins: bool
    solver: str
    device: str
    periodic: tuple[float, float, float] | None
    features: Mapping[str, str] | Literal["auto"] | None
    pins: Sequence[Pin] | str | os.PathLike[str]


class DetectionValues(TypedDict, total=False):
    """Keywords of `outbid.detect`: the fields of `outbid.DetectionSettings`, which has their meaning."""

    radius: float | None
    radius_z: float | None
    threshold: float | None
    spacing: tuple[float, float, float]
    dark: bool
    device: str
    fdr: float | None
    gain: float | None
    offset: float | None
    read_noise: float | None
    bodies: bool | None


def with_values(settings: _Settings, values: Mapping[str, object], door: str) -> _Settings:
    """Replace some values of the settings; the result is validated as a whole.

    Raises
    ------
    TypeError
        If there is no such setting; the message names the nearest.

    Examples
    --------
    >>> from ..errors import OutbidError
    >>> from ..tracking import TrackingSettings
    >>> with_values(TrackingSettings(), {"max_distance": 5.0}, "track").max_distance
    5.0
    >>> with_values(TrackingSettings(), {"max_dist": 5.0}, "track")
    Traceback (most recent call last):
    TypeError: track() has no setting 'max_dist'. Did you mean 'max_distance'?
    """
    known = [field.name for field in fields(settings)]
    values = present_names(values, type(settings))
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Settings are: {', '.join(known)}."
            raise TypeError(f"{door}() has no setting {name!r}. {meant}")
    return replace(settings, **values) if values else settings
