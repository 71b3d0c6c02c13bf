// GPU kernels of neighbour search. Twins of neighbours_cpu.py; each thread writes one row alone: no result depends on
// the order of threads.

#ifndef COUNT  // the launcher gives both to the compiler
#define COUNT 10
#define AXES 3
#endif

// A grid over all frames: low, edge and size along each axis, all f8. Cells at the border extend to infinity.
struct Grid {
    double low[3], edge, size[3];
    __device__ int cell(int axis, double at) const { return (int)fmin(fmax(at / edge, 0.0), size[axis] - 1); }
};

// The cell of each point, key (N,) i8, by frame (N,) i4; position (N, AXES) f8.
extern "C" __global__ void cells_of(long long points, const double* position, const int* frame, const Grid* grid,
                                    long long* key) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= points) return;
    long long cell = frame[i];
    for (int k = 0; k < 3; ++k)
        cell = cell * (int)grid->size[k] + (k < AXES ? grid->cell(k, position[i * AXES + k] - grid->low[k]) : 0);
    key[i] = cell;
}

// Points so far, nearest first.
struct Nearest {
    double square[COUNT];
    int who[COUNT];
    int taken;
};

// Looks at the points begin to end, other than the row itself.
__device__ __forceinline__ void look(Nearest& best, const double* at, int row, long long begin, long long end,
                                     const int* member, const double* point) {
    for (long long m = begin; m < end; ++m) {
        int j = member[m];
        double d2 = 0;
        for (int k = 0; k < AXES; ++k) d2 += (point[m * AXES + k] - at[k]) * (point[m * AXES + k] - at[k]);
        if (j == row || (best.taken == COUNT && d2 >= best.square[COUNT - 1])) continue;
        int place = min(best.taken, COUNT - 1);
        best.taken = place + 1;
        for (; place > 0 && best.square[place - 1] > d2; --place)
            best.square[place] = best.square[place - 1], best.who[place] = best.who[place - 1];
        best.square[place] = d2, best.who[place] = j;
    }
}

// Neighbours of rows[first:last] in the frames `offset` later, by shells of cells around each until no cell farther
// out can hold a nearer one, or all within a distance are seen. rows (M,) i8; position (N, AXES) f8; frame (N,) i4.
// The points by cell: begin (cells + 1,) i8, member (N,) i4, point (N, AXES) f8. Written: near (M, COUNT) i4,
// distance2 (M, COUNT) f8.
extern "C" __global__ void nearest_of_rows(long long first, long long last, const long long* rows,
                                           const double* position, const int* frame, int offset, double within,
                                           const Grid* grid, const long long* begin, const int* member,
                                           const double* point, int* near, double* distance2) {
    long long asking = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (asking >= last) return;
    int row = rows[asking], size[3], mid[3] = {0, 0, 0};
    double at[AXES];
    Nearest best;
    best.taken = 0;
    for (int k = 0; k < 3; ++k) size[k] = grid->size[k];
    for (int k = 0; k < AXES; ++k) {
        at[k] = position[(long long)row * AXES + k];
        mid[k] = grid->cell(k, at[k] - grid->low[k]);
    }
    long long of_frame = (long long)(frame[row] + offset) * size[0] * size[1] * size[2];
    for (int reach = 0;; ++reach) {
        for (int z = max(mid[0] - reach, 0); z <= min(mid[0] + reach, size[0] - 1); ++z)
            for (int y = max(mid[1] - reach, 0); y <= min(mid[1] + reach, size[1] - 1); ++y) {
                const long long* line = begin + of_frame + ((long long)z * size[1] + y) * size[2];
                int low = mid[2] - reach, high = mid[2] + reach;
                if (abs(z - mid[0]) == reach || abs(y - mid[1]) == reach) {
                    look(best, at, row, line[max(low, 0)], line[min(high, size[2] - 1) + 1], member, point);
                    continue;
                }
                if (low >= 0) look(best, at, row, line[low], line[low + 1], member, point);
                if (high < size[2]) look(best, at, row, line[high], line[high + 1], member, point);
            }
        double bound = 1e300;  // least distance of the cells beyond
        for (int k = 0; k < AXES; ++k) {
            double here = at[k] - grid->low[k];
            if (mid[k] - reach > 0) bound = fmin(bound, here - (mid[k] - reach) * grid->edge);
            if (mid[k] + reach < size[k] - 1) bound = fmin(bound, (mid[k] + reach + 1) * grid->edge - here);
        }
        if (bound == 1e300 || bound > within) break;
        if (best.taken == COUNT && best.square[COUNT - 1] <= bound * bound && bound > 0) break;
    }
    for (int k = 0; k < best.taken; ++k)
        near[asking * COUNT + k] = best.who[k], distance2[asking * COUNT + k] = best.square[k];
}
