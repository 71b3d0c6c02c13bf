"""Compile the kernels that commands use, before their first use, in two processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from .compiling import SecondProcess, without_collections
from .signatures import SIGNATURES, Signature, halves, signatures_in


def warm_up(progress: Callable[[str, int, int], None] | None = None, *, processes: int = 2) -> int:
    """Compile the kernels of all commands that run on a CPU.

    Compiled kernels are kept beside the package (or in ``NUMBA_CACHE_DIR``), so this is done once on a
    machine and after each installation.

    Parameters
    ----------
    progress : callable, optional
        Called with (name of a kernel, kernels done, kernels in all) when a kernel is compiled, or was so
        before.
    processes : int
        1 or 2.

    Returns
    -------
    int
        Number of kernels that were compiled: 0 if all were so before.

    Examples
    --------
    >>> warm_up() >= 0
    True
    """
    return compile_all(signatures_in(SIGNATURES), progress, processes=processes)


def compile_all(
    signatures: Sequence[Signature],
    progress: Callable[[str, int, int], None] | None = None,
    *,
    processes: int = 2,
) -> int:
    """Compile the kernels that no cache holds; returns how many.

    What the second process leaves undone, since it could not start or ended early, is compiled here.
    """
    missing = [one for one in signatures if not one.is_kept]
    count, lock = len(signatures) - len(missing), Lock()

    def done(line: str) -> None:
        nonlocal count
        with lock:
            count += 1
            if progress is not None:
                progress(Signature.of(line).name, count, len(signatures))

    own, others = halves(missing) if processes > 1 else (missing, [])
    with SecondProcess(list(map(str, others)), done) as second:
        _compile(own, done)
        finished = second.wait()
    _compile([one for one in others if str(one) not in finished], done)
    return len(missing)


def _compile(signatures: Sequence[Signature], done: Callable[[str], None]) -> None:
    for one in signatures:
        with without_collections():
            one.compile()
        done(str(one))
