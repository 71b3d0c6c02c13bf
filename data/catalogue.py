"""Public data sets, downloaded on request: sources, credits, licences and checksums.

The list is ``catalogue.json``: files of public repositories at fixed commits, with their SHA-256. Data
sets are downloaded once, into pooch's cache; the environment variable ``OUTBID_DATA_CACHE`` names another
folder for it. Where ``OUTBID_DATA_MIRROR`` names a folder, files are taken from there and nothing is
downloaded.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from outbid.errors import InputError, ResourceError, SettingsError

MIRROR = "OUTBID_DATA_MIRROR"
CACHE = "OUTBID_DATA_CACHE"

_URL = "https://raw.githubusercontent.com/{repository}/{commit}/{source}"


@dataclass(frozen=True)
class PublicFile:
    """A file of a data set.

    Parameters
    ----------
    path : str
        Its path in the cache or the mirror, with ``/`` between folders.
    url : str
        Its source.
    sha256 : str
        SHA-256 of its content, in hexadecimal.
    """

    path: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """Entry of the catalogue: a public data set.

    Parameters
    ----------
    name : str
    about : str
        Description, and whether its tracks are true or made by a tracker.
    licence : str
        SPDX name.
    credit : str
        Authors to credit.
    files : tuple of PublicFile
    """

    name: str
    about: str
    licence: str
    credit: str
    files: tuple[PublicFile, ...]


@cache
def catalogue() -> dict[str, Dataset]:
    """All public data sets of the catalogue, by name.

    Examples
    --------
    >>> sorted(catalogue())
    ['celegans', 'colloids', 'ecoli', 'faketracks', 'sptpalm']
    >>> catalogue()["celegans"].licence
    'BSD-3-Clause'
    """
    listed = json.loads(files(__package__).joinpath("catalogue.json").read_text("utf-8"))
    return {
        name: Dataset(
            name, entry["about"], entry["licence"], entry["credit"],
            tuple(
                PublicFile(
                    one["path"],
                    _URL.format(repository=entry["repository"], commit=entry["commit"], source=one["source"]),
                    one["sha256"],
                )
                for one in entry["files"]
            ),
        )
        for name, entry in listed.items()
    }  # fmt: skip


def fetch(dataset: str | Dataset) -> list[Path]:
    """Paths of the files of a data set, in the order of the catalogue; files not yet there are downloaded.

    Parameters
    ----------
    dataset : str or Dataset
        A name in `catalogue`, or a data set of your own.

    Raises
    ------
    SettingsError
        If there is no data set of that name.
    ResourceError
        If pooch is not installed, or a file cannot be fetched or is not in the mirror.
    InputError
        If a file in the mirror has the wrong content.
    """
    if isinstance(dataset, str):
        known = catalogue()
        if dataset not in known:
            raise SettingsError(f"There is no data set {dataset!r}. Choose one of: {', '.join(known)}.")
        dataset = known[dataset]
    mirror = os.environ.get(MIRROR)
    if mirror:
        return [_mirrored(Path(mirror), file) for file in dataset.files]
    return _downloaded(dataset.files)


def _mirrored(mirror: Path, file: PublicFile) -> Path:
    path = mirror / file.path
    if not path.is_file():
        raise ResourceError(
            f"{path} is not there. Add it to the mirror ({file.url}), or unset {MIRROR} to fetch it."
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != file.sha256:
        raise InputError(
            f"{path} is another file: its SHA-256 is {found} and should be {file.sha256}. Copy it anew."
        )
    return path


def _downloaded(wanted: tuple[PublicFile, ...]) -> list[Path]:
    try:
        import pooch
    except ImportError:
        raise ResourceError("Fetching data needs pooch. Install it: pip install 'outbid[data]'.") from None
    store = pooch.create(
        path=pooch.os_cache("outbid"),
        base_url="",
        env=CACHE,
        registry={file.path: f"sha256:{file.sha256}" for file in wanted},
        urls={file.path: file.url for file in wanted},
    )
    paths = []
    for file in wanted:
        try:
            paths.append(Path(store.fetch(file.path)))
        except (OSError, ValueError) as error:  # no network, no such page, another content
            raise ResourceError(
                f"{file.url} cannot be fetched: {error} Check the network, or let {MIRROR} name a folder "
                "that holds the files."
            ) from None
    return paths
