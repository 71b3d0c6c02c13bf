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

// Place in a list for every thread that wants one, else -1, with one atomic a warp; the order means nothing.
__device__ __forceinline__ int place_in_list(bool wanted, int* count) {
    unsigned together = __activemask();
    unsigned votes = __ballot_sync(together, wanted);
    if (!votes) return -1;
    int lane = threadIdx.x % 32, leader = __ffs(votes) - 1, start = 0;
    if (lane == leader) start = atomicAdd(count, __popc(votes));
    start = __shfl_sync(together, start, leader);
    return wanted ? start + __popc(votes & ((1u << lane) - 1)) : -1;
}
