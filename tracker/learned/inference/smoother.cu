// GPU kernels of the smoother. Twins of smoother_cpu.py; each thread writes one link alone: no result depends on the
// order of threads. E links, N detections.

#include "motion.cuh"

constexpr double kLeastInformation = 1e-6, kHopeless = 1e-5, kLeastVariance = 1e-9;

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

// The likelihood ratios G (E,) f8 of links first:last. Directions as `Direction` has them: of the forward filter to_start
// (N + 1,) i8, to_link (E,) i4, near, far (E,) i4; of the backward one in_start, in_link. known, incoming (E, K) f4:
// weights of links; begins, none (N,) f8: of none; by_past, by_future, factor (E, K) f8; state, of (E, K, D, 5) f4; when
// (N,) i8; away (E, D), prior, exclusion (E,) f4; lags (E,) i4; scale (T,) f8.
extern "C" __global__ void smooth_rows(
    long long first, long long last, const Motion* motion, const double* scale, const long long* when,
    const float* away, const float* prior, const float* exclusion, const int* lags, const long long* to_start,
    const int* to_link, const int* near, const int* far, const long long* in_start, const int* in_link,
    const double* by_past, const float* known, const float* state, const double* begins, const double* by_future,
    const float* incoming, const float* of, const double* none, const double* factor, double* G) {
    long long f = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (f >= last) return;
    double before = 0, after = 0, total = 0;
    for (int c = 0; c < K; ++c) before += by_past[f * K + c], after += by_future[f * K + c];
    double odds = fmax(before, after) * exclusion[f];
    bool some = odds >= kHopeless;
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
                double a = motion->correlation[c];
#pragma unroll
                for (int d = 0; d < D; ++d) {
                    double variance = motion->variance[c][d];
                    State v = fresh ? State{0, 0, motion->noise[d], 0, variance}
                                    : state_of(state + e * K * D * 5, c, d);
                    part[d] = predicted(v, a, variance, scale, lag, start, 1);
                }
                for (long long q = begin; q <= end; ++q) {
                    bool ends = q == end;
                    long long g = ends ? 0 : in_link[q];
                    double w = ends ? ends_weight[c]
                                    : incoming[g * K + c] * ((1 - motion->renewal[c]) / motion->share[c]);
                    if (w * weight < kLeastWeight) continue;
                    w = weight * (ends ? w : factor[g * K + c]);
                    double quad = 0, det = 1;
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
                    }
                    if (quad > kFarthest) continue;
                    w *= exp(-0.5 * quad) / sqrt(det);
                    if (w > 0) total += w;
                }
            }
        }
    }
    G[f] = some ? total * prior[f] : before;
}
