"""Inference: the posterior over links under a model.

`records`         arguments of the kernels, as named tuples
`blocks`          blocks of rows for threads
`candidates`      candidate links in compressed rows and columns, and their search
`jpda`            one sweep: filters, smoother, belief propagation (kernels in `…_cpu`)
`posterior`       marginals of links; probabilities of death, birth and clutter; moments
`decide`          links of maximum expected F1, by exact assignment
"""
