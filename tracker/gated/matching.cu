// GPU kernels of match. Twins of matching_cpu.py: the same bits.
// No result depends on the order of threads: every thread writes its own places.

// Costs in integer units. distance2 (P,) f8; cost (P,) i4.
extern "C" __global__ void round_costs(const double* distance2, long long pairs, int squared, double unit, int* cost) {
    long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (p < pairs) cost[p] = (int)rint((squared ? distance2[p] : sqrt(distance2[p])) / unit);
}

// The matching as the points were given. row_order, col_of_row (R,), col_order (C,) i4; margin (R,) i8; written:
// target (R,) i4, -1 where unmatched; given_margin (R,) i8; found (R + 1,) i8, in place i + 1 whether row i is matched.
extern "C" __global__ void put_back(const int* row_order, const int* col_order, const int* col_of_row,
                                    const long long* margin, long long rows, int* target, long long* given_margin,
                                    long long* found) {
    long long r = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (r == 0) found[0] = 0;
    if (r >= rows) return;
    int column = col_of_row[r], row = row_order[r];
    target[row] = column < 0 ? -1 : col_order[column];
    given_margin[row] = margin[r];
    found[row + 1] = column >= 0;
}

// The pairs alone. source (R, 3), points of the targets (C, 3) f8; place (R + 1,) i8; written: source_row, target_row
// (M,) i8; cost and scaled_margin (M,) f8.
extern "C" __global__ void gather_pairs(const double* source, const double* target_point, const int* target,
                                        const long long* given_margin, const long long* place, long long rows,
                                        int squared, double unit, long long* source_row, long long* target_row,
                                        double* cost, double* scaled_margin) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows || target[i] < 0) return;
    long long m = place[i], j = target[i];
    double z = source[3 * i] - target_point[3 * j], y = source[3 * i + 1] - target_point[3 * j + 1],
           x = source[3 * i + 2] - target_point[3 * j + 2];
    double distance2 = __dadd_rn(__dadd_rn(__dmul_rn(z, z), __dmul_rn(y, y)), __dmul_rn(x, x));
    source_row[m] = i, target_row[m] = j;
    cost[m] = squared ? distance2 : sqrt(distance2);
    scaled_margin[m] = (double)given_margin[i] * unit;
}
