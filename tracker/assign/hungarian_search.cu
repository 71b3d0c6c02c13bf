// Searches of `hungarian`, from all waiting rows at once until a free column is reached: cooperative, one launch a
// search. hungarian.cuh tells the types. R rows, C columns, costs (R,C). Nothing depends on the order of threads.
#include "hungarian.cuh"

// All threads of a cooperative launch wait for each other; arrived starts at 0 and only grows.
__device__ __forceinline__ void wait_for_all(i8* arrived, i8& turn) {
    __syncthreads();
    turn += gridDim.x;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd((Order*)arrived, 1ull);
        while (*(volatile i8*)arrived < turn) {
        }
        __threadfence();
    }
    __syncthreads();
}

// Words of a round are read after its barrier, while quick blocks are in the next round already: so they take turns,
// and those of the next round, read by all two rounds ago, are made zero in this one.
__device__ __forceinline__ void forget_next(i8* words, int slot) {
    if (blockIdx.x || threadIdx.x) return;
    volatile i8* next = words + (slot + 1) % 3;
    next[kJoined] = next[kReached] = next[kLeast] = 0;
}

constexpr int kThreads = 1024;  // of a block
constexpr int kStaged = 512;    // rows of a frontier that a block looks at together
constexpr int kAhead = 8;       // costs that a thread reads before it uses the first
enum { kOpen, kCovered, kEnd };

// Columns of a block, in shared memory, `width` each.
struct Columns {
    KEY *slack, *dual;
    int *owner, *before, *root, *turn, *state;  // state: kOpen, kCovered, kEnd
    __device__ Columns(void* shared, int width) {
        slack = (KEY*)shared, dual = slack + width;
        owner = (int*)(dual + width), before = owner + width, root = before + width, turn = root + width;
        state = turn + width;
    }
};

// Rows of a frontier, where they begin in the matrix, and what a thread found for its column.
struct Staged {
    KEY base[kStaged], slack[kThreads];
    i8 offset[kStaged];
    int row[kStaged], root[kStaged], before[kThreads], from[kThreads];
};

// Algorithm 4 for the rows `first` to `last` of `joined`: the least slack of every open column of a block, and the
// row that has it. Threads that share a column read every `slices`-th row.
__device__ void scan(const COST* costs, i8 cols, i8 column, int width, int own, Columns& columns,
                     Staged& staged, const int* joined, const int* roots, const KEY* bases, i8 first,
                     i8 last) {
    for (int start = 0; start < own; start += kThreads) {
        int wide = own - start < kThreads ? own - start : kThreads, slices = kThreads / wide;
        int c = threadIdx.x % wide, slice = threadIdx.x / wide, at = start + c;
        bool works = slice < slices && columns.state[at] == kOpen;
        const COST* here = costs + column + at;
        KEY dual = columns.dual[at], best = columns.slack[at];
        int before = -1, root = -1, turn = columns.turn[at];
        for (i8 chunk = first; chunk < last; chunk += kStaged) {
            int count = last - chunk < kStaged ? (int)(last - chunk) : kStaged;
            __syncthreads();
            for (int k = threadIdx.x; k < count; k += kThreads) {
                int row = __ldcg(&joined[chunk + k]);
                staged.row[k] = row, staged.offset[k] = row * cols;
                staged.root[k] = __ldcg(&roots[chunk + k]), staged.base[k] = __ldcg(&bases[chunk + k]);
            }
            __syncthreads();
            if (!works) continue;
            for (int k = slice; k < count; k += slices * kAhead) {
                COST cost[kAhead];
#pragma unroll
                for (int a = 0; a < kAhead; ++a)
                    if (k + a * slices < count) cost[a] = here[staged.offset[k + a * slices]];
#pragma unroll
                for (int a = 0; a < kAhead; ++a) {
                    int entry = k + a * slices;
                    if (entry >= count) break;
                    KEY slack = (KEY)cost[a] - staged.base[entry] - dual;
                    if (slack > best) continue;
                    int row = staged.row[entry];
                    if (slack < best || (before >= 0 && after(row, turn) < after(before, turn)))
                        best = slack, before = row, root = staged.root[entry];
                }
            }
        }
        if (slices > 1) {
            staged.slack[threadIdx.x] = best, staged.before[threadIdx.x] = before,
            staged.from[threadIdx.x] = root;
            __syncthreads();
            for (int other = 1; slice == 0 && other < slices; ++other) {
                int t = other * wide + c, row = staged.before[t];
                KEY slack = staged.slack[t];
                if (row < 0 || slack > best) continue;
                if (slack < best || (before >= 0 && after(row, turn) < after(before, turn)))
                    best = slack, before = row, root = staged.from[t];
            }
        }
        if (slice == 0 && before >= 0)
            columns.slack[at] = best, columns.before[at] = before, columns.root[at] = root;
    }
    __syncthreads();
}

// The tree variant's search: Algorithm 4 until no row joins, Algorithm 9 to raise `level`, the sum of all dual
// updates, to the least slack, until a free column has none. Slacks stay as they were found: level is what was taken
// from them since.
// row_dual (R,), col_dual (C,), raised at the end; row_of_col (C,) i4; waiting (R,) i4; joined (R,) i4, rows of all
// trees, roots (R,) i4 theirs and bases (R,) their duals less the level when they joined; row_before (R,) i4,
// col_before, col_root, ends (C,) i4.
extern "C" __global__ void __launch_bounds__(kThreads)
    grow_trees(const COST* costs, i8 rows, i8 cols, int width, KEY never, KEY* row_dual, KEY* col_dual,
               const int* row_of_col, const int* waiting, int* joined, int* roots, KEY* bases,
               int* row_before, int* col_before, int* col_root, int* ends, i8* words) {
    extern __shared__ i8 shared[];
    __shared__ Staged staged;
    __shared__ Order orders[32];
    Columns columns(shared, width);
    i8 column = blockIdx.x * (i8)width, turn = 0, count = words[kWaiting], found = 0, last = 0;
    i8 thread = blockIdx.x * (i8)kThreads + threadIdx.x;
    int own = cols - column < width ? (int)(cols - column) : width;
    for (int c = threadIdx.x; c < own; c += kThreads) {
        columns.slack[c] = never, columns.dual[c] = col_dual[column + c];
        columns.owner[c] = row_of_col[column + c], columns.state[c] = kOpen;
        columns.turn[c] = turn_of((int)column + c, (int)rows);
    }
    for (i8 k = thread; k < count; k += gridDim.x * (i8)kThreads) {
        int row = waiting[k];
        joined[k] = row, roots[k] = row, bases[k] = row_dual[row];
    }
    if (!count) return;
    wait_for_all(&words[kArrived], turn);
    KEY level = 0;
    bool raised = false;
    i8 rounds = 0, updates = 0, ticks[2] = {0, 0}, then = clock64();
    for (int slot = 0;; slot = (slot + 1) % 3) {
        if (last < count)
            scan(costs, cols, column, width, own, columns, staged, joined, roots, bases, last, count);
        last = count;
        Order least = 0;
        for (int c = threadIdx.x; c < own; c += kThreads) {
            if (columns.state[c] != kOpen) continue;
            KEY slack = columns.slack[c];
            if (slack > level) {
                Order order = order_of(slack);
                least = order > least ? order : least;
                continue;
            }
            int row = columns.owner[c], j = (int)column + c;
            if (row < 0) {
                columns.state[c] = kEnd;
                ends[atomicAdd((Order*)&words[kEnds], 1ull)] = j;
                *(volatile i8*)&words[kReached + slot] = 1;
                col_before[j] = columns.before[c], col_root[j] = columns.root[c];
            } else {
                columns.state[c] = kCovered;
                i8 k = count + atomicAdd((Order*)&words[kJoined + slot], 1ull);
                joined[k] = row, roots[k] = columns.root[c], bases[k] = row_dual[row] - slack;
                row_before[row] = columns.before[c];
            }
        }
        least = greatest(least, orders);
        if (threadIdx.x == 0 && least) atomicMax((Order*)&words[kLeast + slot], least);
        forget_next(words, slot);
        wait_for_all(&words[kArrived], turn);
        count += __ldcg(&words[kJoined + slot]);
        i8 now = clock64();
        ticks[raised] += now - then, then = now;
        rounds += !raised, raised = false;
        found |= __ldcg(&words[kReached + slot]);
        if (last < count) continue;
        Order lowest = (Order)__ldcg(&words[kLeast + slot]);
        if (found || !lowest) break;
        KEY next = key_of(lowest, KEY());
        if (next >= never) break;
        level = next > level ? next : level, raised = true, ++updates;
    }
    if (found) {
        for (int c = threadIdx.x; c < own; c += kThreads)
            if (columns.state[c] == kCovered)
                col_dual[column + c] = columns.dual[c] - (level - columns.slack[c]);
        for (i8 k = thread; k < count; k += gridDim.x * (i8)kThreads)
            row_dual[__ldcg(&joined[k])] = __ldcg(&bases[k]) + level;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        words[kRounds] = rounds, words[kUpdates] = updates, words[kScanned] = count;
        words[kSearchTicks] = ticks[0], words[kUpdateTicks] = ticks[1];
    }
}

constexpr int kLanes = 8;  // threads that read one row's pairs together

// Algorithm 3: breadth-first search along the pairs of a CSR matrix, level by level.
// indptr (R+1,) i8, indices (P,) i4; row_of_col (C,) i4; waiting (R,) i4; claim (C,) i8, kUnclaimed: the level that
// reached a column, then how far after the column's place the row is; gathered (C,) i4, columns in the order of their
// levels; joined (R,) i4, rows of all trees; row_before, row_root (R,), col_before, col_root, ends (C,) i4;
// covered (C,) u1 zero.
extern "C" __global__ void forward_pass(i8 rows, const i8* indptr, const int* indices, const int* row_of_col,
                                        const int* waiting, i8* claim, int* gathered, int* joined,
                                        int* row_before, int* row_root, int* col_before, int* col_root,
                                        int* ends, unsigned char* covered, i8* words) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, groups = gridDim.x * blockDim.x / kLanes;
    int lane = thread % kLanes;
    i8 count = words[kWaiting], turn = 0, first = 0, last = count, start = clock64();
    i8 known = 0;  // columns gathered before this level
    int level = 0, slot = 0;
    for (;; ++level, slot = (slot + 1) % 3) {
        for (i8 k = first + thread / kLanes; k < last; k += groups) {
            int row, root;
            if (level == 0) {
                row = waiting[k], root = row;
            } else {
                int j = __ldcg(&gathered[k]);
                int before = (int)((unsigned)__ldcg(&claim[j]) + (unsigned)turn_of(j, (int)rows));
                row = row_of_col[j], root = __ldcg(&row_root[before]);
                if (row < 0) {
                    if (lane == 0) {
                        ends[atomicAdd((Order*)&words[kEnds], 1ull)] = j;
                        col_before[j] = before, col_root[j] = root;
                    }
                    continue;
                }
                if (lane == 0) row_before[row] = before, covered[j] = 1;
            }
            // Every column that was gathered has its row at the same place in `joined`, unless some are free.
            i8 place = level ? count + k : k;
            if (lane == 0) row_root[row] = root;
            if (lane == 0 && place < rows) joined[place] = row;
            for (i8 p = indptr[row] + lane; p < indptr[row + 1]; p += kLanes) {
                int j = indices[p];
                i8 key = (i8)level << 32 | after(row, turn_of(j, (int)rows));
                if (atomicMin(&claim[j], key) == kUnclaimed)
                    gathered[known + atomicAdd((Order*)&words[kJoined + slot], 1ull)] = j;
            }
        }
        forget_next(words, slot);
        wait_for_all(&words[kArrived], turn);
        first = known, last = known += __ldcg(&words[kJoined + slot]);
        if (first == last) break;
    }
    if (thread == 0) {
        words[kRounds] = level + 1, words[kScanned] = count + last - __ldcg(&words[kEnds]);
        words[kSearchTicks] = clock64() - start;
    }
}
