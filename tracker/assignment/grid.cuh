// What kernels do together: lists that many threads append to, and a barrier for all threads of a cooperative launch.
#pragma once

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

// Append to a list for every thread that wants to; the order means nothing.
__device__ __forceinline__ void append(bool wanted, int row, int* list, int* count) {
    int place = place_in_list(wanted, count);
    if (place >= 0) list[place] = row;
}

// All threads of the first blocks of a cooperative launch wait for each other; arrived starts at 0 and only grows.
__device__ __forceinline__ void wait_for_all(unsigned* arrived, unsigned& turn, int blocks) {
    __syncthreads();
    turn += blocks;
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned*)arrived < turn) {}
        __threadfence();
    }
    __syncthreads();
}

__device__ __forceinline__ void wait_for_all(unsigned* arrived, unsigned& turn) {
    wait_for_all(arrived, turn, gridDim.x);
}
