// A disk and the handles that SQLite has on it.
#pragma once
#include <sqlite3.h>

#include "tree.h"

enum { most_faults = 64, shared_region_bytes = 32768 };

typedef struct {
    unsigned kinds;
    int64_t after;
    int64_t times;
} fault;

/// The index of a journal, which the connections to one file share: -shm, which never touches the card.
typedef struct shared_memory {
    int references;
    int region_count;
    void **regions;
} shared_memory;

/// What SQLite holds of an open file.
typedef struct handle {
    sqlite3_file base;
    waypost_disk *disk;
    /// NULL: dead, since the process that opened it ended.
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
    /// The living ones.
    handle *handles;
    chance chance;
    fault faults[most_faults];
    /// Some were set: most disks have none, and are asked at each operation.
    bool has_faults;
    int64_t capacity;
    int64_t milliseconds;
    /// Operations until the power goes; negative: it stays.
    int64_t power_left;
    bool is_off;
    bool is_read_only;
    bool drops_syncs;
    /// Its files are another disk's, and must not be written.
    bool is_view;
    waypost_disk_counters counters;
    void (*trace)(void *context, const char *line);
    void *context;
    /// Its maker and each handle, dead or not.
    int owners;
};

/// Counts an operation; false when it has to fail.
bool disk_begin(waypost_disk *disk, unsigned kind);

/// The same for a read of a file, or for opening it.
bool disk_begin_read(waypost_disk *disk, const char *name);
/// Notes how it went, and gives the code back.
int disk_end(waypost_disk *disk, const char *verb, const char *name, int64_t offset, int64_t length, int code);
void disk_disown(waypost_disk *disk);

// These count an operation, and give 0 or an errno.

/// May names or sizes change?
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
