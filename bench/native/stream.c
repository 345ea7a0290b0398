/* Sustainable memory rate: copy, scale, add and triad over arrays that no cache holds; best and median pass after the first.
 *
 * Written from the published rules: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
 * Computers" (1995), https://www.cs.virginia.edu/stream/ref.html. Bytes are counted as there: what the statement names, so that
 * the read of a line which is only to be written (write-allocate) is not counted.
 *
 * Two ways to store, since they move different traffic:
 *   plain   ordinary stores into arrays that are there (the classical program);
 *   stream  non-temporal stores, which fetch no line that is about to be overwritten.
 *
 * Arguments: ELEMENTS PASSES plain|stream [copy|scale|add|triad], all four without the last. Output: one line of JSON.
 * Exit 1 when an answer is wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
#define STREAM_STORE(target, value) _mm512_stream_ps((target), (value))
#define LOAD(source) _mm512_load_ps(source)
#define SPREAD(x) _mm512_set1_ps(x)
#define TIMES(a, b) _mm512_mul_ps((a), (b))
#define PLUS(a, b) _mm512_add_ps((a), (b))
#elif defined(__AVX2__)
#include <immintrin.h>
#define LANES 8
#define STREAM_STORE(target, value) _mm256_stream_ps((target), (value))
#define LOAD(source) _mm256_load_ps(source)
#define SPREAD(x) _mm256_set1_ps(x)
#define TIMES(a, b) _mm256_mul_ps((a), (b))
#define PLUS(a, b) _mm256_add_ps((a), (b))
#endif

enum { COPY, SCALE, ADD, TRIAD, KERNELS };
static const char *const names[KERNELS] = {"copy", "scale", "add", "triad"};
static const int words[KERNELS] = {2, 2, 3, 3};
static long count;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static float *taken(void) {
    float *p = mmap(NULL, count * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "got no memory for %ld elements\n", count);
        exit(2);
    }
    return p;
}

static void plain(int kernel, float *restrict r, const float *restrict x, const float *restrict y, float s) {
    switch (kernel) {
    case COPY:
#pragma omp parallel for simd schedule(static)
        for (long i = 0; i < count; i++) r[i] = x[i];
        break;
    case SCALE:
#pragma omp parallel for simd schedule(static)
        for (long i = 0; i < count; i++) r[i] = s * x[i];
        break;
    case ADD:
#pragma omp parallel for simd schedule(static)
        for (long i = 0; i < count; i++) r[i] = x[i] + y[i];
        break;
    default:
#pragma omp parallel for simd schedule(static)
        for (long i = 0; i < count; i++) r[i] = x[i] + s * y[i];
    }
}

#ifdef LANES
static void streamed(int kernel, float *restrict r, const float *restrict x, const float *restrict y, float s) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (long i = 0; i < count; i += LANES) {
            switch (kernel) {
            case COPY: STREAM_STORE(r + i, LOAD(x + i)); break;
            case SCALE: STREAM_STORE(r + i, TIMES(SPREAD(s), LOAD(x + i))); break;
            case ADD: STREAM_STORE(r + i, PLUS(LOAD(x + i), LOAD(y + i))); break;
            default: STREAM_STORE(r + i, PLUS(LOAD(x + i), TIMES(SPREAD(s), LOAD(y + i))));
            }
        }
        _mm_sfence();
    }
}
#endif

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int wrong(int kernel, const float *r, float s) {
    for (long i = 0; i < count; i++) {
        float x = (float)(i % 1000) * 1e-3f + 1.0f, y = (float)(i % 777) * 1e-3f + 2.0f;
        float told = kernel == COPY ? x : kernel == SCALE ? s * x : kernel == ADD ? x + y : x + s * y;
        if (!(fabsf(r[i] - told) <= 1e-5f * fabsf(told))) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "got %d arguments; expected ELEMENTS PASSES plain|stream [KERNEL]\n", argc - 1);
        return 2;
    }
    count = atol(argv[1]) / 64 * 64;
    int passes = atoi(argv[2]), stream = !strcmp(argv[3], "stream");
    if (count < 64 || passes < 3 || (!stream && strcmp(argv[3], "plain"))) return 2;
#ifndef LANES
    if (stream) {
        fprintf(stderr, "got a processor without AVX2; expected one for non-temporal stores\n");
        return 3;
    }
#endif
    float *x = taken(), *y = taken(), *r = taken();
    float s = 3.0f;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; i++) {
        x[i] = (float)(i % 1000) * 1e-3f + 1.0f;
        y[i] = (float)(i % 777) * 1e-3f + 2.0f;
        r[i] = 0.0f;
    }
    int threads = 1, faults = 0;
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    double *seconds = malloc(sizeof(double) * passes);
    printf("{\"threads\": %d, \"elements\": %ld", threads, count);
    for (int kernel = 0; kernel < KERNELS; kernel++) {
        if (argc == 5 && strcmp(argv[4], names[kernel])) continue;
        for (int pass = 0; pass < passes; pass++) {
            double start = now();
#ifdef LANES
            if (stream) streamed(kernel, r, x, y, s);
            else
#endif
                plain(kernel, r, x, y, s);
            seconds[pass] = now() - start;
        }
        faults += wrong(kernel, r, s);
        int kept = passes - 1; /* not the first */
        qsort(seconds + 1, kept, sizeof(double), ascending);
        printf(", \"%s\": {\"bytes\": %.0f, \"best_s\": %.9f, \"median_s\": %.9f}", names[kernel],
               (double)words[kernel] * sizeof(float) * count, seconds[1], seconds[1 + kept / 2]);
    }
    printf(", \"wrong\": %d}\n", faults);
    return faults ? 1 : 0;
}
