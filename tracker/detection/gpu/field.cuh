// Values between voxels and blocks. Twins of `at_place` and `interpolated` in joint_cpu.py.

// Noise scales of frames in blocks (B, z, y, x) f8 of `size` voxels.
struct Blocks {
    const double* scale;
    int z, y, x, size_z, size_y, size_x;
};

// A value of an image at a position in voxels, linear; beyond the boundaries that at them.
template <class T>
__device__ double at_place(const T* values, int depth, int height, int width, double z, double y, double x) {
    int size[3] = {depth, height, width}, low[3];
    double place[3] = {z, y, x}, away[3];
    for (int axis = 0; axis < 3; ++axis) {
        double here = fmin(fmax(place[axis], 0.0), size[axis] - 1.0);
        low[axis] = min((int)here, max(size[axis] - 2, 0));
        away[axis] = here - low[axis];
    }
    double out = 0;
    for (int k = 0; k < 8; ++k) {
        int a = k >> 2, b = k >> 1 & 1, c = k & 1;
        double weight = (a ? away[0] : 1 - away[0]) * (b ? away[1] : 1 - away[1]);
        weight *= c ? away[2] : 1 - away[2];
        if (weight != 0)
            out += weight * values[((long long)(low[0] + a) * height + low[1] + b) * width + low[2] + c];
    }
    return out;
}

__device__ double scale_at(Blocks blocks, int frame, const double* position) {
    return at_place(blocks.scale + (long long)frame * blocks.z * blocks.y * blocks.x, blocks.z, blocks.y, blocks.x,
                    (position[0] - (blocks.size_z - 1) / 2.0) / blocks.size_z,
                    (position[1] - (blocks.size_y - 1) / 2.0) / blocks.size_y,
                    (position[2] - (blocks.size_x - 1) / 2.0) / blocks.size_x);
}

// Six voxels along an axis of `size`, mirrored, and their weights in the Lagrange polynomial at a position.
__device__ void six(double position, int size, double* weight, int* index) {
    int low = (int)floor(position);
    double t = position - low;
    double before = (t + 2) * (t + 1) * t, after = (t - 1) * (t - 2) * (t - 3);
    weight[0] = (t + 1) * t * after * (-1.0 / 120), weight[1] = (t + 2) * t * after * (1.0 / 24);
    weight[2] = (t + 2) * (t + 1) * after * (-1.0 / 12), weight[3] = before * (t - 2) * (t - 3) * (1.0 / 12);
    weight[4] = before * (t - 1) * (t - 3) * (-1.0 / 24), weight[5] = before * (t - 1) * (t - 2) * (1.0 / 120);
    for (int a = 0; a < 6; ++a) {
        int k = low + a - 2;
        if (k < 0 || k >= size) {
            k = ((k % (2 * size)) + 2 * size) % (2 * size);
            k = k < size ? k : 2 * size - 1 - k;
        }
        index[a] = k;
    }
}

// The sum over the six voxels along each axis of weights times `value(z, y, x)`; one plane has no others.
template <class F>
__device__ double interpolated(F value, const double* position, int depth, int height, int width) {
    double weight[3][6];
    int index[3][6], first = depth == 1 ? 2 : 0, stop = depth == 1 ? 3 : 6;
    six(position[0], depth, weight[0], index[0]);
    six(position[1], height, weight[1], index[1]);
    six(position[2], width, weight[2], index[2]);
    double out = 0;
    for (int a = first; a < stop; ++a)
        for (int b = 0; b < 6; ++b) {
            double both = (depth == 1 ? 1.0 : weight[0][a]) * weight[1][b];
            if (both == 0) continue;
            for (int c = 0; c < 6; ++c) out += both * weight[2][c] * value(index[0][a], index[1][b], index[2][c]);
        }
    return out;
}
