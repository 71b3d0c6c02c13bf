// Perfect matchings of square sparse problems: bids, and shortest paths from all free rows at once. No result depends on
// the order of threads: minima decide, and what is read in a round was written in an earlier one.
//
// Compiled for one type of values (VALUE i4, i8 or f8) and of duals (KEY i8 or f8). In every kernel:
//     indptr (R+1,) i8; indices (P,) i4; values (P,) VALUE; v (R,) KEY; owner (R,) i4 row that holds each column, or -1;
//     edge (R,) i8 pair that each row holds, or -1; arrived (1,) u4 zero
#include "grid.cuh"

typedef int i4;
typedef long long i8;
typedef double f8;
typedef unsigned long long Code;  // keys as integers in the same order, for atomics
#ifndef KEY
#define KEY i8
#define VALUE i4
#endif

constexpr Code kSign = 1ull << 63, kNone = ~0ull;
constexpr int kLanes = 8;  // threads that read one row together
constexpr int kNoRow = 0x7fffffff;

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
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    int lane = thread % kLanes;
    unsigned group = ((1u << kLanes) - 1) << (threadIdx.x % 32 / kLanes * kLanes), turn = 0;
    int *now = rows, *next = rows + size, count = live[0];
    for (int round = 0; round < rounds && count > few; ++round) {
        for (int s = thread / kLanes; s < count; s += threads / kLanes) {
            i8 first = indptr[__ldcg(&now[s])], stop = indptr[__ldcg(&now[s]) + 1];
            Choice choice{0, 0, -1, -1};
            for (i8 p = first + lane; p < stop; p += kLanes)
                offer_pair(choice, (KEY)values[p] - __ldcg(&v[indices[p]]), (int)(p - first));
            for (int step = 1; step < kLanes; step *= 2) {
                Choice other{__shfl_xor_sync(group, choice.best, step), __shfl_xor_sync(group, choice.second, step),
                             __shfl_xor_sync(group, choice.pair, step), __shfl_xor_sync(group, choice.other, step)};
                offer_pair(choice, other.best, other.pair);
                offer_pair(choice, other.second, other.other);
            }
            if (lane) continue;
            int taken = choice.pair, column = taken < 0 ? -1 : indices[first + taken];
            if (choice.other < 0 || choice.best > bound[__ldcg(&now[s])]) {
                column = -1;
            } else if (epsilon == 0 && choice.best == choice.second && __ldcg(&owner[column]) >= 0) {
                taken = choice.other, column = indices[first + taken];
                if (__ldcg(&owner[column]) >= 0) column = -1;
            }
            target[s] = column;
            if (column < 0) continue;
            offered[s] = __ldcg(&v[column]) - (choice.second - choice.best) - epsilon, pair[s] = first + taken;
            atomicMin(&best_offer[column], code_of(offered[s]));
        }
        wait_for_all(arrived, turn);
        for (int s = thread; s < count; s += threads) {
            int column = __ldcg(&target[s]);
            if (column >= 0 && __ldcg(&best_offer[column]) == code_of(__ldcg(&offered[s])))
                atomicMax(&winner[column], __ldcg(&now[s]));
        }
        wait_for_all(arrived, turn);
        for (int s = thread; s < count; s += threads) {
            int row = __ldcg(&now[s]), column = __ldcg(&target[s]);
            if (column < 0) {
                row = -1;
            } else if (__ldcg(&winner[column]) == row) {
                int outbid = __ldcg(&owner[column]);
                v[column] = __ldcg(&offered[s]), owner[column] = row, edge[row] = __ldcg(&pair[s]);
                if (outbid >= 0) edge[outbid] = -1;
                best_offer[column] = kNone, winner[column] = -1;
                row = outbid;
            }
            append(row >= 0, row, next, &live[round + 1]);
        }
        wait_for_all(arrived, turn);
        int* empty = now;
        now = next, next = empty;
        count = __ldcg(&live[round + 1]);
    }
}

// What a launch of `grow_and_augment` tells and goes on from.
struct Progress {
    int free;     // rows without a column
    int stuck;    // the first of them, if none can reach a free column; else -1
    int phases, rounds;
    unsigned long long scanned;  // rows whose pairs were looked at
};

// What the search knows of a column: distance after even and odd rounds, the round that lowered it last, the column held
// by the row that reached it (or -1 - row), and that row and its pair (row << 32 | pair counted from the row's first).
struct Search {
    Code* dist;
    int *level, *up;
    Code* parent;
    i8 size;
};

// Look at the pairs of a row at distance d; a warp does it together.
__device__ __forceinline__ void relax(int row, KEY d, int round, Code bound, const i8* indptr, const int* indices,
                                      const KEY* slack, const int* owner, const Search& search, int* next, int* count,
                                      Code* first_free) {
    int lane = threadIdx.x % 32;
    i8 stop = indptr[row + 1];
    for (i8 p = indptr[row]; p < stop; p += 32) {
        bool wanted = false;
        int j = 0;
        if (p + lane < stop) {
            j = indices[p + lane];
            Code code = code_of(d + __ldcg(&slack[p + lane]));
            if (code <= bound && code < __ldcg(search.dist + (~round & 1) * search.size + j) &&
                code < atomicMin(search.dist + (round & 1) * search.size + j, code)) {
                wanted = atomicExch(&search.level[j], round) != round && __ldcg(&owner[j]) >= 0;
                if (first_free && __ldcg(&owner[j]) < 0) atomicMin(first_free, code);
            }
        }
        unsigned votes = __ballot_sync(~0u, wanted);
        if (!votes) continue;
        int start = 0;
        if (lane == 0) start = atomicAdd(count, __popc(votes));
        start = __shfl_sync(~0u, start, 0);
        if (wanted) next[start + __popc(votes & ((1u << lane) - 1))] = j;
    }
}

__device__ __forceinline__ KEY distance(const Search& search, int j) {
    return key_of(min(__ldcg(search.dist + j), __ldcg(search.dist + search.size + j)));
}

// Phases until every row has a column, none can get one, or `rounds` rounds are over. A phase finds the shortest path
// from the nearest free row to every column (Bellman-Ford in synchronous rounds: a forest of alternating trees), raises
// the duals so that all paths up to the farthest tree's free column are tight, and augments once in every tree that
// holds a free column: trees share no row. Free columns may have any dual, because none stays free.
// If no free column can be reached, what can be is made `jump` dearer.
// slack (P,) KEY; dist (2,R) u8; level (R,) i4; parent (R,) u8; up (R,) i4; list (2,R) i4; roots (R,) i4; count (4,) i4;
// nearest (R,) u8, end (R,) i4: of each root's tree the least distance of a free column, and that column; extreme (3,)
// u8: the largest of those, the largest of all distances, and the least of a free column; progress (1,).
extern "C" __global__ void grow_and_augment(const i8* indptr, const int* indices, const VALUE* values, KEY* v, int* owner,
                                            i8* edge, KEY jump, int rounds, i8 size, KEY* slack, Code* dist, int* level,
                                            Code* parent, int* up, int* list, int* roots, int* count, Code* nearest,
                                            int* end, Code* extreme, Progress* progress, unsigned* arrived) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    int lane = thread % 32, warp = thread / 32, warps = threads / 32;
    unsigned turn = 0;
    Search search{dist, level, up, parent, size};
    int done = 0, phases = 0;
    unsigned long long scanned = 0;
    while (true) {
        // Slacks, and what the last phase left behind.
        for (i8 i = warp; i < size; i += warps) {
            i8 first = indptr[i], stop = indptr[i + 1];
            Code least = kNone;
            for (i8 p = first + lane; p < stop; p += 32) {
                KEY reduced = (KEY)values[p] - __ldcg(&v[indices[p]]);
                slack[p] = reduced;
                least = min(least, code_of(reduced));
            }
            for (int step = 16; step; step /= 2) least = min(least, __shfl_xor_sync(~0u, least, step));
            KEY u = key_of(least);
            for (i8 p = first + lane; p < stop; p += 32) slack[p] -= u;
        }
        for (i8 j = thread; j < size; j += threads) {
            dist[j] = dist[size + j] = parent[j] = nearest[j] = kNone;
            level[j] = 0, end[j] = kNoRow;
            append(__ldcg(&edge[j]) < 0, (int)j, roots, &count[0]);
        }
        if (thread == 0) count[1] = count[2] = count[3] = 0, extreme[0] = extreme[1] = 0, extreme[2] = kNone;
        wait_for_all(arrived, turn);
        int free = __ldcg(&count[0]);
        if (thread == 0) progress->free = free, progress->stuck = -1;
        if (free == 0 || done >= rounds) break;
        ++phases;
        // A forest from all free rows. Frontiers take turns in the halves of the list, their lengths in count[1..3].
        // Of a single tree nothing matters that is farther than its first free column.
        Code* first_free = free == 1 ? &extreme[2] : nullptr;
        int round = 1, frontier = free;
        for (; frontier > 0; ++round) {
            int *now = list + (round & 1) * size, *next = list + (~round & 1) * size;
            Code bound = __shfl_sync(~0u, first_free ? __ldcg(first_free) : kNone, 0);
            for (int k = warp; k < frontier; k += warps) {
                int j = round == 1 ? -1 : __ldcg(&now[k]);
                int row = round == 1 ? __ldcg(&roots[k]) : __ldcg(&owner[j]);
                KEY d = round == 1 ? (KEY)0 : key_of(__ldcg(dist + (~round & 1) * size + j));
                if (code_of(d) <= bound)
                    relax(row, d, round, bound, indptr, indices, slack, owner, search, next, &count[1 + round % 3],
                          first_free);
            }
            if (thread == 0) count[1 + (round + 1) % 3] = 0;
            scanned += frontier;
            wait_for_all(arrived, turn);
            frontier = __ldcg(&count[1 + round % 3]);
        }
        Code bound = first_free ? __ldcg(first_free) : kNone;
        done += round;
        if (thread == 0) count[0] = 0;
        // The row that reached each column: a nearer one, or as near but lowered a round earlier, so that nothing goes
        // round in circles.
        for (i8 i = warp; i < size; i += warps) {
            i8 first = indptr[i], held = __ldcg(&edge[i]);
            int own = held < 0 ? -1 : indices[held];
            int own_level = own < 0 ? 0 : __ldcg(&level[own]);
            if (own >= 0 && own_level == 0) continue;
            KEY d = own < 0 ? (KEY)0 : distance(search, own);
            for (i8 p = first + lane; p < indptr[i + 1]; p += 32) {
                int j = indices[p];
                int its_level = __ldcg(&level[j]);
                KEY its = distance(search, j);
                if (its_level && d + __ldcg(&slack[p]) == its && (d < its || its_level == own_level + 1))
                    atomicMin(&parent[j], (Code)i << 32 | (Code)(p - first));
            }
        }
        wait_for_all(arrived, turn);
        for (i8 j = thread; j < size; j += threads) {
            if (__ldcg(&level[j]) == 0 || code_of(distance(search, (int)j)) > bound) continue;
            int row = (int)(__ldcg(&parent[j]) >> 32);
            i8 held = __ldcg(&edge[row]);
            up[j] = held < 0 ? -1 - row : indices[held];
            atomicMax(&extreme[1], code_of(distance(search, (int)j)));
        }
        wait_for_all(arrived, turn);
        // Of each tree the nearest free column.
        for (i8 j = thread; j < size; j += threads) {
            if (__ldcg(&owner[j]) >= 0 || __ldcg(&level[j]) == 0) continue;
            if (code_of(distance(search, (int)j)) > bound) continue;
            int k = (int)j;
            while (k >= 0) k = __ldcg(&up[k]);
            atomicMin(&nearest[-1 - k], code_of(distance(search, (int)j)));
            roots[j] = -1 - k;  // the list is not needed any more
        }
        wait_for_all(arrived, turn);
        for (i8 j = thread; j < size; j += threads) {
            if (__ldcg(&owner[j]) >= 0 || __ldcg(&level[j]) == 0) continue;
            if (code_of(distance(search, (int)j)) > bound) continue;
            int root = __ldcg(&roots[j]);
            Code code = __ldcg(&nearest[root]);
            if (code != code_of(distance(search, (int)j))) continue;
            atomicMin(&end[root], (int)j);
            atomicMax(&extreme[0], code);
        }
        wait_for_all(arrived, turn);
        Code limit = __ldcg(&extreme[0]);
        bool is_stuck = limit == 0;
        KEY raised = key_of(is_stuck ? max(__ldcg(&extreme[1]), code_of((KEY)0)) : limit) + (is_stuck ? jump : (KEY)0);
        for (i8 j = thread; j < size; j += threads) {
            if (__ldcg(&level[j]) == 0) continue;
            KEY d = distance(search, (int)j);
            if (d < raised) v[j] += d - raised;
        }
        if (is_stuck) {
            if (thread == 0) progress->stuck = 0;
            break;
        }
        for (i8 i = thread; i < size; i += threads) {
            int j = __ldcg(&end[i]);
            while (j >= 0 && j != kNoRow) {
                Code reached = __ldcg(&parent[j]);
                int row = (int)(reached >> 32);
                owner[j] = row, edge[row] = indptr[row] + (i8)(reached & 0xffffffffu);
                j = __ldcg(&up[j]);
            }
        }
        wait_for_all(arrived, turn);
    }
    if (lane == 0 && warp == 0) progress->phases += phases, progress->rounds += done, progress->scanned += scanned;
}

// u_i := min(u_i, min_j (c_ij - v_j)). Written: u (R,) KEY.
extern "C" __global__ void lower_to_slack(const i8* indptr, const int* indices, const VALUE* values, const KEY* v, KEY* u,
                                          i8 size) {
    i8 i = blockIdx.x * (i8)blockDim.x + threadIdx.x;
    if (i >= size) return;
    KEY least = u[i];
    for (i8 p = indptr[i]; p < indptr[i + 1]; ++p) least = min(least, (KEY)values[p] - v[indices[p]]);
    u[i] = least;
}
