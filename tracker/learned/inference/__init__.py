"""Inference: the posterior over links under a model.

`records`         arguments of the kernels, as named tuples
`blocks`          blocks of rows for threads
`candidates`      candidate links in compressed rows and columns, and their search
`jpda`            one sweep: filters, smoother, belief propagation (kernels in `…_cpu`)
`posterior`       marginals of links; probabilities of death, birth and clutter; moments
`decide`          links of maximum expected F1, by exact assignment
`encounters`      links where tracks meet, by sums over exchanges of whole tracks

J. Williams and R. Lau, Approximate evaluation of marginal association probabilities with belief
propagation, IEEE Trans. Aerospace and Electronic Systems 50, 2014. J. Williams and R. Lau, Multiple scan
data association by convex variational inference, arXiv 1607.07942.
"""
