// A disk in memory that SQLite opens databases on, and that loses what was not synced when the power goes.
//
// One thread uses a disk and all that is opened on it. Functions that return int give 0 or an errno.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct waypost_disk waypost_disk;

/// Kinds of operation, to be or-ed.
enum {
    /// Reads and opening.
    WAYPOST_DISK_READS = 1,
    /// Writes, changes of size, names that come and go.
    WAYPOST_DISK_WRITES = 2,
    WAYPOST_DISK_SYNCS = 4,
    /// Those of the first kind that are of databases that were set aside.
    WAYPOST_DISK_OLDER_READS = 8,
};

typedef struct {
    int64_t bytes_written;
    int64_t syncs;
    int64_t operations;
} waypost_disk_counters;

/// What a power cut does to a write that was not synced, in parts of their sum.
typedef struct {
    uint32_t kept;
    uint32_t lost;
    /// Each sector of it is kept or lost.
    uint32_t torn;
} waypost_disk_harshness;

/// All disks at once: what SQLite draws for itself (the salts of a journal) is one stream in a process.
void waypost_disk_seed_sqlite(uint32_t seed);

/// For a program of one thread, before anything else of SQLite: without its locks and its count of memory, and
/// memory that was freed stays the program's.
void waypost_disk_use_one_thread(void);

waypost_disk *waypost_disk_new(uint64_t seed);
/// Its handles are dead from now on; the last of them to be closed takes the rest with it.
void waypost_disk_free(waypost_disk *disk);
/// A second disk with the same content, as far as that is synced and beyond; without handles and faults.
waypost_disk *waypost_disk_copy(const waypost_disk *disk, uint64_t seed);
/// The content becomes that of another disk, at power off: handles are dead.
void waypost_disk_restore(waypost_disk *disk, const waypost_disk *from);
/// Shows what is on another disk, without a copy, also to what is open: until `hide`, and for reading only.
void waypost_disk_show(waypost_disk *view, const waypost_disk *from);
/// Its files are empty.
void waypost_disk_hide(waypost_disk *view);
/// The name of the VFS.
const char *waypost_disk_name(const waypost_disk *disk);

/// The process dies: handles are dead, what was written stays written.
void waypost_disk_kill(waypost_disk *disk);
/// The power goes and comes back: handles are dead, and what was not synced is up to chance.
void waypost_disk_crash(waypost_disk *disk, uint64_t seed, waypost_disk_harshness harshness);
/// After that many more operations all fail and change nothing, until `crash`, `kill` or `restore`.
void waypost_disk_power_off_after(waypost_disk *disk, int64_t operations);
bool waypost_disk_is_off(const waypost_disk *disk);

/// Operations of these kinds fail: after so many that do not, so many times. False with too many faults at once.
bool waypost_disk_fail(waypost_disk *disk, unsigned kinds, int64_t after, int64_t times);
bool waypost_disk_has_faults(const waypost_disk *disk);
void waypost_disk_clear_faults(waypost_disk *disk);
void waypost_disk_set_capacity(waypost_disk *disk, int64_t bytes);
void waypost_disk_set_read_only(waypost_disk *disk, bool is_read_only);
/// A card that lies: a sync says that it is done, and nothing is.
void waypost_disk_set_drops_syncs(waypost_disk *disk, bool drops_syncs);
/// Wall clock of the SQL functions, in ms since 1970.
void waypost_disk_set_time(waypost_disk *disk, int64_t milliseconds);

int64_t waypost_disk_used(const waypost_disk *disk);
int64_t waypost_disk_unsynced(const waypost_disk *disk);
waypost_disk_counters waypost_disk_count(const waypost_disk *disk);
/// A line for each operation; NULL ends it.
void waypost_disk_trace(waypost_disk *disk, void (*trace)(void *context, const char *line), void *context);

/// Bytes, -1 where there is no such file. Not an operation: never fails.
int64_t waypost_disk_size(const waypost_disk *disk, const char *name);
/// Its bytes as they read, until the next change. Not an operation either.
const void *waypost_disk_bytes(const waypost_disk *disk, const char *name);
/// Of its bytes and their number; 0 where there is no such file.
uint64_t waypost_disk_fingerprint(const waypost_disk *disk, const char *name);
/// The n-th name in the order of their creation; NULL beyond the last.
const char *waypost_disk_file(const waypost_disk *disk, size_t index);

int waypost_disk_rename(waypost_disk *disk, const char *from, const char *to);
int waypost_disk_remove(waypost_disk *disk, const char *name);
/// Growing costs no room (a hole).
int waypost_disk_truncate(waypost_disk *disk, const char *name, int64_t bytes);
/// Makes the file if need be, and takes room for its first bytes.
int waypost_disk_allocate(waypost_disk *disk, const char *name, int64_t bytes);
int waypost_disk_read(
    waypost_disk *disk, const char *name, int64_t offset, void *bytes, int64_t room, int64_t *length);
/// Makes the file if need be.
int waypost_disk_write(waypost_disk *disk, const char *name, int64_t offset, const void *bytes, int64_t length);
int waypost_disk_sync(waypost_disk *disk, const char *name);

/// What decay does; durable at once, and so is all that was written to the file before. Never fails but with ENOENT.
int waypost_disk_damage(waypost_disk *disk, const char *name, int64_t offset, const void *bytes, int64_t length);
int waypost_disk_damage_size(waypost_disk *disk, const char *name, int64_t bytes);
int waypost_disk_damage_remove(waypost_disk *disk, const char *name);
