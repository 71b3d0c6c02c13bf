"""The layers of the suite, and which of them a change touches.

A layer is some test files and the modules that they test. `make test` runs the smoke part of every layer,
and the whole of each layer whose modules or tests have changed since the last whole run, or import what has
changed. `make test-all` runs everything; ``python tests/layers.py REPORT`` then writes the commit of that
run, from pytest's --junitxml, into tests/whole_run.json.
"""

import argparse
import ast
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = REPOSITORY / "tests" / "whole_run.json"
CASES = 4
"""Cases of a smoke test that a push runs, at most; each commit takes others."""
FOLDERS = {
    "tracker": "outbid", "simulate": "outbid.simulate", "viewers": "outbid.viewers", "data": "outbid.data",
}  # fmt: skip
"""The package that each folder of sources is."""
LOOSE = ("compute", "edit", "gated", "geometry", "particles", "settings")
"""Folders of `outbid` whose modules are imported, never found by name."""


@dataclass(frozen=True)
class Layer:
    """Test files by the beginnings of their names after ``test_``, and modules by theirs after ``outbid.``.

    Words are separated by spaces; the word ``outbid`` among the modules stands for all that no layer names.
    """

    name: str
    tests: str
    modules: str


LAYERS = (
    Layer(
        "house",
        "accuracy catalogue detection_ docs driver gpu_record kernels layers_of layout nightly_record "
        "notebooks posterior_tables records size words",
        "",
    ),
    Layer(
        "assignment",
        "assign auction certify dense door gpu_auction gpu_dense gpu_greedy gpu_hungarian gpu_shards "
        "gpu_solvers greedy_switching hungarian margins monge nccl points rounding scipy_cases shards "
        "variants",
        "assignment",
    ),
    Layer(
        "formats",
        "bad_input field_images field_kept field_labels field_tables formats_ fuzz hostile_files images "
        "open_images outputs torture",
        "formats particles.arrow particles.html particles.tables",
    ),
    Layer(
        "detection",
        "camera detect gpu_detect",
        "detection formats.images.labels settings.detection",
    ),
    Layer(
        "learned",
        "columns crowds divisions encounters gpu_learned inference known learn lineage live longer_gaps "
        "lost_frames marginals merges moving_frames odd_movies partitions periodic pins pins_edits "
        "posterior_scenes proofreading_session surfaces track_learned uneven_frames",
        "edit.proofreading learned pins settings.columns settings.fixed",
    ),
    Layer(
        "gated",
        "batches counts doors doors_images first_tries gating given gpu gpu_movie match memory reliability "
        "remarks sample "
        "former_names settings track tracks",
        "outbid compute errors gated geometry particles settings tracking",
    ),
    Layer(
        "large",
        "cluster in_ranges many parts stream watch",
        "watching work",
    ),
    Layer(
        "commands",
        "advise cli_ experiment field_scales field_second field_third measuring microscope movies papers "
        "replicates "
        "report repr_html score shell theory walks warm_up wheel wrong_types",
        "cli compute.warming data edit measuring scoring simulate work.estimate",
    ),
    Layer(
        "windows",
        "field_window layers napari_ scene view",
        "viewers",
    ),
)


def layer_of_test(stem: str) -> str:
    """The layer of a test file: the one that states the longest beginning of its name, else `house`.

    Examples
    --------
    >>> layer_of_test("test_assign_command"), layer_of_test("test_track_learned")
    ('assignment', 'learned')
    """
    name = stem.removeprefix("test_")
    begun = [
        (len(word), layer.name) for layer in LAYERS for word in layer.tests.split() if name.startswith(word)
    ]
    return max(begun)[1] if begun else LAYERS[0].name


def layer_of_module(name: str) -> str:
    """The layer of a module: the one that states the longest beginning of its name.

    Modules that no layer names, as those of the lowest floor, belong to `gated`.

    Examples
    --------
    >>> layer_of_module("outbid.formats.tables.csv"), layer_of_module("outbid.errors")
    ('formats', 'gated')
    """
    inside = name.removeprefix("outbid").removeprefix(".")
    begun = [
        (len(word), layer.name)
        for layer in LAYERS
        for word in layer.modules.split()
        if f"{inside}.".startswith((f"{word}.", f"{word}_"))
    ]
    return max(begun)[1] if begun else next(x.name for x in LAYERS if "outbid" in x.modules.split())


def touched_layers(changed: list[str]) -> set[str]:
    """Layers that a change of these files touches.

    Parameters
    ----------
    changed : list of str
        Paths in the repository, with slashes.

    Returns
    -------
    set of str
        Names of layers: those of changed tests, of tests that import a changed support file, of changed
        modules, and of modules that import these, however indirectly.
    """
    layers, modules = set[str](), set[str]()
    for name in changed:
        path = PurePosixPath(name)
        if name == RECORD.relative_to(REPOSITORY).as_posix():
            continue
        if path.parts[0] in FOLDERS and path.suffix == ".py":
            modules.add(module_of(path))
        elif path.parts[0] in FOLDERS:
            layers.add(layer_of_module(".".join((FOLDERS[path.parts[0]], *path.parts[1:-1]))))
        elif path.parts[0] == "tests":
            layers |= _layers_of_test_file(path)
        else:
            layers.add("house")
    if modules:
        layers |= {layer_of_module(module) for module in modules | _importers(modules)}
    return layers


def module_of(path: PurePosixPath) -> str:
    """The module that a source file is.

    Examples
    --------
    >>> module_of(PurePosixPath("tracker/gated/gaps.py")), module_of(PurePosixPath("data/__init__.py"))
    ('outbid.gated.gaps', 'outbid.data')
    """
    inside = path.with_suffix("").parts[1:]
    return ".".join((FOLDERS[path.parts[0]], *(inside[:-1] if inside[-1] == "__init__" else inside)))


def _importers(modules: set[str]) -> set[str]:
    """Modules that import one of these, or another of the same package, however indirectly.

    The package counts as a whole, for solvers, kernels, formats and commands are found by name when they are
    used, which no import shows.
    """
    import grimp

    graph = grimp.build_graph("outbid", cache_dir=None, exclude_type_checking_imports=True)
    packages = {_package_of(name) for name in modules}
    there = {name for name in graph.modules if _package_of(name) in packages}
    return {found for name in there for found in graph.find_downstream_modules(name)}


def _package_of(name: str) -> str:
    """The folder of a module, or in `LOOSE` the module without the ending of its kernels.

    Examples
    --------
    >>> _package_of("outbid.assignment.papers.shards.messages"), _package_of("outbid.geometry.gating_cpu")
    ('outbid.assignment', 'outbid.geometry.gating')
    """
    parts = name.split(".")
    depth = 3 if parts[1:2] and parts[1] in LOOSE else 2
    return ".".join(parts[:depth]).removesuffix("_cpu").removesuffix("_gpu")


def _layers_of_test_file(path: PurePosixPath) -> set[str]:
    if path.name == "conftest.py":
        return {layer.name for layer in LAYERS}
    if path.name.startswith("test_"):
        return {layer_of_test(path.stem)}
    if path.suffix != ".py":
        return {"formats" if "hostile" in path.parts else "house"}
    return {"house"} | {layer_of_test(stem) for stem in _test_files_that_import(path)}


def _test_files_that_import(path: PurePosixPath) -> set[str]:
    """Stems of test files that import a support file, also through other support files."""
    files = [PurePosixPath(file.relative_to(REPOSITORY)) for file in (REPOSITORY / "tests").rglob("*.py")]
    imported = {_support_name(file): _imported(REPOSITORY / file) for file in files}
    names, before = {_support_name(path)}, 0
    while len(names) > before:
        before = len(names)
        names |= {name for name, used in imported.items() if used & names}
    return {name for name in names if name.startswith("test_")}


def _support_name(path: PurePosixPath) -> str:
    """The name by which tests import a file of tests/ or tests/bench/.

    Examples
    --------
    >>> _support_name(PurePosixPath("tests/bench/fuzz/long.py"))
    'fuzz.long'
    """
    parts = path.with_suffix("").parts[1:]
    return ".".join(part for part in parts[parts[0] == "bench" :] if part != "__init__")


def _imported(path: Path) -> set[str]:
    """Names of modules that a file imports, and of what it imports from them, which may be modules."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            inside = _support_name(PurePosixPath(path.relative_to(REPOSITORY))).split(".")[: -node.level]
            module = ".".join([*inside, *([node.module] if node.module else [])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def changed_since(commit: str) -> list[str] | None:
    """Paths of all files that differ from a commit, new ones too; None where that cannot be found out."""
    there = _git("merge-base", "--is-ancestor", commit, "HEAD")
    if there is None:
        return None
    changed, new = _git("diff", "--name-only", commit), _git("ls-files", "--others", "--exclude-standard")
    return None if changed is None or new is None else sorted({*changed.splitlines(), *new.splitlines()})


def push_layers() -> tuple[set[str], str]:
    """Layers that a push runs as a whole, and a sentence that states why."""
    everything = {layer.name for layer in LAYERS}
    if not RECORD.exists():
        return everything, "There is no record of a whole run: all layers run."
    commit = str(json.loads(RECORD.read_text("utf-8"))["commit"])
    changed = changed_since(commit)
    if changed is None:
        return everything, f"The commit of the last whole run, {commit[:10]}, is not here: all layers run."
    touched = touched_layers(changed)
    whole = f"whole: {', '.join(layer.name for layer in LAYERS if layer.name in touched) or 'none'}"
    return touched, f"{len(changed)} files changed since the last whole run ({commit[:10]}); {whole}."


def slice_of_cases(count: int, seed: int) -> set[int]:
    """Numbers of the cases of a smoke test that a push runs: evenly spread, beginning with the seed's.

    Examples
    --------
    >>> sorted(slice_of_cases(3, 7)), sorted(slice_of_cases(100, 7))
    ([0, 1, 2], [7, 32, 57, 82])
    """
    if count <= CASES:
        return set(range(count))
    return {(seed + number * count // CASES) % count for number in range(CASES)}


def seed_of_commit() -> int:
    """A number that differs between commits; 0 outside a checkout."""
    head = _git("rev-parse", "HEAD")
    return int(head[:8], 16) if head else 0


def _git(*words: str) -> str | None:
    """What Git prints; None if it fails or is not there."""
    try:
        done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> None:
    """Write the record of a whole run; refuse one with failures, or of files that are not committed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="pytest's --junitxml of a run of all layers")
    counts = ET.parse(parser.parse_args().report).getroot().find("testsuite")
    assert counts is not None
    tests, skipped = int(counts.attrib["tests"]), int(counts.attrib["skipped"])
    if int(counts.attrib["failures"]) + int(counts.attrib["errors"]):
        sys.exit("Tests failed: the record of the last whole run stays as it is.")
    if _git("status", "--porcelain", "--untracked-files=no"):
        sys.exit("Commit first: a record states the commit that was tested.")
    record = {
        "commit": _git("rev-parse", "HEAD"),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "passed": tests - skipped,
        "skipped": skipped,
        "seconds": round(float(counts.attrib["time"])),
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
