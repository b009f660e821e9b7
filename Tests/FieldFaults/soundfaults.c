// A microphone for libasound that gives a known signal in real time and misbehaves on demand.
//
//   cc -shared -fPIC -O2 -o libsoundfaults.so soundfaults.c -lasound -lm
//
//   pcm_type.waypost_mic { lib "/path/libsoundfaults.so" }
//   pcm.mic { type waypost_mic control "/path/control" rates "16000 48000" formats "S16_LE" channels 1 }
//
// control   a file of 8 little-endian signed 64-bit numbers, see `struct control`; writing it (pwrite) acts at once.
// rates, formats, channels, buffer   what the "hardware" can do; buffer: most bytes, 1 MiB if absent.
// tone      Hz of a sine at half of full scale; absent: a ramp, frame n since `epoch` is n modulo 65536.
// file      raw S16_LE samples of one channel, played in a loop instead; "" is none.
//
// The world goes on while the microphone does not listen: after a gap the ramp stands where it would have been.
// Channels after the first carry the signal upside down.
#define _GNU_SOURCE
#define PIC 1
#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <math.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>

enum { FINE, ZEROS, STALLED, FAILING, UNPLUGGED, BUSY, DENIED, CONSTANT, TORN, QUIET, PULLED };

struct control {
    int64_t mode;      // as above; FAILING: reads give EIO; TORN: each start ends in an overrun; QUIET: noise
                       // of half a 16-bit step RMS, one frame in four is one step away from zero; PULLED: there is
                       // always as much as wakes the reader, from frame 0 on, as if time went by when it is read
    int64_t overruns;  // each increase: one overrun (EPIPE)
    int64_t suspends;  // each increase: one suspend (ESTRPIPE)
    int64_t ppm;       // its clock is so many millionths fast
    int64_t epoch;     // ns on CLOCK_MONOTONIC when the ramp was 0; 0: when the device was opened
    int64_t late;      // ns from a start to its first frame
    int64_t muted;     // bit n: channel n gives digital silence
    int64_t pause;     // ns: when nobody has looked for so long it stood still meanwhile, and does not report it
};

struct mic {
    snd_pcm_ioplug_t io;
    struct control control;
    int control_file, events, timer, notes;
    double tone;
    // The samples of `file`; NULL without one.
    const int16_t *samples;
    int64_t count;
    int64_t opened;
    // Frames since the start at `since`, and the ramp's number of the frame 0.
    int64_t frames, since, origin;
    // When somebody looked last.
    int64_t looked;
    int64_t read;
    snd_pcm_uframes_t enough;
    int running;
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double pace(const struct mic *mic) {
    return mic->io.rate * (1 + mic->control.ppm * 1e-6) / 1e9;
}

static int64_t world(const struct mic *mic, int64_t now) {
    int64_t epoch = mic->control.epoch ? mic->control.epoch : mic->opened;
    return (int64_t)((double)(now - epoch) / 1e9 * mic->io.rate);
}

static int64_t captured(const struct mic *mic) {
    int64_t since = now_ns() - mic->since;
    if (mic->control.mode == PULLED) return mic->read + (int64_t)mic->enough;
    if (!mic->running || mic->control.mode == STALLED || since < 0) return mic->frames;
    return mic->frames + (int64_t)((double)since * pace(mic));
}

// A sound server or a paused machine that was stopped together with the program.
static void wake(struct mic *mic) {
    int64_t now = now_ns(), away = now - mic->looked;
    mic->looked = now;
    if (mic->control.pause && away > mic->control.pause) mic->since += away;
}

// Reads the control file; what has changed happens now.
static void look(struct mic *mic) {
    struct control next;
    if (pread(mic->control_file, &next, sizeof next, 0) != sizeof next) return;
    struct control before = mic->control;
    wake(mic);
    int64_t frames = captured(mic), now = now_ns();
    mic->frames = frames;
    if (now > mic->since) mic->since = now;
    mic->control = next;
    if (!mic->running) return;
    if (before.mode == STALLED && next.mode != STALLED) mic->origin = world(mic, now) - frames;
    if (next.overruns > before.overruns) snd_pcm_ioplug_set_state(&mic->io, SND_PCM_STATE_XRUN);
    if (next.suspends > before.suspends) snd_pcm_ioplug_set_state(&mic->io, SND_PCM_STATE_SUSPENDED);
    if (next.mode == UNPLUGGED) snd_pcm_ioplug_set_state(&mic->io, SND_PCM_STATE_DISCONNECTED);
}

// The next moment when `enough` frames wait to be read.
static void arm(struct mic *mic) {
    struct itimerspec at = {0};
    if (mic->running && mic->control.mode != STALLED) {
        double missing = (double)(mic->read + (int64_t)mic->enough - captured(mic));
        int64_t wait = missing <= 0 ? 1 : (int64_t)(missing / pace(mic)) + 1000;
        int64_t late = mic->since - now_ns();
        if (late > 0) wait += late;
        at.it_value.tv_sec = wait / 1000000000;
        at.it_value.tv_nsec = wait % 1000000000;
    }
    timerfd_settime(mic->timer, 0, &at, NULL);
}

static int start(snd_pcm_ioplug_t *io) {
    struct mic *mic = io->private_data;
    mic->frames = mic->read = 0;
    mic->since = now_ns() + mic->control.late;
    mic->origin = mic->control.mode == PULLED ? 0 : world(mic, mic->since);
    mic->running = 1;
    arm(mic);
    return 0;
}

static int stop(snd_pcm_ioplug_t *io) {
    struct mic *mic = io->private_data;
    mic->frames = captured(mic);
    mic->running = 0;
    arm(mic);
    return 0;
}

static int prepare(snd_pcm_ioplug_t *io) {
    struct mic *mic = io->private_data;
    if (mic->control.mode == UNPLUGGED) return -ENODEV;
    mic->running = 0;
    mic->frames = mic->read = 0;
    return 0;
}

static snd_pcm_sframes_t pointer(snd_pcm_ioplug_t *io) {
    struct mic *mic = io->private_data;
    wake(mic);
    int64_t frames = captured(mic);
    if (frames - mic->read > (int64_t)io->buffer_size) return -EPIPE;
    return frames % (int64_t)io->buffer_size;
}

static double value(const struct mic *mic, int64_t frame) {
    if (mic->control.mode == ZEROS) return 0;
    if (mic->control.mode == CONSTANT) return 1234;
    if (mic->control.mode == QUIET) {
        uint32_t noise = (uint32_t)frame * 2654435761u;
        noise = (noise ^ noise >> 15) * 2246822519u;
        noise = (noise ^ noise >> 13) * 3266489917u;
        return noise >> 30 ? 0 : noise >> 29 ? 1 : -1;
    }
    if (mic->samples) return mic->samples[frame % mic->count];
    if (mic->tone > 0) return 16384 * sin(2 * M_PI * mic->tone * (double)frame / mic->io.rate);
    return (int16_t)(frame & 0xFFFF);
}

static void put(unsigned char *to, snd_pcm_format_t format, double value) {
    int32_t whole = (int32_t)lrint(value * 65536);
    float real = (float)(value / 32768);
    int16_t half = (int16_t)lrint(value);
    switch (format) {
    case SND_PCM_FORMAT_S32_LE: memcpy(to, &whole, 4); break;
    case SND_PCM_FORMAT_S24_LE: whole >>= 8; memcpy(to, &whole, 4); break;
    case SND_PCM_FORMAT_S24_3LE: memcpy(to, (unsigned char *)&whole + 1, 3); break;
    case SND_PCM_FORMAT_FLOAT_LE: memcpy(to, &real, 4); break;
    default: memcpy(to, &half, 2);
    }
}

static snd_pcm_sframes_t transfer(snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas,
                                  snd_pcm_uframes_t offset, snd_pcm_uframes_t size) {
    struct mic *mic = io->private_data;
    if (mic->control.mode == FAILING) return -EIO;
    if (mic->control.mode == TORN) {
        snd_pcm_ioplug_set_state(io, SND_PCM_STATE_XRUN);
        return -EPIPE;
    }
    for (snd_pcm_uframes_t n = 0; n < size; n++) {
        double sound = value(mic, mic->origin + mic->read + (int64_t)n);
        for (unsigned channel = 0; channel < io->channels; channel++) {
            const snd_pcm_channel_area_t *area = areas + channel;
            put((unsigned char *)area->addr + (area->first + area->step * (offset + n)) / 8, io->format,
                mic->control.muted >> channel & 1 ? 0 : channel ? -sound : sound);
        }
    }
    mic->read += (int64_t)size;
    arm(mic);
    return (snd_pcm_sframes_t)size;
}

static int sw_params(snd_pcm_ioplug_t *io, snd_pcm_sw_params_t *params) {
    struct mic *mic = io->private_data;
    return snd_pcm_sw_params_get_avail_min(params, &mic->enough);
}

static int poll_revents(snd_pcm_ioplug_t *io, struct pollfd *entries, unsigned count, unsigned short *revents) {
    struct mic *mic = io->private_data;
    char bytes[1024];
    (void)entries, (void)count;
    while (read(mic->notes, bytes, sizeof bytes) > 0) {}
    while (read(mic->timer, bytes, 8) > 0) {}
    look(mic);
    *revents = 0;
    if (io->state != SND_PCM_STATE_RUNNING)
        *revents = POLLERR | POLLIN;
    else if (mic->control.mode == FAILING || mic->control.mode == TORN || captured(mic) - mic->read >= (int64_t)mic->enough)
        *revents = POLLIN;
    else
        arm(mic);
    return 0;
}

static int close_mic(snd_pcm_ioplug_t *io) {
    struct mic *mic = io->private_data;
    int owned[] = {mic->control_file, mic->events, mic->timer, mic->notes};
    for (unsigned n = 0; n < 4; n++)
        if (owned[n] >= 0) close(owned[n]);
    if (mic->samples) munmap((void *)mic->samples, (size_t)mic->count * 2);
    free(mic);
    return 0;
}

static const snd_pcm_ioplug_callback_t callbacks = {
    .start = start, .stop = stop, .pointer = pointer, .transfer = transfer, .close = close_mic,
    .prepare = prepare, .sw_params = sw_params, .poll_revents = poll_revents,
};

static int listen_to(struct mic *mic, const char *path) {
    mic->control_file = open(path, O_RDONLY | O_CLOEXEC);
    mic->events = epoll_create1(EPOLL_CLOEXEC);
    mic->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    mic->notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (mic->control_file < 0 || inotify_add_watch(mic->notes, path, IN_MODIFY) < 0) return -ENOENT;
    struct epoll_event readable = {.events = EPOLLIN};
    epoll_ctl(mic->events, EPOLL_CTL_ADD, mic->timer, &readable);
    epoll_ctl(mic->events, EPOLL_CTL_ADD, mic->notes, &readable);
    look(mic);
    return 0;
}

static int load(struct mic *mic, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -errno;
    struct stat info;
    if (fstat(file, &info) || info.st_size < 2) info.st_size = 0;
    void *samples = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (samples == MAP_FAILED) return -EINVAL;
    mic->samples = samples;
    mic->count = info.st_size / 2;
    return 0;
}

static int limit(snd_pcm_ioplug_t *io, const char *rates, const char *formats, long channels, long buffer) {
    unsigned list[16], count = 0;
    for (char *next; count < 16 && *rates; rates = next) {
        list[count] = (unsigned)strtoul(rates, &next, 10);
        if (next == rates) break;
        count++;
    }
    snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_RATE, count, list);
    char names[128], *rest = NULL;
    snprintf(names, sizeof names, "%s", formats);
    count = 0;
    for (char *name = strtok_r(names, " ", &rest); name && count < 16; name = strtok_r(NULL, " ", &rest))
        list[count++] = (unsigned)snd_pcm_format_value(name);
    snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_FORMAT, count, list);
    unsigned access = SND_PCM_ACCESS_RW_INTERLEAVED;
    snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_ACCESS, 1, &access);
    snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_CHANNELS, (unsigned)channels, (unsigned)channels);
    snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_PERIOD_BYTES, 64, (unsigned)buffer / 2);
    return snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_BUFFER_BYTES, 256, (unsigned)buffer);
}

SND_PCM_PLUGIN_DEFINE_FUNC(waypost_mic) {
    const char *path = NULL, *file = NULL, *rates = "16000", *formats = "S16_LE";
    long channels = 1, buffer = 1 << 20, tone = 0;
    snd_config_iterator_t at, next;
    (void)root;
    snd_config_for_each(at, next, conf) {
        snd_config_t *entry = snd_config_iterator_entry(at);
        const char *key;
        if (snd_config_get_id(entry, &key) < 0) continue;
        if (!strcmp(key, "control")) snd_config_get_string(entry, &path);
        if (!strcmp(key, "file")) snd_config_get_string(entry, &file);
        if (!strcmp(key, "rates")) snd_config_get_string(entry, &rates);
        if (!strcmp(key, "formats")) snd_config_get_string(entry, &formats);
        if (!strcmp(key, "channels")) snd_config_get_integer(entry, &channels);
        if (!strcmp(key, "buffer")) snd_config_get_integer(entry, &buffer);
        if (!strcmp(key, "tone")) snd_config_get_integer(entry, &tone);
    }
    if (!path || stream != SND_PCM_STREAM_CAPTURE) return -EINVAL;
    struct mic *mic = calloc(1, sizeof *mic);
    if (!mic) return -ENOMEM;
    mic->tone = (double)tone;
    mic->opened = now_ns();
    mic->enough = 1;
    int code = listen_to(mic, path);
    if (!code && file && *file) code = load(mic, file);
    if (!code && mic->control.mode == UNPLUGGED) code = -ENODEV;
    if (!code && mic->control.mode == BUSY) code = -EBUSY;
    if (!code && mic->control.mode == DENIED) code = -EACCES;
    mic->io.version = SND_PCM_IOPLUG_VERSION;
    mic->io.name = "Waypost test microphone";
    mic->io.callback = &callbacks;
    mic->io.private_data = mic;
    mic->io.poll_fd = mic->events;
    mic->io.poll_events = POLLIN;
    if (!code) code = snd_pcm_ioplug_create(&mic->io, name, stream, mode);
    if (code < 0) {
        close_mic(&mic->io);
        return code;
    }
    if ((code = limit(&mic->io, rates, formats, channels, buffer)) < 0) {
        snd_pcm_ioplug_delete(&mic->io);
        return code;
    }
    *pcmp = mic->io.pcm;
    return 0;
}
SND_PCM_PLUGIN_SYMBOL(waypost_mic);
