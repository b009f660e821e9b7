// An in-memory disk for SQLite databases that loses unsynced writes in a power cut.
//
// One thread uses a disk and everything opened on it. Functions that return int return 0 or an
// errno.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct waypost_disk waypost_disk;

/// Kinds of operation, as bit flags.
enum {
    /// Reads and opening.
    WAYPOST_DISK_READS = 1,
    /// Writes, size changes and name changes.
    WAYPOST_DISK_WRITES = 2,
    WAYPOST_DISK_SYNCS = 4,
    /// Reads and opening of quarantined databases.
    WAYPOST_DISK_OLDER_READS = 8,
};

typedef struct {
    int64_t bytes_written;
    int64_t syncs;
    int64_t operations;
} waypost_disk_counters;

/// The effect of a power cut on each unsynced write; the numbers are relative weights.
typedef struct {
    uint32_t kept;
    uint32_t lost;
    /// Each of its sectors is kept or lost.
    uint32_t torn;
} waypost_disk_harshness;

/// Seeds SQLite's own random numbers (the salts of a WAL), which are one sequence per process.
void waypost_disk_seed_sqlite(uint32_t seed);

/// Configures SQLite for a single-threaded program: without locks and memory statistics, and freed
/// memory stays in the process.
///
/// Call it before any other SQLite function.
void waypost_disk_use_one_thread(void);

waypost_disk *waypost_disk_new(uint64_t seed);
/// Frees a disk; its handles are dead, and the last one to be closed frees the rest.
void waypost_disk_free(waypost_disk *disk);
/// Returns a second disk with the same content, synced and unsynced, without handles and faults.
waypost_disk *waypost_disk_copy(const waypost_disk *disk, uint64_t seed);
/// Replaces the content by that of another disk while the power is off: handles are dead.
void waypost_disk_restore(waypost_disk *disk, const waypost_disk *from);
/// Shows another disk's content without a copy, also to open handles; read-only, until `hide`.
void waypost_disk_show(waypost_disk *view, const waypost_disk *from);
/// Empties the files of a view.
void waypost_disk_hide(waypost_disk *view);
/// Returns the name of the VFS.
const char *waypost_disk_name(const waypost_disk *disk);

/// Kills the process: handles are dead, written bytes stay written.
void waypost_disk_kill(waypost_disk *disk);
/// Cuts the power and restores it: handles are dead, and unsynced changes survive by chance.
void waypost_disk_crash(waypost_disk *disk, uint64_t seed, waypost_disk_harshness harshness);
/// Makes all operations after that many more fail and change nothing, until `crash`, `kill` or
/// `restore`.
void waypost_disk_power_off_after(waypost_disk *disk, int64_t operations);
bool waypost_disk_is_off(const waypost_disk *disk);

/// Makes operations of these kinds fail: `times` of them, after `after` successes. Returns false if
/// there are too many faults.
bool waypost_disk_fail(waypost_disk *disk, unsigned kinds, int64_t after, int64_t times);
bool waypost_disk_has_faults(const waypost_disk *disk);
void waypost_disk_clear_faults(waypost_disk *disk);
void waypost_disk_set_capacity(waypost_disk *disk, int64_t bytes);
void waypost_disk_set_read_only(waypost_disk *disk, bool is_read_only);
/// Simulates a card that acknowledges syncs without doing them.
void waypost_disk_set_drops_syncs(waypost_disk *disk, bool drops_syncs);
/// Sets the wall clock of the SQL functions, in ms since 1970.
void waypost_disk_set_time(waypost_disk *disk, int64_t milliseconds);

int64_t waypost_disk_used(const waypost_disk *disk);
int64_t waypost_disk_unsynced(const waypost_disk *disk);
waypost_disk_counters waypost_disk_count(const waypost_disk *disk);
/// Calls `trace` with a line for each operation; NULL ends it.
void waypost_disk_trace(waypost_disk *disk, void (*trace)(void *context, const char *line), void *context);

/// Returns the size in bytes, -1 if the file does not exist. Not an operation: never fails.
int64_t waypost_disk_size(const waypost_disk *disk, const char *name);
/// Returns the bytes as they read, valid until the next change. Not an operation either.
const void *waypost_disk_bytes(const waypost_disk *disk, const char *name);
/// Returns a hash of the bytes and their number; 0 if the file does not exist.
uint64_t waypost_disk_fingerprint(const waypost_disk *disk, const char *name);
/// Returns the n-th name in order of creation; NULL beyond the last.
const char *waypost_disk_file(const waypost_disk *disk, size_t index);

int waypost_disk_rename(waypost_disk *disk, const char *from, const char *to);
int waypost_disk_remove(waypost_disk *disk, const char *name);
/// Truncates or extends a file; extending takes no space (a hole).
int waypost_disk_truncate(waypost_disk *disk, const char *name, int64_t bytes);
/// Creates the file if needed, and reserves space for its first bytes.
int waypost_disk_allocate(waypost_disk *disk, const char *name, int64_t bytes);
int waypost_disk_read(
    waypost_disk *disk, const char *name, int64_t offset, void *bytes, int64_t room, int64_t *length);
/// Creates the file if needed.
int waypost_disk_write(waypost_disk *disk, const char *name, int64_t offset, const void *bytes, int64_t length);
int waypost_disk_sync(waypost_disk *disk, const char *name);

/// Simulates decay; durable at once, with all earlier writes of the file. Fails only with ENOENT.
int waypost_disk_damage(waypost_disk *disk, const char *name, int64_t offset, const void *bytes, int64_t length);
int waypost_disk_damage_size(waypost_disk *disk, const char *name, int64_t bytes);
int waypost_disk_damage_remove(waypost_disk *disk, const char *name);
