// GPU kernels of gating. Twins of gating_cpu.py: the same pairs in the same order.
// No result depends on the order of threads: places that atomics give away are put in order afterwards.
//
// Rows and columns are sorted by cell in the same launches: point i is a row if i < rows, else column i - rows.

// The grid of cells over both clouds, and the buckets of 2^shift cells that the points are counted in.
struct Grid {
    double origin[3], per_length[3];  // cells in a unit of length
    long long size[3];                // cells along z, y, x, one empty cell at either end of an axis
    long long cells;                  // in a block
    int shift;
    int is_finite;  // 0 if some coordinate is no finite number
};
static_assert(sizeof(Grid) <= 96, "gating_gpu.py reserves so much");

__device__ __forceinline__ double coordinate(const double* row_point, long long rows, const double* col_point,
                                             long long i, int axis) {
    return i < rows ? row_point[3 * i + axis] : col_point[3 * (i - rows) + axis];
}

// Least and greatest coordinates of all points, and in the block that ends last the grid: cells of an edge of at
// least `least_edge`, at most `most` along an axis. row_point (R, 3), col_point (C, 3) f8; extreme (blocks, 6) f8;
// finished (1,) i4 zero; frames: blocks of points; room: buckets that there is memory for.
extern "C" __global__ void make_grid(const double* row_point, long long rows, const double* col_point,
                                     long long points, double least_edge, long long most, long long frames,
                                     long long room, double* extreme, int* finished, Grid* grid) {
    __shared__ double of_warp[6][32];
    __shared__ bool last;
    double value[6] = {1e308, 1e308, 1e308, -1e308, -1e308, -1e308};
    long long stride = gridDim.x * (long long)blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < points; i += stride)
        for (int axis = 0; axis < 3; ++axis) {
            double x = coordinate(row_point, rows, col_point, i, axis);
            if (isnan(x)) x = __longlong_as_double(0x7ff0000000000000LL);  // infinite, for fmin passes over NaN
            value[axis] = fmin(value[axis], x), value[3 + axis] = fmax(value[3 + axis], x);
        }
    for (int turn = 0; turn < 2; ++turn) {
        for (int k = 0; k < 6; ++k) {
            for (int step = 16; step; step /= 2) {
                double other = __shfl_xor_sync(~0u, value[k], step);
                value[k] = k < 3 ? fmin(value[k], other) : fmax(value[k], other);
            }
            if (threadIdx.x % 32 == 0) of_warp[k][threadIdx.x / 32] = value[k];
        }
        __syncthreads();
        for (int k = 0; k < 6; ++k)
            for (int warp = 0; warp < blockDim.x / 32; ++warp)
                value[k] = k < 3 ? fmin(value[k], of_warp[k][warp]) : fmax(value[k], of_warp[k][warp]);
        if (turn) break;
        for (int k = 0; k < 6 && threadIdx.x == 0; ++k) extreme[6 * blockIdx.x + k] = value[k];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
        __syncthreads();
        if (!last) return;
        __threadfence();
        for (int b = threadIdx.x; b < gridDim.x; b += blockDim.x)
            for (int k = 0; k < 6; ++k) {
                double other = __ldcg(&extreme[6 * b + k]);
                value[k] = k < 3 ? fmin(value[k], other) : fmax(value[k], other);
            }
    }
    if (threadIdx.x) return;
    grid->cells = 1, grid->shift = 0, grid->is_finite = 1;
    for (int k = 0; k < 6; ++k) grid->is_finite &= isfinite(value[k]);
    bool any = points && grid->is_finite;
    for (int axis = 0; axis < 3; ++axis) {
        double low = any ? value[axis] : 0, extent = any ? value[3 + axis] - low : 0;
        double edge = fmax(least_edge, extent / (double)(most - 4));
        if (!(edge > 0)) edge = 1;
        grid->origin[axis] = low, grid->per_length[axis] = 1 / edge;
        grid->size[axis] = (long long)(extent / edge) + 3;
        grid->cells *= grid->size[axis];
    }
    while (((grid->cells * frames) >> grid->shift) + 2 > room) ++grid->shift;
}

// Cell key of every point: block * cells + linear cell; the points of every bucket are counted, and each gets a place
// among them that means nothing. row_start, col_start (frames+1,) i8: where each block starts; key (R + C,) i8;
// place (R + C,) i4; count (2 * room,) i4 zero, in place b + 1 those of bucket b, rows then columns.
extern "C" __global__ void count_points(const double* row_point, long long rows, const double* col_point,
                                        long long points, const long long* row_start, const long long* col_start,
                                        int frames, const Grid* grid, long long room, long long* key, int* place,
                                        int* count) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= points) return;
    const long long* start = i < rows ? row_start : col_start;
    int low = 0, high = frames;  // the last block that starts at or before the point
    while (low + 1 < high) {
        int middle = (low + high) / 2;
        if (start[middle] <= (i < rows ? i : i - rows)) low = middle; else high = middle;
    }
    long long cell = 0;
    for (int axis = 0; axis < 3; ++axis) {
        double x = coordinate(row_point, rows, col_point, i, axis);
        long long c = (long long)((x - grid->origin[axis]) * grid->per_length[axis]);
        c = max(0LL, min(c, grid->size[axis] - 3));
        cell = cell * grid->size[axis] + c + 1;
    }
    key[i] = low * grid->cells + cell;
    place[i] = atomicAdd(&count[(i < rows ? 0 : room) + (key[i] >> grid->shift) + 1], 1);
}

// The points bucket by bucket. start (2 * room,) i4: first point of each bucket, rows then columns; member (R + C,) i4.
extern "C" __global__ void fill_buckets(const long long* key, const int* place, long long rows, long long points,
                                        const Grid* grid, long long room, const int* start, int* member) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < points) member[start[(i < rows ? 0 : room) + (key[i] >> grid->shift)] + place[i]] = (int)i;
}

// The points in the order of their cells, in a cell in that in which they were given. order, sorted_key and
// sorted_point of rows and of columns: (N,) i4, (N,) i8, (3, N) f8.
extern "C" __global__ void sort_points(const double* row_point, long long rows, const double* col_point,
                                       long long points, const long long* key, const Grid* grid, long long room,
                                       const int* start, const int* member, int* row_order, long long* row_key,
                                       double* row_sorted, int* col_order, long long* col_key, double* col_sorted) {
    long long s = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (s >= points) return;
    int i = member[s];
    bool row = i < rows;
    long long own = key[i], bucket = (row ? 0 : room) + (own >> grid->shift);
    // As dear as the pairs of the bucket, which are looked at anyway.
    int place = start[bucket];
    for (int t = start[bucket]; t < start[bucket + 1]; ++t) {
        int j = member[t];
        if (grid->shift == 0) place += j < i;
        else place += key[j] < own || (key[j] == own && j < i);
    }
    long long first = row ? 0 : rows, count = row ? rows : points - rows, at = place - first;
    (row ? row_order : col_order)[at] = (int)(i - first);
    (row ? row_key : col_key)[at] = own;
    double* sorted = row ? row_sorted : col_sorted;
    for (int axis = 0; axis < 3; ++axis)
        sorted[axis * count + at] = coordinate(row_point, rows, col_point, i, axis);
}

struct Columns {
    const double* point;     // (3, C) sorted
    const long long* key;    // (C,) sorted
    const int* start;        // of each bucket, R + the first column
    long long rows, count;
    int shift;
};

__device__ __forceinline__ long long first_not_below(const Columns& cols, long long value) {
    long long bucket = value >> cols.shift, low = cols.start[bucket] - cols.rows;
    if (cols.shift == 0) return low;
    long long high = cols.start[bucket + 1] - cols.rows;
    while (low < high) {
        long long middle = low + (high - low) / 2;
        if (cols.key[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
}

// Look at every column that may be within the radius of row i: the nine runs of three cells beside its own, block
// after block, by kTeam threads together, each of which is given one column or of none (is_near false).
template <int kTeam, class Visit>
__device__ __forceinline__ void visit_columns(long long i, int member, const double* row_point, const long long* row_key,
                                              const Columns& cols, const Grid& grid, int frames, int first_offset,
                                              int last_offset, double radius2, Visit visit) {
    long long key = row_key[i];
    int block = frames == 1 ? 0 : (int)(key / grid.cells);
    double z = row_point[i], y = row_point[cols.rows + i], x = row_point[2 * cols.rows + i];
    int stop_block = min(block + last_offset, frames - 1);
    for (int t = max(block + first_offset, 0); t <= stop_block; ++t)
        for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy) {
                long long middle = key + (t - block) * grid.cells + (dz * grid.size[1] + dy) * grid.size[2];
                long long stop = first_not_below(cols, middle + 2);
                for (long long from = first_not_below(cols, middle - 1); from < stop; from += kTeam) {
                    long long j = from + member;
                    bool is_near = j < stop;
                    double d2 = 0;
                    if (is_near) {
                        double a = cols.point[j] - z, b = cols.point[cols.count + j] - y,
                               c = cols.point[2 * cols.count + j] - x;
                        // Without fused multiply-adds, as on the CPU: the same bits, the same pairs at the gate.
                        d2 = __dadd_rn(__dadd_rn(__dmul_rn(a, a), __dmul_rn(b, b)), __dmul_rn(c, c));
                        is_near = d2 <= radius2;
                    }
                    visit(is_near, (int)j, d2);
                }
            }
}

// Columns within the radius of every row. row_point (3, R), row_key (R,), col_point (3, C), col_key (C,) sorted; start
// as in sort_points, that of the columns; count (R + 1,) i8, in place i + 1 those of row i, or -1 if not all is finite.
extern "C" __global__ void count_pairs(const double* row_point, const long long* row_key, long long rows,
                                       const double* col_point, const long long* col_key, long long cols,
                                       const int* start, const Grid* grid, int frames, int first_offset,
                                       int last_offset, double radius2, long long* count) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i == 0) count[0] = 0;
    if (i >= rows) return;
    Grid here = *grid;
    if (!here.is_finite) {
        count[i + 1] = -1;
        return;
    }
    Columns columns{col_point, col_key, start, rows, cols, here.shift};
    int found = 0;
    visit_columns<1>(i, 0, row_point, row_key, columns, here, frames, first_offset, last_offset, radius2,
                     [&](bool is_near, int, double) { found += is_near; });
    count[i + 1] = found;
}

// The pairs that count_pairs counted, a row by kTeam threads. indptr (R+1,) i8; indices (P,) i4; distance2 (P,) f8.
template <int kTeam>
__device__ __forceinline__ void fill_pairs(const double* row_point, const long long* row_key, long long rows,
                                           const Columns& cols, Grid grid, int frames, int first_offset,
                                           int last_offset, double radius2, const long long* indptr, int* indices,
                                           double* distance2) {
    long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / kTeam;
    if (i >= rows) return;
    int member = threadIdx.x % kTeam, first = threadIdx.x % 32 - member;
    unsigned team = (1u << kTeam) - 1;
    long long next = indptr[i];
    visit_columns<kTeam>(i, member, row_point, row_key, cols, grid, frames, first_offset, last_offset, radius2,
                         [&](bool is_near, int j, double d2) {
                             unsigned near = kTeam == 1 ? is_near : __ballot_sync(team << first, is_near) >> first & team;
                             long long place = next + __popc(near & ((1u << member) - 1));
                             if (is_near) indices[place] = j, distance2[place] = d2;
                             next += __popc(near);
                         });
}

// By a thread a row, for few pairs.
extern "C" __global__ void fill_pairs_1(const double* row_point, const long long* row_key, long long rows,
                                        const double* col_point, const long long* col_key, long long cols,
                                        const int* start, const Grid* grid, int frames, int first_offset,
                                        int last_offset, double radius2, const long long* indptr, int* indices,
                                        double* distance2) {
    fill_pairs<1>(row_point, row_key, rows, {col_point, col_key, start, rows, cols, grid->shift}, *grid, frames,
                  first_offset, last_offset, radius2, indptr, indices, distance2);
}

// By 8 threads a row, which write together, for many.
extern "C" __global__ void fill_pairs_8(const double* row_point, const long long* row_key, long long rows,
                                        const double* col_point, const long long* col_key, long long cols,
                                        const int* start, const Grid* grid, int frames, int first_offset,
                                        int last_offset, double radius2, const long long* indptr, int* indices,
                                        double* distance2) {
    fill_pairs<8>(row_point, row_key, rows, {col_point, col_key, start, rows, cols, grid->shift}, *grid, frames,
                  first_offset, last_offset, radius2, indptr, indices, distance2);
}
