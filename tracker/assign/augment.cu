// Shortest augmenting paths of `bid_and_augment`, many at once. Searches that touch the same column are told
// apart by their claims, not by their speed, so no result depends on the order of threads. Arrays as words.cuh tells.
#include "grid.cuh"
#include "search.cuh"

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

// Higher claims win: those of later rounds, so that none has to be cleared, then those of later turns of a round,
// then smaller searches, for more of them fit beside each other. A hash keeps neighbours from waiting in a row.
__device__ __forceinline__ Word claim_of(int round, int turn, int size, int row) {
    return ((Word)(unsigned)((round + 1) * 8 + turn) << 42) | ((Word)(unsigned)(1023 - min(size, 1023)) << 32) |
           hash_of(row);
}

constexpr int kWon = 7;  // the turn in which columns are claimed for good

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
    int place = place_in_list(chosen, &rounds[round].searched);
    if (place >= 0) slots[place] = s;
}

__device__ __forceinline__ int pair_of(const Problem& problem, int row, int column) {
    Pair first = problem.indptr[row];
    int pair = 0;
    for (Pair p = first; p < problem.indptr[row + 1]; ++p)
        if (problem.indices[p] == column) pair = (int)(p - first);
    return pair;
}

// Shortest augmenting path from each chosen row, kWarps warps a row. What it would change is written as steps, and
// every column whose dual it lowers, and the free one at its end, is claimed: searches whose claims all hold do not
// touch each other.
template <int kWarps>
__device__ void search_all(const Problem& problem, const int* rows, const int* slots, int round, const Round* rounds,
                           int most, int room, int bytes, Word* claim, Step* steps, int* step_count, int* closing,
                           Word* scratch) {
    constexpr int kThreads = 32 * kWarps;
    int me = threadIdx.x % kThreads, group = threadIdx.x / kThreads, groups = blockDim.x / kThreads;
    Tree tree = tree_at(scratch + group * (bytes / sizeof(Word)), room);
    int searches = min(rounds[round].searched, most);
    for (int t = blockIdx.x * groups + group; t < searches; t += gridDim.x * groups) {
        int start = rows[slots[t]];
        if (!find_path<kWarps>(problem, tree, start)) {
            if (me == 0) step_count[t] = -1;
            meet<kWarps>();
            continue;
        }
        Shared& all = *tree.all;
        int end_dist = dist_of(all.end), last = (int)(unsigned)all.end_place - 1;
        int end_column = (int)(all.end_place >> 32) - 1, end_row = last < 0 ? start : tree.owner[place_of(tree, last)];
        Step* step = steps + t * (long long)(room + 1);
        if (me == 0 && end_column >= 0)
            step[atomicAdd(&all.written, 1)] = Step{end_column, 0, end_row, pair_of(problem, end_row, end_column)};
        for (int i = me; i < all.count; i += kThreads) {
            int place = tree.list[i], dist = dist_of(tree.label[place] >> kFromBits), column = tree.column[place];
            bool on_path = (tree.label[place] & kFrom) == kFrom;
            if (dist >= end_dist && !on_path) continue;
            int getter = on_path ? tree.open[place] : -1;
            step[atomicAdd(&all.written, 1)] =
                Step{column, end_dist - dist, getter, on_path ? pair_of(problem, getter, column) : -1};
        }
        meet<kWarps>();
        int written = all.written;
        for (int k = me; k < written; k += kThreads)
            atomicMax(&claim[step[k].column], claim_of(round, 0, written, start));
        if (me == 0) step_count[t] = written, closing[t] = end_column < 0 && last >= 0 ? end_row : -1;
        meet<kWarps>();
    }
}

// A warp a search, or a block a search. claim (C,) u8; steps (T, room + 1); step_count (T,) i4, -1 where the tree
// needs more than `room` places; closing (T,) i4: row that is unmatched in exchange, or -1; T searches are taken at
// once; bytes of scratch memory for each.
extern "C" __global__ void search_by_warps(const Pair* indptr, const int* indices, const int* values,
                                  const long long* row_unmatched, const Word* word, const Pair* edge,
                                  const int* rows, const int* slots, int round, const Round* rounds, int most,
                                  int room, int bytes, Word* claim, Step* steps, int* step_count, int* closing) {
    extern __shared__ Word scratch[];
    search_all<1>({indptr, indices, values, row_unmatched, word, edge}, rows, slots, round, rounds, most, room, bytes,
                  claim, steps, step_count, closing, scratch);
}

extern "C" __global__ void search_by_blocks(const Pair* indptr, const int* indices, const int* values,
                                  const long long* row_unmatched, const Word* word, const Pair* edge,
                                  const int* rows, const int* slots, int round, const Round* rounds, int most,
                                  int room, int bytes, Word* claim, Step* steps, int* step_count, int* closing) {
    extern __shared__ Word scratch[];
    search_all<4>({indptr, indices, values, row_unmatched, word, edge}, rows, slots, round, rounds, most, room, bytes,
                  claim, steps, step_count, closing, scratch);
}

// Claim again for the searches that lost to others that lost as well, without searching anew; those that lost
// to a winner have to, and step_count becomes -2. Arrays as in apply_paths.
extern "C" __global__ void claim_again(const int* rows, const int* slots, int round, int turn, const Round* rounds,
                                       int most, int room, Word* claim, const Step* steps, int* step_count) {
    int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    int searches = min(rounds[round].searched, most);
    for (int t = blockIdx.x * warps + threadIdx.x / 32; t < searches; t += gridDim.x * warps) {
        int row = rows[slots[t]], written = step_count[t];
        if (row < 0 || written < 0) continue;
        const Step* step = steps + t * (long long)(room + 1);
        Word won = claim_of(round, kWon, 1023, 0) >> 42;
        bool alive = true;
        for (int k = lane; k < written; k += 32) alive &= __ldcg(&claim[step[k].column]) >> 42 < won;
        alive = __all_sync(~0u, alive);
        Word own = claim_of(round, turn, written, row);
        for (int k = lane; alive && k < written; k += 32) atomicMax(&claim[step[k].column], own);
        if (!alive && lane == 0) step_count[t] = -2;
    }
}

// Carry out the searches whose claims all hold, a warp a search. rows (S,) i4: set to -1 when done;
// too_large (S,) i4: rows whose tree did not fit, counted in the first of counts (2,) u8; the second adds up steps.
extern "C" __global__ void apply_paths(const Pair* indptr, Word* word, Pair* edge, int* rows, const int* slots,
                                       int round, int turn, Round* rounds, int most, int room, Word* claim,
                                       const Step* steps, const int* step_count, const int* closing,
                                       int* too_large, unsigned long long* counts) {
    int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    int searches = min(rounds[round].searched, most);
    for (int t = blockIdx.x * warps + threadIdx.x / 32; t < searches; t += gridDim.x * warps) {
        int row = rows[slots[t]], written = step_count[t];
        if (row < 0 || written == -2) continue;
        Word own = claim_of(round, turn, written, row);
        const Step* step = steps + t * (long long)(room + 1);
        bool holds = true;
        for (int k = lane; k < written; k += 32) holds &= __ldcg(&claim[step[k].column]) == own;
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
            atomicMax(&claim[change.column], claim_of(round, kWon, written, row));
        }
    }
}
