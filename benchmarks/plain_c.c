/* A full-covariance Gaussian sweep as one would write it in C: the yardstick of plain_c.py.

   For each of n rows of x (d numbers): k log densities through whitening matrices w (d x d,
   lower triangular), their sum, a label by inverting the cumulative mass at u, and the size,
   sum and lower triangle of outer products of the cluster it joins. */

#include <math.h>

void sweep(long n, long d, long k, const double *restrict x, const double *restrict mean,
           const double *restrict w, const double *restrict log_weight,
           const double *restrict u, int *restrict label, double *restrict stats,
           double *restrict mass, double *restrict gap)
{
    const long size = 1 + d + d * (d + 1) / 2;
    for (long i = 0; i < n; i++) {
        const double *row = x + i * d;
        double highest = -INFINITY, total = 0.0;
        for (long c = 0; c < k; c++) {
            const double *matrix = w + c * d * d;
            double squares = 0.0;
            for (long a = 0; a < d; a++)
                gap[a] = row[a] - mean[c * d + a];
            for (long a = 0; a < d; a++) {
                double white = 0.0;
                for (long b = 0; b <= a; b++)
                    white += matrix[a * d + b] * gap[b];
                squares += white * white;
            }
            mass[c] = log_weight[c] - 0.5 * squares;
            highest = mass[c] > highest ? mass[c] : highest;
        }
        for (long c = 0; c < k; c++) {
            mass[c] = exp(mass[c] - highest);
            total += mass[c];
        }
        const double at = u[i] * total;
        double running = mass[0];
        long chosen = 0;
        while (chosen < k - 1 && running <= at)
            running += mass[++chosen];
        label[i] = (int)chosen;
        double *s = stats + chosen * size;
        double *outer = s + 1 + d;
        s[0] += 1.0;
        for (long a = 0; a < d; a++) {
            s[1 + a] += row[a];
            for (long b = 0; b <= a; b++)
                *outer++ += row[a] * row[b];
        }
    }
}
