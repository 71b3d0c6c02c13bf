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

// u_i := min(u_i, min_j (c_ij - v_j)). v (C,); written: u (R,).
extern "C" __global__ void lower_to_slack(const long long* indptr, const int* indices, const COST* values,
                                          const KEY* v, KEY* u, long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows) return;
    KEY least = u[i];
    for (long long p = indptr[i]; p < indptr[i + 1]; ++p) least = min(least, values[p] - v[indices[p]]);
    u[i] = least;
}

// Cost of each row's pair; counts the pairs that are not there and the columns that are there twice.
// col_of_row (R,) i4; cost (R,) KEY; times (C,) i4 zero; wrong (2,) i4 zero: missing pairs, repeated columns.
extern "C" __global__ void look_up_pairs(const long long* indptr, const int* indices, const COST* values,
                                         const int* col_of_row, KEY* cost, int* times, int* wrong,
                                         long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows || col_of_row[i] < 0) return;
    if (atomicAdd(&times[col_of_row[i]], 1)) atomicAdd(&wrong[1], 1);
    for (long long p = indptr[i]; p < indptr[i + 1]; ++p)
        if (indices[p] == col_of_row[i]) {
            cost[i] = values[p];
            return;
        }
    atomicAdd(&wrong[0], 1);
}

// Least slack among each row's other pairs and, by minima over rows, among each column's.
// row_unmatched, u (R,); v (C,); col_slack (C,) starts at col_unmatched - v; row_slack (R,).
extern "C" __global__ void slacks(const long long* indptr, const int* indices, const COST* values,
                                  const int* col_of_row, const KEY* row_unmatched, const KEY* u,
                                  const KEY* v, KEY* col_slack, KEY* row_slack,
                                  long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows) return;
    KEY least = row_unmatched[i] - u[i];
    for (long long p = indptr[i]; p < indptr[i + 1]; ++p) {
        int j = indices[p];
        if (j == col_of_row[i]) continue;
        KEY slack = values[p] - u[i] - v[j];
        least = min(least, slack);
        if (slack < col_slack[j]) lower(&col_slack[j], slack);
    }
    row_slack[i] = least;
}

// margin (R,): the two slacks of each matched row, zero where unmatched.
extern "C" __global__ void add_slacks(const int* col_of_row, const KEY* col_slack,
                                      const KEY* row_slack, KEY* margin, long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < rows) margin[i] = col_of_row[i] < 0 ? 0 : row_slack[i] + col_slack[col_of_row[i]];
}
