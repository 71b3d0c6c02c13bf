// GPU kernels of `bid_and_augment`.
//
// A column is one 64-bit word, (kBias - v) << 32 | owner + 1: the price in the high half grows as the dual v
// falls, so that atomicMax lets the highest bid win, and among equal bids the highest row. Prices are read only
// while nobody writes them, so no result depends on the order of threads.
//
// indptr (R+1,) i8; indices, values (P,) i4; row_unmatched (R,) i8 below 2^29; word (C,) u8;
// edge (R,) i8 pair that each row holds or -1.

typedef unsigned long long Word;
typedef long long Pair;
constexpr int kBias = 1 << 30;

__device__ __forceinline__ int dual_of(Word word) { return kBias - (int)(word >> 32); }
__device__ __forceinline__ int owner_of(Word word) { return (int)(word & 0xffffffffu) - 1; }
__device__ __forceinline__ Word word_of(int dual, int owner) {
    return ((Word)(unsigned)(kBias - dual) << 32) | (unsigned)(owner + 1);
}

// v (C,) i8, owner (C,) i4 to words and back.
extern "C" __global__ void pack(const long long* v, const int* owner, Word* word, long long cols) {
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (j < cols) word[j] = word_of((int)v[j], owner[j]);
}

extern "C" __global__ void unpack(const Word* word, long long* v, int* owner, long long cols) {
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (j < cols) v[j] = dual_of(word[j]), owner[j] = owner_of(word[j]);
}

// ---------------------------------------------------------------------------------------------- bids

constexpr int kLanes = 8;  // threads that read one row together

struct Choice {
    int best, second;
    Pair best_pair, second_pair;  // -1: staying unmatched
};

__device__ __forceinline__ bool before(int a, Pair p, int b, Pair q) {
    // Staying unmatched is no better than an equal pair's limit, and ties go to the first pair of the row.
    return a < b || (a == b && p >= 0 && (q < 0 || p < q));
}

__device__ __forceinline__ void offer(Choice& choice, int value, Pair pair) {
    if (before(value, pair, choice.best, choice.best_pair)) {
        choice.second = choice.best, choice.second_pair = choice.best_pair;
        choice.best = value, choice.best_pair = pair;
    } else if (before(value, pair, choice.second, choice.second_pair)) {
        choice.second = value, choice.second_pair = pair;
    }
}

// Best and second best choice of a row, found by kLanes threads together; all of them return it.
__device__ __forceinline__ Choice choose(const Pair* indptr, const int* indices, const int* values,
                                         int unmatched, const Word* word, int row, int lane) {
    Choice choice{unmatched, unmatched, -1, -1};
    Pair stop = indptr[row + 1];
    for (Pair p = indptr[row] + lane; p < stop; p += kLanes) {
        int reduced = values[p] - dual_of(__ldcg(&word[indices[p]]));
        if (reduced < unmatched) offer(choice, reduced, p);
    }
    unsigned group = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
    for (int step = 1; step < kLanes; step *= 2) {
        int best = __shfl_xor_sync(group, choice.best, step), second = __shfl_xor_sync(group, choice.second, step);
        Pair best_pair = __shfl_xor_sync(group, choice.best_pair, step);
        Pair second_pair = __shfl_xor_sync(group, choice.second_pair, step);
        if (best_pair >= 0) offer(choice, best, best_pair);
        if (second_pair >= 0) offer(choice, second, second_pair);
    }
    return choice;
}

// All threads of a cooperative launch wait for each other; arrived starts at 0 and only grows.
__device__ __forceinline__ void wait_for_all(unsigned* arrived, unsigned& turn) {
    __syncthreads();
    turn += gridDim.x;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned*)arrived < turn) {}
        __threadfence();
    }
    __syncthreads();
}

// Append `row` to a list for every thread that wants to, with one atomic a warp; the order means nothing.
__device__ __forceinline__ void append(bool wanted, int row, int* list, int* count) {
    unsigned together = __activemask();
    unsigned votes = __ballot_sync(together, wanted);
    if (!votes) return;
    int lane = threadIdx.x % 32, leader = __ffs(votes) - 1, start = 0;
    if (lane == leader) start = atomicAdd(count, __popc(votes));
    start = __shfl_sync(together, start, leader);
    if (wanted) list[start + __popc(votes & ((1u << lane) - 1))] = row;
}

// Rounds of bids without epsilon: every listed row bids, then the losers and the rows that were outbid are
// listed anew. rows (2, S) i4, the first half set to the rows that bid; target (S,) i4 pair's column or -1;
// offered (S,) u8; offered_pair (S,) i8; outbid (S,) i4; live (rounds + 2,) i4 rows of each round, live[0] set,
// the last one counts the rows left over; arrived (1,) u4 zero; free (R,) i4: rows left for `augment`.
extern "C" __global__ void bid_rounds(const Pair* indptr, const int* indices, const int* values,
                                      const long long* row_unmatched, Word* word, Pair* edge, int rounds,
                                      int few, long long slots, int* rows, int* target, Word* offered,
                                      Pair* offered_pair, int* outbid, int* live, unsigned* arrived,
                                      int* free) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    int lane = thread % kLanes;
    int* left_over = &live[rounds + 1];
    unsigned turn = 0;
    for (int round = 0; round <= rounds; ++round) {
        int* now = rows + (round % 2) * slots;
        int* next = rows + ((round + 1) % 2) * slots;
        int count = *(volatile int*)&live[round];
        bool last = round == rounds || count <= few;
        // Nobody writes a price between here and the next barrier.
        for (int s = thread / kLanes; s < count; s += threads / kLanes) {
            int row = __ldcg(&now[s]);
            Choice choice = choose(indptr, indices, values, (int)row_unmatched[row], word, row, lane);
            if (lane) continue;
            int column = -1;
            if (choice.best_pair >= 0) {
                Pair pair = choice.best_pair;
                Word old = __ldcg(&word[indices[pair]]);
                if (choice.best == choice.second && owner_of(old) >= 0) {
                    // A tie that raises no price would go round in circles; the second choice may be free.
                    pair = choice.second_pair;
                    if (pair >= 0) old = __ldcg(&word[indices[pair]]);
                }
                bool stuck = pair < 0 || (choice.best == choice.second && owner_of(old) >= 0);
                if (stuck || last) {
                    free[atomicAdd(left_over, 1)] = row;
                } else {
                    column = indices[pair];
                    offered[s] = word_of(dual_of(old) - (choice.second - choice.best), row);
                    offered_pair[s] = pair;
                    outbid[s] = owner_of(old);
                }
            }  // else staying unmatched is best, and stays so: prices only rise
            target[s] = column;
        }
        if (last) return;
        wait_for_all(arrived, turn);
        for (int s = thread; s < count; s += threads)
            if (__ldcg(&target[s]) >= 0) atomicMax(&word[__ldcg(&target[s])], __ldcg(&offered[s]));
        wait_for_all(arrived, turn);
        for (int s = thread; s < count; s += threads) {
            int column = __ldcg(&target[s]), row = __ldcg(&now[s]);
            if (column >= 0 && __ldcg(&word[column]) == __ldcg(&offered[s])) {
                edge[row] = __ldcg(&offered_pair[s]);
                row = __ldcg(&outbid[s]);
                if (row >= 0) edge[row] = -1;
            } else if (column < 0) {
                row = -1;
            }
            append(row >= 0, row, next, &live[round + 1]);
        }
        wait_for_all(arrived, turn);
    }
}

// --------------------------------------------------------------------------------------------- paths

// One column of a search tree, or the free column at its end.
struct Step {
    int column, raise;  // the dual falls by raise
    int new_owner;      // row that gets the column if the search succeeds, or -1: the owner stays
    int pair_in_row;    // its pair, counted from the row's first
};

// Higher claims win. Every round's claims beat the last one's, so none has to be cleared; a hash that
// maps rows one to one keeps neighbouring searches from waiting for each other in a row.
__device__ __forceinline__ Word claim_of(int round, int row) {
    unsigned h = row;
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    h ^= h >> 16;
    return ((Word)(unsigned)(round + 1) << 32) | h;
}

__device__ __forceinline__ void least(int& value, int& index) {
    for (int step = 16; step; step /= 2) {
        int other = __shfl_xor_sync(~0u, value, step), at = __shfl_xor_sync(~0u, index, step);
        if (other < value || (other == value && at < index)) value = other, index = at;
    }
}

constexpr int kNever = 0x7fffffff;

// Shortest augmenting path from each listed row, a warp a row (Dijkstra on reduced costs). It may end at a free
// column or at a row that rather stays unmatched. What it would change is written as steps, and every column it
// scanned, and the free one at its end, is claimed: searches whose claims all hold do not touch each other.
// rows (S,) i4, count (1,) i4; claim (C,) u8; steps (S, room + 1); step_count (S,) i4; closing (S,) i4: row that
// is unmatched in exchange, or -1; too_large (R,) i4 with its count (1,) i4: rows whose tree needs more than `room`.
extern "C" __global__ void search_paths(const Pair* indptr, const int* indices, const int* values,
                                        const long long* row_unmatched, const Word* word, const Pair* edge,
                                        const int* rows, const int* count, int round, int room, Word* claim,
                                        Step* steps, int* step_count, int* closing, int* too_large,
                                        int* too_large_count) {
    extern __shared__ int shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    // Columns reached so far: distance (kNever once scanned), column, owner, dual, the entry and pair it was
    // reached by; and the distance it was scanned at.
    int* entry = shared + warp * 7 * room;
    int *open = entry, *column = entry + room, *owner = entry + 2 * room, *dual = entry + 3 * room,
        *from = entry + 4 * room, *by_pair = entry + 5 * room, *scanned_at = entry + 6 * room;
    for (int s = blockIdx.x * warps + warp; s < *count; s += gridDim.x * warps) {
        int start = rows[s];
        int end_dist = (int)row_unmatched[start], end_entry = -1, end_column = -1, end_pair = 0, end_owner = -1;
        int reached = 0, row = start, base = 0, current = -1;
        bool fits = true;
        while (fits) {
            Pair first = indptr[row], stop = indptr[row + 1];
            for (Pair p = first; p < stop; p += 32) {
                int j = -1, d = kNever;
                Word w = 0;
                if (p + lane < stop) {
                    j = indices[p + lane];
                    w = __ldcg(&word[j]);
                    d = base + values[p + lane] - dual_of(w);
                }
                unsigned near = __ballot_sync(~0u, d < end_dist);
                while (near) {
                    int source = __ffs(near) - 1;
                    near &= near - 1;
                    int dist = __shfl_sync(~0u, d, source);
                    if (dist >= end_dist) continue;  // the end has come nearer meanwhile
                    int col = __shfl_sync(~0u, j, source), holder = owner_of(__shfl_sync(~0u, w, source));
                    int its_dual = dual_of(__shfl_sync(~0u, w, source)), pair = (int)(p - first) + source;
                    if (holder < 0) {
                        end_dist = dist, end_column = col, end_entry = current, end_pair = pair;
                        continue;
                    }
                    int place = reached;
                    for (int e = lane; e < reached; e += 32)
                        if (column[e] == col) place = e;
                    place = __reduce_min_sync(~0u, place);
                    if (place == room) {
                        fits = false;
                        break;
                    }
                    bool is_new = place == reached;
                    reached += is_new;
                    // A scanned column's distance is final: it never comes nearer again.
                    if (lane == 0 && (is_new || (open[place] != kNever && dist < open[place]))) {
                        open[place] = dist, from[place] = current, by_pair[place] = pair;
                        if (is_new) column[place] = col, owner[place] = holder, dual[place] = its_dual;
                    }
                    __syncwarp();
                }
                if (!fits) break;
            }
            int nearest = kNever, at = kNever;
            for (int e = lane; e < reached; e += 32)
                if (open[e] < nearest) nearest = open[e], at = e;
            least(nearest, at);
            if (!fits || nearest >= end_dist) break;
            __syncwarp();
            current = at, row = owner[at];
            if (lane == 0) open[at] = kNever, scanned_at[at] = nearest;
            __syncwarp();
            base = nearest - (values[edge[row]] - dual[at]);
            if (base + (int)row_unmatched[row] < end_dist) {
                end_dist = base + (int)row_unmatched[row], end_entry = at, end_column = -1, end_owner = row;
            }
        }
        if (!fits) {
            if (lane == 0) too_large[atomicAdd(too_large_count, 1)] = start, step_count[s] = -1;
            continue;
        }
        Word mine = claim_of(round, start);
        Step* step = steps + s * (long long)(room + 1);
        int written = 0;
        // The path back from the end: the column of entry e goes to the row that reached it.
        for (int e = lane; e < reached; e += 32)
            if (open[e] == kNever) owner[e] = -1;  // from here on: the row that gets the column
        __syncwarp();
        if (lane == 0 && (end_column >= 0 || end_entry >= 0)) {
            int e = end_entry;
            while (e >= 0) {
                int before = from[e];
                owner[e] = before < 0 ? start : -2 - before;
                e = before;
            }
        }
        __syncwarp();
        for (int e = 0; e < reached; e += 32) {
            int i = e + lane;
            bool is_scanned = i < reached && open[i] == kNever;
            unsigned votes = __ballot_sync(~0u, is_scanned);
            if (is_scanned) {
                // A column is held by the row that the entry before it brought in.
                int getter = owner[i];
                if (getter <= -2) getter = owner_of(__ldcg(&word[column[-2 - getter]]));
                step[written + __popc(votes & ((1u << lane) - 1))] =
                    Step{column[i], end_dist - scanned_at[i], getter, by_pair[i]};
                atomicMax(&claim[column[i]], mine);
            }
            written += __popc(votes);
        }
        if (lane == 0) {
            if (end_column >= 0) {
                int getter = end_entry < 0 ? start : owner_of(__ldcg(&word[column[end_entry]]));
                step[written++] = Step{end_column, 0, getter, end_pair};
                atomicMax(&claim[end_column], mine);
            }
            step_count[s] = written;
            closing[s] = end_column < 0 && end_entry >= 0 ? end_owner : -1;
        }
        __syncwarp();
    }
}

// Carry out the searches whose claims all hold, a warp a search; list the rows of the others again.
extern "C" __global__ void apply_paths(const Pair* indptr, Word* word, Pair* edge, const int* rows,
                                       const int* count, int round, int room, const Word* claim,
                                       const Step* steps, const int* step_count, const int* closing,
                                       int* rows_next, int* count_next, unsigned long long* scanned) {
    int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int s = blockIdx.x * warps + threadIdx.x / 32; s < *count; s += gridDim.x * warps) {
        Word mine = claim_of(round, rows[s]);
        const Step* step = steps + s * (long long)(room + 1);
        int written = step_count[s];
        if (written < 0) continue;  // too large: listed elsewhere
        bool holds = true;
        for (int k = lane; k < written; k += 32) holds &= claim[step[k].column] == mine;
        if (!__all_sync(~0u, holds)) {
            if (lane == 0) rows_next[atomicAdd(count_next, 1)] = rows[s];
            continue;
        }
        if (lane == 0 && closing[s] >= 0) edge[closing[s]] = -1;
        __syncwarp();
        for (int k = lane; k < written; k += 32) {
            Step change = step[k];
            Word old = word[change.column];
            int holder = change.new_owner >= 0 ? change.new_owner : owner_of(old);
            word[change.column] = word_of(dual_of(old) - change.raise, holder);
            if (change.new_owner >= 0) edge[holder] = indptr[holder] + change.pair_in_row;
        }
        if (lane == 0) atomicAdd(scanned, (unsigned long long)written);
    }
}
