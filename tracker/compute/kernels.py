"""How the functions of ``*_cpu.py`` are compiled by Numba, and kept for the next run.

Only those modules import this one, for it imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from numba import njit

from .shipped import keep

Function = Callable[..., Any]
_NO_C_CALLS: dict[str, Any] = {"no_cfunc_wrapper": True}
_NO_CALLS: dict[str, Any] = {**_NO_C_CALLS, "no_cpython_wrapper": True}


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
        return keep(njit(nogil=True, error_model=error_model, **_NO_C_CALLS)(of))

    return compiled if function is None else compiled(function)


def inner_kernel(
    function: Function | None = None,
    /,
    *,
    error_model: Literal["python", "numpy"] = "python",
    fastmath: frozenset[str] = frozenset(),
    forceinline: bool = False,
) -> Function:
    """Compile a function that only other kernels call, without the wrapper for calls from Python.

    Numba's cache holds its machine code within that of its callers.

    Parameters
    ----------
    function, error_model
        As in `kernel`.
    fastmath : frozenset of str
        LLVM's flags of the operations on floating-point numbers.
    forceinline : bool
        Whether LLVM copies the function into its callers. Where Numba does so, before it infers types, the
        callers take longer to compile.
    """
    compiled = njit(
        nogil=True,
        error_model=error_model,
        fastmath=set(fastmath),
        forceinline=forceinline,
        **_NO_CALLS,
    )
    return compiled if function is None else compiled(function)
