"""Second readers of images: Pillow for TIFF, libpng by way of imagecodecs for PNG."""

from __future__ import annotations

import math
import re
import struct
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from .cases import Seed
from .second import Broken, Found, Unsure

_NOT_PLAIN = {262: (1,), 274: (1,), 266: (1,), 284: (1,), 277: (1,)}
"""Tags of TIFF, and the values for which both readers mean the same: grey, upright, one sample."""
_EXTREMES, _SHORT = (280, 281), 3
"""Tags of the least and largest value; if their type is another, Pillow shows the page before once more."""


def pages(file: Path) -> np.ndarray:
    """All pages of a TIFF, one after the other; a single one as a plane."""
    _look_at_chain(file.read_bytes())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file, formats=["TIFF"]) as image:
                description = image.tag_v2.get(270)  # type: ignore[attr-defined]
                found = [_page(one) for one in ImageSequence.Iterator(image)]
        _look_at_count(description, found, file.stat().st_size)
    except (Unsure, Broken):
        raise
    except Exception:
        raise Unsure("Pillow cannot read it") from None
    if len({(page.shape, page.dtype) for page in found}) > 1:
        raise Unsure("pages of different sizes")
    return found[0] if len(found) == 1 else np.stack(found)


def _look_at_chain(content: bytes) -> None:
    """Follow the pages to the last one, which says so."""
    order = {b"II": "<", b"MM": ">"}.get(content[:2])
    if order is None or len(content) < 16:
        raise Broken("no TIFF")
    big = struct.unpack_from(order + "H", content, 2)[0] == 43
    wide, width, count_form = ("Q", 20, "Q") if big else ("I", 12, "H")
    (offset,) = struct.unpack_from(order + wide, content, 8 if big else 4)
    seen = set()
    while offset:
        if offset in seen:
            raise Broken("pages in a circle")
        seen.add(offset)
        try:
            (tags,) = struct.unpack_from(order + count_form, content, offset)
            place = offset + struct.calcsize(count_form) + tags * width
            (offset,) = struct.unpack_from(order + wide, content, place)
        except (struct.error, OverflowError):
            raise Broken("a page outside the file") from None


def _look_at_count(description: object, found: list[np.ndarray], size: int) -> None:
    """Compare the pages with what ImageJ, tifffile or OME software declares."""
    text = str(description)
    declared, count = 0, len(found)
    if text.startswith("ImageJ=") and (images := re.search(r"\bimages=(\d+)", text)):
        declared = int(images[1])
    elif shape := re.search(r'"shape": \[([\d, ]+)\]', text):
        declared = math.prod([int(n) for n in shape[1].split(",")[:-2]])
    elif pixels := re.search(r"<Pixels[^>]*>", text):
        declared = math.prod(int(n) for n in re.findall(r'\bSize[TZC]="(\d+)"', pixels[0]))
    if declared * found[0].nbytes > size:
        raise Broken(f"{declared} planes are declared, {count} are there")
    if declared > count:
        raise Unsure("planes without pages of their own")


def _page(image: Image.Image) -> np.ndarray:
    tags = image.tag_v2  # type: ignore[attr-defined]
    for tag, plain in _NOT_PLAIN.items():
        if tag in tags and tags[tag] not in plain:
            raise Unsure(f"tag {tag} is {tags[tag]}")
    if any(tags.tagtype.get(tag, _SHORT) != _SHORT for tag in _EXTREMES):
        raise Unsure("extremes of another type")
    if image.mode not in ("L", "I;16", "I;16B", "F", "I"):
        raise Unsure(f"mode {image.mode}")
    sign = tags.get(339, (1,))
    if (sign[0] if isinstance(sign, tuple) else sign) not in (1, 3):
        raise Unsure("signed")
    values = np.array(image)
    # Pillow takes 32 bits as signed, where no tag says so.
    return values.view(np.uint32) if values.dtype == np.int32 else values


def _look_at_numbers(files: list[Path]) -> None:
    """Numbers that are missing are frames that are missing."""
    numbers = [int(number) for file in files for number in re.findall(r"\d+", file.stem)[-1:]]
    if len(set(np.diff(numbers).tolist())) > 1:
        raise Unsure("missing frames")


def read_tiff(path: Path, seed: Seed) -> Found:
    """The planes of all files, in the order of the numbers in their names."""
    if not seed.hint.get("judged"):
        raise Unsure("channels, colours or several images")
    files = [path]
    if path.is_dir():
        files = sorted(path.glob("*.tif"), key=lambda file: [int(n) for n in re.findall(r"\d+", file.name)])
        _look_at_numbers(files)
    stacks = [np.atleast_3d(pages(file)) if pages(file).ndim == 3 else pages(file)[None] for file in files]
    if not stacks or len({stack.shape for stack in stacks}) > 1:
        raise Unsure("sizes that differ")
    return image_as_found(np.concatenate(stacks))


def image_as_found(planes: np.ndarray) -> Found:
    """(n, y, x) planes as what can be compared."""
    flat = np.ascontiguousarray(planes.reshape(planes.shape[0], -1), dtype=float)
    flat = np.where(np.isnan(flat), 1.2345e308, flat)
    head = (float(planes.shape[0]), float(planes.shape[1]), float(planes.shape[2]), 0.0)
    return Found((head, *map(tuple, flat.tolist())), None)


def read_png(path: Path, seed: Seed) -> Found:
    """The pictures of all files, colours as their mean."""
    import imagecodecs

    files = [path]
    if path.is_dir():
        files = sorted(path.glob("*.png"), key=lambda file: [int(n) for n in re.findall(r"\d+", file.name)])
        _look_at_numbers(files)
    try:
        shots = [imagecodecs.png_decode(file.read_bytes()) for file in files]
    except Exception:
        raise Unsure("libpng cannot read it") from None
    if (
        not shots
        or len({(shot.shape, shot.dtype) for shot in shots}) > 1
        or (shots[0].dtype != np.uint8 and shots[0].ndim > 2)
    ):
        raise Unsure("sizes that differ")
    grey = [shot if shot.ndim == 2 else _mean(shot) for shot in shots]
    return image_as_found(np.stack(grey))


def _mean(shot: np.ndarray) -> np.ndarray:
    return shot[..., 0] if shot.shape[-1] < 3 else shot[..., :3].mean(axis=-1, dtype=np.float32)
