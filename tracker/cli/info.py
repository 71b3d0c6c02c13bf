"""The command `outbid info`: versions, devices and what is missing."""

from __future__ import annotations

import json
import os
import platform
import re
from importlib import metadata

import click

from .terminal import common_options

_REQUIREMENT = re.compile(r"^([\w.-]+)[^;\n]*(?:;.*extra == ['\"]([^'\"\n]+))?", re.MULTILINE)
_NOT_SHOWN = {"test", "lint", "bench", "docs", "rivals", "all", "cuda12", "cuda13"}
"""Extras that are not listed; CuPy is listed with the GPU."""
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


@click.command(
    help="""Show versions, devices and what is missing.

    \b
    Examples:
      outbid info
      outbid info --json
    """,
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@common_options
def info(as_json: bool) -> None:
    """Show versions and devices."""
    from ..compute.arrays import gpu_names

    packages = _packages()
    versions = {name: _version(name) for name in packages}
    missing = [f"{name} is not installed: {line}" for name, line in packages.items() if not versions[name]]
    versions["cupy"] = next((found for name in _CUPY if (found := _version(name))), None)
    try:
        gpus = gpu_names()
    except RuntimeError as error:
        gpus = []
        missing.append(str(error))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if as_json:
        python = {"python": platform.python_version(), "platform": platform.platform(), "versions": versions}
        click.echo(json.dumps(python | {"cpu_cores": cores, "gpus": gpus, "missing": missing}))
        return
    click.echo(f"python      {platform.python_version()} on {platform.platform()}")
    for name, version in versions.items():
        click.echo(f"{name:<11} {version or 'missing'}")
    click.echo(f"cpu         {cores} cores")
    click.echo(f"gpu         {', '.join(gpus) or 'none'}")
    for advice in missing:
        click.echo(advice)


def _packages() -> dict[str, str]:
    """Versions of Outbid and of optional packages, and the command that installs each missing one."""
    found = {"outbid": "pip install outbid"}
    for name, extra in _REQUIREMENT.findall("\n".join(metadata.requires("outbid") or [])):
        if extra not in _NOT_SHOWN:
            found[name] = f"pip install 'outbid[{extra}]'" if extra else f"pip install {name}"
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
