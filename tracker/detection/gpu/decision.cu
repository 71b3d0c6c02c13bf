// Which candidates of each frame are spots. Twins of decision_cpu.py and `decide` in decision.py; no result depends on
// the order of threads.
//
// Candidates are in the order of frames, in each the most significant first: u (n,) f8; start (F + 1,) i8. noise
// (4, F, heights) f8: heights, which are evenly spaced; expected maxima above each; logarithm of their density; slope.

const int PARAMETERS = 5, FITS = 4, THREADS = 128;  // the last fit is that without spots
const int ROUNDS = 200, HALVINGS = 30;              // as in decision_cpu.py, with the limits below
const double SUFFICIENT = 1e-4, SHORTER = 0.4, CLOSE = 1e-10, FLAT = 1e-5;
const double LOG_ROOT = 0.91893853320467274;

struct Noise {
    const double* table;
    int frames, heights, frame;
    __device__ const double* row(int which) const { return table + ((long long)which * frames + frame) * heights; }
    __device__ double at(int which, double height) const {
        const double* low_to_high = row(0);
        double first = low_to_high[0], step = (low_to_high[heights - 1] - first) / (heights - 1);
        double place = fmin(fmax((height - first) / step, 0.0), heights - 1.0);
        int low = min((int)place, heights - 2);
        const double* values = row(which);
        return values[low] + (place - low) * (values[low + 1] - values[low]);
    }
};

// Negative logarithm of the posterior of significances above `low`, and its gradient; the same in all threads.
__device__ double loss_of(const double* theta, const double* u, long long count, double low, Noise noise,
                          double unequal, double by, double* gradient) {
    __shared__ double of_warp[THREADS / 32][PARAMETERS + 1];
    double sum[PARAMETERS + 1] = {0, 0, 0, 0, 0, 0};
    double wide = theta[0], share = theta[1], number = theta[2], mean = theta[3], log_sd = theta[4];
    double sd = exp(log_sd), tail = exp(wide);
    for (long long i = threadIdx.x; i < count; i += THREADS) {
        double value = u[i], t = (log(value) - mean) / sd, h = value / tail;
        double dark = share - wide + noise.at(2, h);
        double spot = number - t * t / 2 - log(value) - log_sd - LOG_ROOT;
        double both = fmax(dark, spot) + log1p(exp(-fabs(dark - spot))), p = exp(spot - both);
        sum[0] += (1 - p) * (1 + h * noise.at(3, h));
        sum[1] -= 1 - p, sum[2] -= p, sum[3] -= p * t / sd, sum[4] -= p * (t * t - 1), sum[5] += both;
    }
    for (int k = 0; k <= PARAMETERS; ++k)
        for (int step = 16; step; step /= 2) sum[k] += __shfl_xor_sync(~0u, sum[k], step);
    __syncthreads();
    for (int k = 0; k <= PARAMETERS && threadIdx.x % 32 == 0; ++k) of_warp[threadIdx.x / 32][k] = sum[k];
    __syncthreads();
    for (int k = 0; k <= PARAMETERS; ++k) {
        sum[k] = 0;
        for (int w = 0; w < THREADS / 32; ++w) sum[k] += of_warp[w][k];
    }
    double edge = (mean - log(low)) / sd, away = (log_sd - log(unequal)) / by;
    double fall = exp(share) * noise.at(1, low / tail), spots = exp(number) * 0.5 * erfc(-edge / sqrt(2.0));
    double at_edge = exp(number - edge * edge / 2) / sqrt(2 * 3.14159265358979323846);
    gradient[0] = sum[0] + exp(share + noise.at(2, low / tail)) * low / tail;
    gradient[1] = sum[1] + fall, gradient[2] = sum[2] + spots, gradient[3] = sum[3] + at_edge / sd;
    gradient[4] = sum[4] + away / by - at_edge * edge;
    return fall + spots - sum[5] + away * away / 2;
}

// How many of the candidates of a frame are more significant than `low`.
__device__ long long complete(const double* u, long long count, double low) {
    long long from = 0;
    while (from < count) {
        long long middle = (from + count) / 2;
        if (u[middle] > low) from = middle + 1;
        else count = middle;
    }
    return from;
}

// Parameters (F, 4, 5) f8 of the least loss (F, 4) f8 from each start: a block a fit, projected BFGS steps. least (F,)
// f8: significance above which the candidates of a frame are complete; begin (3,) f8: shares of noise at the starts;
// widest, most_noise, unequal, by, none: see decision.py.
extern "C" __global__ void fit_mixtures(const double* u, const long long* start, const double* least,
                                        const double* noise_table, int frames, int heights, const double* begin,
                                        double widest, double most_noise, double unequal, double by, double none,
                                        double* theta, double* losses) {
    int frame = blockIdx.x / FITS, fit = blockIdx.x % FITS;
    const double* own = u + start[frame];
    double low = least[frame];
    long long count = complete(own, start[frame + 1] - start[frame], low);
    if (!count) return;
    Noise noise = {noise_table, frames, heights, frame};
    double log_sd = log(unequal), most = log(count + 1.0), bottom = log(none), x[PARAMETERS];
    double from[PARAMETERS] = {0, -most_noise, bottom, log(low), log_sd - 10 * by};
    double to[PARAMETERS] = {widest, most_noise, 2 * most, log(own[0]), log_sd + 10 * by};
    x[0] = 0.1, x[1] = 0, x[2] = bottom, x[3] = 0, x[4] = log_sd;
    if (fit == FITS - 1) {
        from[2] = to[2] = bottom, from[3] = to[3] = 0, from[4] = to[4] = log_sd;
    } else {
        double place = (1 - (1 + begin[fit]) / 2) * (count - 1);  // of the quantile, from the highest
        long long at = min((long long)place, max(count - 2, 0LL));
        double next = own[min(at + 1, count - 1)];
        x[2] = most + log(1 - begin[fit]), x[3] = log(own[at] + (place - at) * (next - own[at]));
    }
    double slope[PARAMETERS], there[PARAMETERS], step[PARAMETERS], ahead[PARAMETERS];
    double inverse[PARAMETERS][PARAMETERS];
    for (int i = 0; i < PARAMETERS; ++i) {
        x[i] = fmin(fmax(x[i], from[i]), to[i]);
        for (int j = 0; j < PARAMETERS; ++j) inverse[i][j] = i == j ? 1.0 / (1 + count) : 0;
    }
    double loss = loss_of(x, own, count, low, noise, unequal, by, slope);
    for (int round = 0; round < ROUNDS; ++round) {
        double free[PARAMETERS], steepest = 0, along = 0;
        for (int i = 0; i < PARAMETERS; ++i) {
            bool held = (x[i] <= from[i] && slope[i] > 0) || (x[i] >= to[i] && slope[i] < 0);
            free[i] = held ? 0 : slope[i];
            steepest = fmax(steepest, fabs(free[i]));
        }
        if (steepest < FLAT) break;
        for (int i = 0; i < PARAMETERS; ++i) {
            bool held = (x[i] <= from[i] && slope[i] > 0) || (x[i] >= to[i] && slope[i] < 0);
            step[i] = 0;
            for (int j = 0; j < PARAMETERS; ++j) step[i] -= held ? 0.0 : inverse[i][j] * free[j];
            along += step[i] * free[i];
        }
        if (along >= 0)
            for (int i = 0; i < PARAMETERS; ++i) {
                for (int j = 0; j < PARAMETERS; ++j) inverse[i][j] = i == j ? 1.0 / (1 + count) : 0;
                step[i] = -free[i] / (1 + count);
            }
        double length = 1, fallen = loss;
        for (int k = 0; k < HALVINGS; ++k) {
            double promised = 0;
            for (int i = 0; i < PARAMETERS; ++i) {
                ahead[i] = fmin(fmax(x[i] + length * step[i], from[i]), to[i]);
                promised += slope[i] * (ahead[i] - x[i]);
            }
            fallen = loss_of(ahead, own, count, low, noise, unequal, by, there);
            if (fallen <= loss + SUFFICIENT * promised) break;
            length *= SHORTER;
        }
        if (!(fallen < loss)) break;
        double moved[PARAMETERS], bent[PARAMETERS], row[PARAMETERS], curved = 0, bend = 0;
        for (int i = 0; i < PARAMETERS; ++i) {
            moved[i] = ahead[i] - x[i], bent[i] = there[i] - slope[i];
            curved += moved[i] * bent[i];
        }
        for (int i = 0; i < PARAMETERS; ++i) {
            row[i] = 0;
            for (int j = 0; j < PARAMETERS; ++j) row[i] += inverse[i][j] * bent[j];
            bend += bent[i] * row[i];
        }
        if (curved > 0) {
            double square = (1 + bend / curved) / curved;
            for (int i = 0; i < PARAMETERS; ++i)
                for (int j = 0; j < PARAMETERS; ++j)
                    inverse[i][j] += square * moved[i] * moved[j] - (row[i] * moved[j] + moved[i] * row[j]) / curved;
        }
        bool done = loss - fallen < CLOSE * fmax(fabs(loss), 1.0);
        loss = fallen;
        for (int i = 0; i < PARAMETERS; ++i) x[i] = ahead[i], slope[i] = there[i];
        if (done) break;
    }
    if (threadIdx.x) return;
    losses[FITS * frame + fit] = loss;
    for (int i = 0; i < PARAMETERS; ++i) theta[PARAMETERS * (FITS * frame + fit) + i] = x[i];
}

// Probability (n,) f8 that each candidate is no noise, by rank, and how many are kept: keep (F,) i8. A block a frame.
// present: least logarithm of the odds of any spots; fdr: largest false discovery rate, or negative.
extern "C" __global__ void choose(const double* u, const long long* start, const double* least,
                                  const double* noise_table, int frames, int heights, const double* thetas,
                                  const double* losses, double present, double fdr, double* probability,
                                  long long* keep) {
    int frame = blockIdx.x, best = 0;
    long long first = start[frame], count = start[frame + 1] - first;
    double* p = probability + first;
    bool any = complete(u + first, count, least[frame]) > 0;
    for (int fit = 1; fit < FITS - 1; ++fit)
        if (losses[FITS * frame + fit] < losses[FITS * frame + best]) best = fit;
    const double* theta = thetas + PARAMETERS * (FITS * frame + best);
    Noise noise = {noise_table, frames, heights, frame};
    for (long long i = threadIdx.x; i < count; i += blockDim.x) {
        double value = fmax(u[first + i], 1e-3), t = (log(value) - theta[3]) / exp(theta[4]);
        double dark = theta[1] - theta[0] + noise.at(2, value / exp(theta[0]));
        double spot = theta[2] - t * t / 2 - log(value) - theta[4] - LOG_ROOT;
        p[i] = any ? 1 / (1 + exp(dark - spot)) : 0.0;
    }
    __syncthreads();
    if (threadIdx.x) return;
    double least_p = 1, total = 0, most = -1, sum = 0;
    for (long long i = 0; i < count; ++i) p[i] = least_p = fmin(least_p, p[i]), total += p[i];
    total = fmax(total, exp(theta[2]));
    long long chosen = 0;
    for (long long i = 0; i < count && any; ++i) {
        sum += p[i];
        if (fdr >= 0) chosen += (i + 1 - sum) / (i + 1) <= fdr;
        else if (sum / (i + 1 + total - sum) > most) most = sum / (i + 1 + total - sum), chosen = i + 1;
    }
    double evidence = losses[FITS * frame + FITS - 1] - losses[FITS * frame + best];
    keep[frame] = any && (fdr >= 0 || evidence >= present) ? chosen : 0;
}
