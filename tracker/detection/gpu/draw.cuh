// The light of spots at the voxels of a patch, one voxel a thread, in the order of the spots: every voxel is
// summed as on the CPU, and no result depends on the order of threads.

const int THREADS = 256;  // of a block that draws, and voxels of a patch
const int TOGETHER = 32;  // spots whose profiles are in shared memory

struct Shape {
    int z, y, x;
    __device__ long long voxels() const { return (long long)z * y * x; }
};

struct Patch {
    int z, y, x, high, rows, columns;  // first voxel, and voxels along each axis
};

// The patch of this block: the plane of blocks is (y, x), or (y, x) and z in turn.
__device__ Patch patch_of(Shape shape, int block) {
    Patch p = {0, 0, 0, shape.z == 1 ? 1 : 4, shape.z == 1 ? 16 : 8, shape.z == 1 ? 16 : 8};
    int across = (shape.x + p.columns - 1) / p.columns, down = (shape.y + p.rows - 1) / p.rows;
    p.x = block % across * p.columns, p.y = block / across % down * p.rows, p.z = block / across / down * p.high;
    return p;
}

// First voxel of a spot within a distance along an axis, and the one after the last.
__device__ void span(double centre, double far, int size, int* low, int* stop) {
    *low = max(0, (int)ceil(centre - far - 0.5)), *stop = min(size, (int)floor(centre + far + 0.5) + 1);
}

__device__ double width_of(const double* spot, const double* sigma, int axis) {
    return sigma[axis] * exp(spot[axis == 0 ? 6 : 5]);
}

// The Gaussian of a spot at a voxel of an axis; 0 where it is not drawn.
__device__ float profile_at(const double* spot, const double* sigma, double reach, int axis, int size, int at) {
    double wide = width_of(spot, sigma, axis);
    int low, stop;
    span(spot[axis], reach * wide, size, &low, &stop);
    if (at < low || at >= stop) return 0.0f;
    if (wide <= 0) return 1.0f;
    float away = (float)((at - spot[axis]) / wide);
    return (float)exp(-0.5 * away * away);
}

__device__ bool meets(const double* spot, const double* sigma, double reach, Shape shape, Patch p) {
    int from[3] = {p.z, p.y, p.x}, size[3] = {shape.z, shape.y, shape.x}, extent[3] = {p.high, p.rows, p.columns};
    for (int axis = 0; axis < 3; ++axis) {
        int low, stop;
        span(spot[axis], reach * width_of(spot, sigma, axis), size[axis], &low, &stop);
        if (low >= from[axis] + extent[axis] || stop <= from[axis]) return false;
    }
    return true;
}

// A value with the light of spots [first, stop) added. spots (n, 7) f8, as in fit_cpu.py; `used` may be null,
// else (n,) bytes: which spots are drawn. All threads of the block call it.
__device__ float drawn(float value, const double* spots, const bool* used, long long first, long long stop,
                       const double* sigma, double reach, Shape shape, Patch p) {
    __shared__ int found[THREADS], before[THREADS / 32 + 1];
    __shared__ float along[TOGETHER][36];
    __shared__ double height[TOGETHER];
    int me = threadIdx.x, warp = me / 32, lane = me % 32;
    int x = me % p.columns, y = me / p.columns % p.rows, z = me / p.columns / p.rows;
    for (long long chunk = first; chunk < stop; chunk += THREADS) {
        long long i = chunk + me;
        bool here = i < stop && (!used || used[i]) && meets(spots + 7 * i, sigma, reach, shape, p);
        unsigned votes = __ballot_sync(~0u, here);
        if (lane == 0) before[warp + 1] = __popc(votes);
        if (me == 0) before[0] = 0;
        __syncthreads();
        if (me == 0)
            for (int w = 0; w < THREADS / 32; ++w) before[w + 1] += before[w];
        __syncthreads();
        if (here) found[before[warp] + __popc(votes & ((1u << lane) - 1))] = me;
        int count = before[THREADS / 32];
        __syncthreads();
        for (int part = 0; part < count; part += TOGETHER) {
            int n = min(TOGETHER, count - part), length = p.high + p.rows + p.columns;
            for (int k = me; k < n * length; k += THREADS) {
                const double* spot = spots + 7 * (chunk + found[part + k / length]);
                int at = k % length, axis = at < p.high ? 0 : at < p.high + p.rows ? 1 : 2;
                int voxel = axis == 0 ? p.z + at : axis == 1 ? p.y + at - p.high : p.x + at - p.high - p.rows;
                int size = axis == 0 ? shape.z : axis == 1 ? shape.y : shape.x;
                along[k / length][at] = profile_at(spot, sigma, reach, axis, size, voxel);
                if (at == 0) height[k / length] = spot[3];
            }
            __syncthreads();
            for (int k = 0; k < n; ++k) {
                float high = (float)(height[k] * along[k][z] * along[k][p.high + y]);
                value += high * along[k][p.high + p.rows + x];
            }
            __syncthreads();
        }
    }
    return value;
}
