"""Run tests as other machines do: with fewer instructions, or other versions of what Outbid depends on.

    python tests/other_machines.py instructions -- tests/test_detect.py
    python tests/other_machines.py lowest -- tests/test_detect.py -x
    python tests/other_machines.py newest -- tests/test_detect.py

The first runs in this environment, with the instructions of an x86 processor of 2008, and prints what sets
it. The others install what the extra `test` names into .venv-lowest or .venv-newest, which are kept, and
Outbid itself, whenever a file of it changed. PYTHON=python3.13 picks another Python for a new environment.
Behind ``--`` stands what pytest takes.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from numpy._core import _multiarray_umath as numpy_built

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCES = ("tracker", "simulate", "viewers", "data")
CONSTRAINTS = REPOSITORY / "constraints-lowest.txt"
KERNELS = "kernels-of-other-instructions"
"""Folder in build/: Numba's cache would mix those of two processors."""
OF_WINDOWS = {"napari", "pyqt6", "pyqtgraph", "qtpy", "superqt"}
"""Left out of the lowest: napari itself needs newer versions of SciPy and others."""
AS_STATED = ("zarr", "hdf5", "nd2", "czi", "lif", "geff", "cluster")
"""Extras whose lowest versions are those that pyproject.toml states, not those of the constraints."""


def other_instructions() -> dict[str, str]:
    """Environment in which NumPy, OpenBLAS and Numba use no instructions that came after SSE 4.2.

    Raises SystemExit on a processor that is not x86: there are no others to choose from.
    """
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        sys.exit(f"{platform.machine()}: NumPy and OpenBLAS have no other instructions to choose from here.")
    has = numpy_built.__cpu_features__
    newer = [name for name in numpy_built.__cpu_dispatch__ if has.get(name)]
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(newer),
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "x86-64-v2",
        "NUMBA_CACHE_DIR": str(REPOSITORY / "build" / KERNELS),
    }


def _requirements() -> dict[str, list[str]]:
    """Requirements of Outbid (under ``""``) and of each extra."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return {"": project["dependencies"], **project["optional-dependencies"]}


def _name(requirement: str) -> str:
    return re.split(r"[\s\[<>=~!;]", requirement, maxsplit=1)[0].lower()


def lowest() -> list[str]:
    """What pip takes for the lowest versions."""
    every = _requirements()
    constraints = [line for line in CONSTRAINTS.read_text("utf-8").splitlines() if "==" in line]
    wanted = [each for each in every[""] + every["test"] if _name(each) not in OF_WINDOWS]
    stated = {_name(each) for extra in AS_STATED for each in every[extra]}
    pinned = [each.replace(">=", "==") for each in every["test"] if _name(each) in stated]
    return [*wanted, *constraints, *pinned]


def newest() -> list[str]:
    """What pip takes for the newest versions that there are for this Python."""
    every = _requirements()
    return ["--upgrade", "--upgrade-strategy=eager", *every[""], *every["test"]]


def _made(folder: Path, packages: list[str]) -> Path:
    """The Python of an environment with these packages and Outbid."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    if not python.exists():
        subprocess.run([os.environ.get("PYTHON", sys.executable), "-m", "venv", str(folder)], check=True)
    stated, known = folder / "packages.txt", "\n".join(packages)
    if "--upgrade" in packages or not stated.exists() or stated.read_text("utf-8") != known:
        subprocess.run([*pip, "setuptools>=77", *packages], check=True)
        stated.write_text(known, "utf-8")
    installed = folder / "installed"
    if not installed.exists() or installed.stat().st_mtime < max(each.stat().st_mtime for each in _sources()):
        itself = ["--no-deps", "--no-build-isolation", "--force-reinstall", str(REPOSITORY)]
        subprocess.run([*pip, *itself], check=True)
        installed.touch()
    return python


def _sources() -> Iterator[Path]:
    yield REPOSITORY / "pyproject.toml"
    for folder in SOURCES:
        yield from (each for each in (REPOSITORY / folder).rglob("*") if "__pycache__" not in each.parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("machine", choices=["instructions", "lowest", "newest"])
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, behind --")
    given = parser.parse_args()
    python, environment = Path(sys.executable), {}
    if given.machine == "instructions":
        environment = other_instructions()
    else:
        packages = lowest() if given.machine == "lowest" else newest()
        python = _made(REPOSITORY / f".venv-{given.machine}", packages)
    for name, value in environment.items():
        sys.stderr.write(f"{name}={value!r}\n")
    done = subprocess.run(
        [str(python), "-m", "pytest", *given.pytest],
        cwd=REPOSITORY, env=os.environ | environment, check=False,
    )  # fmt: skip
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
