// One wider spot in place of its pieces, a block a group of them. Twin of `_wider` in wider.py of the folder above. No
// result depends on the order of threads.
//
// low (G, 3), size (G, 3) i4: first voxel and voxels of a group's box in its frame (G,) i4; offset (G,) i8: where it
// starts in part, several and single, f4: grey values, with the light of all spots, and without the pieces.
#include "fit.cuh"

const int SWEEPS = 9;  // sum of fit.SWEEPS

// How many of the `counted` (n,) spots are within `far` widths of each one that is `asked` (n,): near (n,) i4. spots
// (n, columns) f8 begin with a position in voxels; frame (n,) i4; start (B + 1,) i8: the first of each frame.
extern "C" __global__ void count_near(const double* spots, int columns, const int* frame, const long long* start,
                                      int n, const bool* asked, const bool* counted, const double* sigma, double far,
                                      int* near) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int found = 0;
    for (long long j = start[frame[i]]; asked[i] && j < start[frame[i] + 1]; ++j) {
        if (j == i || !counted[j]) continue;
        double square = 0;
        for (int axis = 0; axis < 3; ++axis) {
            double away = spots[columns * (long long)i + axis] - spots[columns * j + axis];
            if (sigma[axis] > 0) square += away / sigma[axis] * (away / sigma[axis]);
        }
        found += square <= far * far;
    }
    near[i] = found;
}

// Cut the boxes out of frames (B, Z, Y, X) f4, and take the pieces out: piece (P,) i8, from first (G + 1,) i8, rows of
// spots (n, 7) f8. A block a group.
extern "C" __global__ void cut_out(const float* voxels, const float* whole, int depth, int height, int width,
                                   const int* frame, const int* low, const int* size, const long long* offset,
                                   const double* spots, const long long* piece, const long long* first,
                                   const double* sigma, double reach, float* part, float* several, float* single) {
    int group = blockIdx.x;
    const int *from = low + 3 * group, *extent = size + 3 * group;
    Shape box = {extent[0], extent[1], extent[2]};
    for (long long v = threadIdx.x; v < box.voxels(); v += blockDim.x) {
        int x = (int)(v % box.x), y = (int)(v / box.x % box.y), z = (int)(v / box.x / box.y);
        long long at = ((frame[group] * (long long)depth + from[0] + z) * height + from[1] + y) * width + from[2] + x;
        float light = 0;
        for (long long k = first[group]; k < first[group + 1]; ++k) {
            double spot[PARAMETERS];
            for (int p = 0; p < PARAMETERS; ++p) spot[p] = spots[7 * piece[k] + p] - (p < 3 ? from[p] : 0);
            float gz = profile_at(spot, sigma, reach, 0, box.z, z), gy = profile_at(spot, sigma, reach, 1, box.y, y);
            light += (float)(spot[3] * gz * gy) * profile_at(spot, sigma, reach, 2, box.x, x);
        }
        part[offset[group] + v] = voxels[at], several[offset[group] + v] = whole[at];
        single[offset[group] + v] = whole[at] - light;
    }
}

// Fit a spot (G, 7) f8 of widths (G, 3) f8 in each box, and its errors (G, 6) f8; as_one (G,): whether it explains the
// light as well as the pieces do, but for the share `profile`. prior, most (G, 7) f8.
extern "C" __global__ void fit_wider(const float* part, const float* several, float* single, const int* size,
                                     const long long* offset, const double* width, const double* prior,
                                     const double* most, double base, double slope, double least,
                                     double saturation, double reach, double profile, double* spots, double* error,
                                     bool* as_one) {
    __shared__ Scratch room;
    __shared__ double origin[3], of_warp[WARPS][7];
    int group = blockIdx.x;
    Shape box = {size[3 * group], size[3 * group + 1], size[3 * group + 2]};
    const float *image = part + offset[group], *before = several + offset[group];
    const double* wide = width + 3 * group;
    float* model = single + offset[group];
    double* spot = spots + 7 * group;
    Camera camera = {base, slope, least, saturation};
    Limits limits = {prior + 7 * group, most + 7 * group, reach, 1.0};
    if (threadIdx.x < 3) origin[threadIdx.x] = spot[threadIdx.x];
    add(model, spot, wide, reach, box, 1.0, room.window);
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        __syncthreads();
        step(image, model, spot, origin, wide, camera, limits, box, room);
    }
    __syncthreads();
    double sum[7] = {0, 0, 0, 0, 0, 0, 0};  // weights; with rests of one and of several, and their squares; light; any
    for (long long v = threadIdx.x; v < box.voxels(); v += blockDim.x) {
        int at[3] = {(int)(v / box.x / box.y), (int)(v / box.x % box.y), (int)(v % box.x)};
        int extent[3] = {box.z, box.y, box.x};
        double away = 0;
        float gauss[3];
        for (int axis = 0; axis < 3; ++axis) {
            double far = (at[axis] - spot[axis]) / (wide[axis] > 0 ? wide[axis] : 1.0);
            away += far * far;
            gauss[axis] = profile_at(spot, wide, reach, axis, extent[axis], at[axis]);
        }
        float value = image[v];
        if (!(away < reach * reach) || !(fabsf(value) < 3e38f) || value >= saturation) continue;
        double weight = 1 / fmax(base + slope * model[v], least), one = value - model[v], other = value - before[v];
        double light = (float)(spot[3] * gauss[0] * gauss[1]) * gauss[2];
        sum[0] += weight, sum[1] += weight * one, sum[2] += weight * one * one, sum[3] += weight * other;
        sum[4] += weight * other * other, sum[5] += weight * light * light, sum[6] += 1;
    }
    for (int k = 0; k < 7; ++k)
        for (int step = 16; step; step /= 2) sum[k] += __shfl_xor_sync(~0u, sum[k], step);
    for (int k = 0; k < 7 && threadIdx.x % 32 == 0; ++k) of_warp[threadIdx.x / 32][k] = sum[k];
    __syncthreads();
    for (int k = 0; k < 7; ++k) {
        sum[k] = 0;
        for (int warp = 0; warp < blockDim.x / 32; ++warp) sum[k] += of_warp[warp][k];
    }
    double weight = fmax(sum[0], 1e-30);
    double excess = sum[2] - sum[1] * sum[1] / weight - (sum[4] - sum[3] * sum[3] / weight);
    if (threadIdx.x == 0) as_one[group] = sum[6] > 0 && !(excess > profile * profile * sum[5]);
    errors(image, model, spot, wide, camera, limits, box, room, error + 6 * group);
}
