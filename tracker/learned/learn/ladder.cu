// GPU kernels of the mixture of step scales. Twins of ladder_cpu.py: each thread adds its own pairs in their order, so
// no result depends on the order of threads.

#ifndef SCALES  // the launcher gives it to the compiler
#define SCALES 11
#endif

// square (E,) f8 by position, expected (N, axes), intervals (N,) f8; tail, head (E,) i4.
extern "C" __global__ void square_distances(long long links, int axes, const double* position, const double* expected,
                                            const double* intervals, const int* tail, const int* head,
                                            double* square) {
    long long f = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (f >= links) return;
    long long i = tail[f], j = head[f];
    double total = 0;
    for (int d = 0; d < axes; ++d) {
        double u = position[j * axes + d] - expected[i * axes + d];
        total += u * u;
    }
    square[f] = total / intervals[i];
}

// Of every so many pairs, counts (threads, SCALES) f8: expected links of each scale, over its share, by thread. Of all,
// ratio (E,) f8, if `every` is 1. square, prior (E,), share (SCALES,) f8.
extern "C" __global__ void link_weights(long long links, const double* square, const double* prior, const double* share,
                                        int every, int threads, double* counts, double* ratio) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    double own[SCALES];
    for (int k = 0; k < SCALES; ++k) own[k] = 0;
    for (long long f = (long long)t * every; f < links; f += (long long)threads * every) {
        double first = exp(-0.5 * square[f]), value = first, mixed = share[0] * first;
        for (int k = 1; k < SCALES; ++k) value *= value, mixed += share[k] * value;
        double r = prior[f] * mixed, each = prior[f] / (1 + r);
        if (every == 1) ratio[f] = r;
        value = first;
        own[0] += each * value;
        for (int k = 1; k < SCALES; ++k) value *= value, own[k] += each * value;
    }
    for (int k = 0; k < SCALES; ++k) counts[(long long)t * SCALES + k] = own[k];
}
