"""Options of a command from a file: ``--config`` takes TOML, or the run record of an output."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from ..errors import InputError, SettingsError
from ..settings.declare import RENAMED
from .options import GroupedOption
from .terminal import Function, entry_points


def config_option(function: Function) -> Function:
    """Add ``--config`` to a command: its options' values from a TOML file or a run record."""
    return click.option(
        "--config", type=click.Path(path_type=Path), is_eager=True, expose_value=False,
        callback=_load_config, metavar="FILE",
        help="Read options from a TOML file or from the run record of an output, which repeats that run.",
    )(function)  # fmt: skip


def _load_config(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    """Use the file's values as defaults; the command line and the environment take precedence."""
    if value is None:
        return
    settings = _settings_in(value, ctx)
    known = {
        option.name: option
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name not in (None, param.name, "help", "debug")
    }
    for option in known.values():
        old = option.former.split()[:1] if isinstance(option, GroupedOption) else []
        if old and old[0] in settings:
            click.echo(RENAMED.format(f"{value}: {old[0]}", option.name), err=True)
            settings[str(option.name)] = settings.pop(old[0])
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, [str(k) for k in known], 1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(map(str, known))}."
            raise SettingsError(f"{value}: there is no setting {name!r} for {ctx.info_name}. {meant}")
        if isinstance(settings[name], dict):  # a table of values: an option NAME=VALUE that may be repeated
            from ..settings.columns import texts_of
            from ..settings.fixed import text_of

            settings[name] = (texts_of if name == "features" else text_of)(settings[name])
    ctx.default_map = {**(ctx.default_map or {}), **settings}


def _settings_in(path: Path, ctx: click.Context) -> dict[str, Any]:
    """Option values by parameter name, from TOML or a run record."""
    if path.suffix.lower() == ".toml":
        return _settings_in_toml(path, str(ctx.info_name))
    from ..formats import read_record

    try:
        record = read_record(path)
    except InputError as error:
        raise SettingsError(f"{error} Or give a .toml file.") from None
    if record.get("command") != ctx.info_name or not isinstance(record.get("settings"), dict):
        raise SettingsError(f"{path} is no record of `outbid {ctx.info_name}`. Give one of its outputs.")
    ctx.meta["outbid.record"] = record
    settings = {name: value for name, value in record["settings"].items() if value is not None}
    if settings.get("forward_only") is False:  # a setting of earlier versions
        del settings["forward_only"]
    origin = record.get("input")
    columns = origin.get("columns") if isinstance(origin, dict) else None
    return settings | ({"columns": [columns]} if isinstance(columns, str) else {})


def _settings_in_toml(path: Path, command: str) -> dict[str, Any]:
    import tomllib

    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}. Check the name.") from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}. Fix the TOML.") from None
    own = table.pop(command, {})
    others = {name for name, value in table.items() if isinstance(value, dict) and name in entry_points()}
    settings = {name: value for name, value in table.items() if name not in others} | own
    return {name.replace("-", "_"): value for name, value in settings.items()}
