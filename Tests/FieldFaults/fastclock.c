// An LD_PRELOAD library under which time goes by faster, for several programs alike.
//
//   cc -shared -fPIC -O2 -o libfastclock.so fastclock.c -ldl -lpthread
//   cc -O2 -DMETRONOME -o metronome fastclock.c
//   nice -n 19 metronome /file & LD_PRELOAD=libfastclock.so FASTCLOCK_CONTROL=/file PROGRAM
//
// The file has 16 little-endian signed 64-bit numbers, mapped: see `struct control`.
//
// CLOCK_BOOTTIME, CLOCK_MONOTONIC and CLOCK_REALTIME are what the kernel's were at the epoch, and what has passed since.
// So programs that are started later, or again, have the same time. Each wait is as much shorter. Clocks of CPU time are
// the kernel's, and so are the times of files and what libc waits for within itself (a name server).
//
// The metronome makes the time: each of its beats lets at most `GRANT` of the kernel's time count. It comes after all
// others, so where the machine stands still or has too much to do, this time does, too, and no program is late for it.
// Debian's libfaketime restarts with each program, lacks some of these waits, cannot report a step of the clock, and
// goes on while the machine is stopped.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t speed;       // times, from the next beat on
    int64_t boot;        // ns of each clock of the kernel at the epoch
    int64_t monotonic;
    int64_t wall;
    int64_t step_ms;     // added to CLOCK_REALTIME: what the clock was stepped by
    int64_t is_synced;   // not 0: adjtimex says that the clock is right
    int64_t beats;       // so many; the last one is at the place of its lowest bit
    struct {
        int64_t at;      // the kernel's CLOCK_MONOTONIC then, ns
        int64_t passed;  // ns that had passed then since the epoch
        int64_t speed;   // from then on
    } beat[2];
    int64_t unused[3];
};

enum { SECOND = 1000000000, GRANT = 5000000, BEAT = 1000000 };

static volatile struct control *control;

static int64_t passed_at(int64_t now) {
    int64_t at, passed, speed, beats;
    do {
        beats = __atomic_load_n(&control->beats, __ATOMIC_ACQUIRE);
        at = control->beat[beats & 1].at;
        passed = control->beat[beats & 1].passed;
        speed = control->beat[beats & 1].speed;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (beats != control->beats);
    int64_t since = now - at;
    return passed + (since < 0 ? 0 : since > GRANT ? GRANT : since) * speed;
}

#ifdef METRONOME

int main(int count, char **words) {
    int fd = count == 2 ? open(words[1], O_RDWR | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return 99;
    control = map;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (;;) {
        struct timespec t, pause = {.tv_nsec = BEAT};
        clock_gettime(CLOCK_MONOTONIC, &t);
        int64_t now = (int64_t)t.tv_sec * SECOND + t.tv_nsec, next = control->beats + 1;
        control->beat[next & 1].passed = passed_at(now);
        control->beat[next & 1].at = now;
        control->beat[next & 1].speed = control->speed;
        __atomic_store_n(&control->beats, next, __ATOMIC_RELEASE);
        nanosleep(&pause, 0);
    }
}

#else

enum { TIMERS = 4096 };
// The clock behind each timer, and the moment of it that the timer is set to; 0: none.
static clockid_t timers[TIMERS];
static int64_t moments[TIMERS];

#define REAL(name) static __typeof__(name) *real_##name
REAL(timerfd_create); REAL(timerfd_settime); REAL(pthread_cond_timedwait); REAL(pthread_cond_clockwait); REAL(adjtimex);
REAL(clock_gettime); REAL(pthread_clockjoin_np); REAL(sem_timedwait); REAL(pthread_mutex_timedlock); REAL(ppoll); REAL(pselect); REAL(epoll_pwait);

#define STEP_MS control->step_ms
#include "steps.h"

static int64_t kernel(clockid_t clock) {
    struct timespec t;
    real_clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
#define FIND(name) real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name)
    FIND(clock_gettime); FIND(timerfd_create); FIND(timerfd_settime); FIND(pthread_cond_timedwait); FIND(pthread_cond_clockwait); FIND(adjtimex);
    FIND(pthread_clockjoin_np); FIND(sem_timedwait); FIND(pthread_mutex_timedlock); FIND(ppoll); FIND(pselect);
    FIND(epoll_pwait);
    const char *path = getenv("FASTCLOCK_CONTROL");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(0, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED) {
        fputs("fastclock: FASTCLOCK_CONTROL cannot be read\n", stderr);
        _exit(99);
    }
    control = map;
    // The kernel lets each wait be 50 us longer, which would be seconds here for some.
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

// Constructors of other libraries may call before ours has run.
#define READY do { if (__builtin_expect(!real_epoll_pwait, 0)) begin(); } while (0)

static clockid_t coarse(clockid_t clock) {
    return clock == CLOCK_REALTIME_COARSE ? CLOCK_REALTIME
        : clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW ? CLOCK_MONOTONIC : clock;
}

static int is_fast(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

// The clock's value at the epoch.
static int64_t epoch(clockid_t clock) {
    return clock == CLOCK_REALTIME ? control->wall : clock == CLOCK_BOOTTIME ? control->boot : control->monotonic;
}

static int64_t step(clockid_t clock) { return clock == CLOCK_REALTIME ? control->step_ms * 1000000 : 0; }

static int64_t fast(clockid_t clock) { return epoch(clock) + passed_at(kernel(CLOCK_MONOTONIC)) + step(clock); }

static struct timespec spec(int64_t ns) {
    if (ns < 0) ns = 0;
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static int64_t whole(const struct timespec *t) {
    // Times more than a century away are capped.
    if (t->tv_sec > 6000000000) return 6000000000 * SECOND;
    return (int64_t)t->tv_sec * SECOND + t->tv_nsec;
}

// How long the kernel is to wait for so long; never no time at all for some.
static struct timespec span(int64_t ns) { return spec(ns <= 0 ? 0 : (ns + control->speed - 1) / control->speed); }

// When the kernel's clock will be there, if the metronome keeps time.
static struct timespec moment(clockid_t clock, int64_t at) {
    struct timespec rest = span(at - fast(clock));
    return spec(kernel(clock) + whole(&rest));
}

// The end of a wait of a length, in fast time; 0: never.
static int64_t end_of(const struct timespec *limit) { return limit ? fast(CLOCK_MONOTONIC) + whole(limit) : 0; }

// The rest of a wait; 0 where it has no end.
static const struct timespec *rest(int64_t end, struct timespec *wait) {
    if (!end) return 0;
    *wait = span(end - fast(CLOCK_MONOTONIC));
    return wait;
}

static int is_over(int64_t end) { return end && fast(CLOCK_MONOTONIC) >= end; }

// MARK: The current time

int clock_gettime(clockid_t clock, struct timespec *t) {
    clockid_t plain = coarse(clock);
    READY;
    if (!is_fast(plain)) return real_clock_gettime(clock, t);
    *t = spec(fast(plain));
    return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return t ? (*t = now.tv_sec) : now.tv_sec;
}

int timespec_get(struct timespec *t, int base) { return clock_gettime(CLOCK_REALTIME, t) == 0 ? base : 0; }

int adjtimex(struct timex *state) {
    READY;
    int code = real_adjtimex(state);
    if (code >= 0) state->maxerror = control->is_synced ? 1000 : 16000000;
    return code;
}

// MARK: Waits of a length. One that the kernel ends before the metronome is there is waited for again.

// Sets timers that expired too early again, without reporting them. Returns true if there was one.
static int set_early_timers(struct pollfd *entries, nfds_t count) {
    int found = 0;
    for (nfds_t n = 0; n < count; n++) {
        int fd = entries[n].fd;
        if (fd < 0 || fd >= TIMERS || !moments[fd] || !(entries[n].revents & POLLIN)) continue;
        if (fast(timers[fd]) >= moments[fd]) continue;
        struct itimerspec again = {.it_value = moment(timers[fd], moments[fd])};
        real_timerfd_settime(fd, TFD_TIMER_ABSTIME, &again, 0);
        entries[n].revents = 0;
        found++;
    }
    return found;
}

int ppoll(struct pollfd *entries, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
    READY;
    struct timespec wait;
    int64_t end = end_of(limit);
    for (;;) {
        int ready = real_ppoll(entries, count, rest(end, &wait), mask);
        if (ready > 0) ready -= set_early_timers(entries, count);
        if (ready || is_over(end)) return ready;
    }
}

int poll(struct pollfd *entries, nfds_t count, int limit) {
    struct timespec wait = {.tv_sec = limit / 1000, .tv_nsec = limit % 1000 * 1000000};
    return ppoll(entries, count, limit < 0 ? 0 : &wait, 0);
}

int __poll_chk(struct pollfd *entries, nfds_t count, int limit, size_t size) {
    (void)size;
    return poll(entries, count, limit);
}

int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
            const struct timespec *restrict limit, const sigset_t *restrict mask) {
    READY;
    struct timespec wait;
    int64_t end = end_of(limit);
    fd_set asked[3], *sets[3] = {in, out, odd};
    for (int n = 0; n < 3; n++)
        if (sets[n]) asked[n] = *sets[n];
    for (;;) {
        int ready = real_pselect(count, in, out, odd, rest(end, &wait), mask);
        if (ready || is_over(end)) return ready;
        for (int n = 0; n < 3; n++)
            if (sets[n]) *sets[n] = asked[n];
    }
}

int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd, struct timeval *restrict limit) {
    struct timespec wait = limit ? (struct timespec){limit->tv_sec, limit->tv_usec * 1000} : (struct timespec){0};
    return pselect(count, in, out, odd, limit ? &wait : 0, 0);
}

// The kernel's own has milliseconds: the descriptor itself is waited for instead, where there is a limit.
int epoll_pwait(int fd, struct epoll_event *events, int most, int limit, const sigset_t *mask) {
    READY;
    if (limit > 0) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        struct timespec wait = {.tv_sec = limit / 1000, .tv_nsec = limit % 1000 * 1000000};
        if (ppoll(&entry, 1, &wait, mask) < 0) return -1;
        limit = 0;
    }
    return real_epoll_pwait(fd, events, most, limit, mask);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int limit) {
    return epoll_pwait(fd, events, most, limit, 0);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *length, struct timespec *left) {
    READY;
    clock = coarse(clock);
    int64_t end = flags & TIMER_ABSTIME ? whole(length) : fast(clock) + whole(length);
    for (;;) {
        struct timespec wait = span(end - fast(clock));
        int code = syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait, 0) < 0 ? errno : 0;
        if (code && left && !(flags & TIMER_ABSTIME)) *left = spec(end - fast(clock));
        if (code || fast(clock) >= end) return code;
    }
}

int nanosleep(const struct timespec *length, struct timespec *left) {
    int code = clock_nanosleep(CLOCK_MONOTONIC, 0, length, left);
    return code ? (errno = code, -1) : 0;
}

int usleep(useconds_t length) {
    struct timespec wait = {.tv_sec = length / 1000000, .tv_nsec = length % 1000000 * 1000};
    return nanosleep(&wait, 0);
}

unsigned sleep(unsigned length) {
    struct timespec wait = {.tv_sec = length}, left = {0};
    return nanosleep(&wait, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

// MARK: Waits until a moment

// The call with a moment of the kernel's for `at`, until the fast clock is there.
#define UNTIL(clock_, end_, call) do { \
    READY; \
    int64_t end_ns_ = whole(end_); \
    for (;;) { \
        struct timespec at = moment(clock_, end_ns_); \
        int code_ = call; \
        if (code_ != ETIMEDOUT || fast(clock_) >= end_ns_) return code_; \
    } } while (0)

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict end) {
    // Which clock it has, its attributes said: no boot has lasted thirty years, and no date is that old.
    clockid_t clock = end->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    UNTIL(clock, end, real_pthread_cond_timedwait(condition, mutex, &at));
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict end) {
    UNTIL(clock, end, real_pthread_cond_clockwait(condition, mutex, clock, &at));
}

int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *end) {
    UNTIL(clock, end, real_pthread_clockjoin_np(thread, value, clock, &at));
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict end) {
    READY;
    for (;;) {
        struct timespec at = moment(CLOCK_REALTIME, whole(end));
        int code = real_sem_timedwait(semaphore, &at);
        if (code == 0 || errno != ETIMEDOUT || fast(CLOCK_REALTIME) >= whole(end)) return code;
    }
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
    UNTIL(CLOCK_REALTIME, end, real_pthread_mutex_timedlock(mutex, &at));
}

// MARK: Timers

int timerfd_create(clockid_t clock, int flags) {
    READY;
    int fd = real_timerfd_create(clock, flags);
    if (fd >= 0 && fd < TIMERS) timers[fd] = coarse(clock), moments[fd] = 0;
    return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
    READY;
    struct itimerspec to = {.it_interval = span(whole(&value->it_interval))};
    clockid_t clock = fd >= 0 && fd < TIMERS ? timers[fd] : CLOCK_MONOTONIC;
    int is_off = !value->it_value.tv_sec && !value->it_value.tv_nsec;
    int is_moment = flags & TFD_TIMER_ABSTIME;
    if (!is_off) to.it_value = is_moment ? moment(clock, whole(&value->it_value)) : span(whole(&value->it_value));
    if (fd >= 0 && fd < TIMERS)
        moments[fd] = is_moment && !is_off && !(flags & TFD_TIMER_CANCEL_ON_SET) ? whole(&value->it_value) : 0;
    watch_timer(fd, flags);
    return real_timerfd_settime(fd, flags, &to, old);
}

#endif
