// Frames in units of the camera's noise, and the light of spots in them. Twins of stabilise_cpu.py and of
// `render` in fit_cpu.py. No result depends on the order of threads.
#include "camera.cuh"
#include "draw.cuh"

const int FIELD = 9;  // stabilise._CONSTANT_SIZE
const int NOT_MEASURED = 1;

// What of `masked` and of saturation may be in a frame: a flag (B,) i4 zero is set where the host must look.
// voxels (B, Z, Y, X) f4; lowest (B,) f4 of its voxels; mean (B,) f4; hot, flat: stabilise._HOT, _NOISE.
extern "C" __global__ void find_faults(const float* voxels, const float* lowest, const float* mean, int frames,
                                       int depth, int height, int width, double base, double slope, double least,
                                       double saturation, double hot, double flat, int* flag) {
    long long plane = (long long)height * width, i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= frames * depth * plane) return;
    int frame = (int)(i / (depth * plane)), y = (int)(i / width % height), x = (int)(i % width);
    float value = voxels[i];
    bool fault = !(value == value) || value >= saturation;
    if (!fault && value == lowest[frame] && y + FIELD <= height && x + FIELD <= width) {
        fault = true;
        for (int k = 0; k < FIELD * FIELD && fault; ++k)
            fault = voxels[i + (long long)(k / FIELD) * width + k % FIELD] == value;
    }
    if (!fault && y > 0 && x > 0 && y < height - 1 && x < width - 1 &&
        value - fmaxf(voxels[i - 1], voxels[i + 1]) > hot * sqrt(least)) {  // or a little less
        float top = -1e38f, low = 1e38f, sum = 0;
        for (int k = 0; k < 9; ++k) {
            if (k == 4) continue;
            float other = voxels[i + (long long)(k / 3 - 1) * width + k % 3 - 1];
            top = fmaxf(top, other), low = fminf(low, other), sum += other;
        }
        double own = sqrt(fmax(base + slope * (sum / 8), least));
        double most = sqrt(fmax(base + slope * fmax(sum / 8, mean[frame]), least));
        fault = value - top > 0.99 * hot * own && top - low < 1.01 * flat * most;
    }
    if (fault) atomicOr(flag + frame, NOT_MEASURED);
}

// values (n,) f4 in units of the noise.
extern "C" __global__ void stabilise(const float* voxels, long long n, double base, double slope, double least,
                                     float* values) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) values[i] = (float)to_noise(voxels[i], {base, slope, least});
}

// The inverse.
extern "C" __global__ void unstabilise(const float* values, long long n, double base, double slope, double least,
                                       float* voxels) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) voxels[i] = to_grey(values[i], {base, slope, least});
}

// Rows (n, 7) f8 of spots that stand out by these heights (n,) f8 of a background (B, Z, Y, X) f4 at a position
// (n, 3) f8: of the common width, with amplitudes in grey values of at least `lowest`. frame (n,) i4.
extern "C" __global__ void spot_rows(const float* background, const double* position, const double* height,
                                     const int* frame, int n, int depth, int rows, int columns, double base,
                                     double slope, double least, double lowest, double* spots) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double* at = position + 3 * i;
    Shape shape = {depth, rows, columns};
    long long voxel = frame[i] * shape.voxels() + ((long long)rint(at[0]) * rows + (int)rint(at[1])) * columns;
    float dark = background[voxel + (int)rint(at[2])];
    Camera camera = {base, slope, least};
    for (int k = 0; k < 7; ++k) spots[7 * i + k] = k < 3 ? at[k] : 0.0;
    spots[7 * i + 3] = fmax((double)(to_grey(dark + (float)height[i], camera) - to_grey(dark, camera)), lowest);
}

// Values of some frames, in units of the noise, without what spots add to a background: rest (A, Z, Y, X) f4 of
// the frames `which` (A,) i4. start (B + 1,) i8: the first spot of each frame; sigma (3,) f8.
extern "C" __global__ void take_out(const float* values, const float* background, const int* which,
                                    const double* spots, const bool* used, const long long* start,
                                    const double* sigma, double reach, int depth, int rows, int columns,
                                    double base, double slope, double least, float* rest) {
    Shape shape = {depth, rows, columns};
    Patch p = patch_of(shape, blockIdx.x);
    int frame = which[blockIdx.y];
    float light = drawn(0.0f, spots, used, start[frame], start[frame + 1], sigma, reach, shape, p);
    int x = p.x + threadIdx.x % p.columns, y = p.y + threadIdx.x / p.columns % p.rows;
    int z = p.z + threadIdx.x / p.columns / p.rows;
    if (z >= depth || y >= rows || x >= columns) return;
    long long at = ((long long)z * rows + y) * columns + x, there = frame * shape.voxels() + at;
    Camera camera = {base, slope, least};
    float dark = background[there];
    float high = light == 0 ? 0.0f : (float)(to_noise(to_grey(dark, camera) + light, camera) - dark);
    rest[blockIdx.y * shape.voxels() + at] = values[there] - high;
}

// Grey values out = light + sign * spots (B, Z, Y, X) f4; in units of the noise if `stable`.
extern "C" __global__ void with_spots(const float* light, const double* spots, const bool* used,
                                      const long long* start, const double* sigma, double reach, int depth,
                                      int rows, int columns, double base, double slope, double least, int stable,
                                      float* out) {
    Shape shape = {depth, rows, columns};
    Patch p = patch_of(shape, blockIdx.x);
    int frame = blockIdx.y;
    int x = p.x + threadIdx.x % p.columns, y = p.y + threadIdx.x / p.columns % p.rows;
    int z = p.z + threadIdx.x / p.columns / p.rows;
    bool inside = z < depth && y < rows && x < columns;
    long long at = frame * shape.voxels() + ((long long)z * rows + y) * columns + x;
    float given = inside ? light[at] : 0.0f;
    float value = drawn(stable ? 0.0f : given, spots, used, start[frame], start[frame + 1], sigma, reach, shape, p);
    if (inside) out[at] = stable ? (float)to_noise(given - value, {base, slope, least}) : value;
}
