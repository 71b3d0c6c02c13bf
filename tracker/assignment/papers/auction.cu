// Rounds of `auction`. Twins of auction_cpu.py. Duals are read only while nobody writes them and the highest bid
// wins wherever it comes from, so no result depends on the order of threads.
//
// n rows bid for m columns. costs (n, m), or indptr (n + 1,) i8, indices (P,) i4, values (P,), of type T; their
// duals, of type D, in units of (cost - low) * scale.
#include "../grid.cuh"

typedef unsigned long long Word;

// A row's least and second least reduced cost, and where the least is, counted from where the row begins to look.
template <typename D>
struct Choice {
    D first, second;
    int place;
};

constexpr int kNowhere = 0x7fffffff;

template <typename D>
__device__ __forceinline__ void take(Choice<D>& choice, D first, D second, int place) {
    if (first < choice.first || (first == choice.first && place < choice.place)) {
        choice.second = second < choice.first ? second : choice.first;
        choice.first = first, choice.place = place;
    } else if (first < choice.second) {
        choice.second = first;
    }
}

// The pairs of one row. They are looked at from a place of the row's own, so that equal rows want different columns.
template <typename T, typename D>
struct Row {
    const T* values;
    const int* indices;  // null: all columns
    const D* v;
    D low, scale;
    int length, begin;

    __device__ __forceinline__ int column(int k) const { return indices ? indices[k] : k; }
    __device__ __forceinline__ int pair(int place) const {
        return place < length - begin ? place + begin : place - (length - begin);
    }
    // The part that falls to one of `lanes` threads.
    __device__ __forceinline__ Choice<D> look(int lane, int lanes, D never) const {
        Choice<D> choice{never, never, kNowhere};
#pragma unroll 8
        for (int place = lane; place < length; place += lanes) {
            int k = pair(place);
            D reduced = ((D)values[k] - low) * scale - v[column(k)];
            if (reduced < choice.second) take(choice, reduced, never, place);
        }
        return choice;
    }
};

template <typename T, typename D>
struct DenseRows {
    const T* costs;
    int rows, cols;
    __device__ __forceinline__ Row<T, D> operator()(int i, const D* v, D low, D scale) const {
        return {costs + (long long)i * cols, nullptr, v, low, scale, cols, (int)((long long)i * cols / rows)};
    }
};

template <typename T, typename D>
struct SparseRows {
    const long long* indptr;
    const int* indices;
    const T* values;
    int rows;
    __device__ __forceinline__ Row<T, D> operator()(int i, const D* v, D low, D scale) const {
        long long first = indptr[i];
        int length = (int)(indptr[i + 1] - first);
        return {values + first, indices + first, v, low, scale, length, (int)((long long)i * length / rows)};
    }
};

// Larger where the bid is higher (to 21 bits), of equal bids where the row is lower; never 0.
__device__ __forceinline__ Word word_of_bid(double increment, int row) {
    return ((Word)__double_as_longlong(increment) >> 31 << 32) | ~(unsigned)row;
}

template <typename D>
__device__ __forceinline__ void gather(Choice<D>& choice, int lanes, unsigned group) {
    for (int step = lanes / 2; step; step /= 2) {
        D first = __shfl_xor_sync(group, choice.first, step), second = __shfl_xor_sync(group, choice.second, step);
        take(choice, first, second, __shfl_xor_sync(group, choice.place, step));
    }
}

// The best of a block, in its first thread.
template <typename D>
__device__ __forceinline__ void gather_block(Choice<D>& choice) {
    __shared__ D firsts[32], seconds[32];
    __shared__ int places[32];
    int warp = threadIdx.x / 32;
    gather(choice, 32, ~0u);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        firsts[warp] = choice.first, seconds[warp] = choice.second, places[warp] = choice.place;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 1; k < blockDim.x / 32; ++k) take(choice, firsts[k], seconds[k], places[k]);
}

// What all rounds of a call share. v (m,), col_of_row (n,), owner (m,) i4, -1 where free; target (n,) i4, offer (n,),
// bid (n,) u8: what each free row does; word (m,) u8 zero: the highest bid of each column; live (3,) i4: free rows of
// this round and the next two.
template <typename D>
struct Sale {
    D* v;
    int *col_of_row, *owner;
    D epsilon, never, lone;
    int* target;
    D* offer;
    Word *bid, *word;
    int* live;

    // The end of the bidding kernel: a row bids what its choice is worth.
    template <typename Row>
    __device__ __forceinline__ void place_bid(const Row& row, const Choice<D>& choice, int s, int i) const {
        int j = row.column(row.pair(choice.place));
        D increment = (choice.second < never ? choice.second - choice.first : lone) + epsilon;
        target[s] = j, offer[s] = v[j] - increment, bid[s] = word_of_bid((double)increment, i);
        atomicMax(&word[j], bid[s]);
    }

    // The assignment kernel: the winner holds the column, and its former row is free. `next`, counted by `left`: the
    // rows without a column, which count the assigned ones down to none.
    __device__ __forceinline__ void award(int s, const int* now, int* next, int* left) const {
        int i = now[s], j = target[s];
        if (*(volatile Word*)&word[j] == bid[s]) {  // only the winner finds its own bid, also after it is wiped
            word[j] = 0;
            int outbid = owner[j];
            owner[j] = i, col_of_row[i] = j, v[j] = offer[s];
            if (outbid >= 0) col_of_row[outbid] = -1;
            i = outbid;
        }
        append(i >= 0, i, next, left);
    }
};

// free (2, n) i4: rows without a column, the first half set; live[0] counts them; part (3, blocks) 8 bytes: what the
// blocks found that look at one row together; arrived (1,) u4 zero; report (3,) i8: free rows left, rounds, bids.
template <typename Rows, typename D>
__device__ void hold(const Rows& rows_of, D low, D scale, const Sale<D>& sale, int rounds, int lanes, long long room,
                     int* free, D* part, unsigned* arrived, long long* report) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, blocks = gridDim.x;
    int lane = threadIdx.x % lanes;
    unsigned group = lanes == 32 ? ~0u : ((1u << lanes) - 1) << (threadIdx.x % 32 / lanes * lanes);
    unsigned turn = 0;
    int *now = free, *next = free + room, *live = sale.live;
    int count = live[0], round = 0;
    long long bids = 0;
    for (; count > 0 && round < rounds; ++round, bids += count, count = *(volatile int*)&live[round % 3]) {
        int* left = &live[(round + 1) % 3];
        if (thread == 0) live[(round + 2) % 3] = 0;
        if (lanes == 32 && 2 * count <= blocks) {
            // Few long rows: several blocks look at each, and the first block does all the rest.
            int share = blocks / count, s = blockIdx.x / share;
            if (s < count) {
                auto row = rows_of(now[s], sale.v, low, scale);
                int first = blockIdx.x % share * blockDim.x + threadIdx.x;
                Choice<D> choice = row.look(first, share * blockDim.x, sale.never);
                gather_block(choice);
                if (threadIdx.x == 0) {
                    part[blockIdx.x] = choice.first, part[blocks + blockIdx.x] = choice.second;
                    ((long long*)part)[2 * blocks + blockIdx.x] = choice.place;
                }
            }
            wait_for_all(arrived, turn);
            if (blockIdx.x == 0) {
                for (int s = threadIdx.x / 32; s < count; s += blockDim.x / 32) {
                    Choice<D> choice{sale.never, sale.never, kNowhere};
                    for (int k = s * share + lane; k < (s + 1) * share; k += 32)
                        take(choice, part[k], part[blocks + k], (int)((long long*)part)[2 * blocks + k]);
                    gather(choice, 32, ~0u);
                    if (lane == 0) sale.place_bid(rows_of(now[s], sale.v, low, scale), choice, s, now[s]);
                }
                __syncthreads();
                for (int s = threadIdx.x; s < count; s += blockDim.x) sale.award(s, now, next, left);
            }
        } else {
            // Where rows are long and not many a block takes one, else `lanes` threads.
            bool by_block = lanes == 32 && count < threads / 32;
            int first = by_block ? blockIdx.x : thread / lanes, step = by_block ? blocks : threads / lanes;
            for (int s = first; s < count; s += step) {
                int i = now[s];
                auto row = rows_of(i, sale.v, low, scale);
                Choice<D> choice;
                if (by_block) {
                    choice = row.look(threadIdx.x, blockDim.x, sale.never);
                    gather_block(choice);
                } else {
                    choice = row.look(lane, lanes, sale.never);
                    gather(choice, lanes, group);
                }
                if ((by_block ? threadIdx.x : lane) == 0) sale.place_bid(row, choice, s, i);
            }
            wait_for_all(arrived, turn);
            for (int s = thread; s < count; s += threads) sale.award(s, now, next, left);
        }
        wait_for_all(arrived, turn);
        int* empty = now;
        now = next, next = empty;
    }
    if (thread == 0) report[0] = count, report[1] = round, report[2] = bids;
}

#define DENSE(T) const T *costs, int rows, int cols
#define SPARSE(T) const long long *indptr, const int *indices, const T *values, int rows
#define STATE(D)                                                                                               \
    D low, D scale, D *v, int *col_of_row, int *owner, D epsilon, D never, D lone, int rounds, int lanes,      \
        long long room, int *free, int *target, D *offer, Word *bid, Word *word, int *live, D *part,           \
        unsigned *arrived, long long *report
#define HOLD(rows_of, D)                                                                                     \
    hold(rows_of, low, scale, Sale<D>{v, col_of_row, owner, epsilon, never, lone, target, offer, bid, word, live}, \
         rounds, lanes, room, free, part, arrived, report)
#define HOLD_DENSE(T, D) HOLD((DenseRows<T, D>{costs, rows, cols}), D)
#define HOLD_SPARSE(T, D) HOLD((SparseRows<T, D>{indptr, indices, values, rows}), D)

// Arrays as above, by the type of the costs.
extern "C" __global__ void dense_rounds_i4(DENSE(int), STATE(long long)) { HOLD_DENSE(int, long long); }
extern "C" __global__ void dense_rounds_i8(DENSE(long long), STATE(long long)) { HOLD_DENSE(long long, long long); }
extern "C" __global__ void dense_rounds_f4(DENSE(float), STATE(double)) { HOLD_DENSE(float, double); }
extern "C" __global__ void dense_rounds_f8(DENSE(double), STATE(double)) { HOLD_DENSE(double, double); }
extern "C" __global__ void sparse_rounds_i4(SPARSE(int), STATE(long long)) { HOLD_SPARSE(int, long long); }
extern "C" __global__ void sparse_rounds_i8(SPARSE(long long), STATE(long long)) { HOLD_SPARSE(long long, long long); }
extern "C" __global__ void sparse_rounds_f4(SPARSE(float), STATE(double)) { HOLD_SPARSE(float, double); }
extern "C" __global__ void sparse_rounds_f8(SPARSE(double), STATE(double)) { HOLD_SPARSE(double, double); }
