// libgps: the connection to gpsd, and gps_unpack, which turns one JSON line into gps_data_t.
#pragma once
#include <gps.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// gps_data_t changes size and field names with each release of gpsd, so what is wanted of it is copied here.
#if GPSD_API_MAJOR_VERSION < 11
#error "libgps 3.22 or newer is needed (libgps-dev)"
#endif

/// One report. What was not in it is NaN, or 0 for `mode` and `seconds`, or -1 for `used`.
struct waypost_report {
    int is_position;
    int is_sky;
    int mode;
    long long seconds;
    long nanoseconds;
    double latitude, longitude, altitude, speed, track, eph, epx, epy, epv;
    int used;
    char device[128];
};

/// Unpacks one line, which must end in a NUL; 0 if libgps understood it.
static inline int waypost_gps_unpack(struct gps_data_t *data, char *line, struct waypost_report *report) {
    memset(report, 0, sizeof *report);
    // gps_unpack leaves the fields of earlier lines standing.
    data->set = 0;
    data->fix.mode = 0;
    data->fix.time.tv_sec = 0;
    data->fix.time.tv_nsec = 0;
    data->fix.latitude = data->fix.longitude = NAN;
    int code = gps_unpack(line, data);
    if (code < 0) return code;
    report->is_position = strncmp(line, "{\"class\":\"TPV\"", 14) == 0;
    report->is_sky = strncmp(line, "{\"class\":\"SKY\"", 14) == 0;
    const struct gps_fix_t *fix = &data->fix;
    report->mode = fix->mode;
    report->seconds = fix->time.tv_sec;
    report->nanoseconds = fix->time.tv_nsec;
    report->latitude = fix->latitude;
    report->longitude = fix->longitude;
    report->altitude = isfinite(fix->altMSL) ? fix->altMSL : NAN;
    report->speed = fix->speed;
    report->track = fix->track;
    report->eph = fix->eph;
    report->epx = fix->epx;
    report->epy = fix->epy;
    report->epv = fix->epv;
    // libgps counts those of a list alone. gpsd 3.25 and later mostly sends their number, and libgps 3.22 says 0 of that.
    const char *number = strstr(line, "\"uSat\":");
    report->used = -1;
    if (strstr(line, "\"satellites\":[") != NULL) {
        if (data->set & SATELLITE_SET) report->used = data->satellites_used;
    } else if (number != NULL) {
        long used = strtol(number + 7, NULL, 10);
        if (used >= 0 && used <= MAXCHANNELS) report->used = (int)used;
    }
    strncpy(report->device, data->dev.path, sizeof report->device - 1);
    return 0;
}
