// libFLAC: encodes samples into FLAC frames.
#pragma once
#include <FLAC/stream_encoder.h>

// Exported for the library's command-line tool, but not in a public header.
FLAC__bool FLAC__stream_encoder_set_do_md5(FLAC__StreamEncoder *encoder, FLAC__bool value);

/// Returns the name of an encoder state; Swift does not import an array of incomplete size.
static inline const char *waypost_flac_state(const FLAC__StreamEncoder *encoder) {
    return FLAC__stream_encoder_get_resolved_state_string(encoder);
}
static inline const char *waypost_flac_init_status(FLAC__StreamEncoderInitStatus status) {
    return FLAC__StreamEncoderInitStatusString[status];
}
