"""Dense matrices and point sets as sparse problems.

`sparsified`  few candidates for each row and column, then a check of all other pairs
`core`        the sparse problem and its duals
`perfect`     bids for perfect matchings
`monge`       matrices that sorting solves
"""
