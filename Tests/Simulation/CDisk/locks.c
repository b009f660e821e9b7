// Locks between handles, and the shared WAL index: like the unix VFS, within one thread.
//
// A conflict returns SQLITE_BUSY at once; nothing blocks.
#include <stdlib.h>
#include <string.h>

#include "disk.h"

// MARK: Locks on the file

/// Returns the highest lock that another handle has on the same file.
static int highest_other(const handle *self) {
    int highest = SQLITE_LOCK_NONE;
    for (const handle *other = self->disk->handles; other != NULL; other = other->next)
        if (other != self && other->file == self->file && other->lock > highest) highest = other->lock;
    return highest;
}

int handle_lock(sqlite3_file *file, int level) {
    handle *self = (handle *)file;
    if (self->file == NULL || self->disk->is_off) return SQLITE_IOERR;
    if (self->lock >= level) return SQLITE_OK;
    int other = highest_other(self);
    if (level == SQLITE_LOCK_SHARED && other >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
    if (level > SQLITE_LOCK_SHARED && other >= SQLITE_LOCK_RESERVED) return SQLITE_BUSY;
    if (level == SQLITE_LOCK_EXCLUSIVE && other >= SQLITE_LOCK_SHARED) {
        // New readers are refused, so that the current ones can finish.
        self->lock = SQLITE_LOCK_PENDING;
        return SQLITE_BUSY;
    }
    self->lock = level;
    return SQLITE_OK;
}

int handle_unlock(sqlite3_file *file, int level) {
    handle *self = (handle *)file;
    if (self->lock > level) self->lock = level;
    return self->file != NULL ? SQLITE_OK : SQLITE_IOERR;
}

int handle_check_reserved(sqlite3_file *file, int *is_reserved) {
    const handle *self = (const handle *)file;
    *is_reserved = 0;
    if (self->file == NULL || self->disk->is_off) return SQLITE_IOERR;
    *is_reserved = self->lock >= SQLITE_LOCK_RESERVED || highest_other(self) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

// MARK: Shared memory

static int join(handle *self) {
    if (self->shared != NULL) return SQLITE_OK;
    if (self->file->shared == NULL) {
        // -shm would have to be created.
        if (self->disk->is_read_only) return SQLITE_CANTOPEN;
        self->file->shared = disk_allocate(NULL, sizeof(shared_memory));
        memset(self->file->shared, 0, sizeof(shared_memory));
    }
    self->shared = self->file->shared;
    self->shared->references++;
    return SQLITE_OK;
}

static void extend(shared_memory *shared, int regions) {
    shared->regions = disk_allocate(shared->regions, (size_t)regions * sizeof(void *));
    while (shared->region_count < regions) {
        void *region = disk_allocate(NULL, shared_region_bytes);
        shared->regions[shared->region_count++] = memset(region, 0, shared_region_bytes);
    }
}

int handle_map(sqlite3_file *file, int region, int bytes, int extends, void volatile **memory) {
    handle *self = (handle *)file;
    *memory = NULL;
    if (self->file == NULL || self->disk->is_off || bytes > shared_region_bytes) return SQLITE_IOERR;
    int code = join(self);
    if (code != SQLITE_OK) return code;
    if (region >= self->shared->region_count) {
        if (!extends) return SQLITE_OK;
        extend(self->shared, region + 1);
    }
    *memory = self->shared->regions[region];
    return SQLITE_OK;
}

int handle_lock_shared(sqlite3_file *file, int offset, int count, int flags) {
    handle *self = (handle *)file;
    if (self->file == NULL || self->disk->is_off || self->shared == NULL) return SQLITE_IOERR;
    unsigned slots = ((1u << count) - 1) << offset;
    if (flags & SQLITE_SHM_UNLOCK) {
        self->shared_slots &= ~slots;
        self->exclusive_slots &= ~slots;
        return SQLITE_OK;
    }
    bool is_exclusive = flags & SQLITE_SHM_EXCLUSIVE;
    for (const handle *other = self->disk->handles; other != NULL; other = other->next) {
        if (other == self || other->shared != self->shared) continue;
        unsigned taken = other->exclusive_slots | (is_exclusive ? other->shared_slots : 0);
        if (taken & slots) return SQLITE_BUSY;
    }
    *(is_exclusive ? &self->exclusive_slots : &self->shared_slots) |= slots;
    return SQLITE_OK;
}

void handle_barrier(sqlite3_file *file) { (void)file; }

int handle_unmap(sqlite3_file *file, int deletes) {
    (void)deletes;
    handle *self = (handle *)file;
    shared_memory *shared = self->shared;
    if (shared == NULL) return SQLITE_OK;
    self->shared = NULL;
    self->shared_slots = self->exclusive_slots = 0;
    if (--shared->references > 0) return SQLITE_OK;
    if (self->file != NULL) self->file->shared = NULL;
    for (int index = 0; index < shared->region_count; index++) free(shared->regions[index]);
    free(shared->regions);
    free(shared);
    return SQLITE_OK;
}
