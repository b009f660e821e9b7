// A disk and SQLite's handles on it.
#pragma once
#include <sqlite3.h>

#include "tree.h"

enum { most_faults = 64, shared_region_bytes = 32768 };

typedef struct {
    unsigned kinds;
    int64_t after;
    int64_t times;
} fault;

/// The WAL index (-shm) that the connections to one file share; it never reaches the card.
typedef struct shared_memory {
    int references;
    int region_count;
    void **regions;
} shared_memory;

/// SQLite's view of an open file.
typedef struct handle {
    sqlite3_file base;
    waypost_disk *disk;
    /// NULL if dead: the process that opened it has ended.
    content *file;
    char *name;
    int lock;
    bool is_read_only;
    bool is_temporary;
    shared_memory *shared;
    unsigned shared_slots;
    unsigned exclusive_slots;
    struct handle *next;
} handle;

struct waypost_disk {
    sqlite3_vfs vfs;
    char name[40];
    tree tree;
    /// The live handles.
    handle *handles;
    chance chance;
    fault faults[most_faults];
    /// Faults were set; most disks have none, and this is checked at each operation.
    bool has_faults;
    int64_t capacity;
    int64_t milliseconds;
    /// Operations until the power is cut; negative for never.
    int64_t power_left;
    bool is_off;
    bool is_read_only;
    bool drops_syncs;
    /// Its files belong to another disk and must not be written.
    bool is_view;
    waypost_disk_counters counters;
    void (*trace)(void *context, const char *line);
    void *context;
    /// The number of owners: the creator and each handle, dead or not.
    int owners;
};

/// Counts an operation; returns false if it has to fail.
bool disk_begin(waypost_disk *disk, unsigned kind);

/// Does the same for reading or opening a file.
bool disk_begin_read(waypost_disk *disk, const char *name);
/// Traces the result of an operation and returns the code.
int disk_end(waypost_disk *disk, const char *verb, const char *name, int64_t offset, int64_t length, int code);
void disk_disown(waypost_disk *disk);

// These count an operation and return 0 or an errno.

/// Returns whether names or sizes may change.
int disk_change(waypost_disk *disk);
int disk_write(waypost_disk *disk, content *file, int64_t offset, const void *bytes, int64_t length);
int disk_sync(waypost_disk *disk, content *file);
int disk_resize(waypost_disk *disk, content *file, int64_t bytes);
int disk_remove(waypost_disk *disk, const char *name);

extern const sqlite3_io_methods file_methods;
void disk_prepare_vfs(waypost_disk *disk);

// MARK: Locks of a handle (locks.c)

int handle_lock(sqlite3_file *file, int level);
int handle_unlock(sqlite3_file *file, int level);
int handle_check_reserved(sqlite3_file *file, int *is_reserved);
int handle_map(sqlite3_file *file, int region, int bytes, int extends, void volatile **memory);
int handle_lock_shared(sqlite3_file *file, int offset, int count, int flags);
void handle_barrier(sqlite3_file *file);
int handle_unmap(sqlite3_file *file, int deletes);
