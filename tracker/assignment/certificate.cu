// GPU kernels of the certificate. Twins of certificate_cpu.py.
// No result depends on the order of threads: minima are the same in any order.
//
// Compiled for one kind of costs at a time: COST is the type of a stored cost, KEY that of duals.
// indptr (R+1,) i8; indices (P,) i4; values (P,) COST.
typedef int i4;
typedef long long i8;
typedef float f4;
typedef double f8;
#ifndef COST
#define COST i4
#define KEY i8
#endif

__device__ __forceinline__ void lower(i8* at, i8 value) { atomicMin(at, value); }
__device__ __forceinline__ void lower(f8* at, f8 value) {
    unsigned long long *word = (unsigned long long*)at, seen = *word;
    while (value < __longlong_as_double((i8)seen)) {
        unsigned long long before = atomicCAS(word, seen, (unsigned long long)__double_as_longlong(value));
        if (before == seen) return;
        seen = before;
    }
}

constexpr int kLanes = 8;  // threads that read one row together

// u_i := min(u_i, min_j (c_ij - v_j)). v (C,); written: u (R,).
extern "C" __global__ void lower_to_slack(const long long* indptr, const int* indices, const COST* values,
                                          const KEY* v, KEY* u, long long rows) {
    long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / kLanes;
    if (i >= rows) return;
    int lane = threadIdx.x % kLanes;
    unsigned together = ((1u << kLanes) - 1) << (threadIdx.x % 32 - lane);
    KEY least = u[i];
    for (long long p = indptr[i] + lane; p < indptr[i + 1]; p += kLanes) least = min(least, values[p] - v[indices[p]]);
    for (int step = 1; step < kLanes; step *= 2) least = min(least, __shfl_xor_sync(together, least, step));
    if (lane == 0) u[i] = least;
}

// Cost of each row's pair; counts the pairs that are not there and the columns that are there twice.
// col_of_row (R,) i4; cost (R,) KEY, left as it is where unmatched; times (C,) i4 zero: how often each column is taken;
// wrong (2,) i4 zero: missing pairs, repeated columns.
extern "C" __global__ void look_up_pairs(const long long* indptr, const int* indices, const COST* values,
                                         const int* col_of_row, KEY* cost, int* times, int* wrong,
                                         long long rows) {
    long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / kLanes;
    if (i >= rows || col_of_row[i] < 0) return;
    int lane = threadIdx.x % kLanes, column = col_of_row[i];
    unsigned together = ((1u << kLanes) - 1) << (threadIdx.x % 32 - lane);
    bool found = false;
    for (long long p = indptr[i] + lane; p < indptr[i + 1]; p += kLanes)
        if (indices[p] == column) cost[i] = values[p], found = true;
    found = __any_sync(together, found);
    if (lane) return;
    if (!found) atomicAdd(&wrong[0], 1);
    if (atomicAdd(&times[column], 1)) atomicAdd(&wrong[1], 1);
}

// Sums of up to four arrays. first, … fourth (N,) i8; length (4,) i8 is given one by one; sum (4,) u8 zero.
extern "C" __global__ void add_up(const long long* first, const long long* second, const long long* third,
                                  const long long* fourth, long long first_length, long long second_length,
                                  long long third_length, long long fourth_length, unsigned long long* sum) {
    const long long* values[] = {first, second, third, fourth};
    const long long length[] = {first_length, second_length, third_length, fourth_length};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        unsigned long long part = 0;
        for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < length[k];
             i += gridDim.x * (long long)blockDim.x)
            part += values[k][i];
        for (int step = 16; step; step /= 2) part += __shfl_xor_sync(~0u, part, step);
        if (threadIdx.x % 32 == 0 && part) atomicAdd(&sum[k], part);
    }
}

// Least slack among each row's other pairs and, by minima over rows, among each column's.
// row_unmatched, u (R,); v (C,); col_slack (C,) starts at col_unmatched - v; row_slack (R,).
extern "C" __global__ void slacks(const long long* indptr, const int* indices, const COST* values,
                                  const int* col_of_row, const KEY* row_unmatched, const KEY* u,
                                  const KEY* v, KEY* col_slack, KEY* row_slack,
                                  long long rows) {
    long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / kLanes;
    if (i >= rows) return;
    int lane = threadIdx.x % kLanes, column = col_of_row[i];
    unsigned together = ((1u << kLanes) - 1) << (threadIdx.x % 32 - lane);
    KEY own = u[i], least = row_unmatched[i] - own;
    for (long long p = indptr[i] + lane; p < indptr[i + 1]; p += kLanes) {
        int j = indices[p];
        if (j == column) continue;
        KEY slack = values[p] - own - v[j];
        least = min(least, slack);
        if (slack < col_slack[j]) lower(&col_slack[j], slack);
    }
    for (int step = 1; step < kLanes; step *= 2) least = min(least, __shfl_xor_sync(together, least, step));
    if (lane == 0) row_slack[i] = least;
}

// margin (R,): the two slacks of each matched row, zero where unmatched.
extern "C" __global__ void add_slacks(const int* col_of_row, const KEY* col_slack,
                                      const KEY* row_slack, KEY* margin, long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < rows) margin[i] = col_of_row[i] < 0 ? 0 : row_slack[i] + col_slack[col_of_row[i]];
}
