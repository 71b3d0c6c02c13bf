// Types and arrays of the kernels of perfect matchings, compiled for one type of values (VALUE i4, i8 or f8) and of duals
// (KEY i8 or f8). In every kernel:
//     indptr (R+1,) i8; indices (P,) i4; values (P,) VALUE; v (R,) KEY; owner (R,) i4 row that holds each column, or -1;
//     edge (R,) i8 pair that each row holds, or -1; arrived (1,) u4 zero
#pragma once
#include "../grid.cuh"

typedef int i4;
typedef long long i8;
typedef double f8;
typedef unsigned long long Code;  // keys as integers in the same order, for atomics
#ifndef KEY
#define KEY i8
#define VALUE i4
#endif

constexpr Code kSign = 1ull << 63, kNone = ~0ull;

__device__ __forceinline__ Code code_of(i8 key) { return (Code)key ^ kSign; }
__device__ __forceinline__ Code code_of(f8 key) {
    Code bits = (Code)__double_as_longlong(key);
    return bits & kSign ? ~bits : bits | kSign;
}
__device__ __forceinline__ void set_key(i8& key, Code code) { key = (i8)(code ^ kSign); }
__device__ __forceinline__ void set_key(f8& key, Code code) {
    key = __longlong_as_double((i8)(code & kSign ? code ^ kSign : ~code));
}
__device__ __forceinline__ KEY key_of(Code code) {
    KEY key;
    set_key(key, code);
    return key;
}
