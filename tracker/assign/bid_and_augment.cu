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

constexpr int kPackAlways = 8, kPackEvery = 8;  // rounds after which slots without a row are dropped

// What became of a slot's bid: the row that bids next, or -1. A slot without a bid keeps its row.
__device__ __forceinline__ int settled(int row, int s, const Word* word, Pair* edge, const int* target,
                                       Word* offered, const Pair* offered_pair, const int* outbid) {
    if (row < 0 || !offered[s]) return row;
    bool won = __ldcg(&word[target[s]]) == offered[s];
    offered[s] = 0;
    if (!won) return row;
    edge[row] = offered_pair[s];
    if (outbid[s] >= 0) edge[outbid[s]] = -1;
    return outbid[s];
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

// Rounds of bids without epsilon. A slot stands for a row that bids; when it wins, for the row that was outbid.
// rows (2, S) i4: the row of every slot, or -1, the first half set to the rows that bid; target (S,) i4 column;
// offered (S,) u8 zero; offered_pair (S,) i8; outbid (S,) i4; live (rounds + 2,) i4: slots of each round, live[0]
// set, the last one counts the rows left over; arrived (1,) u4 zero; free (R,) i4: rows left for `augment`.
extern "C" __global__ void bid_rounds(const Pair* indptr, const int* indices, const int* values,
                                      const long long* row_unmatched, Word* word, Pair* edge, int rounds,
                                      int few, long long slots, int* rows, int* target, Word* offered,
                                      Pair* offered_pair, int* outbid, int* live, unsigned* arrived,
                                      int* free) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    int lane = thread % kLanes;
    unsigned group = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
    int* left_over = &live[rounds + 1];
    unsigned turn = 0;
    int* now = rows;
    int* next = rows + slots;
    int count = live[0];
    for (int round = 0; round <= rounds; ++round) {
        bool last = round == rounds || count <= few;
        // Nobody writes a price between here and the next barrier.
        for (int s = thread / kLanes; s < count; s += threads / kLanes) {
            int row = -1;
            if (lane == 0) {
                row = settled(__ldcg(&now[s]), s, word, edge, target, offered, offered_pair, outbid);
                now[s] = row;
            }
            row = __shfl_sync(group, row, threadIdx.x % 32 / kLanes * kLanes);
            if (row < 0) continue;
            Choice choice = choose(indptr, indices, values, (int)row_unmatched[row], word, row, lane);
            if (lane) continue;
            if (choice.best_pair < 0) {  // staying unmatched is best, and stays so: prices only rise
                now[s] = -1;
                continue;
            }
            Pair pair = choice.best_pair;
            int column = indices[pair];
            Word old = __ldcg(&word[column]);
            if (choice.best == choice.second && owner_of(old) >= 0) {
                // A tie that raises no price would go round in circles; the second choice may be free.
                pair = choice.second_pair;
                if (pair >= 0) column = indices[pair], old = __ldcg(&word[column]);
            }
            bool stuck = pair < 0 || (choice.best == choice.second && owner_of(old) >= 0);
            if (stuck || last) {
                free[atomicAdd(left_over, 1)] = row;
                now[s] = -1;
                continue;
            }
            target[s] = column, offered_pair[s] = pair, outbid[s] = owner_of(old);
            offered[s] = word_of(dual_of(old) - (choice.second - choice.best), row);
        }
        if (last) return;
        wait_for_all(arrived, turn);
        // The same threads as above handle a slot from its choice to its end, so only words need a barrier.
        for (int s = thread / kLanes; s < count; s += threads / kLanes)
            if (lane == 0 && offered[s]) atomicMax(&word[target[s]], offered[s]);
        wait_for_all(arrived, turn);
        if (round >= kPackAlways && round % kPackEvery) continue;
        for (int s = thread / kLanes; s < count; s += threads / kLanes) {
            int row = lane ? -1 : settled(__ldcg(&now[s]), s, word, edge, target, offered, offered_pair, outbid);
            append(row >= 0, row, next, &live[round + 1]);
        }
        wait_for_all(arrived, turn);
        int* empty = now;
        now = next, next = empty;
        count = *(volatile int*)&live[round + 1];
    }
}

// --------------------------------------------------------------------------------------------- paths

// One column of a search tree, or the free column at its end.
struct Step {
    int column, raise;  // the dual falls by raise
    int new_owner;      // row that gets the column if the search succeeds, or -1: the owner stays
    int pair_in_row;    // its pair, counted from the row's first
};

// What happens in one round of searches; round 0 is set before the first.
struct Round {
    int left;      // rows without a path when it begins
    int wanted;    // rows that shall search
    int searched;  // rows that do
    int won;       // rows that got their path
};

__device__ __forceinline__ unsigned hash_of(unsigned x) {  // one to one
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// Higher claims win. Every round's claims beat the last one's, so none has to be cleared; a hash keeps
// neighbouring searches from waiting for each other in a row.
__device__ __forceinline__ Word claim_of(int round, int row) {
    return ((Word)(unsigned)(round + 1) << 32) | hash_of(row);
}

// Choose the rows that search: a share of those left, more of them while most searches win their claims, fewer
// while they get in each other's way. rows (S,) i4, -1 when done; slots (S,) i4: places in rows of those chosen.
extern "C" __global__ void choose_searches(const int* rows, int count, int round, Round* rounds, int most,
                                           int* slots) {
    Round before = rounds[round - 1];
    int left = before.left - before.won, wanted = before.wanted;
    if (10 * before.won > 6 * before.searched) wanted += wanted / 2;
    if (10 * before.won < 3 * before.searched) wanted -= wanted / 3;
    wanted = min(max(wanted, 32), most - most / 4);
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s == 0) rounds[round].left = left, rounds[round].wanted = wanted;
    bool chosen = false;
    if (s < count && rows[s] >= 0) {
        unsigned share = wanted >= left ? ~0u : (unsigned)((double)wanted / left * 4294967295.0);
        chosen = hash_of(hash_of(rows[s]) + round) <= share;
    }
    append(chosen, s, slots, &rounds[round].searched);
}

__device__ __forceinline__ void least(int& value, int& index) {
    for (int step = 16; step; step /= 2) {
        int other = __shfl_xor_sync(~0u, value, step), at = __shfl_xor_sync(~0u, index, step);
        if (other < value || (other == value && at < index)) value = other, index = at;
    }
}

constexpr int kNever = 0x7fffffff;

// The columns that one search has reached, in the scratch memory of its warp.
struct Tree {
    int *dist;     // distance while open, kNever once scanned
    int *scanned;  // distance at which it was scanned
    int *column, *owner;
    int *from, *pair;  // entry whose owner reached it (-1: the start), and that row's pair
    int *place;        // hash table over columns: entry + 1, or 0; twice as many places as entries
    int places;
};

__device__ __forceinline__ int first_place(const Tree& tree, int column) {
    return (int)(((Word)(column * 0x9e3779b1u) * (unsigned)tree.places) >> 32);
}

// Entry of a column, or -1.
__device__ __forceinline__ int entry_of(const Tree& tree, int column) {
    for (int h = first_place(tree, column);; h = h + 1 < tree.places ? h + 1 : 0) {
        int entry = tree.place[h] - 1;
        if (entry < 0 || tree.column[entry] == column) return entry;
    }
}

// Enter a column that is not there yet; other threads of the warp may enter other ones.
__device__ __forceinline__ void enter(const Tree& tree, int column, int entry) {
    int h = first_place(tree, column);
    while (atomicCAS(&tree.place[h], 0, entry + 1)) h = h + 1 < tree.places ? h + 1 : 0;
}

__device__ __forceinline__ void prefetch(const void* place) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
}

// Shortest augmenting path from each chosen row, a warp a row (Dijkstra on reduced costs). It may end at a free
// column or at a row that rather stays unmatched. What it would change is written as steps, and every column it
// scanned, and the free one at its end, is claimed: searches whose claims all hold do not touch each other.
// claim (C,) u8; steps (T, room + 1); step_count (T,) i4, -1 where the tree needs more than `room` entries;
// closing (T,) i4: row that is unmatched in exchange, or -1; T searches are taken at once.
extern "C" __global__ void search_paths(const Pair* indptr, const int* indices, const int* values,
                                        const long long* row_unmatched, const Word* word, const Pair* edge,
                                        const int* rows, const int* slots, int round, const Round* rounds,
                                        int most, int room, Word* claim, Step* steps, int* step_count,
                                        int* closing) {
    extern __shared__ int shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    int* mine = shared + warp * 8 * room;
    Tree tree{mine,            mine + room,     mine + 2 * room, mine + 3 * room,
              mine + 4 * room, mine + 5 * room, mine + 6 * room, 2 * room};
    unsigned before = (1u << lane) - 1;
    int searches = min(rounds[round].searched, most);
    for (int t = blockIdx.x * warps + warp; t < searches; t += gridDim.x * warps) {
        int start = rows[slots[t]];
        int unmatched = (int)row_unmatched[start];
        int end_dist = unmatched, end_entry = -1, end_column = -1, end_pair = 0, end_owner = -1;
        int reached = 0, base = 0, current = -1, row = start;
        Pair first = indptr[start], stop = indptr[start + 1], held = -1;
        for (int h = lane; h < tree.places; h += 32) tree.place[h] = 0;
        __syncwarp();
        bool fits = true;
        while (fits) {
            for (Pair p = first; p < stop && fits; p += 32) {
                int j = -1, d = kNever, owner = 0, pair = (int)(p - first) + lane;
                bool there = p + lane < stop;
                // All that depends on the row alone is fetched at once, for each fetch takes as long as the rest.
                if (there) j = indices[p + lane], d = values[p + lane];
                if (p == first && held >= 0) {
                    base -= values[held];
                    if (base + unmatched < end_dist)
                        end_dist = base + unmatched, end_entry = current, end_column = -1, end_owner = row;
                }
                if (there) {
                    Word w = __ldcg(&word[j]);
                    d += base - dual_of(w);
                    owner = owner_of(w);
                }
                // The nearest free column, if any, ends the path and spares what is farther.
                int end = d < end_dist && owner < 0 ? d : kNever, at = lane;
                if (__any_sync(~0u, end != kNever)) {
                    least(end, at);
                    end_dist = end, end_column = __shfl_sync(~0u, j, at);
                    end_pair = __shfl_sync(~0u, pair, at), end_entry = current;
                }
                bool near = d < end_dist && owner >= 0;
                int entry = near ? entry_of(tree, j) : -1;
                bool is_new = near && entry < 0;
                unsigned votes = __ballot_sync(~0u, is_new);
                if (reached + __popc(votes) > room) {
                    fits = false;
                    break;
                }
                if (is_new) {
                    entry = reached + __popc(votes & before);
                    tree.column[entry] = j, tree.owner[entry] = owner, tree.dist[entry] = d;
                    tree.from[entry] = current, tree.pair[entry] = pair;
                    prefetch(&indptr[owner]), prefetch(&edge[owner]);
                } else if (near && tree.dist[entry] != kNever && d < tree.dist[entry]) {
                    // Not scanned yet, for a scanned column's distance is final.
                    tree.dist[entry] = d, tree.from[entry] = current, tree.pair[entry] = pair;
                }
                __syncwarp();
                if (is_new) enter(tree, j, entry);
                reached += __popc(votes);
                __syncwarp();
            }
            int nearest = kNever, at = kNever;
            for (int e = lane; e < reached; e += 32)
                if (tree.dist[e] < nearest) nearest = tree.dist[e], at = e;
            least(nearest, at);
            if (!fits || nearest >= end_dist) break;
            current = at;
            row = tree.owner[at], unmatched = (int)row_unmatched[row], held = edge[row];
            first = indptr[row], stop = indptr[row + 1];
            base = nearest + dual_of(__ldcg(&word[tree.column[at]]));
            __syncwarp();
            if (lane == 0) tree.dist[at] = kNever, tree.scanned[at] = nearest;
            __syncwarp();
        }
        if (!fits) {
            if (lane == 0) step_count[t] = -1;
            continue;
        }
        Word own = claim_of(round, start);
        Step* step = steps + t * (long long)(room + 1);
        int written = 0;
        if (lane == 0 && end_column >= 0) {
            int getter = end_entry < 0 ? start : tree.owner[end_entry];
            step[written] = Step{end_column, 0, getter, end_pair};
            atomicMax(&claim[end_column], own);
        }
        written += end_column >= 0;
        // Backwards from the end, the column of every entry goes to the row that reached it.
        if (lane == 0) {
            for (int e = end_entry; e >= 0;) {
                int parent = tree.from[e];
                tree.from[e] = parent < 0 ? -2 - start : -2 - tree.owner[parent];  // the getter, marked as such
                e = parent;
            }
        }
        __syncwarp();
        for (int e = 0; e < reached; e += 32) {
            int i = e + lane;
            bool is_scanned = i < reached && tree.dist[i] == kNever;
            unsigned votes = __ballot_sync(~0u, is_scanned);
            if (is_scanned) {
                int getter = tree.from[i] <= -2 ? -2 - tree.from[i] : -1;
                step[written + __popc(votes & before)] =
                    Step{tree.column[i], end_dist - tree.scanned[i], getter, tree.pair[i]};
                atomicMax(&claim[tree.column[i]], own);
            }
            written += __popc(votes);
        }
        if (lane == 0) {
            step_count[t] = written;
            closing[t] = end_column < 0 && end_entry >= 0 ? end_owner : -1;
        }
        __syncwarp();
    }
}

// Carry out the searches whose claims all hold, a warp a search. rows (S,) i4: set to -1 when done;
// too_large (S,) i4: rows whose tree did not fit, counted in the first of counts (2,) i4; the second adds up steps.
extern "C" __global__ void apply_paths(const Pair* indptr, Word* word, Pair* edge, int* rows, const int* slots,
                                       int round, Round* rounds, int most, int room, const Word* claim,
                                       const Step* steps, const int* step_count, const int* closing,
                                       int* too_large, unsigned long long* counts) {
    int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    int searches = min(rounds[round].searched, most);
    for (int t = blockIdx.x * warps + threadIdx.x / 32; t < searches; t += gridDim.x * warps) {
        int row = rows[slots[t]], written = step_count[t];
        Word own = claim_of(round, row);
        const Step* step = steps + t * (long long)(room + 1);
        bool holds = true;
        for (int k = lane; k < written; k += 32) holds &= claim[step[k].column] == own;
        if (!__all_sync(~0u, holds)) continue;
        if (lane == 0) {
            rows[slots[t]] = -1;
            atomicAdd(&rounds[round].won, 1);
            if (written < 0) too_large[atomicAdd(&counts[0], 1ull)] = row;
        }
        if (written < 0) continue;
        if (lane == 0) {
            if (closing[t] >= 0) edge[closing[t]] = -1;
            atomicAdd(&counts[1], (unsigned long long)written);
        }
        for (int k = lane; k < written; k += 32) {
            Step change = step[k];
            Word old = word[change.column];
            int owner = change.new_owner >= 0 ? change.new_owner : owner_of(old);
            word[change.column] = word_of(dual_of(old) - change.raise, owner);
            if (change.new_owner >= 0) edge[owner] = indptr[owner] + change.pair_in_row;
        }
    }
}
