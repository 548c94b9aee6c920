// What guests do to run out of memory. act eat STEP_KB PAUSE_US | hold MB | leak | frag KEEP_EVERY LEFT_MB | below KB MARKER | pipefill
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/prctl.h>
static long kb(const char *key) {
    char b[8192]; int f = open("/proc/meminfo", O_RDONLY); int n = read(f, b, sizeof b - 1); close(f);
    b[n > 0 ? n : 0] = 0; char *p = strstr(b, key); return p ? atol(strchr(p, ':') + 1) : -1;
}
static void mark(const char *file, const char *text) { int f = open(file, O_WRONLY); if (f >= 0) { write(f, text, strlen(text)); close(f); } }
int main(int n, char **a) {
    if (n < 2) return 2;
    prctl(PR_SET_NAME, a[1]);
    struct rlimit many = { 1000000, 1000000 }; setrlimit(RLIMIT_NOFILE, &many);
    if (!strcmp(a[1], "eat")) {
        // STEP_KB PAUSE_US [MAX_MB [MARKER]]
        size_t step = atol(a[2]) << 10; long max = n > 4 ? atol(a[4]) : 0; size_t all = 0;
        if (n > 5) mark(a[5], "kmt-begin\n");
        for (;;) {
            char *p = mmap(0, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (p == MAP_FAILED) { perror("mmap"); return 1; }
            for (size_t i = 0; i < step; i += 4096) p[i] = 1;
            all += step; if (max && all >= (size_t)max << 20) break;
            usleep(atol(a[3]));
        }
        pause();
    } else if (!strcmp(a[1], "hold")) {
        size_t len = atol(a[2]) << 20; char *p = mmap(0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; i < len; i += 4096) p[i] = 1;
        pause();
    } else if (!strcmp(a[1], "leak")) {
        long made = 0;
        while (eventfd(0, 0) >= 0) { made++; if (made % 200 == 0) usleep(2000); }
        perror("eventfd"); printf("%ld eventfds\n", made); pause();
    } else if (!strcmp(a[1], "frag")) {
        // Pages of pipes cannot be moved. One of KEEP_EVERY stays.
        long every = atol(a[2]), left = atol(a[3]) << 10, i = 0; int keep[2] = {-1, -1}, drop[2] = {-1, -1}, k = 0, d = 0, *drops = malloc(1 << 20); int nd = 0;
        static char page[4096];
        while (kb("MemAvailable") > left) for (int j = 0; j < 256; j++, i++) {
            int *p = i % every ? drop : keep, *c = i % every ? &d : &k;
            if (*c == 0) { if (pipe(p)) { perror("pipe"); return 1; } fcntl(p[1], F_SETPIPE_SZ, 1 << 20); fcntl(p[1], F_SETFL, O_NONBLOCK); if (p == drop) { drops[nd++] = p[0]; drops[nd++] = p[1]; } *c = fcntl(p[1], F_GETPIPE_SZ) / 4096; }
            if (write(p[1], page, 4096) != 4096) { *c = 0; continue; }
            --*c;
        }
        for (int j = 0; j < nd; j++) close(drops[j]);
        // What is left in pieces of 512 KiB: arrays of pipes, without a report if there is none.
        int f = open("/proc/sys/fs/pipe-max-size", O_WRONLY), large = 0; write(f, "67108864", 8); close(f);
        for (int q[2]; !pipe(q) && fcntl(q[1], F_SETPIPE_SZ, 32 << 20) > 0;) large++;
        printf("frag: %ld pages in pipes, one of %ld kept; %d pieces of 512 KiB taken; MemFree %ld KiB\n", i, every, large, kb("MemFree")); fflush(stdout);
        pause();
    } else if (!strcmp(a[1], "below")) {
        while (kb("MemAvailable") >= atol(a[2])) usleep(1000);
        mark(a[3], "kmt-holds\n");
    }
    return 0;
}
