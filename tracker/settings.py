"""Settings of `track`, each validated."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from .assignment import SOLVERS, solver_named
from .columns import check_columns, recorded
from .detections import Detections
from .device import refuse_unknown
from .errors import SettingsError
from .known import check_known
from .matching import COSTS, check_box, check_costs
from .pins import Found, Pin, check_pins, read_pins, resolve_pins


@dataclass(frozen=True)
class TrackingSettings:
    """All settings that determine the result of `track`; values are validated.

    Parameters
    ----------
    max_distance : float, optional
        Gate: the farthest a particle may move from a frame to the next, in the unit of position x spacing.
        Without one motion and detection are learned from the detections, and links follow from the
        posterior over all links of the movie, by the past and the future of every particle.
    cost : {"euclidean", "squared"}
        Cost of a link: its length or its length squared. This and `unmatched_cost` need a `max_distance`.
    unmatched_cost : float, optional
        Cost of leaving a detection unlinked, for each of the two sides. Default: half of the cost at
        the gate. The cost at the gate itself is the usual choice elsewhere: more links, more wrong ones.
    spacing : (float, float, float)
        Size of a voxel along z, y, x: positions are multiplied by it before distances are taken.
    max_gap : int, optional
        For how many frames a particle may be missing and its track still be joined; 0 joins none. Default:
        0 with a `max_distance`, else learned, as how often particles are missed; frames that were not
        recorded, in which none of many particles is seen, then do not count.
    gap_distance : float, optional
        Gate of gap closing. Default: `max_distance`.
    divisions : bool
        Whether tracks that start beside another may be its daughters, where the movie gives evidence of
        divisions; only without a `max_distance`.
    merges : bool
        Whether tracks that end beside another may have fused with it, where the movie gives evidence of that;
        only without a `max_distance`. If both are about as frequent, spots cross, and none is accepted.
    known : mapping of str to float or (float, float, float)
        Values that are given, not learned: step, noise and gate (one, or one for each of z, y, x, in the
        unit of position x spacing), persistence (frames), end, start, miss and clutter (probabilities, of
        a detection). Step is the standard deviation of the displacement seen along an axis in one frame.
    exact_margins : bool
        Whether the margin of every link is exact, by solving without the link, instead of a lower bound;
        needs an exact solver.
    solver : str
        A name in `outbid.assignment.SOLVERS`, or that of a variant with settings, such as
        ``auction:fixed(epsilon=1)``. Costs of links are whole numbers then, of which 2^26 make the smaller of
        the unmatched cost and the cost at the gate.
    device : {"auto", "cpu", "gpu"}
        Where to compute.
    periodic : tuple of 3 float, optional
        Size of a periodic box (z, y, x), in the unit of position times spacing; 0: not periodic. On the CPU.
    column : mapping of str to str, "auto" or None
        Features that help to link, beside those that `outbid.detect` wrote ("auto": these alone), and their
        kinds: number, angle=180 (the period), label, vector (of a pattern, or lists), none; "" by the values.
    pins : sequence of Pin, or path
        Statements on links that hold exactly, or their table; the model is learned without them.

    Raises
    ------
    SettingsError
        If a value makes no sense; the message says which values do.

    Examples
    --------
    >>> TrackingSettings(max_distance=5.0).cost
    'euclidean'
    >>> TrackingSettings(max_distance=-1)
    Traceback (most recent call last):
    outbid.errors.SettingsError: max_distance is -1; it must be 0 or more.
    """

    max_distance: float | None = None
    cost: str = "euclidean"
    unmatched_cost: float | None = None
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    max_gap: int | None = None
    gap_distance: float | None = None
    divisions: bool = True
    merges: bool = False
    known: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict, hash=False)
    exact_margins: bool = False
    solver: str = "bid_and_augment"
    device: str = "auto"
    periodic: tuple[float, float, float] | None = None
    column: Mapping[str, str] | Literal["auto"] | None = field(default="auto", hash=False)
    pins: Sequence[Pin] | str | os.PathLike[str] = ()

    def __post_init__(self) -> None:
        if self.max_distance is not None:
            check_costs(self.max_distance, self.cost, self.unmatched_cost)
            if self.known:
                raise SettingsError("known values fix what is otherwise learned: leave max_distance out.")
        elif (self.cost, self.unmatched_cost, self.gap_distance) != ("euclidean", None, None):
            raise SettingsError(
                "cost, unmatched_cost and gap_distance need a max_distance: without one all is learned."
            )
        check_known(self.known)
        check_columns(self.column, self.max_distance)
        if self.gap_distance is not None:
            check_costs(self.gap_distance, self.cost, None)
        if self.periodic is not None:
            check_box(self.periodic, self.device)
        if [0 < size < math.inf for size in self.spacing] != [True] * 3:
            raise SettingsError(f"spacing is {self.spacing}; it must be three sizes above 0: z, y, x.")
        if self.max_gap is not None and not (self.max_gap >= 0 and self.max_gap == int(self.max_gap)):
            raise SettingsError(f"max_gap is {self.max_gap}; it must be 0 or more frames, a whole number.")
        # Others are asked their settings, for which their modules are loaded.
        if self.solver not in SOLVERS:
            try:
                solver_named(self.solver)
            except ValueError as error:
                raise SettingsError(str(error)) from None
        if self.exact_margins and not solver_named(self.solver).is_exact:
            raise SettingsError(f"Exact margins are those of an optimum, which {self.solver} need not find.")
        refuse_unknown(self.device)
        given = self.pins
        read = read_pins(given) if isinstance(given, str | os.PathLike) else tuple(given)
        object.__setattr__(self, "pins", read)
        check_pins(self.stated)
        if self.pins and self.max_distance is None and self.periodic is not None:
            raise SettingsError("In a periodic box pins need a max_distance: set one, or leave the pins out.")

    @property
    def stated(self) -> tuple[Pin, ...]:
        """The pins, read from their table."""
        assert isinstance(self.pins, tuple)
        return self.pins

    def pins_in(self, detections: Detections) -> Found:
        """The pins among detections."""
        return resolve_pins(self.stated, detections, spacing=self.spacing)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records."""
        known = asdict(self) | {"spacing": list(self.spacing), "known": dict(self.known)}
        box, _, _ = known.pop("periodic"), known.pop("column"), known.pop("pins")
        stated = {"pins": [pin.as_dict() for pin in self.stated]} if self.pins else {}
        return known | ({} if box is None else {"periodic": list(box)}) | recorded(self.column) | stated


def cost_at_gate(max_distance: float | None, cost: str) -> float:
    """The cost of a link as long as the gate, the usual `unmatched_cost` elsewhere.

    The cost is infinite, which `TrackingSettings` refuses, if there is no gate, or if the cost at the
    gate is no finite number.

    Examples
    --------
    >>> cost_at_gate(3.0, "squared"), cost_at_gate(1e200, "squared")
    (9.0, inf)
    """
    try:
        return math.inf if max_distance is None else math.pow(max_distance, COSTS[cost])
    except OverflowError:
        return math.inf
