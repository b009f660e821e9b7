// libopus: opus_encoder_ctl is variadic, so there is one inline per type of argument.
#pragma once
#include <opus/opus.h>

static inline int waypost_opus_set(OpusEncoder *encoder, int request, opus_int32 value) {
    return opus_encoder_ctl(encoder, request, value);
}
static inline int waypost_opus_get(OpusEncoder *encoder, int request, opus_int32 *value) {
    return opus_encoder_ctl(encoder, request, value);
}
