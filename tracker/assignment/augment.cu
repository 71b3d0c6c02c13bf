// Shortest augmenting paths of `bid_and_augment`, many at once. Searches that touch the same column are ordered
// by their claims, not by their speed, so no result depends on the order of threads. Arrays as words.cuh says.
// All rounds of an attempt are one cooperative launch: the host need not know how many rows are left.
#include "grid.cuh"
#include "search.cuh"

// One column of a search tree, or the free column at its end.
struct Step {
    int column, raise;  // the dual falls by raise
    int new_owner;      // row that gets the column if the search succeeds, or -1: the owner stays
    int pair_in_row;    // its pair, counted from the row's first
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
constexpr int kMostRounds = 4096;

__device__ __forceinline__ int pair_of(const Problem& problem, int row, int column) {
    Pair first = problem.indptr[row];
    int pair = 0;
    for (Pair p = first; p < problem.indptr[row + 1]; ++p)
        if (problem.indices[p] == column) pair = (int)(p - first);
    return pair;
}

// Memory of a launch: rows (S,) i4, -1 when done; slots (S,) i4: places in rows of those that search; claim (C,) u8;
// steps (most, room + 1) and step_count (most,) i4 of each search, -1 where the tree needs more than `room` places, -2
// where it lost; closing (most,) i4: row that is unmatched in exchange, or -1; bytes of scratch memory for a search.
struct Searches {
    int *rows, *slots;
    Word* claim;
    Step* steps;
    int *step_count, *closing;
    int most, room, bytes;
};

// Choose the rows that search: a share of those left.
__device__ void choose_searches(const Searches& all, int count, int left, int wanted, int round, int blocks, Round* now) {
    unsigned share = wanted >= left ? ~0u : (unsigned)((double)wanted / left * 4294967295.0);
    for (int s = blockIdx.x * blockDim.x + threadIdx.x; s < count; s += blocks * blockDim.x) {
        int row = all.rows[s];
        bool chosen = row >= 0 && hash_of(hash_of(row) + round) <= share;
        int place = place_in_list(chosen, &now->searched);
        if (place >= 0) all.slots[place] = s;
    }
}

// Shortest augmenting path from each chosen row, kWarps warps a row. What it would change is written as steps, and
// every column whose dual it lowers, and the free one at its end, is claimed: searches whose claims all hold do not
// touch each other.
template <int kWarps>
__device__ void search_all(const Problem& problem, const Searches& every, int round, int searches, int* taken,
                           Word* scratch) {
    constexpr int kThreads = 32 * kWarps;
    __shared__ int next;
    int me = threadIdx.x % kThreads, group = threadIdx.x / kThreads;
    Tree tree = tree_at(scratch + group * (every.bytes / sizeof(Word)), every.room);
    for (;;) {
        int t = 0;
        if (me == 0) t = atomicAdd(taken, 1);
        if (kWarps == 1) {
            t = __shfl_sync(~0u, t, 0);
        } else {
            if (me == 0) next = t;
            meet<kWarps>();
            t = next;
        }
        if (t >= searches) return;
        int start = every.rows[every.slots[t]];
        if (!find_path<kWarps>(problem, tree, start)) {
            if (me == 0) every.step_count[t] = -1;
            meet<kWarps>();
            continue;
        }
        Shared& all = *tree.all;
        int end_dist = dist_of(all.end), last = (int)(unsigned)all.end_place - 1;
        int end_column = (int)(all.end_place >> 32) - 1, end_row = last < 0 ? start : tree.owner[place_of(tree, last)];
        Step* step = every.steps + t * (long long)(every.room + 1);
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
            atomicMax(&every.claim[step[k].column], claim_of(round, 0, written, start));
        if (me == 0)
            every.step_count[t] = written, every.closing[t] = end_column < 0 && last >= 0 ? end_row : -1;
        meet<kWarps>();
    }
}

// Claim again for the searches that lost to others that lost as well, without searching anew; those that lost
// to a winner have to. A warp a search.
__device__ void claim_again(const Searches& all, int round, int turn, int searches, int blocks) {
    int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int t = blockIdx.x * warps + threadIdx.x / 32; t < searches; t += blocks * warps) {
        int row = all.rows[all.slots[t]], written = all.step_count[t];
        if (row < 0 || written < 0) continue;
        const Step* step = all.steps + t * (long long)(all.room + 1);
        Word won = claim_of(round, kWon, 1023, 0) >> 42;
        bool alive = true;
        for (int k = lane; k < written; k += 32) alive &= __ldcg(&all.claim[step[k].column]) >> 42 < won;
        alive = __all_sync(~0u, alive);
        Word own = claim_of(round, turn, written, row);
        for (int k = lane; alive && k < written; k += 32) atomicMax(&all.claim[step[k].column], own);
        if (!alive && lane == 0) all.step_count[t] = -2;
    }
}

// Carry out the searches whose claims all hold, a warp a search. Rows whose tree did not fit go to the list too_large.
__device__ void apply_paths(const Problem& problem, Word* word, Pair* edge, const Searches& all, int round, int turn,
                            int searches, int blocks, Round* now, int* too_large, int* outgrown, Word* scanned) {
    int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (int t = blockIdx.x * warps + threadIdx.x / 32; t < searches; t += blocks * warps) {
        int row = all.rows[all.slots[t]], written = all.step_count[t];
        if (row < 0 || written == -2) continue;
        Word own = claim_of(round, turn, written, row);
        const Step* step = all.steps + t * (long long)(all.room + 1);
        bool holds = true;
        for (int k = lane; k < written; k += 32) holds &= __ldcg(&all.claim[step[k].column]) == own;
        if (!__all_sync(~0u, holds)) continue;
        if (lane == 0) {
            all.rows[all.slots[t]] = -1;
            atomicAdd(&now->won, 1);
            if (written < 0) too_large[atomicAdd(outgrown, 1)] = row;
        }
        if (written < 0) continue;
        if (lane == 0) {
            if (all.closing[t] >= 0) edge[all.closing[t]] = -1;
            atomicAdd(scanned, (Word)written);
        }
        for (int k = lane; k < written; k += 32) {
            Step change = step[k];
            Word old = __ldcg(&word[change.column]);
            int owner = change.new_owner >= 0 ? change.new_owner : owner_of(old);
            word[change.column] = word_of(dual_of(old) - change.raise, owner);
            if (change.new_owner >= 0) edge[owner] = problem.indptr[owner] + change.pair_in_row;
            atomicMax(&all.claim[change.column], claim_of(round, kWon, written, row));
        }
    }
}

// Rounds of searches from the rows of one list, until each has its path or goes to the next list; so do the last ones,
// if no more than `few` are left. Lists (3, R) i4: of this attempt, of the next, and slots.
template <int kWarps>
__device__ void find_paths(const Problem& problem, Word* word, Pair* edge, int rows, int cols, int* lists, Searches all,
                           int attempt, int few, int turns, State* state) {
    extern __shared__ Word scratch[];
    Attempt* here = &state->attempts[attempt];
    int count = here[-1].left_over, left = count, round = state->round, blocks = gridDim.x;
    // So few trees seldom meet; the rounds then find how many may search at once.
    int wanted = max(512, cols / 128);
    unsigned turn = 0;
    all.rows = lists + (attempt + 1) % 2 * (long long)rows, all.slots = lists + 2ll * rows;
    int* too_large = lists + attempt % 2 * (long long)rows;
    for (int end = round + kMostRounds; left > few && round < end;) {
        blocks = min(blocks, left);  // more are of no use
        if (blockIdx.x >= blocks) return;
        Round* now = &here->rounds[++round % kKept];
        wanted = min(max(wanted, 32), all.most - all.most / 4);
        choose_searches(all, count, left, wanted, round, blocks, now);
        wait_for_all(&here->arrived, turn, blocks);
        int searched = *(volatile int*)&now->searched, searches = min(searched, all.most);
        if (threadIdx.x == 0 && blockIdx.x == 0) here->rounds[(round + 1) % kKept] = Round{};
        search_all<kWarps>(problem, all, round, searches, &now->taken, scratch);
        for (int k = 0; k < turns; ++k) {
            wait_for_all(&here->arrived, turn, blocks);
            if (k) {
                claim_again(all, round, k, searches, blocks);
                wait_for_all(&here->arrived, turn, blocks);
            }
            apply_paths(problem, word, edge, all, round, k, searches, blocks, now, too_large, &here->left_over,
                        &state->scanned);
        }
        wait_for_all(&here->arrived, turn, blocks);
        int won = *(volatile int*)&now->won;
        // More of them while most win their claims, fewer while they get in each other's way.
        if (10 * won > 6 * searched) wanted += wanted / 2;
        if (10 * won < 3 * searched) wanted -= wanted / 3;
        left -= won;
    }
    for (int s = blockIdx.x * blockDim.x + threadIdx.x; left && s < count; s += blocks * blockDim.x)
        append(all.rows[s] >= 0, all.rows[s], too_large, &here->left_over);
    if (threadIdx.x == 0 && blockIdx.x == 0) state->round = round;
}

// A search by 1, 4 or 8 warps; how many decides which trees fit, so it is no part of the launch geometry. Problem, word
// and edge as words.cuh says.
extern "C" __global__ void __launch_bounds__(128, 8)
    find_paths_1(const Pair* indptr, const int* indices, const int* values, const long long* row_unmatched, Word* word,
                 Pair* edge, int rows, int cols, int* lists, Word* claim, Step* steps, int* step_count, int* closing,
                 int most, int room, int bytes, int attempt, int few, int turns, State* state) {
    find_paths<1>({indptr, indices, values, row_unmatched, word, edge}, word, edge, rows, cols, lists,
                  {nullptr, nullptr, claim, steps, step_count, closing, most, room, bytes}, attempt, few, turns, state);
}

extern "C" __global__ void __launch_bounds__(128, 8)
    find_paths_4(const Pair* indptr, const int* indices, const int* values, const long long* row_unmatched, Word* word,
                 Pair* edge, int rows, int cols, int* lists, Word* claim, Step* steps, int* step_count, int* closing,
                 int most, int room, int bytes, int attempt, int few, int turns, State* state) {
    find_paths<4>({indptr, indices, values, row_unmatched, word, edge}, word, edge, rows, cols, lists,
                  {nullptr, nullptr, claim, steps, step_count, closing, most, room, bytes}, attempt, few, turns, state);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    find_paths_8(const Pair* indptr, const int* indices, const int* values, const long long* row_unmatched, Word* word,
                 Pair* edge, int rows, int cols, int* lists, Word* claim, Step* steps, int* step_count, int* closing,
                 int most, int room, int bytes, int attempt, int few, int turns, State* state) {
    find_paths<8>({indptr, indices, values, row_unmatched, word, edge}, word, edge, rows, cols, lists,
                  {nullptr, nullptr, claim, steps, step_count, closing, most, room, bytes}, attempt, few, turns, state);
}
