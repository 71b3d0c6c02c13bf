// GPU kernels of the field. Twins of field_cpu.py; each thread writes its own row of the result: no result depends on
// the order of threads.

#ifndef AXES  // the launcher gives it to the compiler
#define AXES 3
#endif
constexpr int D = AXES, P = 4;  // P predictors

// Three predictors (N, P, D) f8, the fourth is left, of rows first:last: as field_cpu.surroundings. near (N, many) i4;
// position, step (N, D), weight (N,) f8.
extern "C" __global__ void surroundings(long long first, long long last, int room, const int* near,
                                        const double* position, const double* step, const double* weight, int inner,
                                        double* predictor) {
    long long i = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= last) return;
    int many = 0;
    while (many < room && near[i * room + many] >= 0) ++many;
    double matrix[D + 1][D + 1], right[D + 1][D], place[D + 1];
    place[0] = 1;
    for (int a = 0; a <= D; ++a) {
        for (int d = 0; d < D; ++d) right[a][d] = 0;
        for (int b = 0; b <= a; ++b) matrix[a][b] = a == b;
    }
    double* to = predictor + i * P * D;
    for (int d = 0; d < D; ++d) to[d] = 0;
    for (int k = 0; k < many; ++k) {
        long long j = near[i * room + k];
        for (int d = 0; d < D; ++d) place[d + 1] = position[j * D + d] - position[i * D + d];
        for (int a = 0; a <= D; ++a) {
            double w = weight[j] * place[a];
            for (int b = 0; b <= a; ++b) matrix[a][b] += w * place[b];
            for (int d = 0; d < D; ++d) right[a][d] += w * step[j * D + d];
        }
        if (k + 1 == min(inner, many))
            for (int d = 0; d < D; ++d) to[d] = right[0][d] / matrix[0][0];
    }
    for (int d = 0; d < D; ++d) to[D + d] = right[0][d] / matrix[0][0];
    for (int k = D; k > 0; --k) {  // the first row of the solution, by elimination from below
        double pivot = 1 / matrix[k][k];
        for (int a = 0; a < k; ++a) {
            double ratio = matrix[k][a] * pivot;
            for (int b = 0; b <= a; ++b) matrix[a][b] -= ratio * matrix[k][b];
            for (int d = 0; d < D; ++d) right[a][d] -= ratio * right[k][d];
        }
    }
    for (int d = 0; d < D; ++d) to[2 * D + d] = right[0][d] / matrix[0][0];
}

// Products of predictors (N, P, D) and step (N, D) f8 along each axis, weighted by weight (N,) f8, of every
// `threads`-th row: table (threads, D, P + 1, P + 1) f8.
extern "C" __global__ void products_of(long long rows, const double* predictor, const double* step,
                                       const double* weight, int threads, double* table) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    for (int d = 0; d < D; ++d) {
        double sums[P + 1][P + 1], row[P + 1];
        for (int a = 0; a <= P; ++a)
            for (int b = 0; b <= P; ++b) sums[a][b] = 0;
        for (long long i = t; i < rows; i += threads) {
            if (!(weight[i] > 0)) continue;
            for (int a = 0; a < P; ++a) row[a] = predictor[(i * P + a) * D + d];
            row[P] = step[i * D + d];
            for (int a = 0; a <= P; ++a)
                for (int b = 0; b <= P; ++b) sums[a][b] += weight[i] * row[a] * row[b];
        }
        for (int a = 0; a <= P; ++a)
            for (int b = 0; b <= P; ++b) table[(((long long)t * D + d) * (P + 1) + a) * (P + 1) + b] = sums[a][b];
    }
}

// Of rows first:last step (N, D) f8, the mean displacement to the next frame, and weight (N,) f8, its probability.
// position (N, D) f8; head, lag (E,) i4; row_start (N + 1,) i8; probability (E,) f8.
extern "C" __global__ void mean_steps(long long first, long long last, const double* position,
                                      const int* head, const int* lag, const long long* row_start,
                                      const double* probability, double least, double* step, double* weight) {
    long long i = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= last) return;
    double total = 0, sums[D] = {};
    for (long long f = row_start[i]; f < row_start[i + 1]; ++f) {
        if (lag[f] != 1) continue;
        total += probability[f];
        for (int d = 0; d < D; ++d)
            sums[d] += probability[f] * (position[(long long)head[f] * D + d] - position[i * D + d]);
    }
    weight[i] = total;
    for (int d = 0; d < D; ++d) step[i * D + d] = sums[d] / fmax(total, least);
}
