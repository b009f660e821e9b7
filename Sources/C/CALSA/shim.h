// libasound: PCM capture.
#pragma once
#include <alsa/asoundlib.h>

static inline void waypost_alsa_quiet(const char *file, int line, const char *function, int error,
                                      const char *format, ...) {
    (void)file, (void)line, (void)function, (void)error, (void)format;
}

/// Stops libasound from printing to standard error; the handler is variadic, so it must be in C.
static inline void waypost_alsa_silence(void) { snd_lib_error_set_handler(waypost_alsa_quiet); }
