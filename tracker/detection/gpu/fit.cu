// The last fit of spots in grey values, a block a spot. Twins of fit_cpu.py. No result depends on the order of
// threads: spots whose windows may meet are fitted in turn (`levels` in joint.cu), as on the CPU.
//
// spots (n, 7) f8: z, y, x in voxels, amplitude and level in grey values, logarithms of the widths in the plane and
// along z over the common ones. frame (n,) i4; start (B + 1,) i8: the first spot of each frame.
#include "fit.cuh"

const double STILL = 0.01;    // fit_cpu._STILL
const double WIDER = 1.2215;  // exp of the largest step of a size, fit._STEPS

// How far (n, 3) f8 from its centre a spot may read and write within a sweep; negative if it does not move.
extern "C" __global__ void extents(const double* spots, const bool* moving, int n, const double* sigma,
                                   double reach, const double* most, double* extent) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int axis = 0; axis < 3; ++axis) {
        double wide = fmax(WIDER * width_of(spots + 7 * i, sigma, axis), sigma[axis]);
        extent[3 * i + axis] = moving[i] ? reach * wide + most[axis] + 0.55 : -1e30;
    }
}

// Rows of a sparse matrix as in `overlaps`: of each spot those before it whose windows it may meet.
extern "C" __global__ void meetings(const double* spots, const double* extent, const int* frame,
                                    const long long* start, int n, long long* count, const long long* indptr,
                                    int* indices) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double *own = spots + 7 * i, *far = extent + 3 * i;
    long long found = 0;
    for (long long j = far[0] < 0 ? i : start[frame[i]]; j < i; ++j) {
        if (!(fabs(own[2] - spots[7 * j + 2]) <= far[2] + extent[3 * j + 2])) continue;
        if (!(fabs(own[1] - spots[7 * j + 1]) <= far[1] + extent[3 * j + 1])) continue;
        if (!(fabs(own[0] - spots[7 * j]) <= far[0] + extent[3 * j])) continue;
        if (indices) indices[indptr[i] + found] = (int)j;
        ++found;
    }
    if (!indices) count[i] = found;
}

// One step of the spots `which` of a level, a block each. image, model (B, Z, Y, X) f4: grey values, and background
// with the light of all spots; origin (N, 3) f8: where they started, from which they move by `far` widths at most;
// prior, most (7,) f8; in the `last` sweep those whose step is small move no more.
extern "C" __global__ void step_spots(const float* image, float* model, double* spots, const double* origin,
                                      const long long* which, const int* frame, int depth, int height, int width,
                                      const double* sigma, double base, double slope, double least,
                                      double saturation, double reach, const double* prior, const double* most,
                                      double far, int last, bool* moving) {
    __shared__ Scratch room;
    long long i = which[blockIdx.x];
    Shape shape = {depth, height, width};
    long long offset = frame[i] * shape.voxels();
    double shift = step(image + offset, model + offset, spots + 7 * i, origin + 3 * i, sigma,
                        {base, slope, least, saturation}, {prior, most, reach, far}, shape, room);
    if (last && threadIdx.x == 0) moving[i] = shift > STILL;
}

// Standard errors (n, 6) f8 of z, y, x and of both sizes, and the reduced chi-square; a block a spot.
extern "C" __global__ void errors_of(const float* image, const float* model, const double* spots, const int* frame,
                                     int depth, int height, int width, const double* sigma, double base,
                                     double slope, double least, double saturation, double reach,
                                     const double* prior, double* out) {
    __shared__ Scratch room;
    long long i = blockIdx.x;
    Shape shape = {depth, height, width};
    long long offset = frame[i] * shape.voxels();
    errors(image + offset, model + offset, spots + 7 * i, sigma, {base, slope, least, saturation},
           {prior, nullptr, reach, 0.0}, shape, room, out + 6 * i);
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
