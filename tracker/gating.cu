// GPU kernels of gating. Twins of gating_cpu.py: the same pairs in the same order.
// No result depends on the order of threads: every thread writes its own row.

// Least and greatest coordinate that each block of threads sees; the host takes the extremes of those.
// point (N, 3) f8; bounds (blocks, 2, 3) f8.
extern "C" __global__ void bounds(const double* point, long long count, double* bounds) {
    __shared__ double extreme[6][32];
    double value[6] = {1e308, 1e308, 1e308, -1e308, -1e308, -1e308};
    long long stride = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += stride)
        for (int axis = 0; axis < 3; ++axis) {
            double x = point[3 * i + axis];
            value[axis] = fmin(value[axis], x), value[3 + axis] = fmax(value[3 + axis], x);
        }
    for (int k = 0; k < 6; ++k) {
        for (int step = 16; step; step /= 2) {
            double other = __shfl_xor_sync(~0u, value[k], step);
            value[k] = k < 3 ? fmin(value[k], other) : fmax(value[k], other);
        }
        if (threadIdx.x % 32 == 0) extreme[k][threadIdx.x / 32] = value[k];
    }
    __syncthreads();
    if (threadIdx.x >= 6) return;
    double all = extreme[threadIdx.x][0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp)
        all = threadIdx.x < 3 ? fmin(all, extreme[threadIdx.x][warp]) : fmax(all, extreme[threadIdx.x][warp]);
    bounds[6 * blockIdx.x + threadIdx.x] = all;
}

// Cell key of every point: block * cells + linear cell, one empty cell at either end of an axis.
// point (N, 3) f8; block_start (B+1,) i8; origin, inverse edge and size (cells) along z, y, x; key (N,) i8.
extern "C" __global__ void cell_keys(const double* point, long long count, const long long* block_start,
                                     int blocks, double origin_z, double origin_y, double origin_x,
                                     double per_z, double per_y, double per_x, long long size_z,
                                     long long size_y, long long size_x, long long* key) {
    const double origin[3] = {origin_z, origin_y, origin_x}, inverse_edge[3] = {per_z, per_y, per_x};
    const long long size[3] = {size_z, size_y, size_x};
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    int low = 0, high = blocks;  // the last block that starts at or before i
    while (low + 1 < high) {
        int middle = (low + high) / 2;
        if (block_start[middle] <= i) low = middle; else high = middle;
    }
    long long cell = 0;
    for (int axis = 0; axis < 3; ++axis) {
        long long c = (long long)((point[3 * i + axis] - origin[axis]) * inverse_edge[axis]);
        c = max(0LL, min(c, size[axis] - 3));
        cell = cell * size[axis] + c + 1;
    }
    key[i] = low * (size[0] * size[1] * size[2]) + cell;
}

// The points in sorted order, axis by axis. order (N,) i8; sorted_point (3, N) f8.
extern "C" __global__ void gather_points(const double* point, const long long* order, long long count,
                                         double* sorted_point) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    long long row = order[i];
    for (int axis = 0; axis < 3; ++axis) sorted_point[axis * count + i] = point[3 * row + axis];
}

__device__ __forceinline__ int first_in(const long long* key, int low, int high, long long value) {
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (key[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
}

// First sorted point of every bucket of 2^shift keys. key (N,) i8 sorted; bucket (buckets + 1,) i4.
extern "C" __global__ void bucket_starts(const long long* key, int count, int shift, long long buckets,
                                         int* bucket) {
    long long b = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (b <= buckets) bucket[b] = first_in(key, 0, count, b << shift);
}

struct Columns {
    const double* point;   // (3, C) sorted
    const long long* key;  // (C,) sorted
    const int* bucket;     // (buckets + 1,)
    int shift;
    long long count;
};

__device__ __forceinline__ int first_not_below(const Columns& cols, long long value) {
    long long b = value >> cols.shift;
    return first_in(cols.key, cols.bucket[b], cols.bucket[b + 1], value);
}

// Visit every column within the radius of row i: the nine runs of three cells beside its own, block after block.
template <class Visit>
__device__ __forceinline__ void visit_pairs(long long i, const double* row_point, const long long* row_key,
                                            long long rows, const Columns& cols, long long cells,
                                            long long size_y, long long size_x, int blocks, int first_offset, int last_offset, double radius2,
                                            Visit visit) {
    long long key = row_key[i];
    int block = (int)(key / cells);
    double z = row_point[i], y = row_point[rows + i], x = row_point[2 * rows + i];
    int stop_block = min(block + last_offset, blocks - 1);
    for (int t = max(block + first_offset, 0); t <= stop_block; ++t)
        for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy) {
                long long middle = key + (t - block) * cells + (dz * size_y + dy) * size_x;
                int stop = first_not_below(cols, middle + 2);
                for (int j = first_not_below(cols, middle - 1); j < stop; ++j) {
                    double a = cols.point[j] - z, b = cols.point[cols.count + j] - y,
                           c = cols.point[2 * cols.count + j] - x;
                    // Without fused multiply-adds, as on the CPU: the same bits, the same pairs at the gate.
                    double d2 = __dadd_rn(__dadd_rn(__dmul_rn(a, a), __dmul_rn(b, b)), __dmul_rn(c, c));
                    if (d2 <= radius2) visit(j, d2);
                }
            }
}

// Columns within the radius of every row. row_point (3, R), row_key (R,) sorted; count (R,) i8.
extern "C" __global__ void count_pairs(const double* row_point, const long long* row_key, long long rows,
                                       const double* col_point, const long long* col_key, const int* bucket,
                                       int shift, long long cols, long long cells, long long size_y, long long size_x,
                                       int blocks, int first_offset, int last_offset, double radius2,
                                       long long* count) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows) return;
    Columns columns{col_point, col_key, bucket, shift, cols};
    int found = 0;
    visit_pairs(i, row_point, row_key, rows, columns, cells, size_y, size_x, blocks, first_offset, last_offset, radius2,
                [&](int, double) { ++found; });
    count[i] = found;
}

// The pairs that count_pairs counted. indptr (R+1,) i8; indices (P,) i4; distance2 (P,) f8.
extern "C" __global__ void fill_pairs(const double* row_point, const long long* row_key, long long rows,
                                      const double* col_point, const long long* col_key, const int* bucket,
                                      int shift, long long cols, long long cells, long long size_y, long long size_x,
                                      int blocks, int first_offset, int last_offset, double radius2,
                                      const long long* indptr, int* indices, double* distance2) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= rows) return;
    Columns columns{col_point, col_key, bucket, shift, cols};
    long long next = indptr[i];
    visit_pairs(i, row_point, row_key, rows, columns, cells, size_y, size_x, blocks, first_offset, last_offset, radius2,
                [&](int j, double d2) { indices[next] = j; distance2[next] = d2; ++next; });
}
