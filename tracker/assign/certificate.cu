// GPU kernels of the certificate. Twins of certificate_cpu.py for integer costs.
// No result depends on the order of threads: minima of integers are the same in any order.
// indptr (R+1,) i8; indices (P,) i4; values (P,) i4; duals i8.

// u_i := min(u_i, min_j (c_ij - v_j)). v (C,); written: u (R,).
extern "C" __global__ void lower_to_slack(const long long* indptr, const int* indices, const int* values,
                                          const long long* v, long long* u, long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows) return;
    long long least = u[i];
    for (long long p = indptr[i]; p < indptr[i + 1]; ++p) least = min(least, values[p] - v[indices[p]]);
    u[i] = least;
}

// Cost of each row's pair; counts the pairs that are not there and the columns that are there twice.
// col_of_row (R,) i4; cost (R,) i8; times (C,) i4 zero; wrong (2,) i4 zero: missing pairs, repeated columns.
extern "C" __global__ void look_up_pairs(const long long* indptr, const int* indices, const int* values,
                                         const int* col_of_row, long long* cost, int* times, int* wrong,
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
extern "C" __global__ void slacks(const long long* indptr, const int* indices, const int* values,
                                  const int* col_of_row, const long long* row_unmatched, const long long* u,
                                  const long long* v, long long* col_slack, long long* row_slack,
                                  long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows) return;
    long long least = row_unmatched[i] - u[i];
    for (long long p = indptr[i]; p < indptr[i + 1]; ++p) {
        int j = indices[p];
        if (j == col_of_row[i]) continue;
        long long slack = values[p] - u[i] - v[j];
        least = min(least, slack);
        if (slack < col_slack[j]) atomicMin(&col_slack[j], slack);
    }
    row_slack[i] = least;
}

// margin (R,): the two slacks of each matched row, zero where unmatched.
extern "C" __global__ void add_slacks(const int* col_of_row, const long long* col_slack,
                                      const long long* row_slack, long long* margin, long long rows) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < rows) margin[i] = col_of_row[i] < 0 ? 0 : row_slack[i] + col_slack[col_of_row[i]];
}
