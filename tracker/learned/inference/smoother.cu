// GPU kernels of the smoother. Twins of smoother_cpu.py; each thread writes one link alone: no result depends on the
// order of threads. E links, N detections.

#include "motion.cuh"

constexpr double kLeastInformation = 1e-6, kHopeless = 1e-5, kCounted = 1e-3, kLeastVariance = 1e-9;

// Backward states (E, K, D, 5) f4 of links first:last, in place, as observations of the step into their tail; factor
// (E, K) f8; weight (E, K) f4. A thread a link and class.
extern "C" __global__ void future_as_observations(long long first, long long last, const Motion* motion,
                                                  const float* weight, float* state, double* factor) {
    long long at = first * K + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at >= last * K) return;
    int c = at % K;
    double a = motion->correlation[c], norm = 1, exponent = 0;
    for (int d = 0; d < D; ++d) {
        float* of = state + (at * D + d) * 5;
        double prior = motion->variance[c][d], x = of[0], xx = of[2], xs = of[3];
        double var = a * a * of[4] + prior * (1 - a * a), mean = -a * of[1], beta = -a * xs / var;
        double information = 1 / var - 1 / prior;
        if (information * prior > kLeastInformation) {
            double z = mean / (var * information);
            of[0] = z, of[1] = 1 / information;
            exponent += (z - mean) * (z - mean) / var - z * z / prior;
            norm *= kTwoPi * prior / (information * var);
        } else {
            of[0] = 0, of[1] = -1;
            beta = 0, mean = 0;
        }
        of[2] = x - beta * mean, of[3] = beta;
        of[4] = fmax(xx + beta * beta * var + 2 * beta * a * xs, kLeastVariance * prior);
    }
    factor[at] = weight[at] * (1 - motion->renewal[c]) / motion->share[c] * sqrt(norm) * exp(-0.5 * exponent);
}

// Gains on x and s, mean, and variance that stays, of the step before a link over one interval.
struct Before {
    double j0, j1, mean, stays;
};

// Sums of `Moments` of one link.
struct Sums {
    double chance[K][2], sums[K][D][4], residual[D];
};

// The likelihood ratios G (E,) f8 of links first:last, and their moments if kMoments. Directions as `Direction` has
// them: of the forward filter to_start (N + 1,) i8, to_link (E,) i4, near, far (E,) i4; of the backward one in_start,
// in_link. known, incoming (E, K) f4: weights of links; begins, none (N,) f8: of none; by_past, by_future, factor
// (E, K) f8; state, of (E, K, D, 5) f4; when (N,) i8; away (E, D), prior, exclusion (E,) f4; lags (E,) i4; scale (T,)
// f8. to_chance (E, K, 2), to_sums (E, K, D, 4), to_residual (E, D) f4.
template <bool kMoments>
__device__ __forceinline__ void smooth(
    long long f, const Motion* motion, const double* scale, const long long* when, const float* away,
    const float* prior, const float* exclusion, const int* lags, const long long* to_start, const int* to_link,
    const int* near, const int* far, const long long* in_start, const int* in_link, const double* by_past,
    const float* known, const float* state, const double* begins, const double* by_future, const float* incoming,
    const float* of, const double* none, const double* factor, double* G, float* to_chance, float* to_sums,
    float* to_residual) {
    double before = 0, after = 0, total = 0;
    for (int c = 0; c < K; ++c) before += by_past[f * K + c], after += by_future[f * K + c];
    double odds = fmax(before, after) * exclusion[f];
    bool some = odds >= kHopeless, adds = kMoments && odds > kCounted;
    Sums found;
    if (kMoments)
        for (int k = 0; k < sizeof(Sums) / sizeof(double); ++k) reinterpret_cast<double*>(&found)[k] = 0;
    if (some) {
        long long i = near[f], j = far[f], begin = in_start[j], end = in_start[j + 1], start = when[i];
        int lag = lags[f];
        double stay[K], ends_weight[K], gap[D], renewed = 0, renewed_after = 0;
        for (int c = 0; c < K; ++c) stay[c] = staying(motion->renewal[c], lag);
        for (long long p = to_start[i]; p < to_start[i + 1]; ++p)
            for (int c = 0; c < K; ++c) renewed += known[(long long)to_link[p] * K + c] * (1 - stay[c]);
        for (long long q = begin; q < end; ++q)  // its track ends there, or the next step is drawn anew
            for (int c = 0; c < K; ++c)
                renewed_after += incoming[(long long)in_link[q] * K + c] * motion->renewal[c];
        for (int c = 0; c < K; ++c) ends_weight[c] = none[j] + motion->entry[c] / motion->share[c] * renewed_after;
        for (int d = 0; d < D; ++d) gap[d] = away[f * D + d];
        for (long long p = to_start[i]; p <= to_start[i + 1]; ++p) {
            bool fresh = p == to_start[i + 1];
            long long e = fresh ? 0 : to_link[p];
#pragma unroll
            for (int c = 0; c < K; ++c) {
                double weight = fresh ? motion->share[c] * begins[i] + motion->entry[c] * renewed
                                      : known[e * K + c] * stay[c];
                if (weight < kLeastWeight * (fresh ? motion->share[c] : 1.0)) continue;
                State part[D];
                Before step[D];
                double a = motion->correlation[c];
#pragma unroll
                for (int d = 0; d < D; ++d) {
                    double variance = motion->variance[c][d];
                    State v = fresh ? State{0, 0, motion->noise[d], 0, variance}
                                    : state_of(state + e * K * D * 5, c, d);
                    part[d] = predicted(v, a, variance, scale, lag, start, 1);
                    if (kMoments && !fresh && lag == 1) {
                        double c1 = a * v.ss, c0 = v.xs + scale[start] * c1;
                        double xx = part[d].xx, xs = part[d].xs, ss = part[d].ss, det = 1 / (xx * ss - xs * xs);
                        double j0 = (c0 * ss - c1 * xs) * det, j1 = (c1 * xx - c0 * xs) * det;
                        step[d] = {j0, j1, v.s, v.ss - j0 * c0 - j1 * c1};
                    }
                }
                for (long long q = begin; q <= end; ++q) {
                    bool ends = q == end;
                    long long g = ends ? 0 : in_link[q];
                    double w = ends ? ends_weight[c]
                                    : incoming[g * K + c] * ((1 - motion->renewal[c]) / motion->share[c]);
                    if (w * weight < kLeastWeight) continue;
                    w = weight * (ends ? w : factor[g * K + c]);
                    double quad = 0, det = 1;
                    State both[D];
#pragma unroll
                    for (int d = 0; d < D; ++d) {
                        double x = gap[d] + part[d].x, s = part[d].s;
                        double xx = part[d].xx, xs = part[d].xs, ss = part[d].ss;
                        double h0 = xx, h1 = xs, v = xx + motion->noise[d], u = -x;
                        if (!ends) {
                            State seen = state_of(of + g * K * D * 5, c, d);  // two observations
                            if (seen.s > 0) {  // what the future says about the step
                                double precision = 1 / (ss + seen.s);
                                det *= kTwoPi * (ss + seen.s);
                                u = seen.x - s;
                                quad += u * u * precision;
                                double k0 = xs * precision, k1 = ss * precision;
                                x += k0 * u, s += k1 * u;
                                xx -= k0 * xs, xs -= k0 * ss, ss -= k1 * ss;
                            }
                            double beta = seen.xs;
                            h0 = xx - beta * xs, h1 = xs - beta * ss;
                            v = h0 - beta * h1 + seen.ss, u = seen.xx - x + beta * s;
                        }
                        double precision = 1 / v;
                        quad += u * u * precision;
                        det *= kTwoPi * v;
                        if (kMoments) {
                            double k0 = h0 * precision, k1 = h1 * precision;
                            both[d] = {x + k0 * u, s + k1 * u, xx - k0 * h0, xs - k0 * h1, ss - k1 * h1};
                        }
                    }
                    if (quad > kFarthest) continue;
                    w *= exp(-0.5 * quad) / sqrt(det);
                    if (!(w > 0)) continue;
                    total += w;
                    if (!kMoments || !adds) continue;
                    found.chance[c][0] += fresh ? 0 : w, found.chance[c][1] += fresh ? w : 0;
#pragma unroll
                    for (int d = 0; d < D; ++d) {
                        State b = both[d];
                        double square = w * (b.ss + b.s * b.s);
                        found.residual[d] += w * (b.xx + b.x * b.x);
                        found.sums[c][d][0] += fresh ? 0 : square, found.sums[c][d][1] += fresh ? square : 0;
                        if (fresh || lag != 1) continue;
                        double j0 = step[d].j0, j1 = step[d].j1;  // the step before, smoothed
                        double mean = step[d].mean + j0 * (b.x - gap[d] - part[d].x) + j1 * (b.s - part[d].s);
                        double along = j0 * b.xs + j1 * b.ss;
                        double spread = step[d].stays + j0 * (j0 * b.xx + j1 * b.xs) + j1 * along;
                        found.sums[c][d][2] += w * (along + mean * b.s);
                        found.sums[c][d][3] += w * (spread + mean * mean);
                    }
                }
            }
        }
    }
    G[f] = some ? total * prior[f] : before;
    if (!kMoments) return;
    double norm = total > 0 ? 1 / total : 0;
    for (int d = 0; d < D; ++d) to_residual[f * D + d] = norm * found.residual[d];
    for (int c = 0; c < K; ++c) {
        for (int k = 0; k < 2; ++k) to_chance[(f * K + c) * 2 + k] = norm * found.chance[c][k];
        for (int d = 0; d < D; ++d)
            for (int k = 0; k < 4; ++k) to_sums[((f * K + c) * D + d) * 4 + k] = norm * found.sums[c][d][k];
    }
}

extern "C" __global__ void smooth_rows(
    long long first, long long last, const Motion* motion, const double* scale, const long long* when,
    const float* away, const float* prior, const float* exclusion, const int* lags, const long long* to_start,
    const int* to_link, const int* near, const int* far, const long long* in_start, const int* in_link,
    const double* by_past, const float* known, const float* state, const double* begins, const double* by_future,
    const float* incoming, const float* of, const double* none, const double* factor, double* G, float* to_chance,
    float* to_sums, float* to_residual) {
    long long f = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (f < last)
        smooth<MOMENTS>(f, motion, scale, when, away, prior, exclusion, lags, to_start, to_link, near, far, in_start,
                        in_link, by_past, known, state, begins, by_future, incoming, of, none, factor, G, to_chance,
                        to_sums, to_residual);
}
