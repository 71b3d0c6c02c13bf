"""A wheel brings compiled kernels, which are used where they fit; elsewhere kernels are compiled."""

import ast
import base64
import csv
import hashlib
import importlib
import importlib.util
import json
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
from checkout import REPOSITORY, git_files
from commands import succeed
from numba.core.codegen import JITCPUCodegen

import outbid.data
from outbid.compute import shipped as compiled_kernels
from outbid.compute.compiling import kernels_counted

HERE = Path(compiled_kernels.__file__).parent
TINY = {
    "__init__.py": "",
    "tolerances.py": "SHIFT = 1.0\n",
    "sum_cpu.py": """
from .compute.kernels import inner_kernel, kernel
from .tolerances import SHIFT


@inner_kernel
def _shift(x):
    return x + SHIFT


@kernel
def shifted(x):
    return _shift(x)
""",
}
"""A package with a kernel, beside copies of the modules under test."""


def loaded(name: str) -> ModuleType:
    """A module of .ci/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_wheel = loaded("build_wheel")


# ---------------------------------------------------------------- the lookup, by a package with one kernel


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with its kernel compiled for the portable CPU."""
    package = tmp_path_factory.mktemp("shipped") / "tiny"
    (package / "compute").mkdir(parents=True)
    (package / "compute" / "__init__.py").write_text("")
    for name, text in TINY.items():
        (package / name).write_text(text)
    for name in ("kernels.py", "shipped.py"):
        shutil.copy(HERE / name, package / "compute")
    cpu, features = build_wheel.CPUS[build_wheel.platform.machine()]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    own = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "PYTHONDONTWRITEBYTECODE": "1"}
    code = "from tiny.sum_cpu import shifted; shifted(1.0)"
    subprocess.run([sys.executable, "-c", code], cwd=package.parent, env=kept | own, check=True)
    facts = {"versions": compiled_kernels.versions(), "cpu": cpu, "features": features}
    build_wheel.keep_kernels(package, facts)
    return package


@pytest.fixture
def package(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it that can be changed, and an empty cache of Numba."""
    copy = tmp_path / "site" / "tiny"
    shutil.copytree(shipped, copy)
    monkeypatch.syspath_prepend(str(copy.parent))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return copy


def compiled(argument: float | int = 1.0) -> tuple[int, float]:
    """How many kernels a new process would compile for a call, and the result."""
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    counts: list[int] = []
    with kernels_counted(counts.append):
        found = importlib.import_module("tiny.sum_cpu").shifted(argument)
    return len(counts), found


COMPILED = (2, 2.0)
"""The kernel and the one within it were compiled, and the result is right."""


@pytest.mark.usefixtures("package")
def test_the_kernel_of_the_wheel_is_used_and_another_type_is_compiled() -> None:
    assert compiled() == (0, 2.0)
    assert compiled(1) == COMPILED
    assert compiled(1) == (0, 2.0), "Numba's cache holds it"


def test_only_the_package_is_read_and_nothing_is_written(package: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert compiled() == (0, 2.0)
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before and path.is_file()] == []
    assert not [path for path in package.rglob("*") if path not in before]


def changed_manifest(package: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((package / "_compiled" / "manifest.json").read_text())
    change(manifest)
    (package / "_compiled" / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("of", ["numba", "python"])
def test_of_other_versions_it_is_not_read(package: Path, of: str) -> None:
    changed_manifest(package, lambda manifest: manifest["versions"].update({of: "0"}))
    assert compiled() == COMPILED
    assert compiled() == (0, 2.0), "Numba's cache holds it"


def test_of_other_sources_it_is_not_used(package: Path) -> None:
    """Numba itself would not notice the constant of another module."""
    (package / "tolerances.py").write_text("SHIFT = 2.0\n")
    assert compiled() == (2, 3.0)


@pytest.mark.usefixtures("package")
def test_on_a_cpu_without_a_feature_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    own = JITCPUCodegen.magic_tuple
    monkeypatch.setattr(JITCPUCodegen, "magic_tuple", lambda self: (*own(self)[:2], "+sse2,-avx2"))
    assert compiled() == (COMPILED if build_wheel.platform.machine() in {"x86_64", "AMD64"} else (0, 2.0))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", compiled_kernels.OWN_CODE)
def test_who_asks_numba_for_other_code_gets_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(numba.config, name, "1")
    assert compiled()[0] > 0


@pytest.mark.usefixtures("package")
def test_without_a_compiler_python_runs_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert compiled() == (0, 2.0)


class _Bomb:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("name", ["sum_cpu.shifted-*.nbi", "sum_cpu.shifted-*.nbc", "manifest.json"])
@pytest.mark.parametrize("harm", ["truncated", "flipped", "empty", "missing", "foreign"])
def test_a_damaged_or_foreign_file_is_not_used(package: Path, tmp_path: Path, name: str, harm: str) -> None:
    (path,) = (package / "_compiled").glob(name)
    content = path.read_bytes()
    harmed = {
        "truncated": content[: len(content) // 2],
        "flipped": _flipped(content),
        "empty": b"",
        "missing": b"",
        "foreign": pickle.dumps(_Bomb(tmp_path / "exploded")),
    }
    path.write_bytes(harmed[harm])
    if harm == "missing":
        path.unlink()
    assert compiled() == COMPILED
    assert compiled() == (0, 2.0), "Numba's cache holds it"
    assert not (tmp_path / "exploded").exists()


def test_the_manifest_watches_every_source_of_a_constant() -> None:
    """A kernel holds the constants that its module imports."""
    taken = {
        (path.name, node.module.split(".")[-1] + ".py")
        for path in git_files("tracker/*_cpu.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level and node.module
        if any(alias.name.isupper() for alias in node.names)
    }
    assert len(taken) > 3
    watched = [pair for pair in taken if any(Path(pair[1]).match(each) for each in build_wheel.SOURCES)]
    assert set(watched) == taken


# ---------------------------------------------------------------- the wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` builds, with the packages that are installed here."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        ["make", "wheel", f"WHEELS={out}", f"WHEEL_PYTHON={sys.executable}"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone, which reads the other packages where they are; it is read-only."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    (site / "others.pth").write_text(f"{Path(numba.__file__).parent.parent}\n")
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    for path in (site / "outbid", *(site / "outbid").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_wheel_says_what_it_holds(wheel: Path) -> None:
    assert wheel.name.split("-")[2].startswith("cp")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(archive.read(record).decode().splitlines())}
        assert sorted(rows) == sorted(names)
        for name in set(names) - {record}:
            content = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert rows[name] == [f"sha256={digest}", str(len(content))], name
        facts = archive.read(record.replace("RECORD", "WHEEL")).decode()
        assert "Root-Is-Purelib: false" in facts
        assert f"Tag: {'-'.join(wheel.stem.split('-')[2:])}" in facts
        plain = [name for name in names if "/_compiled/" not in name and ".dist-info/" not in name]
        assert len(plain) == len(git_files("tracker", "simulate", "viewers", "data"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("cache_is_named", [True, False])
def test_with_the_wheel_nothing_is_compiled(environment: Path, tmp_path: Path, cache_is_named: bool) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    own = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    named = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")} if cache_is_named else {}
    sample = outbid.data.sample("walks")
    steps = (["track", str(sample), "-o", "tracks.csv"], ["score", "tracks.csv", str(sample)], ["warm-up"])
    for arguments in steps:
        done = subprocess.run(
            [environment / "bin" / "outbid", *arguments],
            env=kept | own | named,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Compiling the kernels" not in done.stderr
    for folder in (tmp_path, environment):
        assert [path for path in folder.rglob("*.nb[ci]") if "_compiled" not in path.parts] == []
    succeed("track", sample, "-o", tmp_path / "expected.csv")
    assert (tmp_path / "tracks.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
