// Perfect matchings of square sparse problems by shortest paths from all free rows at once. No result depends on the
// order of threads: minima decide, and what is read in a round was written in an earlier one. Types and arrays as
// perfect.cuh says.
#include "perfect.cuh"

constexpr int kNoRow = 0x7fffffff;

// What a launch of `grow_and_augment` reports and goes on from.
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

// Look at the pairs of a row at distance d; a warp does it together. Rows to look at next are listed with their columns.
__device__ __forceinline__ void relax(int row, KEY d, int round, Code bound, const i8* indptr, const int* indices,
                                      const KEY* slack, const int* owner, const Search& search, int2* next, int* count,
                                      Code* first_free) {
    int lane = threadIdx.x % 32;
    i8 stop = indptr[row + 1];
    for (i8 p = indptr[row]; p < stop; p += 32) {
        bool wanted = false;
        int j = 0, its_owner = -1;
        if (p + lane < stop) {
            j = indices[p + lane];
            Code code = code_of(d + __ldcg(&slack[p + lane]));
            if (code <= bound && code < __ldcg(search.dist + (~round & 1) * search.size + j)) {
                its_owner = __ldcg(&owner[j]);
                if (code < atomicMin(search.dist + (round & 1) * search.size + j, code)) {
                    wanted = atomicExch(&search.level[j], round) != round && its_owner >= 0;
                    if (first_free && its_owner < 0) atomicMin(first_free, code);
                }
            }
        }
        unsigned votes = __ballot_sync(~0u, wanted);
        if (!votes) continue;
        int start = 0;
        if (lane == 0) start = atomicAdd(count, __popc(votes));
        start = __shfl_sync(~0u, start, 0);
        if (wanted) next[start + __popc(votes & ((1u << lane) - 1))] = make_int2(its_owner, j);
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
// slack (P,) KEY; dist (2,R) u8; level (R,) i4; parent (R,) u8; up (R,) i4; list (2,R,2) i4; roots (R,) i4; count (4,) i4;
// nearest (R,) u8, end (R,) i4: of each root's tree the least distance of a free column, and that column; extreme (3,)
// u8: the largest of those, the largest of all distances, and the least of a free column; progress (1,).
extern "C" __global__ void grow_and_augment(const i8* indptr, const int* indices, const VALUE* values, KEY* v, int* owner,
                                            i8* edge, KEY jump, int rounds, i8 size, KEY* slack, Code* dist, int* level,
                                            Code* parent, int* up, int2* list, int* roots, int* count, Code* nearest,
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
            int2 *now = list + (round & 1) * size, *next = list + (~round & 1) * size;
            Code bound = __shfl_sync(~0u, first_free ? __ldcg(first_free) : kNone, 0);
            for (int k = warp; k < frontier; k += warps) {
                int2 tip = round == 1 ? make_int2(__ldcg(&roots[k]), -1) : __ldcg(&now[k]);
                KEY d = round == 1 ? (KEY)0 : key_of(__ldcg(dist + (~round & 1) * size + tip.y));
                if (code_of(d) <= bound)
                    relax(tip.x, d, round, bound, indptr, indices, slack, owner, search, next, &count[1 + round % 3],
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
