// GPU kernel of the M-step. Twin of m_steps_cpu.py; each thread adds its own links in their order: no result depends on
// the order of threads.

#ifndef CLASSES  // the launcher gives both to the compiler
#define CLASSES 2
#define AXES 3
#endif
constexpr int K = CLASSES, D = AXES, kSums = 3 * K + 4 * K * D + D + 1;

// Sums by group over every `threads`-th link: table (G, sums, threads) f8, zero before, whose sums are chance (K, 3),
// sums (K, D, 4), residual (D,) and number. chance (E, K, 2), sums (E, K, D, 4), residual (E, D) f4; p (E,) f8; once
// (E,) u1; tail (E,) i4; group (N,) i8, begins (N,) f8; renews (K,), inverse (K, D) f8. Written too: square (E,) f8,
// of steps over their variance.
extern "C" __global__ void add_moments(long long links, const float* chance, const float* sums, const float* residual,
                                       const double* p, const unsigned char* once, const int* tail,
                                       const long long* group, const double* begins, const double* renews,
                                       const double* inverse, int threads, double* table, double* square) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    for (long long f = t; f < links; f += threads) {
        int i = tail[f];
        double w = p[f], none = begins[i], total = 0;
        double* to = table + group[i] * kSums * threads + t;
        auto add = [&](int slot, double value) { to[(long long)slot * threads] += w * value; };
        for (int d = 0; d < D; ++d) add(3 * K + 4 * K * D + d, residual[f * D + d]);
        add(kSums - 1, 1);
        square[f] = 0;
        if (!once[f]) continue;
        for (int c = 0; c < K; ++c) {
            double fresh = renews[c] * (1 - none), renewed = chance[(f * K + c) * 2 + 1];
            add(3 * c, chance[(f * K + c) * 2]);
            add(3 * c + 1, renewed);
            if (fresh > 0) add(3 * c + 2, renewed * fresh / (none + fresh));
            for (int d = 0; d < D; ++d) {
                const float* of = sums + ((f * K + c) * D + d) * 4;
                total += ((double)of[0] + of[1]) * inverse[c * D + d];
                for (int k = 0; k < 4; ++k) add(3 * K + (c * D + d) * 4 + k, of[k]);
            }
        }
        square[f] = total;
    }
}
