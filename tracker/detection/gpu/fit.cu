// The last fit of spots in grey values, a warp a spot. Twins of fit_cpu.py. No result depends on the order of
// threads: spots whose windows may meet are fitted in turn (`levels` in joint.cu), as on the CPU.
//
// spots (n, 7) f8: z, y, x in voxels, amplitude and level in grey values, logarithms of the widths in the plane and
// along z over the common ones. frame (n,) i4; start (B + 1,) i8: the first spot of each frame.
#include "draw.cuh"

const int PARAMETERS = 7, LEVEL = 4;
const int SUMS = 28 + PARAMETERS + 2;  // information, gradient, squares, voxels
const int WARPS = 4;                   // of a block
const double STILL = 0.01;             // fit_cpu._STILL
const double WIDER = 1.2215;           // exp of the largest step of a size, fit._STEPS

struct Camera {
    double base, slope, least, saturation;
};

// Rows of a sparse matrix as in `overlaps`: spots that move and whose windows may meet within this sweep.
extern "C" __global__ void meetings(const double* spots, const bool* moving, const int* frame,
                                    const long long* start, int n, const double* sigma, double reach,
                                    const double* most, long long* count, const long long* indptr, int* indices) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long found = 0;
    for (long long j = start[frame[i]]; moving[i] && j < i; ++j) {
        bool meet = moving[j];
        for (int axis = 0; axis < 3 && meet; ++axis) {
            double wide = width_of(spots + 7 * i, sigma, axis) + width_of(spots + 7 * j, sigma, axis);
            double far = reach * fmax(WIDER * wide, 2 * sigma[axis]) + 2 * most[axis] + 1.1;
            meet = fabs(spots[7 * i + axis] - spots[7 * j + axis]) <= far;
        }
        if (meet && indices) indices[indptr[i] + found] = (int)j;
        found += meet;
    }
    if (!indices) count[i] = found;
}

// Sums of weighted products of the derivatives of a spot over its window, over all lanes of a warp; see
// `normal_equations` in fit_cpu.py. The light of the spot is in the model.
__device__ void sums_of(const float* image, const float* model, const double* spot, const double* sigma,
                        Camera camera, double reach, Shape shape, double* sum) {
    int size[3] = {shape.z, shape.y, shape.x}, low[3], stop[3];
    double wide[3];
    for (int axis = 0; axis < 3; ++axis) {
        wide[axis] = width_of(spot, sigma, axis);
        span(spot[axis], reach * sigma[axis], size[axis], low + axis, stop + axis);
    }
    int rows = max(stop[1] - low[1], 0), columns = max(stop[2] - low[2], 0);
    int voxels = max(stop[0] - low[0], 0) * rows * columns;
    float level = (float)spot[LEVEL], least = (float)camera.least, cut = (float)camera.saturation;
    double a = spot[3];
    for (int k = 0; k < SUMS; ++k) sum[k] = 0;
    for (int v = threadIdx.x % 32; v < voxels; v += 32) {
        int at[3] = {low[0] + v / (rows * columns), low[1] + v / columns % rows, low[2] + v % columns};
        float far[3], gauss = 1;
        for (int axis = 0; axis < 3; ++axis) {
            far[axis] = wide[axis] > 0 ? (float)((at[axis] - spot[axis]) / wide[axis]) : 0.0f;
            gauss *= wide[axis] > 0 ? (float)exp(-0.5 * far[axis] * far[axis]) : 1.0f;
        }
        double rest = reach * reach - (double)far[0] * far[0] - (double)far[1] * far[1];
        if (rest < 0 || fabs(at[2] - spot[2]) > sqrt(rest) * wide[2]) continue;
        long long voxel = ((long long)at[0] * shape.y + at[1]) * shape.x + at[2];
        float value = image[voxel], expected = model[voxel] + level;
        if (!(value == value) || (value >= cut && expected >= value)) continue;  // what is cut lacks no light
        float weight = 1 / fmaxf(least, (float)camera.base + (float)camera.slope * expected), r = value - expected;
        double g = gauss;
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
}

// Solve the equations of a spot for `columns` right sides, in shared memory: rows of 7 + 7, by 8 lanes or more.
__device__ void eliminate(double (*row)[2 * PARAMETERS], int columns) {
    int lane = threadIdx.x % 32, last = PARAMETERS + columns;
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
    if (threadIdx.x % 32 == 0)
        for (int p = 0, k = 0; p < PARAMETERS; ++p) {
            for (int q = 0; q <= p; ++q, ++k) row[p][q] = row[q][p] = sum[k];
            row[p][p] += prior[p];
            for (int c = 0; c < PARAMETERS; ++c) row[p][PARAMETERS + c] = inverse && c == p ? 1.0 : 0.0;
            if (!inverse) row[p][PARAMETERS] = sum[28 + p] - (p >= LEVEL ? prior[p] * spot[p] : 0.0);
        }
    __syncwarp();
}

// Add the light of a spot to a model, or take it away: a voxel a lane.
__device__ void add(float* model, const double* spot, const double* sigma, double reach, Shape shape, double sign) {
    int size[3] = {shape.z, shape.y, shape.x}, low[3], stop[3];
    for (int axis = 0; axis < 3; ++axis)
        span(spot[axis], reach * width_of(spot, sigma, axis), size[axis], low + axis, stop + axis);
    int rows = max(stop[1] - low[1], 0), columns = max(stop[2] - low[2], 0);
    int voxels = max(stop[0] - low[0], 0) * rows * columns;
    for (int v = threadIdx.x % 32; v < voxels; v += 32) {
        int z = low[0] + v / (rows * columns), y = low[1] + v / columns % rows, x = low[2] + v % columns;
        float gz = profile_at(spot, sigma, reach, 0, size[0], z), gy = profile_at(spot, sigma, reach, 1, size[1], y);
        float high = (float)(sign * spot[3] * gz * gy);
        model[((long long)z * shape.y + y) * shape.x + x] += high * profile_at(spot, sigma, reach, 2, size[2], x);
    }
    __syncwarp();
}

// One step of the spots `which` (n,) i8 of a level. image, model (B, Z, Y, X) f4: grey values, and background with
// the light of all spots; origin (N, 3) f8: where they started, from which they move by `far` widths at most;
// prior, most (7,) f8; in the `last` sweep those whose step is small move no more.
extern "C" __global__ void step_spots(const float* image, float* model, double* spots, const double* origin,
                                      const long long* which, int n, const int* frame, int depth, int height,
                                      int width, const double* sigma, double base, double slope, double least,
                                      double saturation, double reach, const double* prior, const double* most,
                                      double far, int last, bool* moving) {
    __shared__ double rows[WARPS][PARAMETERS][2 * PARAMETERS];
    __shared__ double moved[WARPS][PARAMETERS];
    int warp = threadIdx.x / 32, number = blockIdx.x * WARPS + warp;
    if (number >= n) return;
    long long i = which[number];
    Shape shape = {depth, height, width};
    long long offset = frame[i] * shape.voxels();
    double *spot = spots + 7 * i, *next = moved[warp], sum[SUMS];
    sums_of(image + offset, model + offset, spot, sigma, {base, slope, least, saturation}, reach, shape, sum);
    equations(sum, spot, prior, false, rows[warp]);
    eliminate(rows[warp], 1);
    add(model + offset, spot, sigma, reach, shape, -1.0);
    if (threadIdx.x % 32 == 0) {
        int size[3] = {depth, height, width};
        double shift = 0;
        for (int p = 0; p < PARAMETERS; ++p) {
            double step = rows[warp][p][PARAMETERS], limit = p == 3 ? most[p] * fmax(spot[p], 1e-30) : most[p];
            next[p] = spot[p] + (p == LEVEL ? step : fmin(fmax(step, -limit), limit));
        }
        for (int axis = 0; axis < 3; ++axis) {
            double away = far * sigma[axis], from = origin[3 * i + axis];
            next[axis] = fmin(fmax(next[axis], from - away), from + away);
            next[axis] = fmin(fmax(next[axis], -0.5), size[axis] - 0.5);
        }
        if (sigma[0] == 0) next[0] = origin[3 * i];
        for (int p = 0; p < PARAMETERS; ++p) {
            double part = fabs(next[p] - spot[p]) / most[p];
            shift = fmax(shift, p == 3 ? part / fmax(next[p], 1e-30) : part);
        }
        if (last) moving[i] = shift > STILL;
        for (int p = 0; p < PARAMETERS; ++p) spot[p] = next[p];
    }
    __syncwarp();
    add(model + offset, spot, sigma, reach, shape, 1.0);
}

// Standard errors (n, 6) f8 of z, y, x and of both sizes, and the reduced chi-square.
extern "C" __global__ void errors_of(const float* image, const float* model, const double* spots, int n,
                                     const int* frame, int depth, int height, int width, const double* sigma,
                                     double base, double slope, double least, double saturation, double reach,
                                     const double* prior, double* out) {
    __shared__ double rows[WARPS][PARAMETERS][2 * PARAMETERS];
    int warp = threadIdx.x / 32, i = blockIdx.x * WARPS + warp;
    if (i >= n) return;
    Shape shape = {depth, height, width};
    long long offset = frame[i] * shape.voxels();
    double sum[SUMS];
    sums_of(image + offset, model + offset, spots + 7 * i, sigma, {base, slope, least, saturation}, reach, shape, sum);
    equations(sum, spots + 7 * i, prior, true, rows[warp]);
    eliminate(rows[warp], PARAMETERS);
    if (threadIdx.x % 32) return;
    for (int k = 0; k < 5; ++k) {
        int p = k < 3 ? k : k + 2;
        double variance = fmax(rows[warp][p][PARAMETERS + p], 0.0);
        out[6 * i + k] = k < 3 && sigma[k] <= 0 ? 0.0 : sqrt(variance);
    }
    out[6 * i + 5] = sum[28 + PARAMETERS] / fmax(sum[29 + PARAMETERS] - PARAMETERS, 1.0);
}

// Light (n,) f8 of the brightest halo at each candidate whose spot is much brighter than it; see `beside_bright` in
// decision.py.
extern "C" __global__ void halos(const double* position, const double* height, const int* frame,
                                 const long long* start, int n, const double* sigma, double share, double wide,
                                 double reach, double* halo) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double most = 0;
    for (long long j = start[frame[i]]; j < start[frame[i] + 1]; ++j) {
        if (!(height[i] < share * height[j])) continue;
        double square = 0;
        for (int axis = 0; axis < 3; ++axis) {
            double away = (position[3 * i + axis] - position[3 * j + axis]) / (sigma[axis] > 0 ? sigma[axis] : 1.0);
            square += away * away;
        }
        if (square <= reach * reach) most = fmax(most, height[j] * share * exp(-square / (wide * wide) / 2));
    }
    halo[i] = most;
}
