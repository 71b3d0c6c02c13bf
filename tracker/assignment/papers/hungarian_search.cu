// Searches of `hungarian`, from all waiting rows at once until a free column is reached: cooperative, one launch a
// search. hungarian.cuh lists the types. R rows, C columns, costs (R,C). Nothing depends on the order of threads.
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

// A level's word is read after its barrier, while quick blocks are in the next level already: so three take turns, and
// that of the next level, read by all two levels ago, is made zero in this one.
__device__ __forceinline__ void forget_next(i8* words, int slot) {
    if (blockIdx.x || threadIdx.x) return;
    *(volatile i8*)&words[kJoined + (slot + 1) % 3] = 0;
}

constexpr int kThreads = 1024;  // of a block of `grow_trees`, and the most blocks it may have
constexpr int kStaged = 512;    // rows of a frontier that a block looks at together
constexpr int kAhead = 8;       // costs that a thread reads before it uses the first
enum { kOpen, kCovered, kEnd };

// Columns of a block, in shared memory, `width` each.
struct Columns {
    KEY *slack, *dual, *owner_dual;
    int *owner, *before, *root, *turn, *state;  // state: kOpen, kCovered, kEnd
    __device__ Columns(void* shared, int width) {
        slack = (KEY*)shared, dual = slack + width, owner_dual = dual + width;
        owner = (int*)(owner_dual + width), before = owner + width, root = before + width;
        turn = root + width, state = turn + width;
    }
};

// Rows of a frontier, where they begin in the matrix, and what a thread found for its column.
struct Staged {
    KEY base[kStaged], slack[kThreads];
    i8 offset[kStaged], place[kStaged];
    int row[kStaged], root[kStaged], before[kThreads], from[kThreads];
};

// Algorithm 4 for a frontier of `total` rows: the least slack of every open column of a block, and the row that has
// it. stage(chunk, count) puts so many rows of the frontier into `staged`. Threads that share a column read every
// `slices`-th row.
template <class Stage>
__device__ void scan(const COST* costs, i8 column, int own, Columns& columns, Staged& staged, i8 total,
                     Stage stage) {
    for (int start = 0; start < own; start += kThreads) {
        int wide = own - start < kThreads ? own - start : kThreads, slices = kThreads / wide;
        int c = threadIdx.x % wide, slice = threadIdx.x / wide, at = start + c;
        bool works = slice < slices && columns.state[at] == kOpen;
        const COST* here = costs + column + at;
        KEY dual = columns.dual[at], best = columns.slack[at];
        int before = -1, root = -1, turn = columns.turn[at];
        for (i8 chunk = 0; chunk < total; chunk += kStaged) {
            int count = total - chunk < kStaged ? (int)(total - chunk) : kStaged;
            __syncthreads();
            stage(chunk, count);
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
        if (slices > 1 && total > 1) {
            staged.slack[threadIdx.x] = best, staged.before[threadIdx.x] = before;
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

// Every block announces one word to all others, and thread t returns that of block t: how many it has announced,
// whether it has reached a free column, how many of its columns it has covered. What it wrote before can then be read.
// words[kAnnounced], two for each block in turn: a quick block writes its next word while others still read this one.
constexpr Order kReachedOne = 1ull << 32, kOnce = 1ull << 33;
__device__ __forceinline__ Order announce(i8* words, Order& times, bool reached, int covered, bool has_written) {
    times += kOnce;
    volatile Order* announced = (volatile Order*)&words[kAnnounced + (times / kOnce % 2) * kThreads];
    Order word = times | (reached ? kReachedOne : 0) | (unsigned)covered;
    if (threadIdx.x == 0) {
        if (has_written) asm volatile("fence.acq_rel.gpu;" ::: "memory");
        announced[blockIdx.x] = word;
    }
    __syncthreads();
    if (threadIdx.x >= gridDim.x) return 0;
    do word = announced[threadIdx.x];
    while (word < times);
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    return word;
}

// The tree variant's search: Algorithm 4 until no row joins, Algorithm 9 to raise `level`, the sum of all dual
// updates, to the least slack, until a free column has none. Slacks stay as they were found: level is what was taken
// from them since.
// row_dual (R,), col_dual (C,), raised at the end; row_of_col (C,) i4; waiting (R,) i4; joined (C,) i8 and bases (C,):
// of every block, from its first column on, the rows that joined by its columns, with their roots in the high halves,
// and their duals less the level then; row_before (R,), col_before, col_root, ends (C,) i4.
extern "C" __global__ void __launch_bounds__(kThreads)
    grow_trees(const COST* costs, i8 rows, i8 cols, int width, KEY never, KEY* row_dual, KEY* col_dual,
               const int* row_of_col, const int* waiting, i8* joined, KEY* bases, int* row_before,
               int* col_before, int* col_root, int* ends, i8* words) {
    extern __shared__ i8 shared[];
    __shared__ Staged staged;
    __shared__ Order orders[32], lowest;
    __shared__ int covered, reached, frontier;
    __shared__ i8 rounds, updates, scanned, ticks[2], then;
    Columns columns(shared, width);
    i8 column = blockIdx.x * (i8)width, count = words[kWaiting];
    if (!count) return;
    int own = cols - column < width ? (int)(cols - column) : width;
    for (int c = threadIdx.x; c < own; c += kThreads) {
        int owner = row_of_col[column + c];
        columns.slack[c] = never, columns.dual[c] = col_dual[column + c];
        columns.owner[c] = owner, columns.owner_dual[c] = owner < 0 ? never : row_dual[owner];
        columns.turn[c] = turn_of((int)column + c, (int)rows), columns.state[c] = kOpen;
    }
    if (threadIdx.x == 0) {
        covered = reached = 0, rounds = 1, scanned = count, updates = ticks[0] = ticks[1] = 0, then = clock64();
    }
    __syncthreads();
    scan(costs, column, own, columns, staged, count, [&](i8 chunk, int here) {
        for (int k = threadIdx.x; k < here; k += kThreads) {
            int row = waiting[chunk + k];
            staged.row[k] = staged.root[k] = row, staged.offset[k] = row * cols, staged.base[k] = row_dual[row];
        }
    });
    KEY level = 0;
    Order times = 0;
    bool raised = false;
    int seen = 0;  // columns of block threadIdx.x whose rows have been scanned
    for (;;) {
        int before = covered;
        __syncthreads();
        for (int c = threadIdx.x; c < own; c += kThreads) {
            if (columns.state[c] != kOpen || columns.slack[c] > level) continue;
            int row = columns.owner[c], j = (int)column + c;
            if (row < 0) {
                columns.state[c] = kEnd, reached = 1;
                ends[atomicAdd((Order*)&words[kEnds], 1ull)] = j;
                col_before[j] = columns.before[c], col_root[j] = columns.root[c];
            } else {
                columns.state[c] = kCovered;
                i8 place = column + atomicAdd(&covered, 1);
                joined[place] = (i8)columns.root[c] << 32 | row;
                bases[place] = columns.owner_dual[c] - columns.slack[c];
                row_before[row] = columns.before[c];
            }
        }
        if (threadIdx.x == 0) frontier = 0;
        __syncthreads();
        Order word = announce(words, times, reached, covered, covered > before);
        int until = (int)(unsigned)word, start = 0, first = seen;
        if (until > first) start = atomicAdd(&frontier, until - first);
        bool found = __syncthreads_or((word & kReachedOne) != 0);
        int total = frontier;
        if (threadIdx.x == 0) {
            i8 now = clock64();
            ticks[raised] += now - then, then = now, scanned += total, rounds += total > 0;
        }
        raised = false;
        if (total) {
            scan(costs, column, own, columns, staged, total, [&](i8 chunk, int here) {
                for (int e = chunk > start ? (int)(chunk - start) : 0; e < until - first; ++e) {
                    if (start + e >= chunk + here) break;
                    staged.place[start + e - chunk] = threadIdx.x * (i8)width + first + e;
                }
                __syncthreads();
                for (int k = threadIdx.x; k < here; k += kThreads) {
                    i8 entry = __ldcg(&joined[staged.place[k]]);
                    staged.base[k] = __ldcg(&bases[staged.place[k]]);
                    staged.row[k] = (int)entry, staged.root[k] = (int)(entry >> 32);
                    staged.offset[k] = (int)entry * cols;
                }
            });
            seen = until;
            continue;
        }
        if (found) break;
        Order least = 0;
        for (int c = threadIdx.x; c < own; c += kThreads) {
            Order order = columns.state[c] == kOpen ? order_of(columns.slack[c]) : 0;
            least = order > least ? order : least;
        }
        least = greatest(least, orders);
        if (threadIdx.x == 0) *(volatile i8*)&words[kLeastOf + blockIdx.x] = (i8)least;
        announce(words, times, reached, covered, true);
        __syncthreads();
        least = threadIdx.x < gridDim.x ? (Order)*(volatile i8*)&words[kLeastOf + threadIdx.x] : 0;
        least = greatest(least, orders);
        if (threadIdx.x == 0) lowest = least;
        __syncthreads();
        KEY next = lowest ? key_of(lowest, KEY()) : never;
        if (next >= never) break;
        level = next > level ? next : level, raised = true;
        if (threadIdx.x == 0) ++updates;
    }
    i8 thread = blockIdx.x * (i8)kThreads + threadIdx.x;
    if (__ldcg(&words[kEnds])) {
        for (int c = threadIdx.x; c < own; c += kThreads) {
            if (columns.state[c] != kCovered) continue;
            col_dual[column + c] = columns.dual[c] - (level - columns.slack[c]);
            row_dual[columns.owner[c]] = columns.owner_dual[c] - columns.slack[c] + level;
        }
        for (i8 k = thread; k < count; k += gridDim.x * (i8)kThreads) row_dual[waiting[k]] += level;
    }
    if (thread == 0) {
        words[kRounds] = rounds, words[kUpdates] = updates, words[kScanned] = scanned;
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
