// The fit of one spot in grey values by a block of at most four warps. Twins of fit_cpu.py.
#include "draw.cuh"

const int PARAMETERS = 7, LEVEL = 4;
const int SUMS = 28 + PARAMETERS + 2;  // information, gradient, squares, voxels
const int ROOM = 64;                   // voxels of an axis whose profile is kept
const int WARPS = 4;                   // of a block at most

struct Camera {
    double base, slope, least, saturation;
};

// The window of a spot: distances from its centre in widths, and a Gaussian, along each axis.
struct Window {
    float far[3][ROOM], gauss[3][ROOM];
    int low[3], size[3];
    double wide[3];

    // All threads of the block: the window reaches so many widths of this spot if `grown`, else common ones.
    __device__ void lay(const double* spot, const double* sigma, double reach, bool grown, Shape shape) {
        int voxels[3] = {shape.z, shape.y, shape.x};
        __syncthreads();
        for (int axis = 0; axis < 3; ++axis) {
            double own = width_of(spot, sigma, axis);
            int first, stop;
            span(spot[axis], reach * (grown ? own : sigma[axis]), voxels[axis], &first, &stop);
            if (threadIdx.x == 0) low[axis] = first, size[axis] = max(stop - first, 0), wide[axis] = own;
            for (int k = threadIdx.x; k < min(stop - first, ROOM); k += blockDim.x)
                at(spot[axis], own, first + k, &far[axis][k], &gauss[axis][k]);
        }
        __syncthreads();
    }
    __device__ static void at(double centre, double wide, int voxel, float* far, float* gauss) {
        *far = wide > 0 ? (float)((voxel - centre) / wide) : 0.0f;
        *gauss = wide > 0 ? (float)exp(-0.5 * *far * *far) : 1.0f;
    }
    __device__ void get(const double* spot, int axis, int k, float* distance, float* height) const {
        if (k < ROOM) *distance = far[axis][k], *height = gauss[axis][k];
        else at(spot[axis], wide[axis], low[axis] + k, distance, height);
    }
    __device__ int voxels() const { return size[0] * size[1] * size[2]; }
    __device__ void place(int v, int* k) const {
        k[0] = v / (size[1] * size[2]), k[1] = v / size[2] % size[1], k[2] = v % size[2];
    }
    __device__ long long voxel(const int* k, Shape shape) const {
        return ((long long)(low[0] + k[0]) * shape.y + low[1] + k[1]) * shape.x + low[2] + k[2];
    }
};

// Sums (SUMS,), in shared memory, of weighted products of the derivatives of a spot over its window; see
// `normal_equations` in fit_cpu.py. The light of the spot is in the model.
__device__ void sums_of(const float* image, const float* model, const double* spot, const double* sigma,
                        Camera camera, double reach, Shape shape, Window& window, double* total) {
    __shared__ double of_warp[WARPS][SUMS];
    window.lay(spot, sigma, reach, false, shape);
    float level = (float)spot[LEVEL], least = (float)camera.least, cut = (float)camera.saturation;
    double a = spot[3], sum[SUMS];
    const double* wide = window.wide;
    for (int k = 0; k < SUMS; ++k) sum[k] = 0;
    for (int v = threadIdx.x; v < window.voxels(); v += blockDim.x) {
        int at[3];
        float far[3], gauss[3];
        window.place(v, at);
        for (int axis = 0; axis < 3; ++axis) window.get(spot, axis, at[axis], far + axis, gauss + axis);
        double rest = reach * reach - (double)far[0] * far[0] - (double)far[1] * far[1];
        if (rest < 0 || fabs(window.low[2] + at[2] - spot[2]) > sqrt(rest) * wide[2]) continue;
        long long voxel = window.voxel(at, shape);
        float value = image[voxel], expected = model[voxel] + level;
        if (!(value == value) || (value >= cut && expected >= value)) continue;  // what is cut lacks no light
        float weight = 1 / fmaxf(least, (float)camera.base + (float)camera.slope * expected), r = value - expected;
        double g = (double)gauss[0] * gauss[1] * gauss[2];
        double slope[PARAMETERS] = {
            sigma[0] > 0 ? a / wide[0] * g * far[0] : 0.0,
            a / wide[1] * g * far[1],
            a / wide[2] * g * far[2],
            g,
            1.0,
            a * g * ((double)far[1] * far[1] + (double)far[2] * far[2]),
            a * g * far[0] * far[0],
        };
        int k = 0;
        for (int p = 0; p < PARAMETERS; ++p) {
            double w = weight * slope[p];
            for (int q = 0; q <= p; ++q) sum[k++] += w * slope[q];
            sum[28 + p] += w * r;
        }
        sum[28 + PARAMETERS] += (double)weight * r * r, sum[29 + PARAMETERS] += 1;
    }
    for (int k = 0; k < SUMS; ++k)
        for (int step = 16; step; step /= 2) sum[k] += __shfl_xor_sync(~0u, sum[k], step);
    for (int k = 0; k < SUMS && threadIdx.x % 32 == 0; ++k) of_warp[threadIdx.x / 32][k] = sum[k];
    __syncthreads();
    for (int k = threadIdx.x; k < SUMS; k += blockDim.x) {
        total[k] = of_warp[0][k];
        for (int warp = 1; warp < blockDim.x / 32; ++warp) total[k] += of_warp[warp][k];
    }
    __syncthreads();
}

// Solve the equations of a spot for `columns` right sides, in shared memory: rows of 7 + 7, by the first warp.
__device__ void eliminate(double (*row)[2 * PARAMETERS], int columns) {
    int lane = threadIdx.x, last = PARAMETERS + columns;
    if (lane >= 32) return;
    for (int i = 0; i < PARAMETERS; ++i) {
        int pivot = i;
        for (int r = i + 1; r < PARAMETERS; ++r)
            if (fabs(row[r][i]) > fabs(row[pivot][i])) pivot = r;
        __syncwarp();
        if (pivot != i && lane < last) {
            double kept = row[i][lane];
            row[i][lane] = row[pivot][lane], row[pivot][lane] = kept;
        }
        __syncwarp();
        double factor[PARAMETERS];
        for (int r = i + 1; r < PARAMETERS; ++r) factor[r] = row[r][i] / row[i][i];
        __syncwarp();
        for (int r = i + 1; r < PARAMETERS; ++r)
            if (lane >= i && lane < last) row[r][lane] -= factor[r] * row[i][lane];
        __syncwarp();
    }
    if (lane < columns)
        for (int i = PARAMETERS - 1; i >= 0; --i) {
            double value = row[i][PARAMETERS + lane];
            for (int k = i + 1; k < PARAMETERS; ++k) value -= row[i][k] * row[k][PARAMETERS + lane];
            row[i][PARAMETERS + lane] = value / row[i][i];
        }
    __syncwarp();
}

// Information and prior in the left columns; right of them the gradient, or for `inverse` the identity.
__device__ void equations(const double* sum, const double* spot, const double* prior, bool inverse,
                          double (*row)[2 * PARAMETERS]) {
    if (threadIdx.x == 0)
        for (int p = 0, k = 0; p < PARAMETERS; ++p) {
            for (int q = 0; q <= p; ++q, ++k) row[p][q] = row[q][p] = sum[k];
            row[p][p] += prior[p];
            for (int c = 0; c < PARAMETERS; ++c) row[p][PARAMETERS + c] = inverse && c == p ? 1.0 : 0.0;
            if (!inverse) row[p][PARAMETERS] = sum[28 + p] - (p >= LEVEL ? prior[p] * spot[p] : 0.0);
        }
    __syncthreads();
}

// Add the light of a spot to a model, or take it away; several voxels a thread at once, for memory is slow.
__device__ void add(float* model, const double* spot, const double* sigma, double reach, Shape shape, double sign,
                    Window& window) {
    const int AT_ONCE = 4;
    window.lay(spot, sigma, reach, true, shape);
    for (int first = threadIdx.x; first < window.voxels(); first += AT_ONCE * blockDim.x) {
        long long voxel[AT_ONCE];
        float light[AT_ONCE], before[AT_ONCE];
        for (int u = 0; u < AT_ONCE; ++u) {
            int v = first + u * blockDim.x, at[3];
            voxel[u] = -1;
            if (v >= window.voxels()) continue;
            float far, gauss[3];
            window.place(v, at);
            for (int axis = 0; axis < 3; ++axis) window.get(spot, axis, at[axis], &far, gauss + axis);
            voxel[u] = window.voxel(at, shape);
            light[u] = (float)(sign * spot[3] * gauss[0] * gauss[1]) * gauss[2];
            before[u] = model[voxel[u]];
        }
        for (int u = 0; u < AT_ONCE; ++u)
            if (voxel[u] >= 0) model[voxel[u]] = before[u] + light[u];
    }
}

// What a block works in, in shared memory.
struct Scratch {
    double rows[PARAMETERS][2 * PARAMETERS], sum[SUMS], next[PARAMETERS];
    Window window;
};

// What the fit of a spot is given: the most a step changes (7,) f8, and how many widths it moves in all.
struct Limits {
    const double *prior, *most;
    double reach, far;
};

// One step of a spot, whose light is in the model; returns, in thread 0, how large it is.
__device__ double step(const float* image, float* model, double* spot, const double* origin, const double* sigma,
                       Camera camera, Limits limits, Shape shape, Scratch& room) {
    double shift = 0;
    sums_of(image, model, spot, sigma, camera, limits.reach, shape, room.window, room.sum);
    equations(room.sum, spot, limits.prior, false, room.rows);
    eliminate(room.rows, 1);
    add(model, spot, sigma, limits.reach, shape, -1.0, room.window);
    __syncthreads();
    if (threadIdx.x == 0) {
        const double* most = limits.most;
        double* next = room.next;
        int size[3] = {shape.z, shape.y, shape.x};
        for (int p = 0; p < PARAMETERS; ++p) {
            double by = room.rows[p][PARAMETERS], limit = p == 3 ? most[p] * fmax(spot[p], 1e-30) : most[p];
            next[p] = spot[p] + (p == LEVEL ? by : fmin(fmax(by, -limit), limit));
        }
        for (int axis = 0; axis < 3; ++axis) {
            double away = limits.far * sigma[axis];
            next[axis] = fmin(fmax(next[axis], origin[axis] - away), origin[axis] + away);
            next[axis] = fmin(fmax(next[axis], -0.5), size[axis] - 0.5);
        }
        if (sigma[0] == 0) next[0] = origin[0];
        for (int p = 0; p < PARAMETERS; ++p) {
            double part = fabs(next[p] - spot[p]) / most[p];
            shift = fmax(shift, p == 3 ? part / fmax(next[p], 1e-30) : part);
        }
        for (int p = 0; p < PARAMETERS; ++p) spot[p] = next[p];
    }
    __syncthreads();
    add(model, room.next, sigma, limits.reach, shape, 1.0, room.window);
    return shift;
}

// Standard errors (6,) f8 of z, y, x and of both sizes, and the reduced chi-square, by thread 0.
__device__ void errors(const float* image, const float* model, const double* spot, const double* sigma,
                       Camera camera, Limits limits, Shape shape, Scratch& room, double* out) {
    sums_of(image, model, spot, sigma, camera, limits.reach, shape, room.window, room.sum);
    equations(room.sum, spot, limits.prior, true, room.rows);
    eliminate(room.rows, PARAMETERS);
    if (threadIdx.x) return;
    for (int k = 0; k < 5; ++k) {
        int p = k < 3 ? k : k + 2;
        double variance = fmax(room.rows[p][PARAMETERS + p], 0.0);
        out[k] = k < 3 && sigma[k] <= 0 ? 0.0 : sqrt(variance);
    }
    out[5] = room.sum[28 + PARAMETERS] / fmax(room.sum[29 + PARAMETERS] - PARAMETERS, 1.0);
}
