// A shard's own columns under the trees of all shards: Date & Nagi's Algorithm 4; hungarian.cuh lists the types. R
// rows, W own columns, costs (R,W). Nothing depends on the order of threads, but that of the records of `join`.
#include "../hungarian.cuh"

// Bits of a key as it travels.
__device__ __forceinline__ i4 key_in(i8 bits, i4) { return (i4)bits; }
__device__ __forceinline__ i8 key_in(i8 bits, i8) { return bits; }
__device__ __forceinline__ f8 key_in(i8 bits, f8) { return __longlong_as_double(bits); }
__device__ __forceinline__ i8 bits_of(i4 key) { return key; }
__device__ __forceinline__ i8 bits_of(i8 key) { return key; }
__device__ __forceinline__ i8 bits_of(f8 key) { return __double_as_longlong(key); }

// Scans a frontier, in whose order a column looks at its rows. frontier (3,count) i8: rows, roots of their trees, bits
// of their bases; number: of this pass; first: of own columns; dual, slack (W,); state (W,) i1, 0 where open;
// row_before, root (W,) i4; found_in (W,) i8.
extern "C" __global__ void scan(const COST* costs, i8 rows, i8 width, i8 first, const i8* frontier, i8 count,
                                const KEY* dual, i8 number, KEY* slack, const signed char* state,
                                int* row_before, int* root, i8* found_in) {
    i8 j = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    if (j >= width || state[j]) return;
    const i8 *roots = frontier + count, *bases = roots + count;
    int turn = turn_of((int)(first + j), (int)rows), before = row_before[j];
    KEY least = slack[j], v = dual[j];
    i8 place = -1;
    bool is_new = found_in[j] == number;
#pragma unroll 8
    for (i8 k = 0; k < count; ++k) {
        int i = (int)frontier[k];
        KEY key = (KEY)costs[i * width + j] - key_in(bases[k], KEY()) - v;
        if (key < least || (key == least && is_new && after(i, turn) < after(before, turn)))
            least = key, before = i, place = k, is_new = true;
    }
    if (place < 0) return;
    slack[j] = least, row_before[j] = before, root[j] = (int)roots[place], found_in[j] = number;
}

// Joins the open columns whose slack is at most `level`, and finds the least slack of the others. state (W,) i1;
// found (2+3W,) i8, zero at first: number of records, order of the least slack, and {own column, row before and
// root, bits of the slack} of each record.
extern "C" __global__ void join(i8 width, KEY level, const KEY* slack, signed char* state, const int* row_before,
                                const int* root, i8* found) {
    __shared__ Order shared[32];
    i8 j = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    Order order = 0;
    if (j < width && !state[j]) {
        KEY own = slack[j];
        if (own <= level) {
            i8* record = found + 2 + 3 * (i8)atomicAdd((Order*)found, 1ull);
            state[j] = 1;
            record[0] = j, record[1] = (i8)row_before[j] << 32 | root[j], record[2] = bits_of(own);
        } else {
            order = order_of(own);
        }
    }
    order = greatest(order, shared);
    if (threadIdx.x == 0 && order) atomicMax((Order*)found + 1, order);
}
