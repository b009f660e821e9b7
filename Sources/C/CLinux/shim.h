// Linux calls that Swift's Glibc module leaves out or cannot import (variadic, macro constants).
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/// prctl is variadic; this is the one use: the name `ps -L` and `top -H` show.
static inline int waypost_name_thread(const char *name) {
    return prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// A descriptor that becomes readable when CLOCK_REALTIME jumps (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
static inline int waypost_watch_clock_steps(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0) return -errno;
    struct itimerspec far = {.it_value = {.tv_sec = (time_t)(INT64_MAX >> 10)}};
    if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, 0) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/// The kernel's bound on the error of the wall clock in microseconds (adjtimex(2)), or -errno.
static inline long waypost_clock_maxerror(void) {
    struct timex state = {0};
    return adjtimex(&state) < 0 ? -errno : state.maxerror;
}

/// A timer on CLOCK_BOOTTIME that is not armed yet: suspend counts, steps of the wall clock do not.
static inline int waypost_boottime_timer(void) {
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static inline int waypost_arm_timer(int fd, int64_t nanoseconds) {
    struct itimerspec at = {.it_value = {nanoseconds / 1000000000, nanoseconds % 1000000000}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, 0) < 0 ? -errno : 0;
}

/// Blocks the signals that a daemon answers, in this thread and those it starts; a descriptor to read them from.
static inline int waypost_take_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &signals, 0) != 0) return -EINVAL;
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/// The next signal on such a descriptor; 0 when there is none.
static inline int waypost_next_signal(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

/// SO_RCVBUF without and with the system's limit (needs CAP_NET_ADMIN), whichever the kernel grants.
static inline int waypost_set_receive_buffer(int fd, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) == 0) return 0;
    return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0 ? 0 : -errno;
}
