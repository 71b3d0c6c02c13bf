// GPU kernels of `dense` and `points`: questions about all pairs, each answered with one reading of them. No result
// depends on the order of threads.
//
// Compiled for one kind of costs at a time. COST is the type of a stored cost, KEY one that holds every c - v. With AXES
// (0: any number) the costs are distances of points. What gives the costs of all pairs, in every kernel:
//     costs (R,C) COST, other unused        or: source (R,D) f8 and other (D,C) f8, the targets axis by axis
//     rows, cols: R, C; axes: D; squared: whether distances are left without their root
typedef int i4;
typedef long long i8;
typedef float f4;
typedef double f8;
#ifdef AXES
#define COST f8
#endif
#ifndef COST
#define COST i4
#endif
#ifndef KEY
#define KEY i8
#endif
#define PAIRS const COST *costs, const f8 *other, i8 rows, i8 cols, int axes, int squared
#define ROW(i) Row(costs, other, i, cols, axes, squared)

// The costs of one row.
#ifdef AXES
struct Row {
    const f8 *source, *by_axis;
    i8 cols;
    int axes;
    bool squared;
    f8 x[AXES ? AXES : 1];
    __device__ __forceinline__ Row() {}
    __device__ __forceinline__ Row(const f8* points, const f8* other, i8 i, i8 cols, int axes, int squared)
        : source(points + i * axes), by_axis(other), cols(cols), axes(axes), squared(squared) {
        for (int axis = 0; axis < AXES; ++axis) x[axis] = source[axis];
    }
    __device__ __forceinline__ f8 operator()(i8 j) const {
        f8 sum = 0;
        for (int axis = 0; axis < (AXES ? AXES : axes); ++axis) {
            f8 difference = (AXES ? x[AXES ? axis : 0] : source[axis]) - by_axis[axis * cols + j];
            sum += difference * difference;
        }
        return squared ? sum : sqrt(sum);
    }
};
#else
struct Row {
    const COST* at;
    __device__ __forceinline__ Row() {}
    __device__ __forceinline__ Row(const COST* costs, const f8*, i8 i, i8 cols, int, int) : at(costs + i * cols) {}
    // Read once, so that it drives no duals out of the cache.
    __device__ __forceinline__ COST operator()(i8 j) const { return __ldcs(at + j); }
};
#endif

constexpr int kThreads = 256;  // of every block; a row's columns fall into as many classes, in turn from its own place on
constexpr int kRows = 4;       // rows that a block reads at once, so that duals are read once for all of them
constexpr int kClasses = 64;   // of a column's rows, i modulo kClasses

// Whether one pair comes before another: by reduced cost, among equals by place.
__device__ __forceinline__ bool before(KEY a, int i, KEY b, int j) { return a < b || (a == b && i < j); }

// u_i := min(u_i, min_j (c_ij - v_j)); a block for kRows rows. v (C,); written: u (R,).
extern "C" __global__ void lower_to_slack(PAIRS, const KEY* v, KEY* u) {
    __shared__ KEY found[kRows][kThreads / 32];
    i8 first = blockIdx.x * (i8)kRows;
    Row row[kRows];
    KEY least[kRows];
    for (int r = 0; r < kRows; ++r) row[r] = ROW(min(first + r, rows - 1)), least[r] = u[min(first + r, rows - 1)];
#pragma unroll 4
    for (i8 j = threadIdx.x; j < cols; j += kThreads) {
        KEY dual = v[j];
        for (int r = 0; r < kRows; ++r) least[r] = min(least[r], (KEY)row[r](j) - dual);
    }
    for (int r = 0; r < kRows; ++r) {
        for (int step = 16; step; step /= 2) least[r] = min(least[r], __shfl_xor_sync(~0u, least[r], step));
        if (threadIdx.x % 32 == 0) found[r][threadIdx.x / 32] = least[r];
    }
    __syncthreads();
    int r = threadIdx.x;
    if (r >= kRows || first + r >= rows) return;
    for (int warp = 1; warp < kThreads / 32; ++warp) least[0] = min(warp == 1 ? found[r][0] : least[0], found[r][warp]);
    u[first + r] = least[0];
}

// Of each row the columns of least c_ij - v_j below a limit, at most one of each class; a block for kRows rows. v (C,);
// limit (R,). Written: nearest (R,k) i4, columns in ascending order of c_ij - v_j; count (R,) i4. Among equals a row takes
// the columns after its own place, so that rows with the same costs differ.
extern "C" __global__ void nearest_of_rows(PAIRS, const KEY* v, const KEY* limit, int most, int* nearest, int* count) {
    __shared__ KEY keys[kThreads];
    __shared__ int turns[kThreads];
    i8 first = blockIdx.x * (i8)kRows, turn = first * cols / rows;
    int thread = threadIdx.x;
    Row row[kRows];
    KEY least[kRows];
    int column[kRows];
    for (int r = 0; r < kRows; ++r) {
        i8 i = min(first + r, rows - 1);
        row[r] = ROW(i), least[r] = limit[i], column[r] = -1;
    }
    i8 start = turn + thread;
    for (int part = 0; part < 2; ++part) {
        i8 stop = part ? turn : cols;
#pragma unroll 4
        for (i8 j = start; j < stop; j += kThreads) {
            KEY dual = v[j];
            for (int r = 0; r < kRows; ++r) {
                KEY key = (KEY)row[r](j) - dual;
                if (key < least[r]) least[r] = key, column[r] = (int)j;
            }
        }
        // The class that comes next: the last columns need not have filled all.
        start = (thread + kThreads - (int)((cols - turn) % kThreads)) % kThreads;
    }
    for (int r = 0; r < kRows && first + r < rows; ++r) {
        bool is_there = column[r] >= 0;
        int place = column[r] - (int)turn + (column[r] < turn ? (int)cols : 0);
        keys[thread] = least[r], turns[thread] = is_there ? place : 0x7fffffff;
        int found = __syncthreads_count(is_there), rank = 0;
        for (int t = 0; is_there && t < kThreads; ++t) rank += before(keys[t], turns[t], least[r], place);
        if (is_there && rank < most) nearest[(first + r) * most + rank] = column[r];
        if (thread == 0) count[first + r] = min(found, most);
        __syncthreads();
    }
}

// Of each column the least c_ij - u_i of every class of rows; thread x stands for a column, block y for a class. u (R,).
// Written: keys (kClasses,C), the least values; nearest (kClasses,C) i4, their rows, -1 where a class is empty.
extern "C" __global__ void least_of_cols(PAIRS, const KEY* u, KEY* keys, int* nearest) {
    i8 j = blockIdx.x * (i8)kThreads + threadIdx.x;
    if (j >= cols) return;
    KEY least = 0;
    int best = -1;
#pragma unroll 4
    for (i8 i = blockIdx.y; i < rows; i += kClasses) {
        KEY key = (KEY)ROW(i)(j) - u[i];
        if (best < 0 || key < least) least = key, best = (int)i;
    }
    keys[blockIdx.y * cols + j] = least, nearest[blockIdx.y * cols + j] = best;
}

// Of each column the rows of least c_ij - u_i below a limit, at most one of each class. keys, rows_of as
// `least_of_cols` wrote them; limit (C,). Written: nearest (C,k) i4, rows in ascending order of c_ij - u_i; count (C,) i4;
// least (C,), the least value or the limit.
extern "C" __global__ void nearest_of_cols(const KEY* keys, const int* rows_of, const KEY* limit, i8 rows, i8 cols,
                                           int most, int* nearest, int* count, KEY* least) {
    constexpr int kCols = kThreads / kClasses;
    __shared__ KEY key[kClasses][kCols];
    __shared__ int turns[kClasses][kCols];
    int c = threadIdx.x % kCols, s = threadIdx.x / kCols;
    i8 j = blockIdx.x * (i8)kCols + c, turn = j * rows / cols;
    int row = j < cols ? rows_of[s * cols + j] : -1;
    KEY mine = row < 0 ? 0 : keys[s * cols + j];
    bool is_there = row >= 0 && mine < limit[j];
    int place = row - (int)turn + (row < turn ? (int)rows : 0);
    key[s][c] = mine, turns[s][c] = is_there ? place : -1;
    __syncthreads();
    if (j >= cols) return;
    int rank = 0, found = 0;
    for (int t = 0; t < kClasses; ++t) {
        found += turns[t][c] >= 0;
        rank += turns[t][c] >= 0 && before(key[t][c], turns[t][c], mine, place);
    }
    if (is_there && rank < most) nearest[j * most + rank] = row;
    if (is_there && rank == 0) least[j] = mine;
    if (s) return;
    count[j] = min(found, most);
    if (!found) least[j] = limit[j];
}

// Costs of pairs. row (P,) i8, col (P,) i4; written: found (P,).
extern "C" __global__ void pairs(PAIRS, const i8* row, const i4* col, i8 count, COST* found) {
    i8 p = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    if (p < count) found[p] = ROW(row[p])(col[p]);
}

// Costs of all pairs. Written: found (R,C).
extern "C" __global__ void all_pairs(PAIRS, COST* found) {
    i8 j = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    if (j < cols)
        for (i8 i = blockIdx.y; i < rows; i += gridDim.y) found[i * cols + j] = ROW(i)(j);
}
