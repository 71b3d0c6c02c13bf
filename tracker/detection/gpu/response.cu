// Noise scales and maxima of responses. Twins of `noise_scale` in joint.py and of mean_depths, peaks_above and
// vertices in joint_cpu.py. No result depends on the order of threads.
#include "field.cuh"

__device__ unsigned key_of(float value) {
    unsigned bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The bin of a value among even ones, in order; in one bin alone each value would wait for the others.
__device__ int bin_of(float value) { return (int)fminf(fmaxf((value + 8) * 256, 0.0f), 4095.0f); }

// The bin that holds a rank, and what of the rank is left in it.
__device__ int bin_with(const int* count, long long* rank) {
    int bin = 0;
    for (; *rank >= count[bin]; ++bin) *rank -= count[bin];
    return bin;
}

// The value of a rank among every `step`th voxel of each response: out (A,) f4. response (A, voxels) f4. A block
// a frame; first the bin, then byte by byte the one in which the rank is.
extern "C" __global__ void ranked(const float* response, long long voxels, long long step, long long rank,
                                  float* out) {
    __shared__ int count[4096], coarse[256];
    __shared__ unsigned prefix;
    __shared__ long long left;
    __shared__ int bin;
    const float* own = response + blockIdx.x * voxels;
    for (int k = threadIdx.x; k < 4096; k += blockDim.x) count[k] = 0;
    __syncthreads();
    for (long long i = threadIdx.x * step; i < voxels; i += blockDim.x * step) atomicAdd(&count[bin_of(own[i])], 1);
    __syncthreads();
    if (threadIdx.x < 256) {
        coarse[threadIdx.x] = 0;
        for (int k = 0; k < 16; ++k) coarse[threadIdx.x] += count[16 * threadIdx.x + k];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        left = rank, prefix = 0;
        bin = 16 * bin_with(coarse, &left);
        bin += bin_with(count + bin, &left);
    }
    __syncthreads();
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (threadIdx.x < 256) coarse[threadIdx.x] = 0;
        __syncthreads();
        unsigned mask = shift == 24 ? 0 : ~0u << (shift + 8);
        for (long long i = threadIdx.x * step; i < voxels; i += blockDim.x * step) {
            unsigned key = key_of(own[i]);
            if (bin_of(own[i]) == bin && (key & mask) == prefix) atomicAdd(&coarse[key >> shift & 255], 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) prefix |= (unsigned)bin_with(coarse, &left) << shift;
        __syncthreads();
    }
    unsigned bits = prefix & 0x80000000u ? prefix & 0x7fffffffu : ~prefix;
    if (threadIdx.x == 0) out[blockIdx.x] = __uint_as_float(bits);
}

// Means of max(-value, 0) in blocks: out (A, z, y, x) f8. response (A, Z, Y, X) f4; size: voxels of a block.
extern "C" __global__ void mean_depths(const float* response, int depth, int height, int width, int size_z,
                                       int size_y, int size_x, int z, int y, int x, long long n, double* out) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* own = response + i / ((long long)z * y * x) * depth * height * width;
    int c = (int)(i % x) * size_x, b = (int)(i / x % y) * size_y, a = (int)(i / x / y % z) * size_z;
    int count = 0;
    double sum = 0;
    for (int j = a; j < min(a + size_z, depth); ++j)
        for (int k = b; k < min(b + size_y, height); ++k)
            for (int l = c; l < min(c + size_x, width); ++l, ++count)
                sum -= fminf(own[((long long)j * height + k) * width + l], 0.0f);
    out[i] = sum / count;
}

// Whether no neighbour exceeds a voxel of sign * values; among equal neighbours, the first.
__device__ bool is_peak(const float* values, float sign, int depth, int height, int width, int z, int y, int x) {
    float top = sign * values[((long long)z * height + y) * width + x];
    for (int i = max(z - 1, 0); i < min(z + 2, depth); ++i)
        for (int j = max(y - 1, 0); j < min(y + 2, height); ++j)
            for (int k = max(x - 1, 0); k < min(x + 2, width); ++k) {
                if (i == z && j == y && k == x) continue;
                bool before = i < z || (i == z && (j < y || (j == y && k < x)));
                float other = sign * values[((long long)i * height + j) * width + k];
                if (other > top || (before && other == top)) return false;
            }
    return true;
}

// Maxima of a row of sign * values above `low`, a warp a row. Without `count` room they are written from `place`.
// values (A, Z, Y, X) f4 of the frames `which` (A,) i4; low (B,) f4; count (rows,) i8; place (rows,) i8: where the
// maxima of a row start; frame (n,) i4; voxel (n, 3) i4.
extern "C" __global__ void maxima_of_rows(const float* values, const int* which, float sign, const float* low,
                                          int depth, int height, int width, long long rows, long long* count,
                                          const long long* place, int* frame, int* voxel) {
    long long row = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    int lane = threadIdx.x % 32, y = (int)(row % height), z = (int)(row / height % depth);
    int of = (int)(row / height / depth), number = which[of];
    const float* own = values + (long long)of * depth * height * width;
    const float* line = own + ((long long)z * height + y) * width;
    long long found = 0;
    for (int from = 0; from < width; from += 32) {
        int x = from + lane;
        bool peak = x < width && sign * line[x] > low[number] && is_peak(own, sign, depth, height, width, z, y, x);
        unsigned votes = __ballot_sync(~0u, peak);
        if (peak && frame) {
            long long at = place[row] + found + __popc(votes & ((1u << lane) - 1));
            frame[at] = number, voxel[3 * at] = z, voxel[3 * at + 1] = y, voxel[3 * at + 2] = x;
        }
        found += __popc(votes);
    }
    if (!frame && lane == 0) count[row] = found;
}

// Maxima between voxels, by a parabola along each axis: position (n, 3) f8, and height (n,) f8 in units of the
// noise, of at least `least` (B,) f8, or else 0. slot (B,) i4: where a frame is among `values`; lowest (B,) f8:
// the least noise scale of each frame.
extern "C" __global__ void vertices(const float* values, const int* slot, float sign, const int* frame,
                                    const int* voxel, int n, int depth, int height, int width,
                                    const double* scale, int bz, int by, int bx, int sz, int sy, int sx,
                                    const double* least, const double* lowest, double* position,
                                    double* height_of) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* own = values + (long long)slot[frame[i]] * depth * height * width;
    int size[3] = {depth, height, width};
    long long step[3] = {(long long)height * width, width, 1}, at = 0;
    for (int axis = 0; axis < 3; ++axis) at += voxel[3 * i + axis] * step[axis];
    double top = sign * own[at], high = top;
    for (int axis = 0; axis < 3; ++axis) {
        int k = voxel[3 * i + axis];
        position[3 * i + axis] = k;
        if (size[axis] < 3) continue;
        double below = sign * own[k > 0 ? at - step[axis] : at];
        double above = sign * own[k < size[axis] - 1 ? at + step[axis] : at];
        double shift = fmin(fmax((above - below) / fmax(2 * (2 * top - below - above), 1e-9), -0.5), 0.5);
        position[3 * i + axis] = fmin(fmax(k + shift, 0.0), size[axis] - 1.0);
        high += shift * (above - below) / 4;
    }
    bool stands_out = high > least[frame[i]] * lowest[frame[i]];
    high /= scale_at({scale, bz, by, bx, sz, sy, sx}, frame[i], position + 3 * i);
    height_of[i] = stands_out && high > least[frame[i]] ? high : 0.0;
}

// Noise scales (n,) f8 at positions (n, 3) f8 of frames (n,) i4.
extern "C" __global__ void scales_at(const double* scale, int bz, int by, int bx, int sz, int sy, int sx,
                                     const int* frame, const double* position, int n, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scale_at({scale, bz, by, bx, sz, sy, sx}, frame[i], position + 3 * i);
}
