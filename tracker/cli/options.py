"""Options made of declared settings; a command is given the values of a class of them as one argument."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ..settings.declare import AXES, RENAMED, Declared, declared_in, in_words

_Function = TypeVar("_Function", bound=Callable[..., object])
_TYPES: dict[str, Any] = {
    "float": float,
    "int": int,
    "str": str,
    AXES: float,
    "tuple[int, ...]": int,
    "Path": click.Path(path_type=Path),
}


class GroupedOption(click.Option):
    """An option whose value a command is given with others: `make` of them, as the argument `group`."""

    group: str
    make: Callable[..., object]
    former: str


class GroupedCommand(click.Command):
    """A command that is given each group of its options as one argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse options, also by their former names."""
        former = {
            option.former.split()[1]: option.opts[0]
            for option in self.params
            if isinstance(option, GroupedOption) and option.former
        }
        present = []
        for arg in args:
            name, mark, value = arg.partition("=")
            if name in former:
                click.echo(RENAMED.format(name, former[name]), err=True)
            present.append(f"{former.get(name, name)}{mark}{value}")
        return super().parse_args(ctx, present)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command."""
        groups: dict[tuple[str, Callable[..., object]], dict[str, Any]] = {}
        for option in self.params:
            if isinstance(option, GroupedOption) and option.name is not None:
                groups.setdefault((option.group, option.make), {})[option.name] = ctx.params.pop(option.name)
        for (name, make), values in groups.items():
            ctx.params[name] = make(**values)
        return super().invoke(ctx)


def options_of(
    settings: type,
    group: str,
    *,
    make: Callable[..., object] | None = None,
    only: Collection[str] = (),
    without: Collection[str] = (),
    special: Mapping[str, Mapping[str, Any]] | None = None,
    said: str = "",
) -> Callable[[_Function], _Function]:
    """Decorator that adds an option for each declared setting; the command gets them as one argument.

    Parameters
    ----------
    settings : type
        A class with fields of `outbid.settings.declare.declare`.
    group : str
        The argument.
    make : callable, optional
        What the argument is made with, of keywords. Default: the class; `dict` gives the values.
    only, without : collection of str
        Settings that are options alone, and those that are none.
    special : mapping of str to mapping, optional
        Arguments of click by setting, which replace those that follow from the declaration.
    said : str
        What stands for {} in the texts.
    """

    def add(function: _Function) -> _Function:
        for one in reversed(declared_in(settings).values()):
            if one.name not in without and (not only or one.name in only):
                arguments = _arguments(one, said) | dict((special or {}).get(one.name, {}))
                if arguments.get("multiple"):
                    arguments["help"] += " May be repeated."
                made = GroupedOption(_names(one), **arguments)
                made.group, made.make, made.former = group, make or settings, one.setting.former
                _append(function, made)
        return function

    return add


def _append(function: Callable[..., object], option: click.Option) -> None:
    """Add an option to a function that is to be a command, as the decorators of click do."""
    vars(function).setdefault("__click_params__", []).append(option)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def option_of(one: Declared) -> str:
    """The option by which a user asks for a setting: ``--merges`` of ``--merges/--no-merges``."""
    return _names(one)[0].split("/")[0]


def _names(one: Declared) -> list[str]:
    """How an option is called, and its parameter."""
    name = _option(one.name)
    both = one.kind == "bool" and one.default is not False
    return [*(one.setting.option or (f"{name}/--no-{name[2:]}" if both else name)).split(), one.name]


def _arguments(one: Declared, said: str) -> dict[str, Any]:
    """Arguments of click that follow from a declaration."""
    setting, has_default = one.setting, one.default is not None
    default = f"  [default: {setting.automatic}]" if setting.automatic else ""
    rule = f" {setting.rule}" if setting.rule else ""
    text = in_words(f"{setting.text.replace('{}', said)}{rule}{default}", _option)
    shown: dict[str, Any] = {"help": text, "metavar": setting.metavar or None}
    if has_default or one.kind == "bool":  # of a flag that nobody gives click would make a False
        shown["default"] = one.default
    if one.kind == "bool":
        return shown | {"is_flag": True} if one.default is False else shown | {"show_default": has_default}
    kind = click.Choice(setting.choices) if setting.choices else _TYPES.get(one.kind, str)
    return shown | {"type": kind, "nargs": 3 if one.kind == AXES else 1, "show_default": has_default}
