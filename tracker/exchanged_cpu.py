"""CPU kernels of exchanged. Serial, without the GIL; no result depends on the order of threads."""

# mypy: ignore-errors
# Numba infers the types, by rules of its own.
from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def near_in_frame(position, frame, along, radius, row, col):  # pragma: no cover
    """Pairs of detections of one frame that are no farther apart, each once.

    position (K, A) f8, frame (K,) i8, both by frame, then along the axis `along`; radius.
    Written as far as there is room: row, col (P,) i8. Returns how many there are.
    """
    found, (count, axes) = 0, position.shape
    for i in range(count):
        for j in range(i + 1, count):
            if position[j, along] - position[i, along] > radius or frame[j] != frame[i]:
                break
            far = 0.0
            for axis in range(axes):
                far += (position[j, axis] - position[i, axis]) ** 2
            if far <= radius * radius:
                if found < len(row):
                    row[found], col[found] = i, j
                found += 1
    return found
