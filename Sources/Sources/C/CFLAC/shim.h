// libFLAC: samples into FLAC frames.
#pragma once
#include <FLAC/stream_encoder.h>

// In the library for its own command-line tool, and in no public header.
FLAC__bool FLAC__stream_encoder_set_do_md5(FLAC__StreamEncoder *encoder, FLAC__bool value);

/// The library's own words for a state of the encoder; an array of incomplete size is not imported.
static inline const char *waypost_flac_state(const FLAC__StreamEncoder *encoder) {
    return FLAC__stream_encoder_get_resolved_state_string(encoder);
}
static inline const char *waypost_flac_init_status(FLAC__StreamEncoderInitStatus status) {
    return FLAC__StreamEncoderInitStatusString[status];
}
