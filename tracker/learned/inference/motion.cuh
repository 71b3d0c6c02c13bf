// What the filters and the smoother share: the motion model, states of links, and limits as in filter_cpu.py.

#ifndef CLASSES  // launchers give them to the compiler
#define CLASSES 2
#define AXES 3
#endif
constexpr int K = CLASSES, D = AXES;
constexpr double kLeastWeight = 1e-3, kFarthest = 600.0, kNothing = 1e-290, kTwoPi = 6.283185307179586;

// The parameters of `Steps`, all f8, in the order in which filter_gpu.packed has them.
struct Motion {
    double variance[K][D], correlation[K], share[K], renewal[K], entry[K], noise[D];
};

// Position and step along one axis: means and covariances.
struct State {
    double x, s, xx, xs, ss;
};

// The state of class c along axis d, of a link whose states are of (K, D, 5) f4.
__device__ __forceinline__ State state_of(const float* of, int c, int d) {
    of += (c * D + d) * 5;
    return {of[0], of[1], of[2], of[3], of[4]};
}

// The state `lag` intervals on, by the scales of intervals start, start + way, …
__device__ __forceinline__ State predicted(State v, double a, double variance, const double* scale, int lag,
                                           long long start, int way) {
    double q = variance * (1 - a * a);
    for (int k = 0; k < lag; ++k) {
        double g = scale[start + way * k];
        v.s *= a, v.xs *= a, v.ss = a * a * v.ss + q;
        v.x += g * v.s;
        v.xx += g * (2 * v.xs + g * v.ss);
        v.xs += g * v.ss;
    }
    return v;
}

// Probability of no renewal over `lag` intervals.
__device__ __forceinline__ double staying(double renewal, int lag) {
    double stay = 1;
    for (int k = 0; k < lag; ++k) stay *= 1 - renewal;
    return stay;
}
