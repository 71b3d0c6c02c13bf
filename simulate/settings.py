"""Settings of `outbid simulate` and of `outbid experiment`, declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from outbid.settings.declare import Setting, check_values, declare, documented, with_former_names

if TYPE_CHECKING:
    from .camera import Camera
    from .microscope import Microscope
    from .motions import Motion
    from .walks import WalkSettings

UNITS = ("pixel", "nanometer", "micrometer", "millimeter")
"""Units of length that the command and the form accept."""


@with_former_names
@documented
@dataclass(frozen=True)
class SimulationSettings:
    """All settings of a simulation, as plain values; `walks`, `microscope` and `camera` check them.

    Parameters
    ----------
    {settings}
    """

    particles: int = declare(500, Setting("Particles in the first frame.", row="particles", further=False))
    frames: int = declare(50, Setting("Number of frames.", least=1, row="frames", further=False))
    box: tuple[float, float, float] = declare((64.0, 64.0, 64.0), Setting(
        "Lengths of the box.", row="box z, y, x", further=False, metavar="Z Y X"
    ))  # fmt: skip
    unit: str = declare("micrometer", Setting(
        "Unit of all lengths; the outputs state it.", choices=UNITS, row="unit"
    ))  # fmt: skip
    motion: str = declare("persistent", Setting(
        "How particles move.",
        choices=("persistent", "brownian", "ornstein-uhlenbeck"), row="motion", further=False,
    ))  # fmt: skip
    step: float = declare(1.0, Setting(
        "Per frame: largest step (persistent), standard deviation along each axis (brownian), root mean "
        "square speed (ornstein-uhlenbeck).",
        row="step a frame", further=False, metavar="S",
    ))  # fmt: skip
    directionality: float = declare(0.8, Setting(
        "For persistent: from 0, every step in a random direction, to 1, straight ahead.",
        most=1, row="directionality", metavar="P", former="persistence --persistence",
    ))  # fmt: skip
    persistence_time: float = declare(5.0, Setting(
        "For ornstein-uhlenbeck: decay time of the autocorrelation of the velocity, in frames.",
        row="kept for", metavar="T",
    ))  # fmt: skip
    boundary: str = declare("reflect", Setting(
        "Effect of the walls; periodic ends a track there, absorb replaces the particle.",
        choices=("reflect", "periodic", "open", "absorb"), row="walls",
    ))  # fmt: skip
    birth_rate: float = declare(0.0, Setting(
        "Births in a frame, as a fraction of `particles`.", row="births", first=0.01, metavar="B"
    ))  # fmt: skip
    death_rate: float = declare(0.0, Setting(
        "Probability that a particle dies in a frame.", most=1, row="deaths", first=0.01, metavar="D"
    ))  # fmt: skip
    division_rate: float = declare(0.0, Setting(
        "Divisions of a particle per frame: one over its mean cycle time.",
        most=1, row="divisions", first=0.01, metavar="D",
    ))  # fmt: skip
    cycle_spread: float = declare(0.3, Setting(
        "For divisions: standard deviation of cycle times, relative to their mean.",
        least=0.01, row="spread of cycles", metavar="S",
    ))  # fmt: skip
    daughter_distance: float = declare(1.0, Setting(
        "For divisions: distance of two daughters in their first frame.",
        row="daughters apart", metavar="D",
    ))  # fmt: skip
    noise: tuple[float, float, float] = declare((0.0, 0.0, 0.0), Setting(
        "Standard deviation of the localisation error.", row="noise z, y, x", metavar="Z Y X"
    ))  # fmt: skip
    miss: float = declare(0.0, Setting(
        "Probability that a particle is not detected in a frame.",
        most=1, row="missed", further=False, first=0.01, metavar="M",
    ))  # fmt: skip
    clutter: float = declare(0.0, Setting(
        "False detections for each particle and frame.",
        row="false spots", further=False, first=0.01, metavar="C",
    ))  # fmt: skip
    snr: float = declare(4.0, Setting("For the movie: signal to noise.", row="signal to noise"))
    psf: tuple[float, float, float] = declare((1.0, 1.5, 1.5), Setting(
        "For the movie: standard deviation of a spot.", row="spot z, y, x", metavar="Z Y X"
    ))  # fmt: skip
    voxel: tuple[float, float, float] = declare((1.0, 1.0, 1.0), Setting(
        "For the movie: size of a voxel.", row="voxel z, y, x", metavar="Z Y X"
    ))  # fmt: skip
    frame_interval: float | None = declare(None, Setting(
        "For the movie: seconds between frames, stated in the file.", metavar="S"
    ))  # fmt: skip
    seed: int = declare(0, Setting("The same seed gives the same movie.", row="seed"))

    def walks(self) -> WalkSettings:
        """How the particles move."""
        from .walks import WalkSettings

        return WalkSettings(
            self._motion(), self.particles, self.frames, self.box, self.boundary, self.birth_rate,
            self.death_rate, self.seed, self.unit, self.division_rate, self.cycle_spread,
            self.daughter_distance,
        )  # fmt: skip

    def _motion(self) -> Motion:
        from .motions import BrownianWalk, OrnsteinUhlenbeckWalk, PersistentWalk

        match self.motion:
            case "persistent":
                return PersistentWalk(self.step, self.directionality)
            case "brownian":
                return BrownianWalk(self.step)
        return OrnsteinUhlenbeckWalk(self.step, self.persistence_time)

    def microscope(self) -> Microscope:
        """What is seen of them."""
        from .microscope import Microscope

        return Microscope(self.noise, self.miss, self.clutter)

    def camera(self) -> Camera:
        """How they are imaged."""
        from .camera import Camera

        camera = Camera.looking_at(self.box, psf=self.psf, snr=self.snr, spacing=self.voxel)
        return replace(camera, interval=self.frame_interval)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for run records."""
        values = dict(vars(self))
        if self.frame_interval is None:
            del values["frame_interval"]
        return values


@documented
@dataclass(frozen=True)
class ExperimentSettings:
    """What of an experiment is measured, and how; where None, the size is that of the experiment.

    Parameters
    ----------
    {settings}

    Raises
    ------
    SettingsError
        If a value is out of range.
    """

    quick: bool = declare(False, Setting("Fewer cells and smaller movies: takes seconds to minutes."))
    seeds: int | None = declare(None, Setting("Movies of each scene, or instances.", least=1, metavar="N"))
    frames: int | None = declare(None, Setting("Frames of each movie.", least=3, metavar="N"))
    particles: int | None = declare(None, Setting(
        "Particles in the first frame.", least=20, metavar="N"
    ))  # fmt: skip
    where: Mapping[str, str] = declare({}, Setting(
        "Only trials with this value of kappa, persistence, miss, …, linker or given (what the linker is "
        "given: nothing, the truth); several values with commas.",
        metavar="NAME=VALUE",
    ))  # fmt: skip
    tables: tuple[Path, ...] = declare((), Setting(
        "Table of an earlier run: its rows are used and not measured again.", option="--with", metavar="FILE"
    ))  # fmt: skip
    jobs: int = declare(1, Setting(
        "Processes that run trials in parallel; they do not change the result.", least=1, metavar="N"
    ))  # fmt: skip
    device: str = declare("cpu", Setting(
        "For tables of papers: CPU with sizes for minutes, or GPU with the paper's sizes.",
        choices=("cpu", "gpu"),
    ))  # fmt: skip
    sizes: tuple[int, ...] = declare((), Setting(
        "For tables of papers: sizes n of the problems.", metavar="N,N,…"
    ))  # fmt: skip

    def __post_init__(self) -> None:
        check_values(self)
