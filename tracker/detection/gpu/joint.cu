// The joint fit of amplitudes in the response. Twins of joint_cpu.py and of `_resolved` in joint.py. No result
// depends on the order of threads: candidates that overlap wait for those before them (`levels`), as on the CPU.
//
// Candidates are in the order of frames: frame (n,) i4; start (B + 1,) i8: the first candidate of each frame;
// position (n, 3) f8 in voxels.
#include "field.cuh"

const double STILL = 1e-3;  // joint_cpu._STILL
const int NEAREST = 10;     // joint._NEIGHBOURS at most

// Positions (n, 3) f8 after a Newton step up the slope of the residual (B, Z, Y, X) f4. curvature (B, 3) f8.
extern "C" __global__ void moved(const double* position, const double* amplitude, const int* frame, int n,
                                 const float* residual, const double* curvature, const double* sigma, double most,
                                 int depth, int height, int width, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* own = residual + (long long)frame[i] * depth * height * width;
    int size[3] = {depth, height, width};
    for (int axis = 0; axis < 3; ++axis) {
        const double* at = position + 3 * i;
        double bend = curvature[3 * frame[i] + axis], step[3] = {0, 0, 0};
        out[3 * i + axis] = at[axis];
        if (size[axis] < 3 || bend <= 0) continue;
        step[axis] = 0.5;
        double slope = at_place(own, depth, height, width, at[0] + step[0], at[1] + step[1], at[2] + step[2]) -
                       at_place(own, depth, height, width, at[0] - step[0], at[1] - step[1], at[2] - step[2]);
        double shift = slope / fmax(amplitude[i], 1.0) / bend;
        shift = fmin(fmax(shift, -most * sigma[axis]), most * sigma[axis]);
        out[3 * i + axis] = fmin(fmax(at[axis] + shift, 0.0), size[axis] - 1.0);
    }
}

// Response to a spot over its peak in an octant of offsets (z, y, x) f4 of each frame, and their largest (B, 3) i4.
struct Kernel {
    const float* octant;
    const int* half;
    int z, y, x;
};

__device__ bool reaches(Kernel kernel, int frame, const double* a, const double* b) {
    for (int axis = 0; axis < 3; ++axis)
        if (!(fabs(a[axis] - b[axis]) <= kernel.half[3 * frame + axis] + 0.999)) return false;
    return true;
}

// The response at a to a spot at b.
__device__ double overlap(Kernel kernel, int frame, const double* a, const double* b) {
    const float* own = kernel.octant + (long long)frame * kernel.z * kernel.y * kernel.x;
    const int* half = kernel.half + 3 * frame;
    double place[3];
    for (int axis = 0; axis < 3; ++axis) place[axis] = half[axis] + a[axis] - b[axis];
    return interpolated(
        [&](int z, int y, int x) {
            return own[(abs(z - half[0]) * kernel.y + abs(y - half[1])) * kernel.x + abs(x - half[2])];
        },
        place, 2 * half[0] + 1, 2 * half[1] + 1, 2 * half[2] + 1);
}

// The response at each position (n,) f8 with the light (m,) f8 of what was taken out at `before` (m, 3) f8.
extern "C" __global__ void respond(const double* position, const int* frame, int n, const float* residual,
                                   int depth, int height, int width, const double* before, const double* light,
                                   const long long* before_start, const float* octant, const int* half, int kz,
                                   int ky, int kx, double* response) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* own = residual + (long long)frame[i] * depth * height * width;
    Kernel kernel = {octant, half, kz, ky, kx};
    double sum = interpolated(
        [&](int z, int y, int x) { return own[((long long)z * height + y) * width + x]; }, position + 3 * i, depth,
        height, width);
    for (long long j = before_start[frame[i]]; j < before_start[frame[i] + 1]; ++j)
        if (reaches(kernel, frame[i], position + 3 * i, before + 3 * j))
            sum += overlap(kernel, frame[i], position + 3 * i, before + 3 * j) * light[j];
    response[i] = sum;
}

// Overlaps of the candidates of a frame with each other, rows of a sparse matrix: without `indices` they are
// counted, count (n,) i8; else written from indptr (n + 1,) i8: indices (m,) i4, data (m,) f8.
extern "C" __global__ void overlaps(const double* position, const int* frame, const long long* start, int n,
                                    const float* octant, const int* half, int kz, int ky, int kx,
                                    long long* count, const long long* indptr, int* indices, double* data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Kernel kernel = {octant, half, kz, ky, kx};
    long long found = 0, at = indices ? indptr[i] : 0;
    for (long long j = start[frame[i]]; j < start[frame[i] + 1]; ++j) {
        if (!reaches(kernel, frame[i], position + 3 * i, position + 3 * j)) continue;
        if (indices) {
            indices[at + found] = (int)j;
            data[at + found] = i == j ? 1.0 : overlap(kernel, frame[i], position + 3 * i, position + 3 * j);
        }
        ++found;
    }
    if (!indices) count[i] = found;
}

// By how much the overlap with neighbours widens the error of an amplitude; see `widen` in joint_cpu.py.
__device__ double widened(const long long* indptr, const int* indices, const double* data, const bool* alive,
                          long long i, int most, double least, double ridge) {
    int near[NEAREST], m = 0;
    double own[NEAREST], block[NEAREST][NEAREST], right[NEAREST];
    for (long long q = indptr[i]; q < indptr[i + 1]; ++q) {
        if (indices[q] == i || !alive[indices[q]] || fabs(data[q]) < least) continue;
        if (m < most) {
            near[m] = indices[q], own[m++] = data[q];
            continue;
        }
        int weakest = 0;
        for (int k = 1; k < m; ++k)
            if (fabs(own[k]) < fabs(own[weakest])) weakest = k;
        if (fabs(data[q]) > fabs(own[weakest])) near[weakest] = indices[q], own[weakest] = data[q];
    }
    for (int r = 0; r < m; ++r) {
        for (int c = 0; c < m; ++c) block[r][c] = c == r ? 1 + ridge : 0.0;
        right[r] = own[r];
        for (long long q = indptr[near[r]]; q < indptr[near[r] + 1]; ++q)
            for (int c = 0; c < m; ++c)
                if (c != r && near[c] == indices[q]) block[r][c] = data[q];
    }
    for (int i = 0; i < m; ++i) {  // elimination with pivots, as in fit_cpu.py
        int pivot = i;
        for (int r = i + 1; r < m; ++r)
            if (fabs(block[r][i]) > fabs(block[pivot][i])) pivot = r;
        for (int c = 0; c < m && pivot != i; ++c) {
            double kept = block[i][c];
            block[i][c] = block[pivot][c], block[pivot][c] = kept;
        }
        double kept = right[i];
        right[i] = right[pivot], right[pivot] = kept;
        for (int r = i + 1; r < m; ++r) {
            double factor = block[r][i] / block[i][i];
            for (int c = i; c < m; ++c) block[r][c] -= factor * block[i][c];
            right[r] -= factor * right[i];
        }
    }
    double explained = 0;
    for (int i = m - 1; i >= 0; --i) {
        for (int k = i + 1; k < m; ++k) right[i] -= block[i][k] * right[k];
        right[i] /= block[i][i];
        explained += right[i] * own[i];
    }
    return sqrt(1 / fmax(1 - explained, ridge));
}

__device__ bool are_near(const double* a, const double* b, const double* apart) {
    double square = 0;
    for (int axis = 0; axis < 3; ++axis)
        if (apart[axis] > 0) square += (a[axis] - b[axis]) / apart[axis] * ((a[axis] - b[axis]) / apart[axis]);
    return square < 1;
}

// Whether a candidate stays; see `staying` in joint_cpu.py. significance: amplitude over error.
__device__ bool stays(const double* position, const long long* indptr, const int* indices, const double* data,
                      const bool* alive, const double* amplitude, const double* error, long long i, double least,
                      double same, const double* apart) {
    double own = amplitude[i] / error[i];
    bool stay = own >= least, stronger = false, weaker = false;
    for (long long q = indptr[i]; q < indptr[i + 1]; ++q) {
        long long j = indices[q];
        if (j == i || !alive[j]) continue;
        double other = amplitude[j] / error[j];
        bool less = other < own || (other == own && j > i);
        stay |= data[q] > same && less;
        if (are_near(position + 3 * i, position + 3 * j, apart)) weaker |= less, stronger |= !less;
    }
    return stay && (weaker || !stronger);
}

// Level (n,) i4 of each row: one more than the highest of the neighbours before it, so that those of a level do
// not touch; -1 if it is not `active` (n,). A block a frame; indices may hold neighbours after a row as well.
extern "C" __global__ void levels(const long long* start, const long long* indptr, const int* indices,
                                  const bool* active, int* level) {
    long long first = start[blockIdx.x], stop = start[blockIdx.x + 1];
    for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) level[i] = !active || active[i] ? 0 : -1;
    bool changed = true;
    while (changed) {
        __syncthreads();
        changed = false;
        for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) {
            int least = level[i];
            if (least < 0) continue;
            for (long long q = indptr[i]; q < indptr[i + 1]; ++q)
                if (indices[q] < i) least = max(least, ((volatile int*)level)[indices[q]] + 1);
            if (least != level[i]) level[i] = least, changed = true;
        }
        changed = __syncthreads_or(changed);
    }
}

// Amplitudes (n,) f8 >= 0 of candidates besides each other, by Gauss-Seidel, and their errors (n,) f8; the weakest
// of neighbours leave (alive (n,)) until all stand out. A block a frame. See `fitted` in joint_cpu.py for the
// limits; wide (n,) f8 and stay (n,) are room to work in; gain (B, Z, Y, X) f4.
extern "C" __global__ void settle(const double* position, const double* response, const long long* start,
                                  const long long* indptr, const int* indices, const double* data,
                                  const int* level, const float* gain, int depth, int height, int width,
                                  const double* scale, int bz, int by, int bx, int sz, int sy, int sx,
                                  const double* least, const double* apart, const double* limits,
                                  double* amplitude, double* error, double* wide, bool* stay, bool* alive) {
    __shared__ double of_warp[32];
    long long first = start[blockIdx.x], stop = start[blockIdx.x + 1];
    if (first == stop) return;
    int turns = (int)limits[0], sweeps = (int)limits[1], top = 0;
    const float* wall = gain + (long long)blockIdx.x * depth * height * width;
    for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) {
        amplitude[i] = fmax(response[i], 0.0), wide[i] = 0, alive[i] = true;
        top = max(top, level[i]);
    }
    for (int step = 16; step; step /= 2) top = max(top, __shfl_xor_sync(~0u, top, step));
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w) top = max(top, (int)of_warp[w]);
    for (int turn = 0; turn < turns; ++turn) {
        double most = 0;
        for (long long i = first + threadIdx.x; i < stop; i += blockDim.x)
            if (alive[i]) most = fmax(most, response[i]);
        for (int step = 16; step; step /= 2) most = fmax(most, __shfl_xor_sync(~0u, most, step));
        __syncthreads();
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
        __syncthreads();
        for (int w = 0; w < blockDim.x / 32; ++w) most = fmax(most, of_warp[w]);
        most *= limits[2];
        for (int sweep = 0; sweep < sweeps; ++sweep) {
            bool changed = false;
            for (int l = 0; l <= top; ++l) {
                for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) {
                    if (level[i] != l || !alive[i]) continue;
                    double rest = response[i];
                    for (long long q = indptr[i]; q < indptr[i + 1]; ++q)
                        if (indices[q] != i && alive[indices[q]]) rest -= data[q] * amplitude[indices[q]];
                    rest = fmin(fmax(rest, 0.0), most);
                    changed |= fabs(rest - amplitude[i]) >= STILL;
                    amplitude[i] = rest;
                }
                __syncthreads();
            }
            if (!__syncthreads_or(changed)) break;
        }
        for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) {
            if (!alive[i]) continue;
            if (!(wide[i] > 0))
                wide[i] = widened(indptr, indices, data, alive, i, (int)limits[5], limits[6], limits[7]);
            double others = 0;
            for (long long q = indptr[i]; q < indptr[i + 1]; ++q)
                if (alive[indices[q]]) others += fabs(data[q]) * amplitude[indices[q]];
            const double* at = position + 3 * i;
            double noise = wall[((long long)rint(at[0]) * height + (int)rint(at[1])) * width + (int)rint(at[2])];
            noise *= scale_at({scale, bz, by, bx, sz, sy, sx}, blockIdx.x, at);
            double light = limits[4] * (others - amplitude[i]);
            error[i] = wide[i] * sqrt(noise * noise + light * light);
        }
        __syncthreads();
        bool some = false, all = true;
        for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) {
            if (!alive[i]) continue;
            stay[i] = stays(position, indptr, indices, data, alive, amplitude, error, i, least[blockIdx.x], limits[3],
                            apart);
            some |= stay[i], all &= stay[i];
        }
        some = __syncthreads_or(some), all = !__syncthreads_or(!all);
        if (all || !some || turn == turns - 1) return;
        for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) {
            if (!alive[i] || stay[i]) continue;
            for (long long q = indptr[i]; q < indptr[i + 1]; ++q) wide[indices[q]] = 0;
        }
        __syncthreads();
        for (long long i = first + threadIdx.x; i < stop; i += blockDim.x) alive[i] = alive[i] && stay[i];
        __syncthreads();
    }
}

// Which spots (n,) are dimmer than one within `far` widths (3,) f8, where an axis of 0 counts in voxels.
extern "C" __global__ void dimmer_of_near(const double* position, const double* amplitude, const int* frame,
                                          const long long* start, int n, const double* sigma, double far,
                                          bool* dimmer) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool found = false;
    for (long long j = start[frame[i]]; j < start[frame[i] + 1] && !found; ++j) {
        double square = 0;
        for (int axis = 0; axis < 3; ++axis) {
            double wide = sigma[axis] > 0 ? sigma[axis] : 1.0;
            double away = position[3 * i + axis] / wide - position[3 * j + axis] / wide;
            square += away * away;
        }
        if (j == i || square > far * far) continue;
        found = i < j ? amplitude[i] < amplitude[j] : !(amplitude[j] < amplitude[i]);
    }
    dimmer[i] = found;
}
