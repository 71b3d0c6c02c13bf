"""The kernels that commands use on a CPU, each with the types of its arguments: what `warm_up` compiles.

A line is a function of a module ``…_cpu`` and its arguments. ``i4``, ``i8``, ``f4``, ``f8``, ``u1`` and
``b1`` are numbers of so many bytes. ``f8:2`` is an array of two dimensions that is contiguous in C's order,
``f8~1`` one with strides, ``f8=1`` one that cannot be written. ``(f8:1,i4:1)`` is a tuple, a capitalised name
one of `learned.inference.records`. Tests compare the table with what the commands call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

SIGNATURES = """
assignment.bid_and_augment.bid i8:1 i4:1 i4:1 i8:1 i8 i8:1 i4:1 i8:1 i8 i4:1
assignment.bid_and_augment.bid i8:1 i4:1 f8:1 f8:1 f8 f8:1 i4:1 i8:1 i8 i4:1
assignment.bid_and_augment.bid i8:1 i4:1 i8:1 i8:1 i8 i8:1 i4:1 i8:1 i8 i4:1
assignment.bid_and_augment.augment i8:1 i4:1 i4:1 i8:1 i8 i8:1 i4:1 i8:1 i4:1
assignment.bid_and_augment.augment i8:1 i4:1 f8:1 f8:1 f8 f8:1 i4:1 i8:1 i4:1
assignment.bid_and_augment.augment i8:1 i4:1 i8:1 i8:1 i8 i8:1 i4:1 i8:1 i4:1
assignment.certificate.first_repeated_pair i8:1 i4:1 i8
assignment.certificate.lower_to_slack i8:1 i4:1 i4:1 i8:1 i8:1
assignment.certificate.lower_to_slack i8:1 i4:1 f8:1 f8:1 f8:1
assignment.certificate.lower_to_slack i8:1 i4:1 i8:1 i8:1 i8:1
assignment.certificate.look_up_pairs i8:1 i4:1 i4:1 i4:1 i8:1 i4:1
assignment.certificate.look_up_pairs i8:1 i4:1 f8:1 i4:1 f8:1 i4:1
assignment.certificate.look_up_pairs i8:1 i4:1 i8:1 i4:1 i8:1 i4:1
assignment.certificate.margins i8:1 i4:1 i4:1 i4:1 i8:1 i8:1 i8:1 i8:1 i8:1
assignment.matrix.lower_to_slack i8:2 i8:1 i8:1 i8 i8
assignment.matrix.lower_to_slack f8:2 f8:1 f8:1 i8 i8
assignment.matrix.nearest_of_rows i8:2 i8:1 i8:1 i8 i8 i4:2 i4:1 i8 i8
assignment.matrix.nearest_of_rows f8:2 f8:1 f8:1 i8 i8 i4:2 i4:1 i8 i8
assignment.matrix.nearest_of_cols i8:2 i8:1 i8:1 i8:2 i4:2 i4:1 i8 i8 i8
assignment.matrix.nearest_of_cols f8:2 f8:1 f8:1 f8:2 i4:2 i4:1 i8 i8 i8
assignment.dense.perfect._merge i4:2 i4:1 i4:2 i4:1 i8:1 i4:1
assignment.dense.perfect._add i4:2 i4:1 i8:1 i4:1 i8:1 i8:1 i4:1
assignment.dense.perfect.bid i8:1 i4:1 f8:1 f8:1 i4:1 i8:1 f8:1 f8 i8 i8
assignment.points.distances f8:2 f8:2 b1 f8:2 i8 i8
assignment.points.pairs f8:2 f8:2 b1 i8:1 i4:1 f8:1 i8 i8
detection.decision.fitted_mixture f8:1 f8:2 f8:1 f8 f8:2 f8 f8
detection.joint.joined f4:3 f4:3 f8:3 i8:1 f8 f8:2 f8:1 f4:3 i8:1 f8:1 f8:1 f8:1 f8:1
detection.response.local_scales f4:3 i8:1 f8:1 f8 f8 f8
detection.response.quantile f4:3 i8 f8
detection.joint.resolved f8:2 f8:1 f8:1
detection.joint.taken_out f4:3 f4:3 f4:3 f8:2 f8:1 f8:1 f8 (f8,f8,f8)
detection.response.peaks_above f4:3 f4 f4
detection.response.vertices f4:3 f4 i8:2
detection.response.scales_at f8:3 i8:1 f8:2
detection.fit.render (i8,i8,i8) f8:2 f8:1 f8
detection.fit.without f4:3 f8:2 f8:1 f8 (f8,f8,f8)
detection.fit.fit_spots f4:3 f4:3 f8:2 f8:2 f8:1 (f8,f8,f8,f8) f8 f8:1 f8:1 f8 i8 b1:1
detection.fit.errors_of f4:3 f4:3 f8:2 f8:1 (f8,f8,f8,f8) f8 f8:1
detection.transform.cosines f4:2 f4:2 b1
detection.stabilise.to_noise f4:1 f4:1 (f8,f8,f8)
detection.stabilise.to_grey f4:1 f4:1 (f8,f8,f8)
geometry.gating._sort_cells f8:2 i8:1 f8:1 f8:1 i8:1 i4:1 i8:1 f8:2
geometry.gating._count_pairs i8 i8 f8:2 i8:1 i8:1 f8:2 i8:1 i8:1 i8:1 i8:1 f8 i8:1
geometry.gating._fill_pairs i8 i8 f8:2 i8:1 i8:1 f8:2 i8:1 i8:1 i8:1 i8:1 f8 i8:1 i4:1 f8:1
learned.inference.filter.prepare_links i8 i8 (i4:1,i4:1,i4:1) f8:1 (f8:1,f8:1) f8:1 f8:2 f8 f4:1 f4:1 f4:1 f4:1
learned.inference.filter.filter_rows i8:2 Steps Places Direction Messages
learned.inference.encounters.follow_tracks i8 i8 (f8:2,f8:2,i8:1,i8:1) Steps f8:1 i8:1 i8:1 f8:1 f4:2 f4:4
learned.inference.encounters.may_exchange i8 i8 (f8:2,f8:2,i8:1,i8:1) Steps f8:1 f8 (i8:1,i8:1) i8:2 f8:1 f4:2 f4:4 b1:1
learned.inference.encounters.meet i8 i8 (f8:2,f8:2,i8:1,i8:1) Steps f8:1 f8 (i8:1,i8:1,b1:1) i8:2 i8:1 (f4:2,f4:4) i8 i8:1 f8:1
learned.inference.features.feature_filter i8:1 i8:1 i4:1 i4:1 i4:1 f4:1 f8:2 f8:2 f8:1 f8:1 f8:3
learned.inference.features.feature_ratio i8 i8 (i4:1,i4:1) i4:1 f8:2 f8:2 f8:1 f8:1 f8:3 f8:3 f8:2
learned.inference.powers.raised f8:1 f8
learned.inference.propagation.by_head i4:1 i8:1 i4:1
learned.inference.propagation.begin i8:1 i4:1 f8:1 f8:1 u1:1
learned.inference.propagation.compete i8 i8 i4:1 i8:1 i4:1 f8:1 f8:1 f8:1 f8:1 f8 u1:1 u1:1
learned.inference.smoother.future_as_observations i8 i8 Steps Messages f8:2
learned.inference.smoother.smooth_rows i8 i8 Steps Places Direction Direction Messages Messages f8:2 f8:1 Moments
learned.learn.field.surroundings i8 i8 i4:2 f8:2 f8:2 f8:1 i8 f8:3
learned.learn.field.products_of f8:3 f8:2 f8:1 f8:3
learned.learn.field.mean_steps i8 i8 f8:2 (i4:1,i4:1,i8:1) f8:1 f8 f8:2 f8:1
learned.learn.ladder.square_distances f8:2 f8:2 f8:1 i4:1 i4:1 f8:1
learned.learn.ladder.link_weights f8:1 f8:1 f8:1 i8 f8:1 f8:1
learned.learn.m_steps.add_moments (f4:3,f4:4,f4:2) f8:1 b1:1 i4:1 i8:1 f8:1 f8:1 i8:1 f8:2 (f8:3,f8:4,f8:2,f8:1,f8:2)
geometry.neighbours.nearest_of_rows i8 i8 i8:1 i8:1 f8:2 i8 f8 i4:2 f8:2
particles.tracks.first_wrong i8:2 i4:1
particles.tracks.number_chains i8:2 i8:1
particles.tracks.number_tracks i8:1 i8:1 i8:1
particles.tracks.follow_labels i8:1 i4:1 i8:1 i8:1 i8:1
particles.tracks.follow_labels i8=1 i4:1 i8:1 i8:1 i8:1
particles.tracks.at_targets i8:2 f8:1 f8:1 u1:1
"""

RECORDS = {
    "Steps": "f8:2 f8:1 f8:1 f8:1 f8:1 f8:1 f8:1",
    "Places": "i8:1 f4:2 f4:1 f4:1 i4:1",
    "Direction": "i8:1 i4:1 i8:1 i4:1 i4:1 i4:1 i8 f8:1 f4:1 i8",
    "Messages": "f8:2 f4:2 f4:4 f8:1 f8:1",
    "Moments": "f4:3 f4:4 f4:2",
}
"""Types of the fields of named tuples."""

SECONDS = {
    "detection.joint": 9.5,
    "detection.decision": 2.0,
    "learned.inference.encounters": 7.0,
    "assignment.bid_and_augment": 6.1,
    "detection.response": 5.0,
    "detection.fit": 7.0,
    "learned.inference.smoother": 4.3,
    "learned.inference.filter": 3.1,
    "geometry.neighbours": 2.8,
    "assignment.matrix": 2.3,
    "geometry.gating": 2.1,
    "assignment.certificate": 1.9,
    "assignment.dense.perfect": 1.9,
    "learned.learn.field": 1.7,
    "learned.inference.features": 1.1,
    "particles.tracks": 1.0,
    "learned.inference.propagation": 0.9,
    "learned.learn.ladder": 0.6,
    "learned.learn.m_steps": 0.5,
    "assignment.points": 0.4,
    "detection.transform": 1.4,
    "detection.stabilise": 0.4,
}
"""Seconds of a processor that the kernels of a module in the table take to compile; of others, `LITTLE`."""

LITTLE = 0.2

LATE = """
learned.inference.smoother.smooth_rows i8 i8 Steps Places Direction Direction Messages Messages f8:2 f8:1 Moments
assignment.bid_and_augment.augment i8:1 i4:1 f8:1 f8:1 f8 f8:1 i4:1 i8:1 i4:1
assignment.bid_and_augment.bid i8:1 i4:1 f8:1 f8:1 f8 f8:1 i4:1 i8:1 i8 i4:1
learned.inference.smoother.future_as_observations i8 i8 Steps Messages f8:2
learned.learn.m_steps.add_moments (f4:3,f4:4,f4:2) f8:1 b1:1 i4:1 i8:1 f8:1 f8:1 i8:1 f8:2 (f8:3,f8:4,f8:2,f8:1,f8:2)
assignment.certificate.lower_to_slack i8:1 i4:1 f8:1 f8:1 f8:1
assignment.certificate.look_up_pairs i8:1 i4:1 f8:1 i4:1 f8:1 i4:1
"""
"""What learned linking calls last, so that another process can compile it meanwhile."""


@dataclass(frozen=True)
class Signature:
    """A line of the table.

    Attributes
    ----------
    module : str
        Without ``outbid.`` and ``_cpu``.
    function : str
    arguments : str
    """

    module: str
    function: str
    arguments: str

    @classmethod
    def of(cls, line: str) -> Signature:
        """Read a line.

        Examples
        --------
        >>> Signature.of("inference.powers.raised f8:1 f8").function
        'raised'
        """
        name, _, arguments = line.partition(" ")
        module, _, function = name.rpartition(".")
        return cls(module, function, arguments)

    def __str__(self) -> str:
        return f"{self.name} {self.arguments}"

    @property
    def kernel(self) -> Any:
        """The compiled function."""
        return getattr(import_module(f"outbid.{self.module}_cpu"), self.function)

    @property
    def name(self) -> str:
        """Module and function."""
        return f"{self.module}.{self.function}"

    @property
    def is_kept(self) -> bool:
        """Whether the kernel need not be compiled: it was, or a cache holds it."""
        kernel = self.kernel
        if not hasattr(kernel, "overloads") or self.types in kernel.overloads:
            return True
        return kernel._cache.load_overload(self.types, kernel.targetctx) is not None

    @property
    def types(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        return tuple(map(_type_of, self.arguments.split()))

    def compile(self) -> bool:
        """Compile the kernel, or read it from a cache; returns whether it was compiled."""
        kernel = self.kernel
        if not hasattr(kernel, "overloads"):  # NUMBA_DISABLE_JIT is set
            return False
        before = sum(kernel.stats.cache_misses.values())
        kernel.compile(self.types)
        return bool(sum(kernel.stats.cache_misses.values()) > before)


def signatures_in(table: str) -> tuple[Signature, ...]:
    """All lines of a table."""
    return tuple(map(Signature.of, table.strip().splitlines()))


def halves(signatures: Sequence[Signature]) -> tuple[list[Signature], list[Signature]]:
    """Division into two parts that take about as long; the kernels of a module stay together.

    Those of a module share functions, which two processes would compile twice.

    Examples
    --------
    >>> one, other = halves(signatures_in(SIGNATURES))
    >>> set(one) & set(other)
    set()
    """
    seconds = {one.module: SECONDS.get(one.module, LITTLE) for one in signatures}
    taken: tuple[list[str], list[str]] = ([], [])
    for module in sorted(seconds, key=lambda name: (-seconds[name], name)):
        min(taken, key=lambda names: sum(seconds[name] for name in names)).append(module)
    first, second = ([one for name in names for one in signatures if one.module == name] for names in taken)
    return first, second


def _type_of(text: str) -> Any:
    types: Any = import_module("numba").types
    if text.startswith("("):
        return types.BaseTuple.from_types(tuple(map(_type_of, text[1:-1].split(","))))
    if text in RECORDS:
        record = getattr(import_module("outbid.learned.inference.records"), text)
        return types.BaseTuple.from_types(tuple(map(_type_of, RECORDS[text].split())), record)
    dtype = types.boolean if text[:2] == "b1" else getattr(types, text[:2])
    if len(text) == 2:
        return dtype
    layout, dimensions = "A" if text[2] == "~" else "C", int(text[3])
    return types.Array(dtype, dimensions, layout, readonly=text[2] == "=")
