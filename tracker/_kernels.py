"""How the functions of ``*_cpu.py`` are compiled by Numba, and kept for the next run.

Only those modules import this one, for it imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from numba import njit

from ._shipped import keep

Function = Callable[..., Any]


def kernel(
    function: Function | None = None, /, *, error_model: Literal["python", "numpy"] = "python"
) -> Function:
    """Compile a function that Python calls.

    Parameters
    ----------
    function : callable, optional
        Not given where the decorator has options.
    error_model : {"python", "numpy"}
        Whether a division by zero raises, or gives inf or nan, which is quicker.
    """

    def compiled(of: Function) -> Function:
        return keep(njit(nogil=True, error_model=error_model)(of))

    return compiled if function is None else compiled(function)


def inner_kernel(
    function: Function | None = None,
    /,
    *,
    error_model: Literal["python", "numpy"] = "python",
    fastmath: frozenset[str] = frozenset(),
    inline: Literal["never", "always"] = "never",
    forceinline: bool = False,
) -> Function:
    """Compile a function that only other kernels call.

    Parameters
    ----------
    function, error_model
        As in `kernel`.
    fastmath : frozenset of str
        LLVM's flags of the operations on floating-point numbers.
    inline : {"never", "always"}
        Whether Numba copies the function into its callers before it infers types.
    forceinline : bool
        Whether LLVM copies the function into its callers.
    """
    compiled = njit(
        nogil=True,
        cache=True,
        error_model=error_model,
        fastmath=set(fastmath),
        inline=inline,
        forceinline=forceinline,
    )
    return compiled if function is None else compiled(function)
