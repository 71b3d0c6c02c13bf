// Bids of `bid_and_augment`. Prices are read only while nobody writes them, so no result depends on the order
// of threads. Arrays as words.cuh tells.
#include "words.cuh"

// v (C,) i8, owner (C,) i4 to words and back.
extern "C" __global__ void pack(const long long* v, const int* owner, Word* word, long long cols) {
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (j < cols) word[j] = word_of((int)v[j], owner[j]);
}

extern "C" __global__ void unpack(const Word* word, long long* v, int* owner, long long cols) {
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (j < cols) v[j] = dual_of(word[j]), owner[j] = owner_of(word[j]);
}

constexpr int kLanes = 8;  // threads that read one row together

// A row's best and second best pair, staying unmatched (pair -1) among them.
struct Choice {
    int best, second;
    int best_pair, second_pair;  // counted from the row's first
    int best_column, second_column;
};

__device__ __forceinline__ bool before(int a, int p, int b, int q) {
    // Ties go to the first pair of the row; staying unmatched is no better than an equal pair's limit.
    return a < b || (a == b && p >= 0 && (q < 0 || p < q));
}

__device__ __forceinline__ void offer(Choice& choice, int value, int pair, int column) {
    if (before(value, pair, choice.best, choice.best_pair)) {
        choice.second = choice.best, choice.second_pair = choice.best_pair;
        choice.second_column = choice.best_column;
        choice.best = value, choice.best_pair = pair, choice.best_column = column;
    } else if (before(value, pair, choice.second, choice.second_pair)) {
        choice.second = value, choice.second_pair = pair, choice.second_column = column;
    }
}

// Best and second best choice of a row, found by kLanes threads together; all of them return it.
__device__ __forceinline__ Choice choose(Pair first, Pair stop, const int* indices, const int* values,
                                         int unmatched, const Word* word, int lane, unsigned group) {
    Choice choice{unmatched, unmatched, -1, -1, -1, -1};
    for (Pair p = first + lane; p < stop; p += kLanes) {
        int column = indices[p], reduced = values[p] - dual_of(__ldcg(&word[column]));
        if (reduced < unmatched) offer(choice, reduced, (int)(p - first), column);
    }
    for (int step = 1; step < kLanes; step *= 2) {
        Choice other{__shfl_xor_sync(group, choice.best, step),
                     __shfl_xor_sync(group, choice.second, step),
                     __shfl_xor_sync(group, choice.best_pair, step),
                     __shfl_xor_sync(group, choice.second_pair, step),
                     __shfl_xor_sync(group, choice.best_column, step),
                     __shfl_xor_sync(group, choice.second_column, step)};
        if (other.best_pair >= 0) offer(choice, other.best, other.best_pair, other.best_column);
        if (other.second_pair >= 0) offer(choice, other.second, other.second_pair, other.second_column);
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
            Pair first = indptr[row];
            Choice choice = choose(first, indptr[row + 1], indices, values, (int)row_unmatched[row], word,
                                   lane, group);
            if (lane) continue;
            if (choice.best_pair < 0) {  // staying unmatched is best, and stays so: prices only rise
                now[s] = -1;
                continue;
            }
            int pair = choice.best_pair, column = choice.best_column;
            Word old = __ldcg(&word[column]);
            if (choice.best == choice.second && owner_of(old) >= 0) {
                // A tie that raises no price would go round in circles; the second choice may be free.
                pair = choice.second_pair, column = choice.second_column;
                if (pair >= 0) old = __ldcg(&word[column]);
            }
            bool stuck = pair < 0 || (choice.best == choice.second && owner_of(old) >= 0);
            if (stuck || last) {
                free[atomicAdd(left_over, 1)] = row;
                now[s] = -1;
                continue;
            }
            target[s] = column, offered_pair[s] = first + pair, outbid[s] = owner_of(old);
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
