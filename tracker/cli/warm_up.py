"""The command `outbid warm-up`: compile the kernels before their first use."""

from __future__ import annotations

import click

from .terminal import Stopwatch, common_options, compilation_ends_at_signals, progress_bar, say


@click.command(
    "warm-up",
    help="""Compile the kernels that track, detect, score and report use.

    \b
    Examples:
      outbid warm-up

    Compiled kernels are kept beside the package, or in the folder that NUMBA_CACHE_DIR names. They are
    compiled once on a machine and after each installation; without this command, at their first use.
    """,
)
@common_options
def warm_up() -> None:
    """Compile the kernels."""
    from ..compute import warming

    clock = Stopwatch()
    with progress_bar("Compiling") as bar, compilation_ends_at_signals():

        def show(kernel: str, done: int, total: int) -> None:
            if bar is not None:
                bar(done, total, f"Compiling: {kernel}")

        compiled = warming.warm_up(show)
    say(f"{compiled} kernels compiled, {clock.seconds:.1f} s." if compiled else "All kernels are compiled.")
