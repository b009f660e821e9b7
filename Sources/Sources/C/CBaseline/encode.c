#include "waypost_baseline.h"

#include <stdio.h>
#include <waypost_aac.h>

int64_t waypost_baseline_aac(const char *path, int rate, int bitrate) {
    int16_t samples[1024];
    uint8_t frame[8192];
    uint32_t code = 0;
    size_t length = 0;
    int64_t total = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    waypost_aac *encoder = waypost_aac_open(rate, bitrate, &code);
    while (encoder && fread(samples, 2, 1024, file) == 1024) {
        if (waypost_aac_encode(encoder, samples, frame, sizeof frame, &length) != 0) break;
        total += (int64_t)length;
    }
    fclose(file);
    if (!encoder) return -1;
    waypost_aac_close(encoder);
    return total;
}
