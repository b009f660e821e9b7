// Linux calls that Swift's Glibc module lacks or cannot import (variadic, macro constants).
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/statvfs.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/// Makes all threads share one heap (mallopt(3)).
static inline void waypost_share_heap(void) { mallopt(M_ARENA_MAX, 1); }

/// Sets the thread name that `ps -L` and `top -H` show; prctl is variadic.
static inline int waypost_name_thread(const char *name) {
    return prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// Writes the name of the calling thread: at most 15 bytes and a zero.
static inline int waypost_thread_name(char name[16]) { return prctl(PR_GET_NAME, (unsigned long)name, 0, 0, 0); }

/// Joins a thread with a timeout; a thread that has not ended is detached (ETIMEDOUT).
static inline int waypost_join_or_detach(pthread_t thread, int64_t nanoseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    nanoseconds += end.tv_nsec;
    end.tv_sec += nanoseconds / 1000000000;
    end.tv_nsec = nanoseconds % 1000000000;
    int code = pthread_clockjoin_np(thread, 0, CLOCK_MONOTONIC, &end);
    if (code != 0) pthread_detach(thread);
    return code;
}

/// Returns a descriptor that becomes readable when CLOCK_REALTIME is stepped (timerfd_create(2)).
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

/// Returns the kernel's bound on the wall clock's error in microseconds (adjtimex(2)), or -errno.
static inline long waypost_clock_maxerror(void) {
    struct timex state = {0};
    return adjtimex(&state) < 0 ? -errno : state.maxerror;
}

/// Gets by how much an NTP client corrects the clock's rate, in 2^-16 ppm (adjtimex(2)).
///
/// Returns -EAGAIN while nothing keeps the clock, or -errno.
static inline int waypost_clock_correction(long *frequency) {
    struct timex state = {0};
    if (adjtimex(&state) < 0) return -errno;
    *frequency = state.freq;
    return state.status & STA_UNSYNC ? -EAGAIN : 0;
}

/// Returns an unarmed timer on CLOCK_BOOTTIME: counts suspend, ignores wall clock steps.
static inline int waypost_boottime_timer(void) {
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static inline int waypost_arm_timer(int fd, int64_t nanoseconds) {
    struct itimerspec at = {.it_value = {nanoseconds / 1000000000, nanoseconds % 1000000000}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, 0) < 0 ? -errno : 0;
}

/// Blocks the signals that a daemon handles, in this thread and its children; returns a signalfd.
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

/// Returns the next signal on such a descriptor; 0 if there is none.
static inline int waypost_next_signal(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

/// pidfd_open(2): a descriptor that is readable once the process has ended.
static inline int waypost_pidfd(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

/// 1 if a folder is on a tmpfs (statfs(2)), else 0.
static inline int waypost_is_in_memory(const char *folder) {
    struct statfs about;
    return statfs(folder, &about) == 0 && about.f_type == 0x01021994;
}

/// pipe2(2), a GNU extension, with both ends closed in child processes.
static inline int waypost_pipe(int ends[2]) { return (int)syscall(SYS_pipe2, ends, O_CLOEXEC); }

/// Starts a program as another user, `output` being its standard output; returns its pid, or
/// -errno.
///
/// It has no other input or output and a new session, so it cannot type on the caller's terminal.
/// Between fork(2) and execve(2) the child makes only calls that are safe in a program with
/// threads. It is killed when its parent ends.
static inline pid_t waypost_start_as(const char *program, uid_t user, gid_t group, const gid_t *groups, size_t count,
                                     int output, char *const words[], char *const variables[]) {
    pid_t child = fork();
    if (child != 0) return child < 0 ? -errno : child;
    if (setsid() < 0 || dup2(output, STDOUT_FILENO) < 0) _exit(126);
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(none, STDIN_FILENO) < 0 || dup2(none, STDERR_FILENO) < 0) _exit(126);
    if (setgroups(count, groups) < 0 || setgid(group) < 0 || setuid(user) < 0)
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execve(program, words, variables);
    _exit(127);
}

/// fork(2) whose child has given up all rights but a user's; returns 0 in it, its pid, or -errno.
///
/// Only for a process with one thread. The child is killed when its parent ends.
static inline pid_t waypost_fork_as(uid_t user, gid_t group) {
    pid_t child = fork();
    if (child != 0) return child < 0 ? -errno : child;
    if (setgroups(0, 0) < 0 || setgid(group) < 0 || setuid(user) < 0 || setuid(0) == 0) _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return 0;
}

/// socket(2) with the upper halves of its registers cleared: an optimised caller may leave the next
/// field of a struct there, and systemd's RestrictAddressFamilies= compares all 64 bits
/// (EAFNOSUPPORT for an allowed family).
static inline int waypost_socket(int family, int type, int protocol) {
    return (int)syscall(SYS_socket, (long)family, (long)type, (long)protocol);
}

/// Accepts the next connection, close-on-exec; returns it, or -errno.
static inline int waypost_accept(int fd) {
    int number = accept(fd, 0, 0);
    if (number < 0) return -errno;
    fcntl(number, F_SETFD, FD_CLOEXEC);
    return number;
}

/// Returns the user that connected to a Unix socket (unix(7), SO_PEERCRED); UINT32_MAX if unknown.
static inline uint32_t waypost_peer_user(int fd) {
    struct { int32_t process; uint32_t user, group; } peer = {0, UINT32_MAX, UINT32_MAX};
    socklen_t size = sizeof peer;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    return peer.user;
}

/// Sets SO_RCVBUF beyond the system's limit (needs CAP_NET_ADMIN), else up to it; returns the size,
/// or -errno.
static inline int waypost_set_receive_buffer(int fd, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) != 0)
        return -errno;
    int got = 0;
    socklen_t size = sizeof got;
    return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &size) == 0 ? got : -errno;
}

/// Returns a socket for the kernel's events of interfaces and addresses (rtnetlink(7)), or -errno.
static inline int waypost_network_events(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    struct sockaddr_nl own = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
    };
    if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/// Receives the next datagram of such a socket; -errno, or 0 if another process sent it.
static inline ssize_t waypost_receive_from_kernel(int fd, uint8_t *bytes, size_t size) {
    struct sockaddr_nl from = {0};
    socklen_t length = sizeof from;
    ssize_t count = recvfrom(fd, bytes, size, 0, (struct sockaddr *)&from, &length);
    if (count < 0) return -errno;
    return from.nl_pid == 0 ? count : 0;
}

/// Returns a descriptor that is readable when a file in a folder is written, replaced or changes
/// its attributes; or -errno.
static inline int waypost_watch_folder(const char *folder) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return -errno;
    uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB | IN_ONLYDIR;
    if (inotify_add_watch(fd, folder, events) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/// Returns a descriptor that is readable when a file appears in a folder or changes its attributes;
/// or -errno.
static inline int waypost_watch_arrivals(const char *folder) {
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return -errno;
    if (inotify_add_watch(fd, folder, IN_CREATE | IN_ATTRIB | IN_DELETE_SELF | IN_ONLYDIR) < 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/// Moves the calling thread and its children to a new network namespace, for tests; 0, or -errno.
static inline int waypost_own_network(void) {
    return syscall(SYS_unshare, 0x40000000L) < 0 ? -errno : 0;
}

/// Flushes the file system of a descriptor to disk (syncfs(2)); 0, or -1 with errno.
static inline int waypost_sync_file_system(int fd) { return (int)syscall(SYS_syncfs, fd); }
