"""Build the wheel of this Python and platform, with compiled kernels: ``python .ci/build_wheel.py FOLDER``.

The Python that runs this has setuptools and what Outbid depends on. tracker/compute/shipped.py reads the
kernels.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
COMPILE = Path(__file__).with_name("compile_kernels.py")
WITHOUT_PATHS = Path(__file__).with_name("without_paths.py")
PACKED = ("pyproject.toml", "README.md", "LICENSE", "tracker", "simulate", "viewers", "data")
X86_64 = ("x86-64-v3", "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe")
"""The CPU for which to compile, by its name and features of LLVM: since 2013 (Intel) and 2015 (AMD)."""
ARM64 = ("generic", "")
CPUS = {"x86_64": X86_64, "AMD64": X86_64, "aarch64": ARM64, "arm64": ARM64}
SOURCES = ("*_cpu.py", "kernels.py", "tolerances.py")
"""Files on which machine code depends: kernels, their options, their constants."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Of each file in the wheel, so that building again gives the same."""


def build(out: Path) -> Path:
    """Build the wheel into a folder; the path of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        stage = scratch / "stage"
        with zipfile.ZipFile(plain_wheel(scratch)) as wheel:
            wheel.extractall(stage)
        cpu, features = CPUS[platform.machine()]
        facts = run_kernels(stage, NUMBA_CPU_NAME=cpu, NUMBA_CPU_FEATURES=features)
        keep_kernels(stage / "outbid", {"versions": facts["versions"], "cpu": cpu, "features": features})
        again = run_kernels(stage, NUMBA_CACHE_DIR=str(scratch / "empty"))
        if again["compiled"] or list(scratch.glob("empty/**/*.nbc")):
            sys.exit("Kernels of the wheel were compiled again.")
        refuse_paths(stage / "outbid" / "_compiled", [str(scratch), str(REPOSITORY), *sys.path])
        return packed(stage, out)


def plain_wheel(scratch: Path) -> Path:
    """The wheel without kernels, built from a copy of the sources."""
    source = scratch / "source"
    source.mkdir()
    for name in PACKED:
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(REPOSITORY / name, source)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*command, "--wheel-dir", str(scratch), str(source)], check=True)
    (wheel,) = scratch.glob("*.whl")
    return wheel


def run_kernels(stage: Path, **numba: str) -> dict[str, Any]:
    """What ``compile_kernels.py`` writes of the staged package under some of Numba's variables."""
    site = stage.with_name("site")
    site.mkdir(exist_ok=True)
    shutil.copy(WITHOUT_PATHS, site / "sitecustomize.py")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    path = os.pathsep.join([str(stage), str(site)])
    own = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, COMPILE], env=kept | own | numba, stdout=subprocess.PIPE, text=True, check=True
    )
    facts: dict[str, Any] = json.loads(done.stdout)
    if stage not in Path(facts["package"]).parents:
        sys.exit(f"The kernels of {facts['package']} were compiled, not those of {stage}.")
    return facts


def keep_kernels(package: Path, facts: dict[str, Any]) -> None:
    """Move Numba's files into the folder that `outbid.compute.shipped` reads, and write the manifest."""
    sources = {path for pattern in SOURCES for path in package.rglob(pattern)}
    kept = package / "_compiled"
    for path in list(package.rglob("__pycache__/*.nb[ci]")):
        target = kept / path.parent.parent.relative_to(package) / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    for folder in list(package.rglob("__pycache__")):
        folder.rmdir()
    manifest = facts | {
        "sources": checksums(sources, package),
        "files": checksums(set(filter(Path.is_file, kept.rglob("*"))), kept),
    }
    (kept / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def checksums(files: set[Path], folder: Path) -> dict[str, str]:
    """SHA-256 of each file by its path within a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


def refuse_paths(folder: Path, paths: list[str]) -> None:
    """End if a path of this machine stands in a file of a folder."""
    for path in filter(Path.is_file, folder.rglob("*")):
        content = path.read_bytes()
        for each in filter(None, paths):
            if each.encode() in content:
                sys.exit(f"{each} stands in {path.relative_to(folder)}.")


def packed(stage: Path, out: Path) -> Path:
    """Write the wheel with its tag and record."""
    (info,) = stage.glob("*.dist-info")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"{python}-{python}{getattr(sys, 'abiflags', '')}-{system}"
    facts = (info / "WHEEL").read_text("utf-8").replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    (info / "WHEEL").write_text(facts.replace("Tag: py3-none-any", f"Tag: {tag}"), "utf-8")
    record = info / "RECORD"
    files = sorted(filter(Path.is_file, stage.rglob("*")), key=lambda path: (info in path.parents, path))
    rows = [recorded(path, stage) for path in files if path != record]
    record.write_text("\n".join([*rows, f"{record.relative_to(stage).as_posix()},,"]) + "\n", "utf-8")
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as target:
        for path in files:
            entry = zipfile.ZipInfo(path.relative_to(stage).as_posix(), DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            target.writestr(entry, path.read_bytes())
    return wheel


def recorded(path: Path, stage: Path) -> str:
    """A row of RECORD: path, hash, size."""
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(stage).as_posix()},sha256={digest},{len(content)}"


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(sys.argv[1]))}\n")
