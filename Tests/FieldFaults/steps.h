// A timer that is to tell of steps of the clock (TFD_TIMER_CANCEL_ON_SET) hears nothing from the kernel of those that a library
// of this folder makes: a thread lets it expire then.
//
// Before this is included: STEP_MS, what the clock is stepped by now, and real_timerfd_settime.
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t step_lock = PTHREAD_MUTEX_INITIALIZER;
static int step_timer = -1;

static void *tell_of_steps(void *unused) {
    (void)unused;
    for (int64_t seen = STEP_MS;;) {
        // The system call: time may go by faster for the library's own.
        struct timespec pause = {.tv_nsec = 20000000};
        syscall(SYS_nanosleep, &pause, 0);
        if (STEP_MS == seen) continue;
        seen = STEP_MS;
        struct itimerspec now = {.it_value = {.tv_nsec = 1}};
        pthread_mutex_lock(&step_lock);
        if (step_timer >= 0) real_timerfd_settime(step_timer, 0, &now, 0);
        pthread_mutex_unlock(&step_lock);
    }
    return 0;
}

// The timer was set, with these flags.
static void watch_timer(int fd, int flags) {
    static int is_telling;
    if (!(flags & TFD_TIMER_CANCEL_ON_SET)) return;
    pthread_mutex_lock(&step_lock);
    step_timer = fd;
    pthread_t thread;
    if (!is_telling) is_telling = pthread_create(&thread, 0, tell_of_steps, 0) == 0;
    pthread_mutex_unlock(&step_lock);
}
