// One shortest augmenting path, found by the threads of a warp or of a block together. Included by augment.cu.
//
// Teams of threads scan the rows of several open columns at once, and a column again if it turns out to be nearer.
// What is scanned in which step, and every tie, is decided by distances and column numbers alone: no result
// depends on the order of threads.
#pragma once
#include "words.cuh"

constexpr int kNever = 0x7fffffff;
constexpr int kTeam = 8;        // threads that scan one row together
constexpr int kAhead = 4;       // pairs that each of them fetches at once
constexpr int kMostTeams = 32;
constexpr int kMostHops = 4000;
constexpr int kFromBits = 20;
constexpr Word kFrom = (1 << kFromBits) - 1;
constexpr Word kNone = ~(Word)0;

// How far a column is: its distance, and where that is equal, over how few rows. Only then may a way replace
// another, or two columns could be reached from each other.
__device__ __forceinline__ Word way_of(int dist, int hops) {
    return ((Word)((unsigned)dist ^ 0x80000000u) << 12) | (unsigned)hops;
}
__device__ __forceinline__ int dist_of(Word way) { return (int)((unsigned)(way >> 12) ^ 0x80000000u); }

// What all threads of a search share.
struct Shared {
    Word nearest[kMostTeams];  // the next column of each team: distance, then number
    Word end, end_place;       // the nearest end: its way; its column + 1, then that of its last entry + 1
    int end_dist, count, full, tie, written;
};

// The columns that a search has reached, in a hash table.
struct Tree {
    Shared* all;
    Word* label;           // the way to a column, then the place of the column before it + 1 (0: the start)
    int *column, *owner;   // of each place, -1 where it is empty
    int* open;             // whether it is to be scanned
    int* list;             // places in use
    int room, places;
};

__device__ __forceinline__ Tree tree_at(Word* scratch, int room) {
    int places = room + room / 4;
    Word* label = scratch + sizeof(Shared) / sizeof(Word);
    int* rest = (int*)(label + places);
    return {(Shared*)scratch, label, rest, rest + places, rest + 2 * places, rest + 3 * places, room, places};
}

__device__ __forceinline__ unsigned scattered(int column) { return (unsigned)column * 0x9e3779b1u; }

// Place of a column, or -1.
__device__ __forceinline__ int place_of(const Tree& tree, int column) {
    int place = (int)(((Word)scattered(column) * (unsigned)tree.places) >> 32);
    for (int probes = 0; probes < tree.places; ++probes) {
        int there = ((volatile int*)tree.column)[place];
        if (there == column) return place;
        if (there < 0) return -1;
        place = place + 1 < tree.places ? place + 1 : 0;
    }
    return -1;
}

// Place of a column, which is taken if there is none yet; -1 if there is no room.
__device__ __forceinline__ int place_for(const Tree& tree, int column, int owner) {
    int place = (int)(((Word)scattered(column) * (unsigned)tree.places) >> 32);
    for (int probes = 0; probes < tree.places; ++probes) {
        int there = ((volatile int*)tree.column)[place];
        if (there < 0) {
            there = atomicCAS(&tree.column[place], -1, column);
            if (there < 0) {
                tree.owner[place] = owner;
                int at = atomicAdd(&tree.all->count, 1);
                if (at < tree.room) tree.list[at] = place;
                return at < tree.room ? place : -1;
            }
        }
        if (there == column) return place;
        place = place + 1 < tree.places ? place + 1 : 0;
    }
    return -1;
}

__device__ __forceinline__ void prefetch(const void* place) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
}

// A way to a column that is matched.
__device__ __forceinline__ void offer(const Tree& tree, Word way, int from, int column, int owner) {
    int place = place_for(tree, column, owner);
    if (place < 0) {
        tree.all->full = 1;
        return;
    }
    Word label = (way << kFromBits) | (unsigned)(from + 1);
    Word old = atomicMin(&tree.label[place], label);
    if (way < old >> kFromBits) tree.open[place] = 1;
    else if (way == old >> kFromBits && label != old) tree.all->tie = 1;
}

// An end of the path as one thread knows it: a free column, or column -1 for the owner of `from`, who stays
// unmatched; `from` is the column before it, or -1: the start.
struct End {
    Word way, place;
};
__device__ __forceinline__ End end_of(int dist, int hops, int column, int from) {
    return {way_of(dist, hops), ((Word)(unsigned)(column + 1) << 32) | (unsigned)(from + 1)};
}
__device__ __forceinline__ void keep_nearer(End& end, const End& other) {
    if (other.way < end.way || (other.way == end.way && other.place < end.place)) end = other;
}

template <int kWarps>
__device__ __forceinline__ void meet() {
    if (kWarps == 1) __syncwarp();
    else __syncthreads();
}
template <int kWarps>
__device__ __forceinline__ bool any(bool vote) {
    return kWarps == 1 ? __any_sync(~0u, vote) : __syncthreads_or(vote);
}

// What is read of the problem: arrays as words.cuh says. Nobody writes them while searches run, so the cache of a
// multiprocessor may keep them till the next barrier.
struct Problem {
    const Pair* indptr;
    const int *indices, *values;
    const long long* row_unmatched;
    const Word* word;
    const Pair* edge;
};

// Where ways of equal length meet, the one over the column with the least number counts. Afterwards open (per
// place) holds that column, -1 for the start.
template <int kWarps>
__device__ void settle_ties(const Problem& problem, const Tree& tree, int start, int end_dist) {
    constexpr int kThreads = 32 * kWarps;
    int me = threadIdx.x % kThreads, count = tree.all->count;
    for (int i = me; i < count; i += kThreads) tree.open[tree.list[i]] = kNever;
    meet<kWarps>();
    for (int i = me / kTeam; i <= count; i += kThreads / kTeam) {
        int from = -1, row = start, base = 0, hops = 1;
        if (i < count) {
            int place = tree.list[i];
            Word way = tree.label[place] >> kFromBits;
            if (dist_of(way) > end_dist) continue;
            from = tree.column[place], row = tree.owner[place], hops = (int)(way & 4095) + 1;
            base = dist_of(way) + dual_of(problem.word[from]) - problem.values[problem.edge[row]];
        }
        for (Pair p = problem.indptr[row] + me % kTeam; p < problem.indptr[row + 1]; p += kTeam) {
            int place = place_of(tree, problem.indices[p]);
            if (place < 0) continue;
            int dist = base + problem.values[p] - dual_of(problem.word[problem.indices[p]]);
            if (tree.label[place] >> kFromBits == way_of(dist, hops)) atomicMin(&tree.open[place], from);
        }
    }
    meet<kWarps>();
}

// Find the path from a row by kWarps warps, in scratch memory of their own. Afterwards all.end and all.end_place
// hold its end, and the labels whose low bits are all set are on it, with the row that gets the column in `open`.
// False if the tree has no room for it.
template <int kWarps>
__device__ bool find_path(const Problem& problem, const Tree& tree, int start) {
    constexpr int kThreads = 32 * kWarps, kTeams = kThreads / kTeam;
    static_assert(kTeams <= kMostTeams, "a place for each team's next column");
    Shared& all = *tree.all;
    int me = threadIdx.x % kThreads, member = me % kTeam, team = me / kTeam;
    int unmatched = (int)problem.row_unmatched[start];
    for (int place = me; place < tree.places; place += kThreads)
        tree.column[place] = -1, tree.label[place] = kNone, tree.open[place] = 0;
    if (me < kTeams) all.nearest[me] = kNone;
    if (me == 0) {
        all.end = all.end_place = kNone, all.end_dist = unmatched;
        all.count = all.full = all.tie = all.written = 0;
    }
    meet<kWarps>();
    End own{kNone, kNone};
    if (me == 0) own = end_of(unmatched, 0, -1, -1);
    int own_dist = me ? kNever : unmatched;
    int row = team ? -1 : start, base = 0, hops = 1, from = -1, from_place = -1;
    do {
        Pair first = 0, stop = 0;
        if (row >= 0) {
            first = problem.indptr[row], stop = problem.indptr[row + 1];
            if (from >= 0) {
                base += dual_of(problem.word[from]) - problem.values[problem.edge[row]];
                int without = base + (int)problem.row_unmatched[row];
                if (member == 0) keep_nearer(own, end_of(without, hops, -1, from)), own_dist = min(own_dist, without);
            }
            if (hops >= kMostHops) all.full = 1;
        }
        for (Pair p = first + member; any<kWarps>(p - member < stop); p += kTeam * kAhead) {
            int column[kAhead], dist[kAhead], owner[kAhead];
#pragma unroll
            for (int k = 0; k < kAhead; ++k) {
                bool there = p + k * kTeam < stop;
                column[k] = there ? problem.indices[p + k * kTeam] : -1;
                dist[k] = there ? problem.values[p + k * kTeam] : 0;
            }
#pragma unroll
            for (int k = 0; k < kAhead; ++k) {
                Word there = column[k] >= 0 ? problem.word[column[k]] : 0;
                owner[k] = owner_of(there), dist[k] += base - dual_of(there);
                if (column[k] >= 0 && owner[k] < 0)
                    keep_nearer(own, end_of(dist[k], hops, column[k], from)), own_dist = min(own_dist, dist[k]);
            }
            // All ends of this step are known before a column is entered, for what is farther need not be.
            int nearest = __reduce_min_sync(~0u, own_dist);
            if (me % 32 == 0 && nearest < all.end_dist) atomicMin(&all.end_dist, nearest);
            meet<kWarps>();
            int end_dist = all.end_dist;
            for (int k = 0; k < kAhead; ++k) {
                if (column[k] < 0 || owner[k] < 0 || dist[k] >= end_dist) continue;
                prefetch(&problem.indptr[owner[k]]), prefetch(&problem.edge[owner[k]]);
                offer(tree, way_of(dist[k], hops), from_place, column[k], owner[k]);
            }
        }
        meet<kWarps>();
        if (all.full) return false;
        int end_dist = all.end_dist, count = all.count;
        for (int i = me; i < count; i += kThreads) {
            int place = tree.list[i], dist = dist_of(tree.label[place] >> kFromBits), column = tree.column[place];
            if (!tree.open[place] || dist >= end_dist) continue;
            Word key = ((Word)((unsigned)dist ^ 0x80000000u) << 32) | (unsigned)column;
            Word* of_team = &all.nearest[scattered(column) % kTeams];
            if (key < *(volatile Word*)of_team) atomicMin(of_team, key);
        }
        meet<kWarps>();
        Word chosen = all.nearest[team];
        row = -1;
        if (chosen != kNone) {
            from = (int)(unsigned)chosen, from_place = place_of(tree, from);
            row = tree.owner[from_place], base = (int)((unsigned)(chosen >> 32) ^ 0x80000000u);
            hops = (int)(tree.label[from_place] >> kFromBits & 4095) + 1;
        }
        meet<kWarps>();
        if (row >= 0 && member == 0) tree.open[from_place] = 0, all.nearest[team] = kNone;
    } while (any<kWarps>(row >= 0));
    if (own.way != kNone) atomicMin(&all.end, own.way);
    meet<kWarps>();
    if (own.way == all.end) atomicMin(&all.end_place, own.place);
    meet<kWarps>();
    bool tie = all.tie;
    if (tie) settle_ties<kWarps>(problem, tree, start, dist_of(all.end));
    // Backwards from the end, the column of every place goes to the row that reached it.
    for (int last = (int)(unsigned)all.end_place - 1; me == 0 && last >= 0;) {
        int place = place_of(tree, last), before = (int)(tree.label[place] & kFrom) - 1;
        if (tie) before = tree.open[place] < 0 ? -1 : place_of(tree, tree.open[place]);
        tree.open[place] = before < 0 ? start : tree.owner[before];
        tree.label[place] |= kFrom;
        last = before < 0 ? -1 : tree.column[before];
    }
    meet<kWarps>();
    return true;
}
static_assert(sizeof(Shared) <= 320, "bid_and_augment_gpu.py reserves so much");
