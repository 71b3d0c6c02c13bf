"""Scenes: movies described by what makes them hard to link, with lengths in units of density^(-1/3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, sqrt

from outbid.errors import SettingsError
from outbid.particles.tracks import Tracks

from .microscope import Microscope, observe
from .motions import AutoregressiveWalk, BrownianWalk, Motion, OrnsteinUhlenbeckWalk, PersistentWalk
from .walks import WalkSettings
from .walks import walk as walk_of

NEAREST = 0.55396
"""Mean distance to the nearest neighbour in units of density^(-1/3): Γ(4/3) (3/4π)^(1/3)."""


@dataclass(frozen=True)
class Scene:
    """Settings of one kind of simulated movie; lengths are in units of density^(-1/3).

    Parameters
    ----------
    kappa : float
        Standard deviation of a step along one axis times density^(1/3); a step is that of one frame.
    persistence : float
        Persistence of the velocity; its meaning and range depend on `walk`.
    walk : {"fürth", "autoregressive", "vasconcelos"}
        `OrnsteinUhlenbeckWalk` with a persistence in frames (0 is a `BrownianWalk`), `AutoregressiveWalk`
        with a memory, or `PersistentWalk` with a level; the last two from 0 to 1.
    miss : float
        Probability that a particle is not detected in a frame.
    clutter : float
        False detections for each particle and frame.
    density : float
        Particles per unit of volume.
    noise : float
        Standard deviation of the localisation error along each axis, in units of density^(-1/3).
    turnover : float
        Share of the particles that die in a frame; as many are born.
    particles : int
        Particles in the first frame, in a cube with reflecting walls.
    frames : int
        Number of frames.

    Raises
    ------
    SettingsError
        If the density is not above 0 or the walk unknown, or as `WalkSettings` and `Microscope` say.

    Examples
    --------
    >>> scene = Scene(kappa=0.1, density=8.0, particles=1000, frames=5)
    >>> scene.length_unit, scene.side
    (0.5, 5.0)
    >>> scene.film(seed=1).track_count > 1000
    True
    """

    kappa: float
    persistence: float = 0.0
    miss: float = 0.0
    clutter: float = 0.0
    density: float = 1.0
    noise: float = 0.03
    turnover: float = 0.02
    walk: str = "fürth"
    particles: int = 1000
    frames: int = 20

    def __post_init__(self) -> None:
        if not self.density > 0:
            raise SettingsError(f"density is {self.density}; it must be above 0.")
        if self.walk not in _WALKS:
            raise SettingsError(f"There is no walk {self.walk!r}; choose one of {', '.join(_WALKS)}.")

    @property
    def length_unit(self) -> float:
        """The unit of `kappa`, `noise` and all other lengths of a scene: density^(-1/3)."""
        return float(self.density ** (-1 / 3))

    @property
    def side(self) -> float:
        """Length of the box, the same along z, y and x."""
        return self.length_unit * round(self.particles ** (1 / 3), 12)

    @property
    def motion(self) -> Motion:
        """Model by which the particles of this scene move."""
        return _WALKS[self.walk](self.kappa * self.length_unit, self.persistence)

    def film(self, seed: int) -> Tracks:
        """Detections of such a movie, with the true links."""
        box, rate = (self.side, self.side, self.side), self.turnover
        walks = WalkSettings(self.motion, self.particles, self.frames, box, "reflect", rate, rate, seed)
        microscope = Microscope((self.noise * self.length_unit,) * 3, self.miss, self.clutter)
        return observe(walk_of(walks), microscope, box=box, seed=seed)


def _fuerth(sigma: float, persistence: float) -> Motion:
    if persistence == 0:
        return BrownianWalk(sigma)
    # Mean squared displacement of one frame at speed 1, over the three axes.
    squared = 2 * persistence * (1 + persistence * expm1(-1 / persistence))
    return OrnsteinUhlenbeckWalk(sigma * sqrt(3 / squared), persistence)


_WALKS: dict[str, Callable[[float, float], Motion]] = {
    "fürth": _fuerth,
    "autoregressive": AutoregressiveWalk,
    # All its steps have the same length where the level is 0 or 1.
    "vasconcelos": lambda sigma, level: PersistentWalk(sqrt(3) * sigma, level),
}
