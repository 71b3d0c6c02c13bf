// GPU kernels of the filters. Twins of filter_cpu.py; each thread writes one link or detection alone, from what
// launches before it wrote: no result depends on the order of threads. E links, N detections.

#include "motion.cuh"

// Of links first:last; tail, head, lag (E,) i4; delay (L,), survival and survival_back (N,), density (N,), R, C (E,)
// f8. Written: prior, exclusion, ahead, back (E,) f4, as filter_cpu.prepare_links.
extern "C" __global__ void prepare_links(long long first, long long last, const int* tail, const int* head,
                                         const int* lag, const double* delay, const double* survival,
                                         const double* survival_back, const double* density, const double* R,
                                         const double* C, double omega, float* prior, float* exclusion,
                                         float* ahead, float* back) {
    long long f = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (f >= last) return;
    int i = tail[f], j = head[f];
    prior[f] = delay[lag[f] - 1] * sqrt(survival[i] * survival_back[j]) / density[j];
    double least = exp2(-omega * log2(R[f] * C[f]));
    exclusion[f] = least, ahead[f] = least * C[f], back[f] = least * R[f];
}

// The sum of the weights of the links that come in to detection i, and of none.
__device__ __forceinline__ double sum_of(long long i, const long long* in_start, const int* in_link,
                                         const float* competing, const double* n, const double* likelihood) {
    double norm = n[i];
    for (long long p = in_start[i]; p < in_start[i + 1]; ++p) {
        long long e = in_link[p];
        for (int c = 0; c < K; ++c) norm += likelihood[e * K + c] * competing[e];
    }
    return norm;
}

// Weights of the links that come in: weight (E, K) f4; of none fresh, and total (N,) f8; from likelihood (E, K) f8.
// in_start (N + 1,) i8, in_link (E,) i4, competing (E,) f4, n (N,) f8.
extern "C" __global__ void normalise(long long count, const long long* in_start, const int* in_link,
                                     const float* competing, const double* n, const double* likelihood, float* weight,
                                     double* fresh, double* total) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= count) return;
    double norm = sum_of(i, in_start, in_link, competing, n, likelihood);
    total[i] = norm, fresh[i] = n[i] / norm;
    for (long long p = in_start[i]; p < in_start[i + 1]; ++p) {
        long long e = in_link[p];
        for (int c = 0; c < K; ++c) weight[e * K + c] = likelihood[e * K + c] * competing[e] / norm;
    }
}

// Messages of links out_link[from:to], whose near ends are detections of one frame; a thread a link. near (E,) i4;
// when (N,) i8; lags (E,) i4; away (E, D), prior (E,) f4; scale (T,) f8. Read and written: likelihood (E, K) f8, state
// (E, K, D, 5) f4.
extern "C" __global__ void filter_rows(long long from, long long to, const long long* in_start, const int* in_link,
                                       const int* out_link, const int* near, int way, const float* competing,
                                       const double* n, const long long* when, const int* lags, const float* away,
                                       const float* prior, const Motion* motion, const double* scale,
                                       double* likelihood, float* state) {
    long long o = from + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (o >= to) return;
    long long f = out_link[o], i = near[f], begin = in_start[i], end = in_start[i + 1];
    int lag = lags[f];
    long long start = way > 0 ? when[i] : when[i] - 1;
    double norm = sum_of(i, in_start, in_link, competing, n, likelihood), stay[K], mass[K], total[K][D][5], renewed = 0;
    for (int c = 0; c < K; ++c) stay[c] = staying(motion->renewal[c], lag);
    for (long long p = begin; p < end; ++p) {
        long long e = in_link[p];
        for (int c = 0; c < K; ++c)
            renewed += (float)(likelihood[e * K + c] * competing[e] / norm) * (1 - stay[c]);
    }
    for (int c = 0; c < K; ++c) {
        mass[c] = 0;
        for (int d = 0; d < D; ++d)
            for (int k = 0; k < 5; ++k) total[c][d][k] = 0;
    }
    for (long long p = begin - 1; p < end; ++p) {  // the first is no link: fresh steps
        bool begins = p < begin;
        long long e = begins ? 0 : in_link[p];
#pragma unroll
        for (int c = 0; c < K; ++c) {
            double w = begins ? motion->share[c] * (n[i] / norm) + motion->entry[c] * renewed
                              : (float)(likelihood[e * K + c] * competing[e] / norm) * stay[c];
            if (w < kLeastWeight * (begins ? motion->share[c] : 1.0)) continue;
            State v[D];
            double a = motion->correlation[c], det = 1, quad = 0;
#pragma unroll
            for (int d = 0; d < D; ++d) {
                double noise = motion->noise[d], variance = motion->variance[c][d];
                State before = begins ? State{0, 0, noise, 0, variance} : state_of(state + e * K * D * 5, c, d);
                v[d] = predicted(before, a, variance, scale, lag, start, way);
                double spread = v[d].xx + noise;
                det *= kTwoPi * spread;
                v[d].x += way * (double)away[f * D + d];
                quad += v[d].x * v[d].x / spread;
            }
            if (quad > kFarthest) continue;
            w *= exp(-0.5 * quad) / sqrt(det);
            mass[c] += w;
#pragma unroll
            for (int d = 0; d < D; ++d) {  // updated by the detection there
                double precision = 1 / (v[d].xx + motion->noise[d]);
                double gain_x = v[d].xx * precision, gain_s = v[d].xs * precision;
                double s = v[d].s - gain_s * v[d].x, x = v[d].x * (1 - gain_x);
                total[c][d][0] += w * x;
                total[c][d][1] += w * s;
                total[c][d][2] += w * (v[d].xx - v[d].xx * gain_x + x * x);
                total[c][d][3] += w * (v[d].xs - v[d].xs * gain_x + x * s);
                total[c][d][4] += w * (v[d].ss - v[d].xs * gain_s + s * s);
            }
        }
    }
    for (int c = 0; c < K; ++c) {
        bool none = mass[c] < kNothing;
        double factor = none ? 0 : 1 / mass[c];
        for (int d = 0; d < D; ++d) {
            float* of = state + ((f * K + c) * D + d) * 5;
            double x = total[c][d][0] * factor, s = total[c][d][1] * factor;
            of[0] = x, of[1] = s;
            of[2] = none ? motion->noise[d] : total[c][d][2] * factor - x * x;
            of[3] = total[c][d][3] * factor - x * s;
            of[4] = none ? motion->variance[c][d] : total[c][d][4] * factor - s * s;
        }
        likelihood[f * K + c] = mass[c] * prior[f];
    }
}
