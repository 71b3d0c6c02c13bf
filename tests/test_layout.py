"""The rules of the project: what is packed, which module imports which, and what must never be written."""

import ast
import builtins
import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import warnings
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from checkout import REPOSITORY, git_files
from commands import fresh_python

HEAVY = [
    "numpy", "scipy", "numba", "pyarrow", "rich", "filelock", "cupy", "dask", "matplotlib", "napari", "qtpy",
    "PyQt6",
]  # fmt: skip
FOLDERS = {
    "tracker": "outbid", "simulate": "outbid.simulate", "viewers": "outbid.viewers", "data": "outbid.data",
}  # fmt: skip
"""The package that each folder is."""


def modules() -> list[str]:
    found = set(FOLDERS.values())
    for package in FOLDERS.values():
        path = importlib.import_module(package).__path__
        found |= {module.name for module in pkgutil.walk_packages(path, package + ".")}
    return sorted(found)


def imports(path: Path) -> list[tuple[int, str, int]]:
    """(line, absolute or relative name with its leading dots, level) of every import in a file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.lineno, "." * node.level + (node.module or ""), node.level))
    return found


# ---------------------------------------------------------------- what is packed


@pytest.mark.smoke
def test_the_wheel_holds_what_git_tracks(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path in git_files():
        copy = source / path.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index"]
    built = subprocess.run(
        [*command, "--wheel-dir", str(tmp_path), str(source)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == {packed_name(path) for path in git_files(*FOLDERS)}


def packed_name(path: Path) -> str:
    """Where a tracked file lies in the wheel."""
    folder, *rest = path.relative_to(REPOSITORY).parts
    return "/".join([*FOLDERS[folder].split("."), *rest])


@pytest.mark.smoke
def test_every_folder_says_that_it_is_typed() -> None:
    assert [folder for folder in FOLDERS if not (REPOSITORY / folder / "py.typed").exists()] == []


# ---------------------------------------------------------------- which module imports which


@pytest.mark.smoke
def test_the_public_names_are_those_that_type_checkers_see() -> None:
    import outbid

    tree = ast.parse(Path(str(outbid.__file__)).read_text("utf-8"))
    (seen,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = [node for node in seen.body if isinstance(node, ast.ImportFrom)]
    as_commands = {name for names in outbid._COMMANDS.values() for name in names}
    assert sorted({*outbid.__all__} | as_commands) == sorted(
        alias.name for of in imported for alias in of.names
    )
    assert not {*outbid.__all__} & {*dir(builtins)}


def test_no_name_hides_a_module_and_public_names_resolve_whichever_was_imported_first() -> None:
    code = """
import importlib, pkgutil, sys, types
import outbid
found = [m.name for m in pkgutil.walk_packages(outbid.__path__, "outbid.") if ".viewers." not in m.name]
for name in found:
    importlib.import_module(name)
held = {name: getattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2]) for name in found}
print(len(found) > 200, [name for name, what in held.items() if not isinstance(what, types.ModuleType)])
for name in outbid.__all__:
    found = getattr(outbid, name)
    assert not isinstance(found, types.ModuleType), name
    assert found.__module__.startswith("outbid."), name
from outbid import *
print(track.__name__, match.__name__, assign.__name__, score.__name__)
"""
    assert fresh_python(code) == "True []\ntrack match assign score"


@pytest.mark.smoke
def test_former_names_of_modules_find_them_with_a_warning() -> None:
    code = """
import importlib, sys, warnings
from outbid._moved import MOVED, new_name
for former in MOVED:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = importlib.import_module(f"outbid.{former}")
    assert found is sys.modules[new_name(f"outbid.{former}")], former
    assert found.__spec__.name == found.__name__, former
    assert found.__name__ in str(seen[-1].message), former
warnings.simplefilter("error")
try:
    import outbid.movies.many
except DeprecationWarning as error:
    print(error)
"""
    assert fresh_python(code).startswith("outbid.movies.many is outbid.work.many now")


@pytest.mark.smoke
def test_the_package_completes_its_names_and_knows_its_version() -> None:
    code = """
import outbid
assert {*outbid.__all__, "__version__", "data", "simulate", "viewers"} <= set(dir(outbid))
assert outbid.data.sample("walks").exists() and outbid.simulate.__name__ == "outbid.simulate"
print(outbid.__version__)
try:
    outbid.trak
except AttributeError as error:
    print(error)
"""
    version = metadata.version("outbid")
    assert fresh_python(code) == f"{version}\nmodule 'outbid' has no attribute 'trak'"


def test_importing_the_package_is_quick() -> None:
    """Its own modules take a few milliseconds, whatever Python itself takes to start."""
    code = "import time; t = time.process_time(); import outbid; print(time.process_time() - t)"
    assert min(float(fresh_python(code)) for _ in range(3)) < 0.1


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("imported", "loaded"),
    [
        ("import outbid", ()),
        ("import outbid.cli, outbid.simulate.cli, outbid.viewers.cli", ()),
        ("from outbid import *", ("numpy", "scipy")),  # no screen and no compiler
    ],
)
def test_an_import_is_light(imported: str, loaded: tuple[str, ...]) -> None:
    heavy = [name for name in HEAVY if name not in loaded]
    assert fresh_python(f"{imported}; import sys; print([n for n in {heavy} if n in sys.modules])") == "[]"


@pytest.mark.smoke
def test_help_is_quick() -> None:
    """In seconds of a processor, however busy it is; a slow one may take more."""
    command = [str(Path(sys.executable).with_name("outbid")), "--help"]
    seconds = []
    for _ in range(3):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        user = after.children_user - before.children_user
        seconds.append(user + after.children_system - before.children_system)
    assert min(seconds) < 0.6


def test_import_laws_hold() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed: pip install 'outbid[lint]'")
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [str(linter), "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.smoke
def test_assignment_imports_the_lowest_floor_alone() -> None:
    allowed = re.compile(r"\.[a-z_.]*|\.\.compute\.(arrays|cuda|kernels|threads|timing)|[^.].*")
    files = git_files("tracker/assignment/*.py")
    assert len(files) > 30
    wrong = [
        f"{path.name}:{line} {name}"
        for path in files
        for line, name, _ in imports(path)
        if not allowed.fullmatch(as_from_the_folder(path, name)) or name.startswith("outbid")
    ]
    assert wrong == []


def as_from_the_folder(path: Path, name: str) -> str:
    """A relative name in a folder inside assignment/, as the folder itself would write it."""
    depth = len(path.relative_to(REPOSITORY / "tracker" / "assignment").parts) - 1
    dots = len(name) - len(name.lstrip("."))
    return "." * max(1, dots - depth) + name.lstrip(".") if dots else name


@pytest.mark.smoke
def test_relative_inside_absolute_outside() -> None:
    wrong = []
    for path in git_files("*.py"):
        inside = path.relative_to(REPOSITORY).parts[0]
        for line, name, _ in imports(path):
            top = name.split(".")[0]
            own = FOLDERS.get(inside, "?")
            if top in FOLDERS or f"{name}.".startswith(f"{own}."):
                wrong.append(f"{path.relative_to(REPOSITORY)}:{line} {name}")
    assert wrong == []


@pytest.mark.smoke
def test_commands_hold_no_arithmetic() -> None:
    files = [path for path in git_files("*/*cli.py", "tracker/cli/*.py") if path.name != "terminal.py"]
    assert len(files) >= 9
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.BinOp) and is_arithmetic(node)
    ]
    assert wrong == []


def is_arithmetic(node: ast.BinOp) -> bool:
    """Sums of texts and unions of types are none."""
    texts = any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
    return isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod) and not texts


# ---------------------------------------------------------------- what must never be written


@pytest.mark.smoke
def test_no_file_is_long() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in git_files("*.py", "*.cu")}
    assert {path.name: count for path, count in lines.items() if count > 400} == {}


@pytest.mark.smoke
def test_no_drawer_for_leftovers() -> None:
    assert [path for path in git_files("*.py") if path.stem in {"utils", "common", "helpers", "misc"}] == []


@pytest.mark.smoke
def test_no_keywords_are_handed_through() -> None:
    """Those of a public function that takes settings by keyword have names and types (PEP 692)."""
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in git_files(*(f"{folder}/*.py" for folder in FOLDERS))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.args.kwarg
        and not ast.unparse(node.args.kwarg.annotation or ast.Constant(None)).startswith("Unpack[")
    ]
    assert wrong == []


MACHINE_PATH = re.compile(rb"(?<![\w.:/<])/(?:work|root|home|tmp|Users|mnt|opt)(?:/\w|[\s\"'`,;)]|$)")
"""An absolute path into folders that differ between machines; ``</root>`` of XML is none."""


@pytest.mark.smoke
def test_no_committed_file_holds_a_path_of_a_machine() -> None:
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path in git_files()
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1)
        if MACHINE_PATH.search(line)
    ]
    assert wrong == []


# ---------------------------------------------------------------- what is documented


@pytest.mark.smoke
@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name.startswith(("outbid.viewers.forms.", "outbid.viewers.window")):
        pytest.importorskip("napari", reason="napari is not installed: pip install 'outbid[napari]'")
        pytest.importorskip("qtpy.QtWidgets", reason="Qt does not start here", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = importlib.import_module(name)
        outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} examples fail; see the output above"


@pytest.mark.smoke
def test_every_public_name_is_documented() -> None:
    import outbid

    assert [name for name in outbid.__all__ if not getattr(outbid, name).__doc__] == []
