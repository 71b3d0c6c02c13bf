"""A case: a good file of some format, harmed in a few ways; each follows from the format and one number."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .second import Found

Files = dict[str, bytes]
"""Content by path inside a folder."""
Harm = Callable[[Files, random.Random], None]
"""Changes files in place."""
MOST_HARMS = 4
_GOOD = 0.8
"""Share of the cases that begin with a file that is not refused as it is."""


@dataclass(frozen=True)
class Seed:
    """A good file, or the files of a folder.

    Parameters
    ----------
    name : str
    files : mapping of str to bytes
    given : str
        Which of them, or which folder, is given to the reader.
    hint : mapping of str to object
        What the second reader has to know of it.
    """

    name: str
    files: Mapping[str, bytes]
    given: str
    hint: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A format: its good files, how they are harmed, and who reads them.

    Parameters
    ----------
    name : str
    modules : tuple of str
        Of `outbid.formats`, whose branches its cases are to reach.
    seeds : callable
        Makes the good files; given a folder to work in.
    harms : mapping of str to Harm
    ours : callable
        Reads the path by the public functions; given the seed as well.
    second : callable
        Reads it another way. Raises Unsure or Broken.
    """

    name: str
    modules: tuple[str, ...]
    seeds: Callable[[Path], Sequence[Seed]]
    harms: Mapping[str, Harm]
    ours: Callable[[Path, Seed], Found]
    second: Callable[[Path, Seed], Found]


@dataclass(frozen=True)
class Case:
    """A seed and what is done to it: names of harms, each with a number of its own."""

    seed: Seed
    harms: tuple[tuple[str, int], ...]

    def files(self, kind: Kind) -> Files:
        """The harmed files."""
        files = dict(self.seed.files)
        for name, number in self.harms:
            kind.harms[name](files, random.Random(number))
        return files


def case_of(kind: Kind, seeds: Sequence[Seed], number: int) -> Case:
    """The case of a number: number 0 on are the seeds as they are, one after the other."""
    if number < len(seeds):
        return Case(seeds[number], ())
    rng = random.Random(f"{kind.name} {number}")
    good = [seed for seed in seeds if not seed.hint.get("refused")]
    seed = rng.choice(good if good and rng.random() < _GOOD else list(seeds))
    count = 1 + min(int(rng.expovariate(1.2)), MOST_HARMS - 1)
    names = list(kind.harms)
    return Case(seed, tuple((rng.choice(names), rng.randrange(2**32)) for _ in range(count)))


def placed(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files into an empty folder."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def collected(folder: Path) -> Files:
    """The files of a folder."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
