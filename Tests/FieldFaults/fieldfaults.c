// An LD_PRELOAD library that makes the disk and the clock of one program fail on demand, and keeps a log
// from which the disk after a power cut at any instant can be built.
//
//   cc -shared -fPIC -O2 -o libfieldfaults.so fieldfaults.c -ldl -lpthread
//   LD_PRELOAD=libfieldfaults.so FIELDFAULTS_DIR=/folder [FIELDFAULTS_CONTROL=/file] [FIELDFAULTS_LOG=/file] PROGRAM
//
// FIELDFAULTS_DIR      only files below this folder are failed and logged.
// FIELDFAULTS_CONTROL  a file of 8 little-endian signed 64-bit numbers, mapped, so that what a test writes
//                      there acts at once: see `struct control`. It must exist and have 64 bytes.
// FIELDFAULTS_LOG      every change to those files is appended here: see `struct entry`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t write_error;     // errno of write, pwrite, truncate, allocate; 0: none
    int64_t sync_error;      // errno of fsync and fdatasync
    int64_t name_error;      // errno of open for writing, rename, link, unlink
    int64_t read_error;      // errno of read and pread
    int64_t has_budget;      // not 0: `budget` bytes can still be written, then ENOSPC (a short write first)
    int64_t budget;
    int64_t clock_offset_ms; // added to CLOCK_REALTIME
    int64_t clock_synced;    // 0: as the kernel says, 1: synced, 2: not synced
};

// One change, 56 bytes, followed by its two paths and its data.
struct entry {
    uint64_t time;    // ns on CLOCK_BOOTTIME when it was done
    uint64_t inode;
    uint64_t offset;  // of the data; the new size for a truncation
    uint64_t length;  // bytes of data that follow the paths (for 'a': bytes allocated, no data follows)
    uint64_t covers;  // 's': size of the log when the sync began: it makes everything before that durable
    uint64_t began;   // 's': ns on CLOCK_BOOTTIME when the sync began
    uint32_t paths;   // length of the first path, and of the second in the upper half
    uint8_t kind;     // o open, w write, t truncate, a allocate, s sync, r rename, l link, u unlink
    uint8_t flag;     // 'o': 1 when it made the file, 2 when it is a folder
    uint8_t pad[2];
};

enum { FILES = 4096 };
// The inode behind each descriptor of a file below the folder; 0: not ours.
static uint64_t inodes[FILES];
static char folder[PATH_MAX];
static size_t folder_length;
static struct control none;
static volatile struct control *control = &none;
static int log_file = -1;
static uint64_t log_size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) static __typeof__(name) *real_##name
REAL(open); REAL(open64); REAL(openat); REAL(close); REAL(read); REAL(pread); REAL(pread64); REAL(write);
REAL(pwrite); REAL(pwrite64); REAL(writev); REAL(ftruncate); REAL(ftruncate64); REAL(fallocate);
REAL(posix_fallocate); REAL(fsync); REAL(fdatasync); REAL(rename); REAL(link); REAL(unlink);
REAL(adjtimex); REAL(timerfd_settime);

#define STEP_MS control->clock_offset_ms
#include "steps.h"

static uint64_t boottime(void) {
    struct timespec t;
    // The system call, because our own clock_gettime would be called.
    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *map_control(const char *path) {
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return &none;
    // Writable, for the budget; a private mapping would not see what the test writes.
    int writable = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    void *map = mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, writable, 0);
    syscall(SYS_close, fd);
    syscall(SYS_close, writable);
    return map == MAP_FAILED ? &none : map;
}

__attribute__((constructor)) static void begin(void) {
#define FIND(name) real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name)
    FIND(open); FIND(open64); FIND(openat); FIND(close); FIND(read); FIND(pread); FIND(pread64); FIND(write);
    FIND(pwrite); FIND(pwrite64); FIND(writev); FIND(ftruncate); FIND(ftruncate64); FIND(fallocate);
    FIND(posix_fallocate); FIND(fsync); FIND(fdatasync); FIND(rename); FIND(link); FIND(unlink);
    FIND(adjtimex); FIND(timerfd_settime);
    control = map_control(getenv("FIELDFAULTS_CONTROL"));
    const char *below = getenv("FIELDFAULTS_DIR");
    if (!below || strlen(below) >= sizeof folder) return;
    strcpy(folder, below);
    folder_length = strlen(folder);
    const char *path = getenv("FIELDFAULTS_LOG");
    if (!path) return;
    log_file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat status;
    if (log_file >= 0 && fstat(log_file, &status) == 0) log_size = (uint64_t)status.st_size;
}

// Constructors of other libraries may call before ours has run.
#define READY do { if (__builtin_expect(!real_timerfd_settime, 0)) begin(); } while (0)

// Ours are absolute paths below the folder, and the folder itself.
static int is_ours(const char *path) {
    READY;
    return folder_length && path && strncmp(path, folder, folder_length) == 0
        && (path[folder_length] == '/' || path[folder_length] == 0);
}

static uint64_t inode(int fd) {
    READY;
    return fd >= 0 && fd < FILES ? __atomic_load_n(&inodes[fd], __ATOMIC_RELAXED) : 0;
}

// The lock is held: the log has the order in which things were done.
static void note(struct entry e, const char *path, const char *other, const void *data) {
    if (log_file < 0) return;
    size_t first = path ? strlen(path) : 0, second = other ? strlen(other) : 0;
    size_t length = data ? (size_t)e.length : 0;
    e.time = boottime();
    e.paths = (uint32_t)(first | second << 16);
    struct iovec parts[] = {
        {&e, sizeof e}, {(void *)path, first}, {(void *)other, second}, {(void *)data, length}};
    ssize_t done = syscall(SYS_writev, log_file, parts, 4);
    if (done != (ssize_t)(sizeof e + first + second + length)) {
        static const char words[] = "fieldfaults: the log cannot be written\n";
        syscall(SYS_write, 2, words, sizeof words - 1);
        _exit(99);
    }
    log_size += (uint64_t)done;
}

#define FAIL(code) do { int64_t c_ = (code); if (c_) { errno = (int)c_; return -1; } } while (0)

// MARK: Names

static int track(int fd, const char *path, int made) {
    struct stat status;
    if (fd < 0 || fd >= FILES || fstat(fd, &status) != 0) return fd;
    __atomic_store_n(&inodes[fd], status.st_ino, __ATOMIC_RELAXED);
    note((struct entry){.kind = 'o', .inode = status.st_ino, .offset = (uint64_t)status.st_size,
        .flag = (uint8_t)(made | (S_ISDIR(status.st_mode) ? 2 : 0))}, path, 0, 0);
    return fd;
}

static int open_path(__typeof__(open) *real, const char *path, int flags, mode_t mode) {
    if (!is_ours(path)) return real(path, flags, mode);
    if (flags & (O_WRONLY | O_RDWR | O_CREAT)) FAIL(control->name_error == EROFS ? EROFS : 0);
    if (flags & (O_CREAT | O_TRUNC)) FAIL(control->name_error);
    pthread_mutex_lock(&lock);
    int made = (flags & O_CREAT) && access(path, F_OK) != 0;
    int fd = track(real(path, flags, mode), path, made);
    if (fd >= 0 && !made && (flags & O_TRUNC)) note((struct entry){.kind = 't', .inode = inode(fd)}, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); }

int open(const char *path, int flags, ...) { READY; MODE(flags) return open_path(real_open, path, flags, mode); }
int open64(const char *path, int flags, ...) { READY; MODE(flags) return open_path(real_open64, path, flags, mode); }
static int open_here(const char *path, int flags, ...) { MODE(flags) return real_openat(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) {
    MODE(flags)
    return is_ours(path) ? open_path(open_here, path, flags, mode) : real_openat(at, path, flags, mode);
}

int close(int fd) {
    if (inode(fd)) __atomic_store_n(&inodes[fd], 0, __ATOMIC_RELAXED);
    if (fd >= 0 && fd == step_timer) step_timer = -1;
    return real_close(fd);
}

#define NAMES(kind_, call) \
    FAIL(control->name_error); \
    pthread_mutex_lock(&lock); \
    int code = call; \
    if (code == 0) note((struct entry){.kind = kind_}, path, other, 0); \
    pthread_mutex_unlock(&lock); \
    return code;

int rename(const char *path, const char *other) {
    if (!is_ours(path) && !is_ours(other)) return real_rename(path, other);
    NAMES('r', real_rename(path, other))
}
int link(const char *path, const char *other) {
    if (!is_ours(path)) return real_link(path, other);
    NAMES('l', real_link(path, other))
}
int unlink(const char *path) {
    const char *other = 0;
    if (!is_ours(path)) return real_unlink(path);
    NAMES('u', real_unlink(path))
}

// MARK: Contents

// How many of `count` bytes still find room; less than asked for is what a full disk does.
static size_t room(size_t count) {
    if (!control->has_budget) return count;
    size_t left = control->budget > 0 ? (size_t)control->budget : 0;
    if (left > count) left = count;
    control->budget -= (int64_t)left;
    return left;
}

static ssize_t put(int fd, const void *data, size_t count, off64_t offset, int here) {
    FAIL(control->write_error);
    pthread_mutex_lock(&lock);
    size_t fits = room(count);
    off64_t at = here ? lseek64(fd, 0, fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR) : offset;
    ssize_t done = fits == 0 && count > 0 ? (errno = ENOSPC, -1)
        : here ? real_write(fd, data, fits) : real_pwrite64(fd, data, fits, at);
    if (done > 0) note((struct entry){.kind = 'w', .inode = inode(fd), .offset = (uint64_t)at,
        .length = (uint64_t)done}, 0, 0, data);
    int code = errno;
    pthread_mutex_unlock(&lock);
    errno = code;
    return done;
}

ssize_t write(int fd, const void *data, size_t count) {
    return inode(fd) ? put(fd, data, count, 0, 1) : real_write(fd, data, count);
}
ssize_t pwrite(int fd, const void *data, size_t count, off_t at) {
    return inode(fd) ? put(fd, data, count, at, 0) : real_pwrite(fd, data, count, at);
}
ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at) {
    return inode(fd) ? put(fd, data, count, at, 0) : real_pwrite64(fd, data, count, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!inode(fd)) return real_writev(fd, parts, count);
    ssize_t sum = 0;
    for (int i = 0; i < count; i++) {
        ssize_t done = put(fd, parts[i].iov_base, parts[i].iov_len, 0, 1);
        if (done < 0) return sum ? sum : -1;
        sum += done;
        if ((size_t)done < parts[i].iov_len) break;
    }
    return sum;
}

ssize_t read(int fd, void *data, size_t count) {
    if (inode(fd)) FAIL(control->read_error);
    return real_read(fd, data, count);
}
ssize_t pread(int fd, void *data, size_t count, off_t at) {
    if (inode(fd)) FAIL(control->read_error);
    return real_pread(fd, data, count, at);
}
ssize_t pread64(int fd, void *data, size_t count, off64_t at) {
    if (inode(fd)) FAIL(control->read_error);
    return real_pread64(fd, data, count, at);
}

static int resize(int fd, off64_t size) {
    FAIL(control->write_error);
    pthread_mutex_lock(&lock);
    int code = real_ftruncate64(fd, size);
    if (code == 0) note((struct entry){.kind = 't', .inode = inode(fd), .offset = (uint64_t)size}, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return code;
}
int ftruncate(int fd, off_t size) { return inode(fd) ? resize(fd, size) : real_ftruncate(fd, size); }
int ftruncate64(int fd, off64_t size) { return inode(fd) ? resize(fd, size) : real_ftruncate64(fd, size); }

int fallocate(int fd, int mode, off_t at, off_t length) {
    if (!inode(fd)) return real_fallocate(fd, mode, at, length);
    FAIL(control->write_error);
    if (control->has_budget && control->budget < length) FAIL(ENOSPC);
    pthread_mutex_lock(&lock);
    int code = real_fallocate(fd, mode, at, length);
    if (code == 0) note((struct entry){.kind = 'a', .inode = inode(fd), .offset = (uint64_t)at,
        .length = (uint64_t)length}, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return code;
}
int posix_fallocate(int fd, off_t at, off_t length) {
    if (!inode(fd)) return real_posix_fallocate(fd, at, length);
    return fallocate(fd, 0, at, length) == 0 ? 0 : errno;
}

static int synchronize(int fd, __typeof__(fsync) *real) {
    if (!inode(fd)) return real(fd);
    FAIL(control->sync_error);
    pthread_mutex_lock(&lock);
    struct entry e = {.kind = 's', .inode = inode(fd), .covers = log_size, .began = boottime()};
    pthread_mutex_unlock(&lock);
    int code = real(fd);
    if (code != 0) return code;
    pthread_mutex_lock(&lock);
    note(e, 0, 0, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}
int fsync(int fd) { READY; return synchronize(fd, real_fsync); }
int fdatasync(int fd) { READY; return synchronize(fd, real_fdatasync); }

// MARK: The clock

int clock_gettime(clockid_t clock, struct timespec *t) {
    int code = (int)syscall(SYS_clock_gettime, clock, t);
    if (code != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return code;
    int64_t ns = t->tv_sec * 1000000000 + t->tv_nsec + control->clock_offset_ms * 1000000;
    t->tv_sec = ns / 1000000000 - (ns % 1000000000 < 0);
    t->tv_nsec = ns - t->tv_sec * 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return t ? (*t = now.tv_sec) : now.tv_sec;
}

int adjtimex(struct timex *state) {
    READY;
    int code = real_adjtimex(state);
    if (code >= 0 && control->clock_synced) state->maxerror = control->clock_synced == 1 ? 1000 : 16000000;
    return code;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
    READY;
    if (control != &none) watch_timer(fd, flags);
    return real_timerfd_settime(fd, flags, value, old);
}
