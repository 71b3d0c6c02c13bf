"""Shards: one matrix divided over several GPUs, or over parts that run in turn (Date & Nagi 2016, section 5).

Every shard runs the same program on its own rows or columns. There is no root process as in the paper: each
shard repeats the root's steps with the same result, because a fixed rule decides ties.

`communicator`   three calls (gather, least, total); `Alone`, `Virtual`, and threads that run shards
`nccl`           the same between GPUs, of one host or of several
`blocks`         readers of rows and columns: arrays, .npy files, Zarr, points
`search`         a Hungarian search by one shard: reduction, search and proof
`tree`           columns divided; `tree_cpu` and `tree_gpu` are its kernels
`classical`      rows divided; `classical_device`
`state`          what every shard keeps and counts
`sparsified`     rows divided; the candidates are alike in all shards
`division`       a solver for `assign`, whose matrix is divided
"""

from __future__ import annotations

from .division import divided

__all__ = ["divided"]
