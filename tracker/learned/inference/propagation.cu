// GPU kernels of belief propagation. Twins of propagation_cpu.py; each thread writes the links of its segment alone,
// from what the launch before it wrote: no result depends on the order of threads.

// Links that are alone in their segment: R (E,) f8 is the weight n (N,) f8 of none, and moved (E,) u1 is 0. start
// (N + 1,) i8 and link (E,) i4 are the segments.
extern "C" __global__ void begin(long long count, const long long* start, const int* link, const double* n, double* R,
                                 unsigned char* moved) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count || start[i + 1] - start[i] != 1) return;
    R[link[start[i]]] = n[i], moved[link[start[i]]] = 0;
}

// One half round over segments some[first:last], as propagation_cpu.compete; moves (1,) i4 becomes 1 if a link moved.
// some (S,) i4; start (N + 1,) i8, link (E,) i4; G, R, C (E,), n (N,) f8; moved, seen (E,) u1.
extern "C" __global__ void compete(long long first, long long last, const int* some, const long long* start,
                                   const int* link, const double* G, const double* n, double* R, const double* C,
                                   double omega, unsigned char* moved, const unsigned char* seen, int* moves) {
    const double counts = 1e-3, tolerance = 1e-3;
    long long k = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k >= last) return;
    int i = some[k];
    double total = n[i];
    bool still = true, any = false;
    for (long long p = start[i]; p < start[i + 1] && still; ++p) still = !(moved[link[p]] || seen[link[p]]);
    if (still) return;
    for (long long p = start[i]; p < start[i + 1]; ++p) {
        int f = link[p];
        total += G[f] / C[f] * exp2((1 - omega) * log2(R[f] * C[f]));
    }
    for (long long p = start[i]; p < start[i + 1]; ++p) {
        int f = link[p];
        double pull = G[f] / C[f] * exp2((1 - omega) * log2(R[f] * C[f])), left = fmax(total - pull, n[i]);
        bool now = pull > counts * total && fabs(left - R[f]) > tolerance * left;
        moved[f] = now, R[f] = left, any |= now;
    }
    if (any) atomicOr(moves, 1);
}
