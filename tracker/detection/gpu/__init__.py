"""Detection on a GPU: many frames of one shape at a time, from the upload on; only spots come back.

`search`    frames to candidates: which are searched here, tiles, batches
`light`     upload, grey values and units of the camera's noise; light of spots taken out
`modes`     cosine transforms as products of matrices, spectra, whitened filters
`response`  noise scales and maxima of responses
`joint`     the joint fit of all spots, in passes and rounds
`fit`       the last fit in grey values

Each has its kernels in a .cu file of its name. The steps, constants and order of spots are those of the CPU's
modules in the folder above; what was not measured or is saturated is repaired there.
"""
