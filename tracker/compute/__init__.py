"""What computes: arrays, kernels for CPU and GPU, threads, and how long it takes.

`arrays`      where arrays live and what works on them; the only module that imports CuPy
`cuda`        .cu files compiled and launched
`threads`     threads of the host
`processes`   a process for each thread, where Python's lock would be waited for
`streams`     threads with a stream of their own on a GPU
`timing`      seconds of stages
`interrupt`   a signal that asks for the end, looked at between stages
`tolerances`  what is so little that it does not count, and rounds of iterations
`kernels`     how the functions of ``…_cpu.py`` are compiled; only they import it
`signatures`  the kernels of all commands, with the types of their arguments
`compiling`   reports that kernels are compiled, which their first use does, and divides the work
`warming`     compiles all kernels before their first use
`shipped`     compiled kernels that a wheel brings
"""
