// GPU kernels of sums by index. Twins of segments_cpu.py: each thread adds in the order of rows, so no result depends
// on the order of threads.

// Sums (N,) f8 of values (E,) f8 at link[start[i]:start[i + 1]]; start (N + 1,) i8, link (E,) i4.
extern "C" __global__ void sum_segments(long long count, const long long* start, const int* link,
                                        const double* values, double* sums) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    double total = 0;
    for (long long p = start[i]; p < start[i + 1]; ++p) total += values[link[p]];
    sums[i] = total;
}

// Each thread's sums of the weights (E,) f8 by index (E,) i4, of every `threads`-th row: table (threads, sums) f8,
// zero before.
extern "C" __global__ void sum_few(long long rows, int sums, const int* index, const double* weight, int threads,
                                   double* table) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    for (long long f = t; f < rows; f += threads) table[(long long)t * sums + index[f]] += weight[f];
}
