// libvo-aacenc: its table of functions and table of memory operators behind three plain calls.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct waypost_aac waypost_aac;

/// Opens an encoder of one channel that writes ADTS frames; NULL with a VO_ERR code in `code`.
waypost_aac *waypost_aac_open(int rate, int bitrate, uint32_t *code);

/// Encodes 1024 samples into one ADTS frame of `length` bytes, at most `room`; returns a VO_ERR
/// code, 0 = none.
uint32_t waypost_aac_encode(
    waypost_aac *encoder, const int16_t *samples, uint8_t *frame, size_t room, size_t *length);

void waypost_aac_close(waypost_aac *encoder);
