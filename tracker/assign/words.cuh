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
