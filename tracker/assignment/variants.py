"""Names of solvers: `auction`, with a variant `auction:fixed`, with settings `auction:fixed(epsilon=1)`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module

from .solver import AbstractAssignmentSolver


@dataclass(frozen=True)
class Variant:
    """A solver with the settings that its variant fixes; `says` is a one-line description."""

    solver: str
    name: str
    says: str
    fixed: Mapping[str, float | int | str | bool] = field(default_factory=dict)


VARIANTS = (
    Variant("bid_and_augment", "", "exact; bids, then shortest augmenting paths; for sparse problems"),
    Variant(
        "sparsified", "", "exact; few candidates, then all other pairs priced out; for matrices and points"
    ),
    Variant("auction", "", "exact; as scaled"),
    Variant("auction", "scaled", "Vasconcelos & Rosenhahn's auction with ε scaling"),
    Variant("auction", "fixed", "the same with one ε, as in their paper", {"scaling": 1.0}),
    Variant("hungarian", "", "exact; as tree"),
    Variant(
        "hungarian", "tree", "Date & Nagi's Hungarian algorithm with alternating trees", {"variant": "tree"}
    ),
    Variant("hungarian", "classical", "their classical variant", {"variant": "classical"}),
    Variant("greedy_switching", "", "heuristic; as sequential"),
    Variant("greedy_switching", "sequential", "Roverso et al.'s Algorithm 1", {"parallel": False}),
    Variant("greedy_switching", "parallel", "their Algorithm 3", {"parallel": True}),
    Variant("greedy_switching", "mixed", "evaluation on the GPU, switching on the host", {"mixed": True}),
    Variant("jonker_volgenant", "", "exact; SciPy's solvers, the reference"),
    Variant("greedy", "", "heuristic; nearest first, the baseline"),
)
"""All variants, grouped by solver; the unnamed variant of each solver comes first."""

SOLVERS = tuple(dict.fromkeys(variant.solver for variant in VARIANTS))
"""Names of the solvers, which are those of their modules."""
_MODULES = {name: f".papers.{name}" for name in SOLVERS} | {
    "bid_and_augment": ".bid_and_augment",
    "sparsified": ".dense.sparsified",
}

_WORDS = {
    "variant": ("tree", "classical"),
    "start": ("random", "greedy"),
    "evaluation": ("shared", "global"),
    "parallel": ("true", "false"),
    "mixed": ("true", "false"),
}
"""Settings that are words, with the allowed values."""
_LEAST = {"scaling": 1, "seed": 0, "deadline": 0, "time_limit": 0}
"""Least values of numeric settings; the others must be above 0."""
_FORM = re.compile(r"(\w+)(?::(\w+))?(?:\((.*)\))?")


def solver_named(text: str) -> AbstractAssignmentSolver:
    """Parse the name of a solver with variant and settings.

    Parameters
    ----------
    text : str
        A name in `SOLVERS`, optionally followed by a colon and a variant, and by settings in parentheses.

    Raises
    ------
    ValueError
        If there is no such solver, variant or setting; the message lists the existing ones.

    Examples
    --------
    >>> solver_named("auction:fixed(epsilon=1)")
    Auction(epsilon=1.0, scaling=1.0, most_rounds=1099511627776)
    >>> solver_named("hungarian:wide")
    Traceback (most recent call last):
    ValueError: There is no variant 'wide' of hungarian. Choose one of: tree, classical.
    """
    form = _FORM.fullmatch(re.sub(r"\s", "", text))
    if form is None:
        raise ValueError(f"{text!r} names no solver. Write auction, auction:fixed or auction(epsilon=0.1).")
    name, variant, settings = form.groups()
    if name not in SOLVERS:
        raise ValueError(f"There is no solver {name!r}. Choose one of: {', '.join(SOLVERS)}.")
    fixed = _fixed_by(name, variant or "")
    kind: Callable[..., AbstractAssignmentSolver] = solver_class(name)
    return kind(**{**fixed, **_settings_of(name, variant or "", settings or "")})


def solver_class(name: str) -> type[AbstractAssignmentSolver]:
    """The solver class in the module of this name."""
    module = import_module(_MODULES[name], __package__)
    return getattr(module, name.title().replace("_", ""))


def described() -> str:
    """Description of all solvers and variants with their settings, one line each.

    Examples
    --------
    >>> print(described().splitlines()[2])
    auction                      exact; as scaled  (epsilon, scaling, most_rounds)
    """
    lines = []
    for variant in VARIANTS:
        name = f"{variant.solver}:{variant.name}" if variant.name else variant.solver
        takes = ", ".join(_taken_by(variant.solver, variant.fixed))
        lines.append(f"{name:<27}  {variant.says}" + (f"  ({takes})" if takes else ""))
    return "\n".join(lines)


def names() -> list[str]:
    """Names of all solvers and variants, for a choice in a form.

    Examples
    --------
    >>> names()[2:5]
    ['auction', 'auction:scaled', 'auction:fixed']
    """
    return [f"{variant.solver}:{variant.name}".rstrip(":") for variant in VARIANTS]


def _fixed_by(name: str, variant: str) -> Mapping[str, float | int | str | bool]:
    known = {one.name: one.fixed for one in VARIANTS if one.solver == name}
    if variant not in known:
        others = ", ".join(filter(None, known))
        advice = f"Choose one of: {others}." if others else f"It has none: write {name}."
        raise ValueError(f"There is no variant {variant!r} of {name}. {advice}")
    return known[variant]


def _taken_by(name: str, fixed: Mapping[str, object]) -> dict[str, str]:
    """Settings that a variant does not fix, with their types."""
    kind: type = solver_class(name)
    return {one.name: str(one.type) for one in fields(kind) if one.name not in fixed}


def _settings_of(name: str, variant: str, text: str) -> dict[str, float | int | str | bool | None]:
    taken = _taken_by(name, _fixed_by(name, variant))
    whole = f"{name}:{variant}".rstrip(":")
    found: dict[str, float | int | str | bool | None] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key not in taken or key in found:
            what = "takes no setting" if key not in taken else "is given twice the setting"
            settings = f"It takes: {', '.join(taken)}." if taken else "It takes none."
            raise ValueError(f"{whole} {what} {key!r}. {settings}")
        found[key] = _value(f"{key} of {whole}", key, value, taken[key])
    return found


def _value(what: str, key: str, text: str, kind: str) -> float | int | str | bool | None:
    """Parse a setting of the given type."""
    if key in _WORDS:
        word = text.lower()
        if word not in _WORDS[key]:
            raise ValueError(f"{what} is {text!r}. Choose one of: {', '.join(_WORDS[key])}.")
        return word == "true" if "true" in _WORDS[key] else word
    if text.lower() == "none" and kind.endswith("None"):
        return None
    try:
        number: float = int(text) if kind.startswith("int") else float(text)
    except ValueError:
        wanted = "a whole number" if kind.startswith("int") else "a number"
        raise ValueError(f"{what} is {text!r}; it must be {wanted}.") from None
    least = _LEAST.get(key)
    if not math.isfinite(number) or (number <= 0 if least is None else number < least):
        raise ValueError(
            f"{what} is {text}; it must be {'above 0' if least is None else f'{least} or more'}."
        )
    return number
