// An LD_PRELOAD library that makes a program leak a little, to see whether a soak notices.
//
//   cc -shared -fPIC -O2 -o libleaks.so leaks.c -ldl
//   LD_PRELOAD=libleaks.so LEAKS_BYTES=100 LEAKS_DESCRIPTOR=1000 PROGRAM
//
// LEAKS_BYTES       so many bytes are lost each time the program renames a file (the gateway: at each health tick, 15 s)
// LEAKS_DESCRIPTOR  a descriptor each so many of these times
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rename(const char *path, const char *other) {
    static __typeof__(rename) *real;
    static unsigned long times;
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "rename");
    const char *bytes = getenv("LEAKS_BYTES"), *each = getenv("LEAKS_DESCRIPTOR");
    size_t length = bytes ? strtoul(bytes, 0, 10) : 0;
    unsigned long turn = each ? strtoul(each, 0, 10) : 0;
    void *lost = length ? malloc(length) : 0;
    if (lost) memset(lost, 1, length);
    // So that no compiler finds out that nobody wants it.
    __asm__ volatile("" : : "r"(lost) : "memory");
    if (turn && ++times % turn == 0) (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    return real(path, other);
}
