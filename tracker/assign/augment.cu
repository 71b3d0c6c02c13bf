// Shortest augmenting paths of `bid_and_augment`, many at once. Searches that touch the same column are told
// apart by their claims, not by their speed, so no result depends on the order of threads. Arrays as words.cuh tells.
#include "words.cuh"

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
