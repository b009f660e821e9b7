// An LD_PRELOAD library that makes calls of one program hang while a file exists.
//
//   cc -shared -fPIC -O1 -o libhangs.so hangs.c -ldl
//   LD_PRELOAD=libhangs.so HANGS_WHILE=/file HANGS_CALLS=getaddrinfo,HCIDEVUP,fsync PROGRAM
//
// HANGS_CALLS   of getaddrinfo, HCIDEVUP, fsync (fdatasync, too), pread, pwrite, snd_pcm_open, snd_pcm_readi.
// HANGS_HOST    only lookups of this name hang; it is 127.0.0.1.
// HANGS_THREAD  only calls of the threads with this name hang.
// HANGS_SLOW_MS every pread of a file below a folder `state` takes so long, whatever hangs.
//
// A call that hangs first makes an empty file, HANGS_WHILE with its name at the end (`/file.fsync`), so that
// a test can wait for it; it uses no processor time. Of files only those below a folder `state` hang. With HCIDEVUP there
// is a Bluetooth socket where the kernel has none.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HCIDEVUP _IOW('H', 201, int)
#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int is_wanted(const char *call) {
    const char *calls = getenv("HANGS_CALLS");
    return calls && strstr(calls, call) != 0;
}

static int is_wanted_here(void) {
    const char *only = getenv("HANGS_THREAD");
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return !only || strcmp(only, name) == 0;
}

static void hang(const char *call) {
    const char *file = getenv("HANGS_WHILE");
    char mark[PATH_MAX];
    if (!file || !is_wanted(call) || !is_wanted_here() || access(file, F_OK) != 0) return;
    int watch = inotify_init1(IN_CLOEXEC);
    int is_there = inotify_add_watch(watch, file, IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF) >= 0;
    snprintf(mark, sizeof mark, "%s.%s", file, call);
    close(open(mark, O_WRONLY | O_CREAT, 0644));
    while (is_there && access(file, F_OK) == 0 && read(watch, mark, sizeof mark) > 0) {}
    close(watch);
}

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list) {
    REAL(getaddrinfo);
    const char *only = getenv("HANGS_HOST");
    int is_ours = only && host && strcmp(host, only) == 0;
    // A number needs no name server.
    int is_number = hints && hints->ai_flags & AI_NUMERICHOST;
    if (!is_number && (!only || is_ours)) hang("getaddrinfo");
    if (is_number) is_ours = 0;
    return real(is_ours ? "127.0.0.1" : host, port, hints, list);
}

int ioctl(int fd, unsigned long request, ...) {
    REAL(ioctl);
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request == HCIDEVUP) hang("HCIDEVUP");
    return real(fd, request, argument);
}

int socket(int domain, int type, int protocol) {
    REAL(socket);
    int number = real(domain, type, protocol);
    if (number >= 0 || domain != AF_BLUETOOTH || !is_wanted("HCIDEVUP")) return number;
    return real(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void hang_disk(int fd, const char *call) {
    char link[32], path[PATH_MAX] = "";
    if (!is_wanted(call)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) <= 0 || !strstr(path, "/state/")) return;
    const char *slow = getenv("HANGS_SLOW_MS");
    if (slow && strcmp(call, "pread") == 0) usleep(1000 * atoi(slow));
    hang(call);
}

int fsync(int fd) {
    REAL(fsync);
    hang_disk(fd, "fsync");
    return real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    hang_disk(fd, "fsync");
    return real(fd);
}

#define DISK(name, buffer, offset, call) \
    ssize_t name(int fd, buffer data, size_t size, offset at) { \
        REAL(name); \
        hang_disk(fd, call); \
        return real(fd, data, size, at); \
    }

DISK(pread, void *, off_t, "pread")
DISK(pread64, void *, off64_t, "pread")
DISK(pwrite, const void *, off_t, "pwrite")
DISK(pwrite64, const void *, off64_t, "pwrite")

// As libasound has them, whose header need not be here.
int snd_pcm_open(void **pcm, const char *name, int stream, int mode) {
    REAL(snd_pcm_open);
    hang("snd_pcm_open");
    return real(pcm, name, stream, mode);
}

long snd_pcm_readi(void *pcm, void *buffer, unsigned long frames) {
    REAL(snd_pcm_readi);
    hang("snd_pcm_readi");
    return real(pcm, buffer, frames);
}
