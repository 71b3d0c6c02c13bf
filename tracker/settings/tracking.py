"""Settings of `track`: each is declared once, as a field, and validated.

The modules that check values are loaded when an object is made: the commands read only the declarations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..errors import SettingsError
from .declare import DEVICES, Setting, check_rules, check_values, declare, documented, with_former_names

if TYPE_CHECKING:
    from ..particles.calibration import Calibration
    from ..particles.detections import Detections
    from ..pins import Edited, Found, Pin


@with_former_names
@documented
@dataclass(frozen=True)
class TrackingSettings:
    """All settings that determine the result of `track`; values are validated.

    Parameters
    ----------
    {settings}

    Raises
    ------
    SettingsError
        If a value is not valid; the message states the valid values.

    Examples
    --------
    >>> TrackingSettings(max_distance=5.0).cost
    'euclidean'
    >>> TrackingSettings(max_distance=-1)
    Traceback (most recent call last):
    outbid.errors.SettingsError: max_distance is -1; it must be 0 or more.
    """

    max_distance: float | None = declare(None, Setting(
        "Gate: the largest distance a particle moves between frames, in the unit of position x spacing.",
        "Without a gate, motion and rates are learned from the detections, and links follow from the "
        "posterior over all links of the movie, which uses the past and the future of every particle.",
        automatic="learned from the movie", unit="length", row="max. distance", further=False, metavar="D",
    ))  # fmt: skip
    cost: str = declare("euclidean", Setting(
        "Cost of a link: its length, or its length squared.",
        choices=("euclidean", "squared"), row="cost", needs="max_distance",
    ))  # fmt: skip
    unmatched_cost: float | None = declare(None, Setting(
        "Cost of leaving a detection unlinked, for each of the two sides.",
        "Other programs use the cost at the gate: it gives more links, and more wrong links.",
        automatic="half of the gate's", row="cost of no link", needs="max_distance",
    ))  # fmt: skip
    spacing: tuple[float, float, float] = declare((1.0, 1.0, 1.0), Setting(
        "Size of a voxel along z, y, x: positions are multiplied by it.",
        least=0, above=True, row="voxel z, y, x", further=False, metavar="Z Y X",
    ))  # fmt: skip
    max_gap: int | None = declare(None, Setting(
        "Largest number of consecutive frames in which a particle may be undetected while its track "
        "continues; 0 with `max_distance`, else learned.",
        "Learned linking does not count frames that were not recorded, in which no particle is seen "
        "although many are expected.",
        automatic="automatic", least=0, row="max. gap", further=False, metavar="N",
    ))  # fmt: skip
    gap_distance: float | None = declare(None, Setting(
        "Gate of gap closing.", automatic="`max_distance`", unit="length", row="over gaps", metavar="D",
        needs="max_distance",
    ))  # fmt: skip
    divisions: bool = declare(True, Setting(
        "Detect divisions if the movie gives evidence of them.",
        "Tracks that start near another track may be its daughters.",
        row="divisions|find where particles divide", further=False, excludes="max_distance",
    ))  # fmt: skip
    merges: bool = declare(False, Setting(
        "Detect merges if the movie gives evidence of them.",
        "Tracks that end near another track may have fused with it. If merges and divisions are about "
        "equally frequent, spots cross, and no merge is accepted.",
        row="merges|find where particles fuse", option="--merges/--no-merges", excludes="max_distance",
    ))  # fmt: skip
    fixed: Mapping[str, float | tuple[float, ...]] = declare({}, Setting(
        "Fixed values, which are then not learned: step, noise and gate (one number, or one for each of z, "
        "y, x), persistence_frames, end, start, miss and clutter (probabilities for a detection).",
        "Lengths are in the unit of position x spacing. Step is the standard deviation of the "
        "observed displacement along an axis in one frame.",
        row="fixed|all is learned; or noise=0.1; gate=2,1,1", metavar="NAME=VALUE", former="known --set",
        excludes="max_distance",
    ))  # fmt: skip
    exact_margins: bool = declare(False, Setting(
        "Compute the exact margin of every link (cost increase without it) instead of a lower bound.",
        "It needs an exact solver.",
        row="exact margins|solve without each link",
    ))  # fmt: skip
    solver: str = declare("bid_and_augment", Setting(
        "Solver of the assignments: one of outbid assign --list.",
        "An example with a variant and settings is auction:fixed(epsilon=1). Its costs are whole numbers: "
        "2^26 is the smaller of the unmatched cost and the cost at the gate.",
        row="solver", metavar="NAME[:VARIANT][(SETTING=VALUE,…)]",
    ))  # fmt: skip
    device: str = declare("auto", Setting(
        "Where to compute; auto uses a GPU for 500,000 detections or more, with a gate for 3 million.",
        choices=DEVICES, row="device",
    ))  # fmt: skip
    periodic: tuple[float, float, float] | None = declare(None, Setting(
        "Size of the periodic box of a simulation, in the unit of position x spacing; 0 along an axis that "
        "is not periodic.",
        "Linked on the CPU.",
        metavar="Z Y X",
    ))  # fmt: skip
    features: Mapping[str, str] | Literal["auto"] | None = declare("auto", Setting(
        "Column that may help to link, in addition to those of outbid detect: NAME:KIND, where KIND is "
        "number, angle=PERIOD, label, vector (NAME is a pattern, 'emb_*') or none. Without KIND its values "
        "decide.",
        'In Python a mapping of names to kinds; with the kind "" the values decide. "auto" uses only the '
        "columns of detect, None only positions.",
        row="features|those of Detect spots; or area; theta:angle=180; none at all: -", metavar="NAME[:KIND]",
        excludes="max_distance", former="column --column",
    ), hashed=False)  # fmt: skip
    pins: Sequence[Pin] | str | os.PathLike[str] = declare((), Setting(
        "Table of pins: statements of a person about links, starts and ends, which the tracks obey; and "
        "detections that were added, moved or removed.",
        "In Python also a list of pins. The model is learned without them.",
        metavar="FILE",
    ))  # fmt: skip

    def __post_init__(self) -> None:
        from ..pins import Pin, check_pins, read_pins
        from .columns import check_columns
        from .costs import check_box, check_costs
        from .fixed import by_present_names, check_known

        check_values(self)
        object.__setattr__(self, "fixed", by_present_names(self.fixed))
        check_known(self.fixed)
        read = read_pins(self.pins) if isinstance(self.pins, str | os.PathLike) else self.pins
        if not isinstance(read, Sequence) or not all(isinstance(one, Pin) for one in read):
            raise SettingsError(f"pins is {read!r}; it must be a list of Pin, or the path of their table.")
        object.__setattr__(self, "pins", tuple(read))
        check_columns(self.features)
        check_rules(self)
        if self.max_distance is not None:
            check_costs(self.max_distance, self.cost, self.unmatched_cost)
        if self.gap_distance is not None:
            check_costs(self.gap_distance, self.cost, None)
        if self.periodic is not None:
            check_box(self.periodic, self.device)
        self._check_solver()
        check_pins(self.stated)
        if self.pins and self.max_distance is None and self.periodic is not None:
            raise SettingsError("In a periodic box pins need a max_distance. Set one, or omit the pins.")

    def _check_solver(self) -> None:
        from ..assignment import SOLVERS, solver_named

        # A solver with settings checks them itself, so its module is loaded.
        if self.solver not in SOLVERS:
            try:
                solver_named(self.solver)
            except ValueError as error:
                raise SettingsError(str(error)) from None
        if self.exact_margins and not solver_named(self.solver).is_exact:
            raise SettingsError(
                f"{self.solver} need not find the optimum, so it has no exact margins. Choose another solver."
            )

    @property
    def stated(self) -> tuple[Pin, ...]:
        """The pins, read from their table."""
        assert isinstance(self.pins, tuple)
        return self.pins

    def edited(self, detections: Detections) -> Edited:
        """The detections with those that pins add, move and remove."""
        from ..pins import edited

        return edited(detections, self.stated)

    def pins_in(self, detections: Detections) -> Found:
        """The pins among detections, which are `edited`."""
        from ..pins import resolve_pins

        return resolve_pins(self.stated, detections, calibration=self.calibration_of(detections))

    def calibration_of(self, detections: Detections) -> Calibration:
        """What the positions of detections mean with the size of a voxel that these settings state."""
        return replace(detections.calibration, spacing=self.spacing)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records."""
        known = asdict(self) | {"spacing": list(self.spacing), "fixed": dict(self.fixed)}
        box, features, _ = known.pop("periodic"), known.pop("features"), known.pop("pins")
        known |= {} if box is None else {"periodic": list(box)}
        known |= {"no_features": True} if features is None else {}
        known |= {} if features in (None, "auto") else {"features": dict(features)}
        return known | ({"pins": [pin.as_dict() for pin in self.stated]} if self.pins else {})


def cost_at_gate(max_distance: float | None, cost: str) -> float:
    """The cost of a link as long as the gate, which other programs use as `unmatched_cost`.

    The cost is infinite, which `TrackingSettings` refuses, if there is no gate, or if the cost at the
    gate is not finite.

    Examples
    --------
    >>> cost_at_gate(3.0, "squared"), cost_at_gate(1e200, "squared")
    (9.0, inf)
    """
    from .costs import COSTS

    try:
        return math.inf if max_distance is None else math.pow(max_distance, COSTS[cost])
    except OverflowError:
        return math.inf
