// What the kernels of hungarian.cu and hungarian_search.cu share.
//
// Compiled for one kind of costs at a time: COST is i4, i8, f4 or f8, and KEY, the type of duals and slacks, i4 or i8
// for integers and f8 for real costs.
// words (3104,) i8, zero at the start of an iteration: the counts that hungarian.py names, then what only the GPU
// needs.
#pragma once

typedef int i4;
typedef long long i8;
typedef float f4;
typedef double f8;
#ifndef COST
#define COST i4
#endif
#ifndef KEY
#define KEY i4
#endif

enum {
    kWaiting, kEnds, kPaths, kRounds, kUpdates, kScanned, kSearchTicks, kUpdateTicks,
    kLeast,        // slack, of the classical variant
    kArrived,      // at a barrier of the classical variant's search
    kJoined,       // in a level of it: three words, in turn
    kAnnounced = 32,  // by each block of the tree variant's search: two words, in turn
    kLeastOf = kAnnounced + 2 * 1024  // the least slack of each block
};

constexpr i8 kUnclaimed = 0x7fffffffffffffffll;

// Keys as unsigned numbers of which the largest is the least key, so that atomicMax finds it and 0 is none.
typedef unsigned long long Order;
__device__ __forceinline__ Order order_of(i8 key) { return ~((Order)key ^ (1ull << 63)); }
__device__ __forceinline__ i8 key_of(Order order, i8) { return (i8)(~order ^ (1ull << 63)); }
__device__ __forceinline__ Order order_of(i4 key) { return order_of((i8)key); }
__device__ __forceinline__ i4 key_of(Order order, i4) { return (i4)key_of(order, i8()); }
// The bits of a real number, but for its sign, order like integers.
__device__ __forceinline__ i8 turned(i8 bits) { return bits ^ (bits >> 63 & 0x7fffffffffffffffll); }
__device__ __forceinline__ Order order_of(f8 key) { return order_of(turned(__double_as_longlong(key))); }
__device__ __forceinline__ f8 key_of(Order order, f8) {
    return __longlong_as_double(turned(key_of(order, i8())));
}

// Among rows that reach a column equally near, the first after the column's own place comes first: then rows with
// the same costs do not all wait for the same one.
__device__ __forceinline__ int turn_of(int col, int rows) { return col < rows ? col : col % rows; }
__device__ __forceinline__ unsigned after(int row, int turn) { return (unsigned)row - (unsigned)turn; }

// Greatest of a block, in thread 0; shared (32,).
__device__ __forceinline__ Order greatest(Order order, Order* shared) {
    for (int step = 16; step; step /= 2) {
        Order other = __shfl_xor_sync(~0u, order, step);
        order = other > order ? other : order;
    }
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = order;
    __syncthreads();
    if (threadIdx.x < 32) {
        order = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0;
        for (int step = 16; step; step /= 2) {
            Order other = __shfl_xor_sync(~0u, order, step);
            order = other > order ? other : order;
        }
    }
    return order;
}
