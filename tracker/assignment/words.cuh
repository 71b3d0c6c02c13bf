// Columns as 64-bit words, (kBias - v) << 32 | owner + 1: the price in the high half grows as the dual v
// falls, so that atomicMax lets the highest bid win, and among equal bids the highest row.
//
// Arrays of bid.cu and augment.cu: indptr (R+1,) i8; indices, values (P,) i4; row_unmatched (R,) i8 below 2^29;
// word (C,) u8; edge (R,) i8 pair that each row holds or -1.
#pragma once

typedef unsigned long long Word;
typedef long long Pair;
constexpr int kBias = 1 << 30;

__device__ __forceinline__ int dual_of(Word word) { return kBias - (int)(word >> 32); }
__device__ __forceinline__ int owner_of(Word word) { return (int)(word & 0xffffffffu) - 1; }
__device__ __forceinline__ Word word_of(int dual, int owner) {
    return ((Word)(unsigned)(kBias - dual) << 32) | (unsigned)(owner + 1);
}

constexpr int kKept = 4, kMostAttempts = 8;

// What happens in one round of searches.
struct Round {
    int searched, won;  // rows that do, and rows that got their path
    int taken;          // searches that have begun
};

// What happens in one attempt to find the paths, with room for trees of some size.
struct Attempt {
    unsigned arrived;  // at a barrier
    int left_over;     // rows for the next attempt
    Round rounds[kKept];
};

// How far the solver is; zero at the start. Attempt 0 are the bids. Behind it live (rounds + 1,) i4: rows that bid
// after each round.
struct State {
    Word scanned;  // columns in the trees of all paths
    int round;     // of searches
    int unused;
    Attempt attempts[kMostAttempts];
};
static_assert(sizeof(State) == 464, "bid_and_augment_gpu.py reserves so much");
