// zlib: deflateInit2 and inflateInit2 are macros, which Swift cannot import.
#pragma once
#include <zlib.h>

static inline int waypost_deflate_start(z_stream *stream, int level, int window_bits, int strategy) {
    return deflateInit2(stream, level, Z_DEFLATED, window_bits, 8, strategy);
}
static inline int waypost_inflate_start(z_stream *stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}
