// Stages of `hungarian` that pass over the matrix or over single rows once; hungarian.cuh lists the types. R rows,
// C columns, costs (R,C). A block of kThreads works on kRows rows, so that a column's dual is read once for all.
#include "hungarian.cuh"

constexpr int kThreads = 256, kRows = 8, kSlots = 32;

// Least cost of each row, and its largest that is not above `limit`. low, high (R,). Depends on no order of threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    row_extremes(const COST* costs, i8 rows, i8 cols, COST limit, COST* low, COST* high) {
    __shared__ COST lows[kThreads], highs[kThreads];
    for (i8 i = blockIdx.x; i < rows; i += gridDim.x) {
        const COST* row = costs + i * cols;
        COST least = row[0], most = -limit;
#pragma unroll 8
        for (i8 j = threadIdx.x; j < cols; j += kThreads) {
            COST cost = row[j];
            least = cost < least ? cost : least, most = cost > most && cost <= limit ? cost : most;
        }
        lows[threadIdx.x] = least, highs[threadIdx.x] = most;
        __syncthreads();
        for (int step = kThreads / 2; step; step /= 2) {
            if (threadIdx.x < step) {
                COST a = lows[threadIdx.x + step], b = highs[threadIdx.x + step];
                if (a < lows[threadIdx.x]) lows[threadIdx.x] = a;
                if (b > highs[threadIdx.x]) highs[threadIdx.x] = b;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) low[i] = lows[0], high[i] = highs[0];
        __syncthreads();
    }
}

// Least of what row_dual (R,) leaves of each column, over one of gridDim.y strips of rows. least (strips,C).
extern "C" __global__ void __launch_bounds__(kThreads)
    column_least(const COST* costs, i8 rows, i8 cols, const KEY* row_dual, KEY* least) {
    i8 j = blockIdx.x * (i8)kThreads + threadIdx.x;
    i8 first = rows * blockIdx.y / gridDim.y, last = rows * (blockIdx.y + 1) / gridDim.y;
    if (j >= cols || first == last) return;
    KEY best = (KEY)costs[first * cols + j] - row_dual[first];
#pragma unroll 8
    for (i8 i = first + 1; i < last; ++i) {
        KEY left = (KEY)costs[i * cols + j] - row_dual[i];
        best = left < best ? left : best;
    }
    least[blockIdx.y * cols + j] = best;
}

// Algorithm 2: lists rows that wait for a column and forgets trees. col_of_row (R,) i4; waiting (R,) i4, in any
// order; end_of_root (R,) i4; claim (C,) i8; covered (C,) u1.
extern "C" __global__ void optimality_check(const int* col_of_row, i8 rows, i8 cols, int* waiting,
                                            int* end_of_root, i8* claim, unsigned char* covered,
                                            i8* words) {
    i8 k = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    bool waits = k < rows && col_of_row[k] < 0;
    unsigned votes = __ballot_sync(~0u, waits);
    int lane = threadIdx.x % 32;
    i8 start = 0;
    if (lane == 0 && votes) start = atomicAdd((Order*)&words[kWaiting], (Order)__popc(votes));
    start = __shfl_sync(~0u, start, 0);
    if (waits) waiting[start + __popc(votes & ((1u << lane) - 1))] = (int)k, end_of_root[k] = 0x7fffffff;
    if (k < cols) claim[k] = kUnclaimed, covered[k] = 0;
}

// Pairs without slack of each row: how many, count (R,) i8, and the first kSlots of them, slots (R,kSlots) i4.
// Which come first depends on the order of threads; `fill_tight` makes nothing of it.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_tight(const COST* costs, i8 rows, i8 cols, const KEY* row_dual, const KEY* col_dual, KEY tie,
                i8* count, int* slots) {
    __shared__ int found[kRows];
    for (i8 first = blockIdx.x * (i8)kRows; first < rows; first += gridDim.x * (i8)kRows) {
        int here = rows - first < kRows ? (int)(rows - first) : kRows;
        if (threadIdx.x < kRows) found[threadIdx.x] = 0;
        KEY dual[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) dual[r] = row_dual[first + (r < here ? r : 0)];
        __syncthreads();
        for (i8 j = threadIdx.x; j < cols; j += kThreads) {
            KEY v = col_dual[j];
            COST cost[kRows];
#pragma unroll
            for (int r = 0; r < kRows; ++r) cost[r] = costs[(first + (r < here ? r : 0)) * cols + j];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                if ((KEY)cost[r] - dual[r] - v > tie || r >= here) continue;
                int place = atomicAdd(&found[r], 1);
                if (place < kSlots) slots[(first + r) * kSlots + place] = (int)j;
            }
        }
        __syncthreads();
        if (threadIdx.x < here) count[first + threadIdx.x] = found[threadIdx.x];
        __syncthreads();
    }
}

// The pairs without slack as CSR, one block a row. indptr (R+1,) i8; indices (P,) i4: the order within a row
// depends on that of threads, and nothing on it.
extern "C" __global__ void __launch_bounds__(kThreads)
    fill_tight(const COST* costs, i8 rows, i8 cols, const KEY* row_dual, const KEY* col_dual, KEY tie,
               const i8* indptr, const int* slots, int* indices) {
    __shared__ int found;
    for (i8 i = blockIdx.x; i < rows; i += gridDim.x) {
        i8 first = indptr[i], count = indptr[i + 1] - first;
        if (count <= kSlots) {
            if (threadIdx.x < count) indices[first + threadIdx.x] = slots[i * kSlots + threadIdx.x];
            continue;
        }
        if (threadIdx.x == 0) found = 0;
        __syncthreads();
        for (i8 j = threadIdx.x; j < cols; j += blockDim.x)
            if ((KEY)costs[i * cols + j] - row_dual[i] - col_dual[j] <= tie)
                indices[first + atomicAdd(&found, 1)] = (int)j;
        __syncthreads();
    }
}

// Algorithm 7: least slack between joined rows and columns that are not covered, into words. joined (R,) i4, the
// rows of the trees, words[kScanned] of them. Depends on no order of threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    least_slack(const COST* costs, i8 cols, const KEY* row_dual, const KEY* col_dual,
                const unsigned char* covered, const int* joined, i8* words) {
    __shared__ Order shared[32];
    i8 count = words[kScanned];
    Order least = 0;
    for (i8 first = blockIdx.x * (i8)kRows; first < count; first += gridDim.x * (i8)kRows) {
        int here = count - first < kRows ? (int)(count - first) : kRows;
        KEY dual[kRows];
        const COST* row[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            int i = joined[first + (r < here ? r : 0)];
            dual[r] = row_dual[i], row[r] = costs + i * cols;
        }
        bool any = false;
        KEY best = 0;
        for (i8 j = threadIdx.x; j < cols; j += kThreads) {
            if (covered[j]) continue;
            KEY v = col_dual[j];
            COST cost[kRows];
#pragma unroll
            for (int r = 0; r < kRows; ++r) cost[r] = row[r][j];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                KEY slack = (KEY)cost[r] - dual[r] - v;
                if (!any || slack < best) best = slack, any = true;
            }
        }
        Order order = any ? order_of(best) : 0;
        least = order > least ? order : least;
    }
    least = greatest(least, shared);
    if (threadIdx.x == 0 && least) atomicMax((Order*)&words[kLeast], least);
}

// Algorithm 8: the least slack to joined rows, and from the columns they hold. col_of_row (R,) i4; the columns of
// joined rows are the covered ones.
extern "C" __global__ void __launch_bounds__(kThreads)
    shift_duals(KEY* row_dual, KEY* col_dual, const int* col_of_row, const int* joined, KEY never,
                i8* words) {
    i8 k = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    Order order = (Order)words[kLeast];
    if (k >= words[kScanned] || !order) return;
    KEY least = key_of(order, KEY());
    if (least >= never) return;
    if (k == 0) words[kUpdates] = 1;
    int i = joined[k];
    row_dual[i] += least;
    if (col_of_row[i] >= 0) col_dual[col_of_row[i]] -= least;
}

// Algorithm 5: every tree keeps the first of the free columns it reached. ends (C,) i4; col_root (C,) i4, the
// root of a column's tree; end_of_root (R,) i4. Depends on no order of threads.
extern "C" __global__ void reverse_pass(const int* ends, const int* col_root, int* end_of_root,
                                        const i8* words) {
    i8 k = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    if (k < words[kEnds]) atomicMin(&end_of_root[col_root[ends[k]]], ends[k]);
}

// Algorithm 6: exchanges assigned and unassigned pairs along the path of every tree that found one; they are
// disjoint. row_before (R,) i4: the row that reached a row's column; col_before (C,) i4: the same for free ones.
extern "C" __global__ void augmentation_pass(const int* ends, const int* col_root, const int* end_of_root,
                                             const int* row_before, const int* col_before, int* col_of_row,
                                             int* row_of_col, i8* words) {
    i8 k = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    if (k >= words[kEnds]) return;
    int col = ends[k], root = col_root[col];
    if (end_of_root[root] != col) return;
    for (int row = col_before[col];;) {
        int left = col_of_row[row], before = row_before[row];
        col_of_row[row] = col, row_of_col[col] = row;
        if (row == root) break;
        col = left, row = before;
    }
    atomicAdd((Order*)&words[kPaths], 1ull);
}
