// Inserts the same rows into SQLite from C: same pragmas, same commit intervals, one prepared
// statement.
#include "waypost_baseline.h"

#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

/// As Store's Schema.open has them.
static const char *pragmas =
    "PRAGMA page_size=1024; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "PRAGMA secure_delete=FAST; PRAGMA journal_size_limit=4194304; PRAGMA cache_size=-512;"
    "PRAGMA wal_autocheckpoint=4000;";

static const char *typed_tables =
    "CREATE TABLE beacons(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, beacon_id TEXT NOT NULL,"
    " address INTEGER NOT NULL, address_type INTEGER NOT NULL, tx_power INTEGER, last_sighting INTEGER);"
    "CREATE TABLE sightings(id INTEGER PRIMARY KEY, beacon INTEGER NOT NULL, rssi INTEGER,"
    " boot INTEGER NOT NULL, boottime INTEGER NOT NULL, wall INTEGER NOT NULL, payload BLOB);";

static const char *json_tables = "CREATE TABLE sightings(id INTEGER PRIMARY KEY, record TEXT NOT NULL);";

typedef struct {
    sqlite3 *database;
    sqlite3_stmt *insert;
    const waypost_baseline_plan *plan;
    int64_t bytes;
} baseline;

typedef int (*insert_row)(baseline *, const waypost_baseline_row *, int64_t index);

static int64_t nanoseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_until(int64_t nanoseconds) {
    struct timespec due = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &due, 0) != 0) {}
}

static int run(baseline *self, insert_row insert) {
    const waypost_baseline_plan *plan = self->plan;
    int code = sqlite3_exec(self->database, "BEGIN IMMEDIATE", 0, 0, 0);
    int64_t start = nanoseconds_now(), begun = start, since_commit = 0;
    for (int64_t index = 0; index < plan->rows && code == SQLITE_OK; index++) {
        if (plan->warm_up > 0 && index == plan->warm_up) plan->warmed_up(plan->context);
        if (plan->is_live) wait_until(start + index * plan->interval * 1000000);
        code = insert(self, &plan->cycle[(size_t)index % plan->cycle_count], index);
        since_commit++;
        int is_due = plan->rows_per_commit > 0 ? since_commit == plan->rows_per_commit
                                               : (plan->is_live || since_commit % 256 == 0) &&
                                                     nanoseconds_now() - begun >= 1000000000;
        if (!is_due || code != SQLITE_OK) continue;
        code = sqlite3_exec(self->database, "COMMIT; BEGIN IMMEDIATE", 0, 0, 0);
        begun = nanoseconds_now();
        since_commit = 0;
    }
    return code == SQLITE_OK ? sqlite3_exec(self->database, "COMMIT", 0, 0, 0) : code;
}

static int insert_beacons(baseline *self) {
    sqlite3_stmt *insert = 0;
    int code = sqlite3_prepare_v2(self->database, "INSERT INTO beacons VALUES (?,?,?,?,?,?,NULL)", -1, &insert, 0);
    for (size_t index = 0; index < self->plan->beacon_count && code == SQLITE_OK; index++) {
        const waypost_baseline_beacon *beacon = &self->plan->beacons[index];
        sqlite3_clear_bindings(insert);
        sqlite3_bind_int64(insert, 1, (int64_t)index + 1);
        sqlite3_bind_int64(insert, 2, beacon->kind);
        sqlite3_bind_text(insert, 3, beacon->id, -1, SQLITE_STATIC);
        sqlite3_bind_int64(insert, 4, beacon->address);
        sqlite3_bind_int64(insert, 5, beacon->address_type);
        if (beacon->tx_power != INT64_MIN) sqlite3_bind_int64(insert, 6, beacon->tx_power);
        sqlite3_step(insert);
        code = sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    return code;
}

static int insert_typed(baseline *self, const waypost_baseline_row *row, int64_t index) {
    sqlite3_stmt *insert = self->insert;
    sqlite3_bind_int64(insert, 1, index + 1);
    sqlite3_bind_int64(insert, 2, (int64_t)row->beacon + 1);
    sqlite3_bind_int64(insert, 3, row->rssi);
    sqlite3_bind_int64(insert, 4, 1);
    sqlite3_bind_int64(insert, 5, self->plan->boottime + index * self->plan->interval);
    sqlite3_bind_int64(insert, 6, self->plan->wall + index * self->plan->interval);
    if (row->payload) {
        sqlite3_bind_blob(insert, 7, row->payload, row->payload_bytes, SQLITE_STATIC);
    } else {
        sqlite3_bind_null(insert, 7);
    }
    sqlite3_step(insert);
    return sqlite3_reset(insert);
}

static int insert_json(baseline *self, const waypost_baseline_row *row, int64_t index) {
    char text[1024];
    int64_t wall = self->plan->wall + index * self->plan->interval;
    time_t second = (time_t)(wall / 1000);
    struct tm date;
    gmtime_r(&second, &date);
    int length = snprintf(
        text, sizeof text, "{\"timestamp\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\",%s,\"rssi\":%d}",
        date.tm_year + 1900, date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec,
        (int)(wall % 1000), row->json, (int)row->rssi);
    if (length < 0 || length >= (int)sizeof text) return SQLITE_TOOBIG;
    self->bytes += length;
    sqlite3_bind_int64(self->insert, 1, index + 1);
    sqlite3_bind_text(self->insert, 2, text, length, SQLITE_STATIC);
    sqlite3_step(self->insert);
    return sqlite3_reset(self->insert);
}

static int work(baseline *self, const char *path, int is_json) {
    int code = sqlite3_open_v2(path, &self->database,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, 0);
    if (code == SQLITE_OK) code = sqlite3_exec(self->database, pragmas, 0, 0, 0);
    if (code == SQLITE_OK) code = sqlite3_exec(self->database, "BEGIN IMMEDIATE", 0, 0, 0);
    if (code == SQLITE_OK) code = sqlite3_exec(self->database, is_json ? json_tables : typed_tables, 0, 0, 0);
    if (code == SQLITE_OK && !is_json) code = insert_beacons(self);
    if (code == SQLITE_OK) code = sqlite3_exec(self->database, "COMMIT", 0, 0, 0);
    if (code == SQLITE_OK) {
        const char *sql =
            is_json ? "INSERT INTO sightings VALUES (?,?)" : "INSERT INTO sightings VALUES (?,?,?,?,?,?,?)";
        code = sqlite3_prepare_v3(self->database, sql, -1, SQLITE_PREPARE_PERSISTENT, &self->insert, 0);
    }
    return code == SQLITE_OK ? run(self, is_json ? insert_json : insert_typed) : code;
}

static int finish(baseline *self, int code, char *error, size_t size) {
    if (code != SQLITE_OK) snprintf(error, size, "%s (%d)", sqlite3_errmsg(self->database), code);
    sqlite3_finalize(self->insert);
    sqlite3_close_v2(self->database);
    return code;
}

int waypost_baseline_typed(const char *path, const waypost_baseline_plan *plan, char *error, size_t size) {
    baseline self = {.plan = plan};
    return finish(&self, work(&self, path, 0), error, size);
}

int waypost_baseline_json(const char *path, const waypost_baseline_plan *plan, int64_t *bytes, char *error,
                          size_t size) {
    baseline self = {.plan = plan};
    int code = work(&self, path, 1);
    *bytes = self.bytes;
    return finish(&self, code, error, size);
}
