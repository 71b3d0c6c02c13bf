// Bids of `bid_and_augment`. Prices are read only while nobody writes them, so no result depends on the order
// of threads. Arrays as words.cuh says.
#include "grid.cuh"
#include "words.cuh"

// Nothing is matched yet. col_unmatched (C,) i8; written: word, spare, claim (C,) u8, edge (R,) i8.
extern "C" __global__ void begin(const long long* col_unmatched, Word* word, Word* spare, Word* claim, int cols,
                                 Pair* edge, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cols) word[i] = spare[i] = word_of((int)col_unmatched[i], -1), claim[i] = 0;
    if (i < rows) edge[i] = -1;
}

// The answer. indices (P,) i4; written: v (C,) i8, col_of_row (R,) i4.
extern "C" __global__ void finish(const Word* word, long long* v, int cols, const Pair* edge, const int* indices,
                                  int* col_of_row, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cols) v[i] = dual_of(word[i]);
    if (i < rows) col_of_row[i] = edge[i] < 0 ? -1 : indices[edge[i]];
}

constexpr int kLanes = 8;  // threads that read one row together
constexpr int kAhead = 4;  // pairs that each of them fetches at once
constexpr int kSlotsABlock = 16;
constexpr unsigned kAlone = ~0u;  // instead of a pair: staying unmatched

// Choices as words that sort by cost, and among equal costs by the pair, counted from the row's first. Ties go to the
// first pair of the row; staying unmatched is no better than an equal pair's limit.
__device__ __forceinline__ Word choice_of(int cost, unsigned pair) {
    return ((Word)((unsigned)cost ^ 0x80000000u) << 32) | pair;
}
__device__ __forceinline__ int cost_of(Word choice) { return (int)((unsigned)(choice >> 32) ^ 0x80000000u); }

// A row's best and second best choice, staying unmatched among them.
struct Choices {
    Word best, second;
};

__device__ __forceinline__ void offer(Choices& choices, Word choice) {
    choices.second = min(choices.second, max(choices.best, choice));
    choices.best = min(choices.best, choice);
}

// Best and second best choice of a row, found by kLanes threads together; all of them return it. Nobody writes the
// words that are read, so the cache of a multiprocessor may keep them till the next barrier.
__device__ __forceinline__ Choices choose(Pair first, Pair stop, const int* indices, const int* values,
                                          int unmatched, const Word* word, int lane, unsigned group) {
    Word alone = choice_of(unmatched, kAlone);
    Choices choices{alone, alone};
    for (Pair p = first + lane; p < stop; p += kLanes * kAhead) {
        int column[kAhead], reduced[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            bool is_pair = p + k * kLanes < stop;
            column[k] = is_pair ? indices[p + k * kLanes] : -1;
            reduced[k] = is_pair ? values[p + k * kLanes] : unmatched;
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
            if (column[k] >= 0) reduced[k] -= dual_of(word[column[k]]);
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            unsigned pair = (unsigned)(p - first) + k * kLanes;
            offer(choices, reduced[k] < unmatched ? choice_of(reduced[k], pair) : alone);
        }
    }
    for (int step = 1; step < kLanes; step *= 2) {
        Choices other{__shfl_xor_sync(group, choices.best, step), __shfl_xor_sync(group, choices.second, step)};
        offer(choices, other.best), offer(choices, other.second);
    }
    return choices;
}

constexpr int kPackAlways = 8, kPackEvery = 8;  // rounds after which slots without a row are dropped

// A row that bids, and for what; when it wins, the slot goes to the row that was outbid.
struct __align__(16) Slot {
    Word offered;  // 0: no bid yet
    Pair pair;
    int column, outbid;  // outbid: the column's owner, or -1
    int row;             // or -1: the slot is empty
    int unused;
};

__device__ __forceinline__ Slot slot_at(const Slot* place) {
    // From the cache that all multiprocessors share: others may have written it.
    union {
        ulonglong2 half[2];
        Slot slot;
    } read;
    read.half[0] = __ldcg((const ulonglong2*)place);
    read.half[1] = __ldcg((const ulonglong2*)place + 1);
    return read.slot;
}

// What became of a slot's bid: the row that bids next, or -1. A word that won is carried over to the other copy.
__device__ __forceinline__ int settled(const Slot& slot, const Word* shown, Word* other, Pair* edge, bool writes) {
    if (slot.row < 0 || !slot.offered || shown[slot.column] != slot.offered) return slot.row;
    if (writes) {
        atomicMax(&other[slot.column], slot.offered);
        edge[slot.row] = slot.pair;
        if (slot.outbid >= 0) edge[slot.outbid] = -1;
    }
    return slot.outbid;
}

// Rounds of bids without epsilon by all rows. Words are kept twice, so that one copy can be read while bids are
// made on the other; a round leaves the winners in the second alone, and the next one carries them over.
// word, spare (C,) u8, equal, and equal at the end; slots (2, R); free (R,) i4: rows left for the searches.
extern "C" __global__ void __launch_bounds__(512, 2)
    bid_rounds(const Pair* indptr, const int* indices, const int* values, const long long* row_unmatched,
               Word* word, Word* spare, Pair* edge, int rounds, int few, int rows, Slot* slots, State* state,
               int* free) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, lane = thread % kLanes;
    unsigned group = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes);
    int *left_over = &state->attempts[0].left_over, *live = (int*)(state + 1);
    unsigned* arrived = &state->attempts[0].arrived;
    unsigned turn = 0;
    Slot *now = slots, *next = slots + rows;
    Word *shown = word, *bids = spare;
    int count = rows, blocks = gridDim.x;
    for (int round = 0; round <= rounds; ++round) {
        bool last = round == rounds || count <= few;
        // Few slots are spread over all blocks; of many, neighbours stay together.
        int groups = blocks * blockDim.x / kLanes;
        int own = count > groups ? thread / kLanes : threadIdx.x / kLanes * blocks + blockIdx.x;
        for (int s = own; s < count; s += groups) {
            Slot slot = round ? slot_at(&now[s]) : Slot{0, 0, 0, -1, s, 0};
            slot.row = settled(slot, shown, bids, edge, lane == 0);
            if (slot.row < 0) {
                if (lane == 0) now[s].row = -1;
                continue;
            }
            Pair first = indptr[slot.row];
            Choices choices = choose(first, indptr[slot.row + 1], indices, values, (int)row_unmatched[slot.row],
                                     shown, lane, group);
            if (lane) continue;
            unsigned pair = (unsigned)choices.best;
            if (pair == kAlone) {  // staying unmatched is best, and stays so: prices only rise
                now[s].row = -1;
                continue;
            }
            int raise = cost_of(choices.second) - cost_of(choices.best);
            slot.column = indices[first + pair];
            Word old = shown[slot.column];
            if (!raise && owner_of(old) >= 0) {
                // A tie that raises no price would go round in circles; the second choice may be free.
                pair = (unsigned)choices.second;
                if (pair != kAlone) slot.column = indices[first + pair], old = shown[slot.column];
            }
            bool stuck = pair == kAlone || (!raise && owner_of(old) >= 0);
            if (stuck || last) {
                free[atomicAdd(left_over, 1)] = slot.row;
                now[s].row = -1;
                continue;
            }
            slot.pair = first + pair, slot.outbid = owner_of(old);
            slot.offered = word_of(dual_of(old) - raise, slot.row);
            atomicMax(&bids[slot.column], slot.offered);
            now[s] = slot;
        }
        if (last) return;
        wait_for_all(arrived, turn, blocks);
        Word* read = shown;
        shown = bids, bids = read;
        if (round >= kPackAlways && round % kPackEvery) continue;
        for (int s = thread; s < count; s += blocks * blockDim.x) {
            int row = settled(slot_at(&now[s]), shown, bids, edge, true);
            int place = place_in_list(row >= 0, &live[round]);
            if (place >= 0) next[place] = Slot{0, 0, 0, -1, row, 0};
        }
        wait_for_all(arrived, turn, blocks);
        Slot* empty = now;
        now = next, next = empty;
        count = *(volatile int*)&live[round];
        // Slots only grow fewer: blocks without any are done, and the others need not wait for them.
        blocks = min(blocks, max(1, (count + kSlotsABlock - 1) / kSlotsABlock));
        if (blockIdx.x >= blocks) return;
    }
}
