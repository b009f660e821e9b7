// libgps: the connection to gpsd, and gps_unpack, which turns one JSON line into gps_data_t.
#pragma once
#include <gps.h>
#include <math.h>
#include <string.h>

// gps_data_t changes its size and field names with each gpsd release, so the needed fields are
// copied here.
#if GPSD_API_MAJOR_VERSION < 11
#error "libgps 3.22 or newer is needed (libgps-dev)"
#endif

// gps_unpack reports no error if it could not read a line to its end; this function, which it
// calls, does. libgps exports it (3.22 to 3.27) without declaring it. Weak, so that a libgps
// without it also works.
extern int libgps_json_unpack(const char *, struct gps_data_t *, const char **) __attribute__((weak));

/// One TPV report. Missing values are NaN, or 0 for `mode` and `seconds`.
struct waypost_report {
    int mode;
    /// How the fix was made (gpsd_json(5), TPV `status`); 0 if unknown.
    int status;
    long long seconds;
    long nanoseconds;
    double latitude, longitude, altitude, speed, track, eph, epx, epy, epv;
    char device[128];
    /// The libgps error after the position; 0 if it read the line to its end.
    int fault;
};

/// Unpacks one TPV line, which must end in a NUL; returns 0 if libgps understood it, or at least
/// its mode and position.
static inline int waypost_gps_unpack(struct gps_data_t *data, char *line, struct waypost_report *report) {
    memset(report, 0, sizeof *report);
    // gps_unpack keeps the fields of earlier lines.
    data->set = 0;
    data->fix.mode = 0;
    data->fix.status = 0;
    data->fix.time.tv_sec = 0;
    data->fix.time.tv_nsec = 0;
    data->fix.latitude = data->fix.longitude = NAN;
    const char *rest = "";
    int code = libgps_json_unpack != NULL ? libgps_json_unpack(line, data, &rest) : gps_unpack(line, data);
    const struct gps_fix_t *fix = &data->fix;
    // An unknown member with an array stops it there, which does not matter after the position.
    if (code != 0 && (fix->mode == 0 || !isfinite(fix->latitude) || !isfinite(fix->longitude))) return code;
    report->fault = code;
    // It also stops, without an error, at an object inside the TPV.
    if (fix->mode == 0 && rest != NULL && *rest != 0) return -1;
    report->mode = fix->mode;
    report->status = fix->status;
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
    strncpy(report->device, data->dev.path, sizeof report->device - 1);
    return 0;
}
