// What waypost-bench compares with: the same rows into SQLite from C, with nothing around it.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// What stays the same from one sighting of a beacon to the next.
typedef struct {
    const char *id;
    int64_t kind;
    int64_t address;
    int64_t address_type;
    /// INT64_MIN where there is none.
    int64_t tx_power;
} waypost_baseline_beacon;

/// One sighting, without its times.
typedef struct {
    /// Index into the plan's beacons.
    size_t beacon;
    int64_t rssi;
    /// NULL where there is none.
    const void *payload;
    int payload_bytes;
    /// The members of its JSON object that are neither time nor RSSI, without braces.
    const char *json;
} waypost_baseline_row;

/// What to insert: `cycle` over and over until there are `rows`.
typedef struct {
    const waypost_baseline_beacon *beacons;
    size_t beacon_count;
    const waypost_baseline_row *cycle;
    size_t cycle_count;
    int64_t rows;
    /// 0: a commit a second.
    int64_t rows_per_commit;
    /// Times of the first row in ms, and how much later each row is than the one before.
    int64_t boottime;
    int64_t wall;
    int64_t interval;
    /// Waits until each row's time has come; else as fast as it goes.
    int is_live;
    /// Called before row `warm_up`, if that is above 0: measuring begins then.
    void (*warmed_up)(void *context);
    void *context;
    int64_t warm_up;
} waypost_baseline_plan;

/// Inserts the rows as Waypost stores them; 0, or a SQLite code with its words in `error`.
int waypost_baseline_typed(const char *path, const waypost_baseline_plan *plan, char *error, size_t size);

/// Inserts each row as one JSON text; `bytes` gets the length of all texts together.
int waypost_baseline_json(const char *path, const waypost_baseline_plan *plan, int64_t *bytes, char *error,
                          size_t size);

/// Encodes a file of 16-bit samples to AAC with libvo-aacenc and nothing else; bytes of all frames, or -1.
int64_t waypost_baseline_aac(const char *path, int rate, int bitrate);
