// The baseline of waypost-bench: the same rows into SQLite from C, with nothing around it.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// The part of a sighting that is the same for one beacon.
typedef struct {
    const char *id;
    int64_t kind;
    int64_t address;
    int64_t address_type;
    /// INT64_MIN without one.
    int64_t tx_power;
} waypost_baseline_beacon;

/// One sighting, without its times.
typedef struct {
    /// Index into the plan's beacons.
    size_t beacon;
    int64_t rssi;
    /// NULL without one.
    const void *payload;
    int payload_bytes;
    /// The members of its JSON object without time, RSSI and braces.
    const char *json;
} waypost_baseline_row;

/// The rows to insert: `cycle` repeated until there are `rows`.
typedef struct {
    const waypost_baseline_beacon *beacons;
    size_t beacon_count;
    const waypost_baseline_row *cycle;
    size_t cycle_count;
    int64_t rows;
    /// 0: one commit per second.
    int64_t rows_per_commit;
    /// Times of the first row, and the interval between rows, in ms.
    int64_t boottime;
    int64_t wall;
    int64_t interval;
    /// Waits for each row's time; else inserts as fast as possible.
    int is_live;
    /// Called before row `warm_up` if that is above 0; measuring begins then.
    void (*warmed_up)(void *context);
    void *context;
    int64_t warm_up;
} waypost_baseline_plan;

/// Inserts the rows as Waypost stores them; returns 0, or a SQLite code with its message in
/// `error`.
int waypost_baseline_typed(const char *path, const waypost_baseline_plan *plan, char *error, size_t size);

/// Inserts each row as one JSON text; `bytes` receives the total length of the texts.
int waypost_baseline_json(const char *path, const waypost_baseline_plan *plan, int64_t *bytes, char *error,
                          size_t size);

/// Encodes a file of 16-bit samples to AAC with libvo-aacenc alone; returns the bytes of all
/// frames, or -1.
int64_t waypost_baseline_aac(const char *path, int rate, int bitrate);
