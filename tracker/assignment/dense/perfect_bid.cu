// Bids in square sparse problems. No result depends on the order of threads: minima decide, and what is read in a round
// was written in an earlier one. Types and arrays as perfect.cuh says.
#include "perfect.cuh"

constexpr int kLanes = 8;    // threads that read one row together
constexpr int kRows = 32 / kLanes;  // rows that a warp reads at once
constexpr int kAhead = 4;    // pairs that each of them fetches at once
constexpr int kSlots = 128;  // rows of the largest block

// A row's two pairs of least reduced cost, counted from its first; -1 where there is none.
struct Choice {
    KEY best, second;
    int pair, other;
};

__device__ __forceinline__ bool before(KEY a, int p, KEY b, int q) { return p >= 0 && (q < 0 || a < b || (a == b && p < q)); }

__device__ __forceinline__ void offer_pair(Choice& choice, KEY value, int pair) {
    if (before(value, pair, choice.best, choice.pair)) {
        choice.second = choice.best, choice.other = choice.pair;
        choice.best = value, choice.pair = pair;
    } else if (before(value, pair, choice.second, choice.other)) {
        choice.second = value, choice.other = pair;
    }
}

// What a row bids for which column; column -1: it bids no more.
struct Bid {
    int column;
    KEY offered;
    i8 pair;
};

// What a round of bids reads and writes; arrays as at `bid_rounds`.
struct Market {
    const i8* indptr;
    const int* indices;
    const VALUE* values;
    KEY* v;
    int* owner;
    i8* edge;
    const KEY* bound;
    KEY epsilon;
};

// What others may have written is read from the cache that all multiprocessors share, unless one block is alone.
template <bool kAlone, class T>
__device__ __forceinline__ T seen(const T* place) {
    return kAlone ? *place : __ldcg(place);
}

// The bids of a warp's rows, each found by kLanes threads together, all of which return it; rows are -1 where there is
// none. All threads of the warp take part, for shuffles among parts of it would be made one after the other.
template <bool kAlone>
__device__ __forceinline__ Bid bid_of(const Market& market, int row) {
    int lane = threadIdx.x % kLanes;
    i8 first = row < 0 ? 0 : market.indptr[row], stop = row < 0 ? 0 : market.indptr[row + 1];
    KEY bound = row < 0 ? 0 : market.bound[row];
    Choice choice{0, 0, -1, -1};
    for (i8 start = first + lane; __any_sync(~0u, start < stop); start += kLanes * kAhead) {
        int column[kAhead];
        KEY reduced[kAhead];
        for (int k = 0; k < kAhead; ++k) {
            i8 p = start + k * kLanes;
            column[k] = p < stop ? market.indices[p] : -1;
            reduced[k] = p < stop ? (KEY)market.values[p] : 0;
        }
        for (int k = 0; k < kAhead; ++k)
            if (column[k] >= 0) reduced[k] -= seen<kAlone>(&market.v[column[k]]);
        for (int k = 0; k < kAhead; ++k)
            if (column[k] >= 0) offer_pair(choice, reduced[k], (int)(start + k * kLanes - first));
    }
    for (int step = 1; step < kLanes; step *= 2) {
        Choice other{__shfl_xor_sync(~0u, choice.best, step), __shfl_xor_sync(~0u, choice.second, step),
                     __shfl_xor_sync(~0u, choice.pair, step), __shfl_xor_sync(~0u, choice.other, step)};
        offer_pair(choice, other.best, other.pair);
        offer_pair(choice, other.second, other.other);
    }
    Bid none{-1, 0, -1};
    if (choice.other < 0 || choice.best > bound) return none;
    int taken = choice.pair, column = market.indices[first + taken];
    if (market.epsilon == 0 && choice.best == choice.second && seen<kAlone>(&market.owner[column]) >= 0) {
        taken = choice.other, column = market.indices[first + taken];
        if (seen<kAlone>(&market.owner[column]) >= 0) return none;
    }
    KEY offered = seen<kAlone>(&market.v[column]) - (choice.second - choice.best) - market.epsilon;
    return {column, offered, first + taken};
}

// A row gets the column for which it bid, and who held it, if anybody, is free.
__device__ __forceinline__ void take(const Market& market, int row, int column, KEY offered, i8 pair, int outbid) {
    market.v[column] = offered, market.owner[column] = row, market.edge[row] = pair;
    if (outbid >= 0) market.edge[outbid] = -1;
}

// The rounds of the last rows, at most kSlots, by one block alone, which need not wait for others: kLanes threads keep
// a row that bids, and then the one that it outbids.
__device__ void bid_alone(const Market& market, const int* rows, int count, int round, int rounds, int few, int* live) {
    __shared__ int row_of[kSlots], column_of[kSlots];
    __shared__ KEY offer_of[kSlots];
    int slot = threadIdx.x / kLanes, lane = threadIdx.x % kLanes, slots = count;
    unsigned group = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
    int row = slot < slots ? __ldcg(&rows[slot]) : -1;
    for (; round < rounds && count > few; ++round) {
        Bid bid = bid_of<true>(market, row);
        bool bids = row >= 0 && bid.column >= 0, beaten = false;
        int outbid = bids ? market.owner[bid.column] : -1;
        if (lane == 0 && slot < slots) row_of[slot] = row, column_of[slot] = bid.column, offer_of[slot] = bid.offered;
        __syncthreads();
        if (__any_sync(~0u, bids)) {
#pragma unroll 4
            for (int s = lane; s < slots; s += kLanes)
                if (bids && column_of[s] == bid.column)
                    beaten |= offer_of[s] < bid.offered || (offer_of[s] == bid.offered && row_of[s] > row);
            if (__ballot_sync(~0u, beaten) & group) beaten = true;
        }
        if (bids && !beaten && lane == 0) take(market, row, bid.column, bid.offered, bid.pair, outbid);
        if (!beaten) row = outbid;
        count = __syncthreads_count(row >= 0) / kLanes;
        if (threadIdx.x == 0) live[round + 1] = count;
    }
}

// Rounds of bids. Each row in the list bids on its best column what makes it epsilon worse than the second best; a row
// that is outbid bids next. A row whose best is dearer than its bound, for there pairs may be missing, bids no more; nor
// does one with a single pair, or without epsilon one with a tie that raises no price.
// bound (R,) KEY;
// rows (2,R) i4, the first live[0] those that bid; target (R,) i4; offered (R,) KEY; pair (R,) i8; best_offer (R,) u8 all
// ones; winner (R,) i4 all -1; live (rounds+1,) i4: bids of each round, zero after the first.
extern "C" __global__ void bid_rounds(const i8* indptr, const int* indices, const VALUE* values, KEY* v, int* owner,
                                      i8* edge, const KEY* bound, KEY epsilon, int rounds, int few, i8 size, int* rows, int* target,
                                      KEY* offered, i8* pair, Code* best_offer, int* winner, int* live,
                                      unsigned* arrived) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, blocks = gridDim.x, round = 0;
    unsigned turn = 0;
    int *now = rows, *next = rows + size, count = live[0], alone = min(kSlots, (int)blockDim.x / kLanes);
    Market market{indptr, indices, values, v, owner, edge, bound, epsilon};
    for (; round < rounds && count > max(few, alone); ++round) {
        // Rows only grow fewer: blocks without any are done, and the others need not wait for them.
        blocks = min(blocks, (count * kLanes - 1) / (int)blockDim.x + 1);
        if (blockIdx.x >= blocks) return;
        int threads = blocks * blockDim.x;
        for (int first = thread / 32 * kRows; first < count; first += threads / 32 * kRows) {
            int s = first + threadIdx.x % 32 / kLanes;
            Bid bid = bid_of<false>(market, s < count ? __ldcg(&now[s]) : -1);
            if (s >= count || thread % kLanes) continue;
            target[s] = bid.column;
            if (bid.column < 0) continue;
            offered[s] = bid.offered, pair[s] = bid.pair;
            atomicMin(&best_offer[bid.column], code_of(bid.offered));
        }
        wait_for_all(arrived, turn, blocks);
        for (int s = thread; s < count; s += threads) {
            int column = __ldcg(&target[s]);
            if (column >= 0 && __ldcg(&best_offer[column]) == code_of(__ldcg(&offered[s])))
                atomicMax(&winner[column], __ldcg(&now[s]));
        }
        wait_for_all(arrived, turn, blocks);
        for (int s = thread; s < count; s += threads) {
            int row = __ldcg(&now[s]), column = __ldcg(&target[s]);
            if (column < 0) {
                row = -1;
            } else if (__ldcg(&winner[column]) == row) {
                int outbid = __ldcg(&owner[column]);
                take(market, row, column, __ldcg(&offered[s]), __ldcg(&pair[s]), outbid);
                row = outbid;
                best_offer[column] = kNone, winner[column] = -1;
            }
            append(row >= 0, row, next, &live[round + 1]);
        }
        wait_for_all(arrived, turn, blocks);
        int* empty = now;
        now = next, next = empty;
        count = __ldcg(&live[round + 1]);
    }
    if (blockIdx.x == 0) bid_alone(market, now, count, round, rounds, few, live);
}
