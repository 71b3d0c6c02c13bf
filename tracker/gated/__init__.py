"""Linking with a gate: frame to frame by optimal assignment, then over gaps.

`matching`  matches two point clouds: gate, cost, assignment
`linking`   links consecutive frames
`pins`      rows that pins name, with chains of the cheapest links
`gaps`      links ends of tracks to later starts
`batches`   divides a movie into batches that fit the memory of a GPU
"""
