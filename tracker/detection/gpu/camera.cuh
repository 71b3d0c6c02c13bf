// The Anscombe transform and its inverse, as in stabilise_cpu.py; base, slope, least: line of the variance.

struct Camera {
    double base, slope, least;
};

__device__ double to_noise(float value, Camera camera) {
    if (camera.slope == 0) return value / sqrt(fmax(camera.base, camera.least));
    double variance = camera.base + camera.slope * value;
    bool below = variance < camera.least;
    double bright = below ? camera.least : variance, dark = below ? variance - camera.least : 0.0;
    return (2 * sqrt(bright) + dark / sqrt(camera.least)) / camera.slope;
}

__device__ float to_grey(float value, Camera camera) {
    if (camera.slope == 0) return (float)(value * sqrt(fmax(camera.base, camera.least)));
    double root = sqrt(camera.least), bright = value * camera.slope / 2;
    double variance = bright >= root ? bright * bright : camera.least + 2 * (bright - root) * root;
    return (float)((variance - camera.base) / camera.slope);
}
