// GPU kernels of `greedy_switching`, twins of greedy_switching_cpu.py. Ties go to the lowest place and switches done
// at once share no row and no column, so no result depends on the order of threads.
//
// Compiled for one kind of costs at a time: COST is the type of a stored cost, KEY that of gains. With AXES (0: any
// number) the costs are distances of points. What describes the problem and its matching, in every kernel:
//     costs (R,C) COST, by_col the same transposed        or: source (R,D) f8 and target (C,D) f8, and
//     costs_other, by_col_other unused                        target and source axis by axis
//     rows, cols: R, C; axes: D; squared: whether distances are left without their root
//     row_out (R,), col_out (C,) KEY: cost of staying unmatched
//     job (R,) i4 column of each row, agent (C,) i4 row of each column, -1 where unmatched; row_held (R,), col_held
//     (C,) KEY: what that costs now
//     row_choice (R,), col_choice (C,) i4: the best switch, -1 to stay unmatched, -2 none; row_gain (R,), col_gain
//     (C,) KEY: what it saves
typedef int i4;
typedef long long i8;
typedef float f4;
typedef double f8;
#ifdef AXES
#define COST f8
#define KEY f8
#endif
#ifndef COST
#define COST i4
#define KEY i8
#endif
#define STATE                                                                                                \
    const COST *costs, const f8 *costs_other, const COST *by_col, const f8 *by_col_other, int rows, int cols, \
        int axes, int squared, const KEY *row_out, const KEY *col_out, int *job, int *agent, KEY *row_held,  \
        KEY *col_held, int *row_choice, KEY *row_gain, int *col_choice, KEY *col_gain
// Rows, or columns, and all that is known of them.
#define ROWS                                                                                                 \
    Side { {costs, costs_other, cols, axes, squared}, row_out, job, row_held, row_choice, row_gain, rows }
#define COLS                                                                                                 \
    Side { {by_col, by_col_other, rows, axes, squared}, col_out, agent, col_held, col_choice, col_gain, cols }

struct Pairs {
    const COST* at;
    const f8* other;
    int cols, axes, squared;
    __device__ __forceinline__ KEY operator()(int i, int j) const {
#ifdef AXES
        f8 sum = 0;
        for (int axis = 0; axis < (AXES ? AXES : axes); ++axis) {
            f8 difference = at[i * (i8)axes + axis] - other[axis * (i8)cols + j];
            sum += difference * difference;
        }
        return squared ? sum : sqrt(sum);
#else
        return at[i * (i8)cols + j];
#endif
    }
};

struct Side {
    Pairs cost;
    const KEY* out;
    int* partner;
    KEY* held;
    int* choice;
    KEY* gain;
    int count;
};

// A switch and what it saves; of equal ones the one with the lower number is the better.
struct Switch {
    KEY saved;
    int choice;
    __device__ __forceinline__ void improve(KEY other, int its_choice) {
        if (other > saved || (other == saved && its_choice < choice)) saved = other, choice = its_choice;
    }
    __device__ __forceinline__ void gather() {  // the best of a warp
        for (int step = 16; step; step /= 2) {
            KEY other = __shfl_xor_sync(~0u, saved, step);
            improve(other, __shfl_xor_sync(~0u, choice, step));
        }
    }
};

constexpr int kNobody = 0x7fffffff;

// One line of a side, and what its switches save.
struct Line {
    int i, old;
    KEY base;  // what it holds costs
    KEY left;  // what the other line costs that loses it, where nobody takes its place
    __device__ __forceinline__ Line(const Side& mine, const Side& theirs, int i) : i(i), old(mine.partner[i]) {
        base = old < 0 ? mine.out[i] : mine.cost(i, old);
        left = old < 0 ? 0 : theirs.out[old];
    }
    // To stay unmatched, or nothing.
    __device__ __forceinline__ Switch first(const Side& mine) const {
        Switch best{0, -2};
        if (old >= 0) best.improve(base - mine.out[i] - left, -1);
        return best;
    }
    // It takes j of the other side at `cost`; `other`, who held j for `held`, gets what it held.
    __device__ __forceinline__ KEY saved(const Side& mine, const Side& theirs, KEY cost, int other, KEY held) const {
        KEY saved = base + held - cost;
        if (old >= 0) return saved - (other >= 0 ? theirs.cost(old, other) : left);
        return other >= 0 ? saved - mine.out[other] : saved;
    }
};

// Difference evaluation (Algorithm 2) in global memory: a thread a line. waits (count,) bool; of lines first to last.
__device__ void evaluate_a_thread_a_line(const Side& mine, const Side& theirs, const bool* waits, int first, int last) {
    int i = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= last || waits[i]) return;
    Line line(mine, theirs, i);
    Switch best = line.first(mine);
    for (int j = 0; j < theirs.count; ++j) {
        // The transposed costs, for the next thread reads the next line's.
        KEY saved = line.saved(mine, theirs, theirs.cost(j, i), theirs.partner[j], theirs.held[j]);
        if (saved > best.saved) best.improve(saved, j);
    }
    mine.choice[i] = best.choice, mine.gain[i] = best.saved;
}

extern "C" __global__ void evaluate_rows_global(STATE, const bool* waits, int first, int last) {
    evaluate_a_thread_a_line(ROWS, COLS, waits, first, last);
}
extern "C" __global__ void evaluate_cols_global(STATE, const bool* waits, int first, int last) {
    evaluate_a_thread_a_line(COLS, ROWS, waits, first, last);
}

constexpr int kTile = 256, kLines = 8;  // of the other side, and of this one, in a block: a warp a line

// Difference evaluation in shared memory: what is asked of the other side is fetched once for all lines of a block.
// found (last - first, tiles) i4 and gained, of KEY: the best switch of each line with each tile.
__device__ void evaluate_a_tile(const Side& mine, const Side& theirs, const bool* waits, int first, int last, int* found,
                                KEY* gained) {
    __shared__ int partner[kTile];
    __shared__ KEY held[kTile];
    int begin = blockIdx.x * kTile, width = min(kTile, theirs.count - begin);
    if (threadIdx.x < width) {
        partner[threadIdx.x] = theirs.partner[begin + threadIdx.x];
        held[threadIdx.x] = theirs.held[begin + threadIdx.x];
    }
    __syncthreads();
    int i = first + blockIdx.y * kLines + threadIdx.x / 32;
    if (i >= last || waits[i]) return;
    Line line(mine, theirs, i);
    Switch best = line.first(mine);
#pragma unroll 4
    for (int k = threadIdx.x % 32; k < width; k += 32) {
        KEY saved = line.saved(mine, theirs, mine.cost(i, begin + k), partner[k], held[k]);
        if (saved > best.saved) best.improve(saved, begin + k);
    }
    best.gather();
    if (threadIdx.x % 32) return;
    i8 at = (i - first) * (i8)gridDim.x + blockIdx.x;
    found[at] = best.choice, gained[at] = best.saved;
}

extern "C" __global__ void evaluate_rows_shared(STATE, const bool* waits, int first, int last, int* found, KEY* gained) {
    evaluate_a_tile(ROWS, COLS, waits, first, last, found, gained);
}
extern "C" __global__ void evaluate_cols_shared(STATE, const bool* waits, int first, int last, int* found, KEY* gained) {
    evaluate_a_tile(COLS, ROWS, waits, first, last, found, gained);
}

// The best of each line's tiles, a thread a line. choice, gain (count,): those of the side.
extern "C" __global__ void best_of_tiles(const int* found, const KEY* gained, int tiles, const bool* waits, int first,
                                         int last, int* choice, KEY* gain) {
    int i = first + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= last || waits[i]) return;
    Switch best{0, -2};
    for (int tile = 0; tile < tiles; ++tile) {
        i8 at = (i - first) * (i8)tiles + tile;
        best.improve(gained[at], found[at]);
    }
    choice[i] = best.choice, gain[i] = best.saved;
}

// What row i would save now if it took column j (-1: none), and the row that held j what i held.
__device__ __forceinline__ KEY saved_now(const Side& row, const Side& col, int i, int j) {
    int old = row.partner[i], other = j >= 0 ? col.partner[j] : -1;
    KEY before = row.held[i] + (j >= 0 ? col.held[j] : 0), after = j >= 0 ? row.cost(i, j) : row.out[i];
    if (other >= 0)
        after += old >= 0 ? row.cost(other, old) : row.out[other];
    else if (old >= 0)
        after += col.out[old];
    return before - after;
}

// The switch itself.
__device__ __forceinline__ void do_switch(const Side& row, const Side& col, int i, int j) {
    int old = row.partner[i], other = j >= 0 ? col.partner[j] : -1;
    row.partner[i] = j, row.held[i] = j >= 0 ? row.cost(i, j) : row.out[i];
    if (j >= 0) col.partner[j] = i, col.held[j] = row.held[i];
    if (other >= 0) row.partner[other] = old, row.held[other] = old >= 0 ? row.cost(other, old) : row.out[other];
    if (old >= 0) col.partner[old] = other, col.held[old] = other >= 0 ? row.held[other] : col.out[old];
}

// Row and column (-1: none) of the k-th switch, those of rows first; the row is -1 if there is none.
__device__ __forceinline__ int2 switch_of(const Side& row, const Side& col, int k) {
    if (k < row.count) return make_int2(row.gain[k] > 0 ? k : -1, row.choice[k]);
    int j = k - row.count;
    if (col.gain[j] <= 0) return make_int2(-1, -1);
    if (col.choice[j] < 0) return make_int2(col.partner[j], -1);
    return make_int2(col.choice[j], j);
}

// The most that any line of a side saves and the first that does, found by a block; all its threads return it.
__device__ Switch best_line(const Side& side) {
    __shared__ Switch found[32];
    Switch best{0, kNobody};
    for (int i = threadIdx.x; i < side.count; i += blockDim.x) best.improve(side.gain[i], i);
    best.gather();
    __syncthreads();
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = best;
    __syncthreads();
    best = found[0];
    for (int w = 1; w < blockDim.x / 32; ++w) best.improve(found[w].saved, found[w].choice);
    return best;
}

// The switching of Algorithm 1 in one block of 1024, at most `most` times. report (2,) i8: switches tried, below `most`
// if none is left, and done.
extern "C" __global__ void __launch_bounds__(1024) switch_best_first(STATE, int most, i8* report) {
    __shared__ int lines[4];  // to be evaluated again: two rows, two columns; -1 none
    __shared__ Switch found[32];
    Side row = ROWS, col = COLS;
    int tried = 0, done = 0;
    for (; tried < most; ++tried) {
        Switch of_rows = best_line(row), of_cols = best_line(col);
        if (of_rows.saved <= 0 && of_cols.saved <= 0) break;
        if (threadIdx.x == 0) {
            int i, j;
            if (of_rows.saved > of_cols.saved) {
                i = of_rows.choice, j = row.choice[i];
                row.gain[i] = 0;
            } else {
                j = of_cols.choice, i = col.choice[j];
                col.gain[j] = 0;
                if (i < 0) i = col.partner[j], j = -1;
            }
            lines[0] = lines[1] = lines[2] = lines[3] = -1;
            // A choice may be of another time: what it was based on has been given away.
            if (i >= 0 && saved_now(row, col, i, j) > 0) {
                lines[0] = i, lines[1] = j >= 0 ? col.partner[j] : -1, lines[2] = j, lines[3] = row.partner[i];
                do_switch(row, col, i, j);
                ++done;
            }
        }
        __syncthreads();
        int group = threadIdx.x / 256;
        const Side &mine = group < 2 ? row : col, &theirs = group < 2 ? col : row;
        int i = lines[group];
        Switch best{0, -2};
        if (i >= 0) {
            Line line(mine, theirs, i);
            best = line.first(mine);
#pragma unroll 4
            for (int j = threadIdx.x % 256; j < theirs.count; j += 256) {
                KEY saved = line.saved(mine, theirs, mine.cost(i, j), theirs.partner[j], theirs.held[j]);
                if (saved > best.saved) best.improve(saved, j);
            }
        }
        best.gather();
        if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = best;
        __syncthreads();
        if (threadIdx.x % 256 == 0 && i >= 0) {
            for (int w = 1; w < 8; ++w) best.improve(found[group * 8 + w].saved, found[group * 8 + w].choice);
            mine.choice[i] = best.choice, mine.gain[i] = best.saved;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) report[0] = tried, report[1] = done;
}

// The rows and columns that one switch touches.
struct Claims {
    int at[4];  // places in the list of rows, then columns; -1 none
    __device__ __forceinline__ Claims(const Side& row, const Side& col, int k) {
        int2 pair = switch_of(row, col, k);
        int i = pair.x, j = pair.y, old = row.partner[i], other = j >= 0 ? col.partner[j] : -1;
        at[0] = i, at[1] = other, at[2] = j < 0 ? -1 : row.count + j, at[3] = old < 0 ? -1 : row.count + old;
    }
};

constexpr int kTaken = -1;

// Algorithm 4: switches that share a row or a column with an earlier one wait; rows first, then columns. One block. Of
// those undecided, the ones that come first at all they touch go; any that touches what is taken waits: the same as one
// after another. waits (R + C,) bool, written; claim (R + C,) i4 kNobody; undecided (2, R + C) i4; report (1,) i8:
// grows if there is any switch.
extern "C" __global__ void __launch_bounds__(1024)
    check_conflicts(STATE, bool* waits, int* claim, int* undecided, i8* report) {
    __shared__ int left;
    Side row = ROWS, col = COLS;
    int lines = rows + cols, *now = undecided, *next = undecided + lines;
    if (threadIdx.x == 0) left = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < lines; k += blockDim.x) {
        waits[k] = false;
        if (switch_of(row, col, k).x >= 0) now[atomicAdd(&left, 1)] = k;
    }
    __syncthreads();
    int count = left;
    if (count && threadIdx.x == 0) *report += 1;
    while (count) {
        for (int s = threadIdx.x; s < count; s += blockDim.x) {
            Claims of(row, col, now[s]);
            for (int at : of.at) waits[now[s]] |= at >= 0 && claim[at] == kTaken;
        }
        __syncthreads();
        for (int s = threadIdx.x; s < count; s += blockDim.x)
            if (!waits[now[s]])
                for (int at : Claims(row, col, now[s]).at)
                    if (at >= 0) atomicMin(&claim[at], now[s]);
        if (threadIdx.x == 0) left = 0;
        __syncthreads();
        for (int s = threadIdx.x; s < count; s += blockDim.x) {
            int k = now[s];
            if (waits[k]) continue;
            bool goes = true;
            for (int at : Claims(row, col, k).at) goes = goes && (at < 0 || claim[at] == k);
            next[atomicAdd(&left, 1)] = goes ? ~k : k;
        }
        __syncthreads();
        int still = left;
        __syncthreads();
        if (threadIdx.x == 0) left = 0;
        // Those that stay undecided let go; what others take now is marked behind the barrier.
        for (int s = threadIdx.x; s < still; s += blockDim.x)
            if (next[s] >= 0)
                for (int at : Claims(row, col, next[s]).at)
                    if (at >= 0) claim[at] = kNobody;
        __syncthreads();
        for (int s = threadIdx.x; s < still; s += blockDim.x) {
            int k = next[s];
            if (k >= 0)
                now[atomicAdd(&left, 1)] = k;
            else
                for (int at : Claims(row, col, ~k).at)
                    if (at >= 0) claim[at] = kTaken;
        }
        __syncthreads();
        count = left;
        __syncthreads();
    }
}

// Algorithm 3's switches: all that do not wait and still save anything, a thread a switch. waits (R + C,) bool;
// report (1,) i8 grows by their number.
extern "C" __global__ void switch_at_once(STATE, const bool* waits, i8* report) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= rows + cols || waits[k]) return;
    Side row = ROWS, col = COLS;
    int2 pair = switch_of(row, col, k);
    if (pair.x < 0 || saved_now(row, col, pair.x, pair.y) <= 0) return;
    do_switch(row, col, pair.x, pair.y);
    atomicAdd((unsigned long long*)report, 1ull);
}

// Greedy start in one block: row after row takes the free column that saves most, at least `first`, before `last`.
extern "C" __global__ void __launch_bounds__(1024) take_nearest(STATE, int first, int last) {
    __shared__ Switch found[32];
    for (int i = first; i < last; ++i) {
        Switch best{-row_out[i], -1};
        for (int j = threadIdx.x; j < cols; j += blockDim.x)
            if (agent[j] < 0) {
                KEY saved = col_out[j] - ROWS.cost(i, j);
                if (saved > best.saved) best.improve(saved, j);
            }
        best.gather();
        if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = best;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < blockDim.x / 32; ++w) best.improve(found[w].saved, found[w].choice);
            if (best.choice >= 0) job[i] = best.choice, agent[best.choice] = i;
        }
        __syncthreads();
    }
}
