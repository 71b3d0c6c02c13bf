// Spectra of frames from their cosine transforms. Twins of `Modes.mean`, `_falling` and `Modes.at_every_mode`
// in spectrum.py. No result depends on the order of threads.

// Mean squares of the modes in each bin of rings and blocks: power (A, bins) f8. modes (A, voxels) f4; order
// (voxels,) i4: numbers of the modes by bin; start (bins + 1,) i4.
extern "C" __global__ void ring_power(const float* modes, const int* order, const int* start, int bins,
                                      long long voxels, double* power) {
    __shared__ double of_thread[128];
    int bin = blockIdx.x;
    const float* own = modes + blockIdx.y * voxels;
    double sum = 0;
    for (int k = start[bin] + threadIdx.x; k < start[bin + 1]; k += 128) {
        float value = order[k] ? own[order[k]] : 0.0f;  // mode 0 is the mean
        sum += value * value;
    }
    of_thread[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 64; step; step /= 2) {
        if (threadIdx.x < step) of_thread[threadIdx.x] += of_thread[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) power[blockIdx.y * bins + bin] = of_thread[0] / max(start[bin + 1] - start[bin], 1);
}

// Logarithms of power that never rises with the wave number, in place; that of the camera within its error.
// power (A, blocks, rings) f8; error (blocks, rings) f8; start as above; room (A, blocks, rings, 2) f8.
extern "C" __global__ void let_fall(double* power, const double* error, const int* start, int blocks, int rings,
                                    double floor, double* room) {
    double* own = power + (long long)blockIdx.x * blocks * rings;
    if (threadIdx.x == 0)
        for (int r = 1; r < rings; ++r) own[0] = fmax(own[0], own[r]);  // k = 0
    __syncthreads();
    for (int b = threadIdx.x; b < blocks; b += blockDim.x) {  // pool adjacent violators
        double *row = own + b * rings, *level = room + 2 * ((long long)blockIdx.x * blocks + b) * rings;
        double* weight = level + rings;
        int pools = 0;
        for (int r = 0; r < rings; ++r) {
            int modes = start[b * rings + r + 1] - start[b * rings + r];
            if (!modes) continue;
            level[pools] = row[r], weight[pools++] = modes;
            for (; pools > 1 && level[pools - 2] <= level[pools - 1]; --pools) {
                double both = weight[pools - 2] + weight[pools - 1];
                double sum = level[pools - 2] * weight[pools - 2] + level[pools - 1] * weight[pools - 1];
                level[pools - 2] = sum / both, weight[pools - 2] = both;
            }
        }
        double left = pools ? weight[0] : 0;
        for (int r = 0, pool = 0; r < rings; ++r) {
            int modes = start[b * rings + r + 1] - start[b * rings + r];
            if (!modes) continue;
            row[r] = level[pool], left -= modes;
            if (left < 0.5 && pool + 1 < pools) left = weight[++pool];
        }
    }
    __syncthreads();
    for (int r = threadIdx.x; r < rings; r += blockDim.x) {
        double most = 0;
        for (int b = blocks - 1; b >= 0; --b) {
            double value = most = fmax(most, own[b * rings + r]);
            own[b * rings + r] = log(fabs(value - 1) < error[b * rings + r] ? 1.0 : fmax(value, floor));
        }
    }
}

// Power (A, Z, plane) f4 at every mode; infinite at mode 0. table (A, blocks, rings) f8: what `let_fall` left;
// block (Z,) i4; low, high (plane,) i4: rings on either side, and share (plane,) f8 of the way. If `refined`, with
// the part `kept` of what is missing in `first`, the power of the same frames with their spots.
extern "C" __global__ void power_at_modes(const double* table, const int* block, const int* low, const int* high,
                                          const double* share, const float* first, int refined, float kept,
                                          int blocks, int rings, int depth, int plane, long long n, float* power) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = (int)(i % plane), z = (int)(i / plane % depth);
    const double* row = table + (i / plane / depth * blocks + block[z]) * rings;
    double from = row[low[at]];
    float value = (float)exp(from + (row[high[at]] - from) * share[at]);
    if (refined) value += kept * fmaxf(first[i] - value, 0.0f);
    power[i] = at || z ? value : __int_as_float(0x7f800000);
}
