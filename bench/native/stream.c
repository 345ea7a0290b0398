/* Sustainable memory rate: copy, scale, add and triad over arrays that no cache holds; best and median pass after the first.
 *
 * Written from the published rules: J. D. McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
 * Computers" (1995), https://www.cs.virginia.edu/stream/ref.html. Bytes are counted as there: what the statement names, so that
 * the read of a line which is only to be written (write-allocate) is not counted.
 *
 * Three ways to store, since they do not take the same time:
 *   plain   ordinary stores of at most 256 bits into arrays that are there (the classical program);
 *   wide    ordinary stores of 512 bits where the processor has them, a whole line at once; as plain where it has not;
 *   stream  non-temporal stores, which fetch no line that is about to be overwritten.
 *
 * Arrays come from malloc, as those of the frameworks: on pages of the usual size, and not a power of two apart. At just 256 MiB
 * from one to the next, what malloc avoids and mmap does, a triad took half as long again on a Zen 4.
 *
 * Arguments: ELEMENTS PASSES. Each line of standard input, `plain|wide|stream copy|scale|add|triad`, is answered with one line
 * of JSON. Exit 1 when an answer was wrong.
 */
#define _POSIX_C_SOURCE 200112L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    void *p = NULL;
    if (posix_memalign(&p, 64, count * sizeof(float))) {
        fprintf(stderr, "got no memory for %ld elements\n", count);
        exit(2);
    }
    return p;
}

/* Compilers choose the width by processor: some take 512 bits for what others do in 256. It is fixed here, so that both can be had. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define WIDTH(bits) __attribute__((noinline, target("prefer-vector-width=" #bits)))
#else
#define WIDTH(bits) __attribute__((noinline))
#endif
#define ALL_OF(what) \
    _Pragma("omp parallel for simd schedule(static)") for (long i = 0; i < count; i++) r[i] = what
#define ORDINARY(name, bits) \
    WIDTH(bits) static void name(int kernel, float *restrict r, const float *restrict x, const float *restrict y, float s) { \
        switch (kernel) { \
        case COPY: ALL_OF(x[i]); break; \
        case SCALE: ALL_OF(s * x[i]); break; \
        case ADD: ALL_OF(x[i] + y[i]); break; \
        default: ALL_OF(x[i] + s * y[i]); \
        } \
    }
ORDINARY(plain, 256)
ORDINARY(wide, 512)

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

static long wrong(int kernel, const float *r, float s) {
    long faults = 0;
#pragma omp parallel for schedule(static) reduction(+ : faults)
    for (long i = 0; i < count; i++) {
        float x = (float)(i % 1000) * 1e-3f + 1.0f, y = (float)(i % 777) * 1e-3f + 2.0f;
        float told = kernel == COPY ? x : kernel == SCALE ? s * x : kernel == ADD ? x + y : x + s * y;
        if (!(fabsf(r[i] - told) <= 1e-5f * fabsf(told))) faults++;
    }
    return faults;
}

enum { PLAIN, WIDE, STREAMED, WAYS };
static const char *const ways[WAYS] = {"plain", "wide", "stream"};

static int place(const char *word, const char *const *words, int many) {
    int found = 0;
    while (found < many && strcmp(word, words[found])) found++;
    return found;
}

static void pass_over(int way, int kernel, float *r, const float *x, const float *y, float s) {
    if (way == PLAIN) plain(kernel, r, x, y, s);
    else if (way == WIDE) wide(kernel, r, x, y, s);
#ifdef LANES
    else streamed(kernel, r, x, y, s);
#endif
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "got %d arguments; expected ELEMENTS PASSES\n", argc - 1);
        return 2;
    }
    count = atol(argv[1]) / 64 * 64;
    int passes = atoi(argv[2]), threads = 1;
    if (count < 64 || passes < 3) return 2;
    float *x = taken(), *y = taken(), *r = taken();
    float s = 3.0f;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < count; i++) {
        x[i] = (float)(i % 1000) * 1e-3f + 1.0f;
        y[i] = (float)(i % 777) * 1e-3f + 2.0f;
        r[i] = 0.0f;
    }
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    double *seconds = malloc(sizeof(double) * passes);
    char asked[2][16];
    while (scanf("%15s %15s", asked[0], asked[1]) == 2) {
        int way = place(asked[0], ways, WAYS), kernel = place(asked[1], names, KERNELS);
        if (way == WAYS || kernel == KERNELS) return 2;
#ifndef LANES
        if (way == STREAMED) {
            fprintf(stderr, "got a processor without AVX2; expected one for non-temporal stores\n");
            return 3;
        }
#endif
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) r[i] = 0.0f; /* or the answer of the last command would pass for this one's */
        for (int pass = 0; pass < passes; pass++) {
            double start = now();
            pass_over(way, kernel, r, x, y, s);
            seconds[pass] = now() - start;
        }
        int kept = passes - 1; /* not the first */
        qsort(seconds + 1, kept, sizeof(double), ascending);
        long faults = wrong(kernel, r, s);
        printf("{\"threads\": %d, \"elements\": %ld, \"bytes\": %.0f, \"best_s\": %.9f, \"median_s\": %.9f, \"wrong\": %ld}\n",
               threads, count, (double)words[kernel] * sizeof(float) * count, seconds[1], seconds[1 + kept / 2], faults);
        fflush(stdout);
        if (faults) return 1;
    }
    return 0;
}
