"""The algorithms of the papers, and the references that they are compared with.

`auction`           Vasconcelos & Rosenhahn (2009)
`greedy_switching`  Roverso et al.
`hungarian`         Date & Nagi (2016); `shards` divides a matrix between several GPUs
`jonker_volgenant`  SciPy's solvers
`greedy`            nearest first
"""
