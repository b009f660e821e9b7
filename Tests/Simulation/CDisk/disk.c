#include "disk.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MARK: Creation and destruction

static _Atomic unsigned disks_made;

void waypost_disk_seed_sqlite(uint32_t seed) {
    // With a seed of 0 SQLite would seed itself from the system.
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)(seed | 1), NULL);
}

void waypost_disk_use_one_thread(void) {
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    // Files of some hundred kilobytes are created and deleted all the time.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 16 << 20);
}

waypost_disk *waypost_disk_new(uint64_t seed) {
    waypost_disk *disk = disk_allocate(NULL, sizeof(waypost_disk));
    memset(disk, 0, sizeof(waypost_disk));
    snprintf(disk->name, sizeof(disk->name), "simulated-%u", atomic_fetch_add(&disks_made, 1));
    disk->chance.state = seed;
    disk->capacity = INT64_MAX;
    disk->power_left = -1;
    disk->owners = 1;
    disk_prepare_vfs(disk);
    sqlite3_vfs_register(&disk->vfs, 0);
    return disk;
}

void disk_disown(waypost_disk *disk) {
    if (--disk->owners == 0) free(disk);
}

void waypost_disk_free(waypost_disk *disk) {
    waypost_disk_kill(disk);
    disk->is_off = true;
    sqlite3_vfs_unregister(&disk->vfs);
    tree_clear(&disk->tree);
    disk_disown(disk);
}

waypost_disk *waypost_disk_copy(const waypost_disk *disk, uint64_t seed) {
    waypost_disk *copy = waypost_disk_new(seed);
    tree_copy(&copy->tree, &disk->tree);
    copy->capacity = disk->capacity;
    copy->milliseconds = disk->milliseconds;
    return copy;
}

void waypost_disk_restore(waypost_disk *disk, const waypost_disk *from) {
    waypost_disk_kill(disk);
    tree_clear(&disk->tree);
    tree_copy(&disk->tree, &from->tree);
}

/// Redirects open handles to the files that have their names now; a WAL index has to be rebuilt.
static void point(waypost_disk *view, handle *handle) {
    content *was = handle->file;
    content *file = handle->name != NULL ? tree_find(&view->tree, handle->name) : NULL;
    if (file == NULL) file = tree_make_nameless(&view->tree);
    handle->file = file;
    tree_retain(file);
    file->handles++;
    if (handle->shared != NULL) {
        file->shared = handle->shared;
        for (int index = 0; index < handle->shared->region_count; index++)
            memset(handle->shared->regions[index], 0, shared_region_bytes);
    }
    was->handles--;
    was->shared = NULL;
}

static void show(waypost_disk *view, const tree *from) {
    tree was = view->tree;
    view->tree = (tree){0};
    if (from != NULL) tree_borrow(&view->tree, from);
    for (handle *handle = view->handles; handle != NULL; handle = handle->next) {
        content *file = handle->file;
        point(view, handle);
        tree_release(&was, file);
    }
    tree_clear(&was);
    view->is_view = true;
}

void waypost_disk_show(waypost_disk *view, const waypost_disk *from) { show(view, &from->tree); }

void waypost_disk_hide(waypost_disk *view) { show(view, NULL); }

const char *waypost_disk_name(const waypost_disk *disk) { return disk->name; }

void waypost_disk_kill(waypost_disk *disk) {
    handle *next = NULL;
    for (handle *handle = disk->handles; handle != NULL; handle = next) {
        next = handle->next;
        content *file = handle->file;
        handle->file = NULL;
        handle->next = NULL;
        // SQLite still holds the memory, but no new handle can find it.
        file->shared = NULL;
        file->handles--;
        tree_release(&disk->tree, file);
    }
    disk->handles = NULL;
    disk->is_off = false;
    disk->power_left = -1;
}

void waypost_disk_crash(waypost_disk *disk, uint64_t seed, waypost_disk_harshness harshness) {
    waypost_disk_kill(disk);
    chance chance = {.state = seed};
    tree_crash(&disk->tree, &chance, harshness);
}

// MARK: Settings

void waypost_disk_power_off_after(waypost_disk *disk, int64_t operations) { disk->power_left = operations; }

bool waypost_disk_is_off(const waypost_disk *disk) { return disk->is_off; }

bool waypost_disk_fail(waypost_disk *disk, unsigned kinds, int64_t after, int64_t times) {
    for (size_t index = 0; index < most_faults; index++) {
        if (disk->faults[index].times > 0) continue;
        disk->faults[index] = (fault){.kinds = kinds, .after = after, .times = times};
        disk->has_faults = true;
        return true;
    }
    return false;
}

bool waypost_disk_has_faults(const waypost_disk *disk) { return disk->has_faults; }

void waypost_disk_clear_faults(waypost_disk *disk) {
    memset(disk->faults, 0, sizeof(disk->faults));
    disk->has_faults = false;
}

void waypost_disk_set_capacity(waypost_disk *disk, int64_t bytes) { disk->capacity = bytes; }

void waypost_disk_set_read_only(waypost_disk *disk, bool is_read_only) { disk->is_read_only = is_read_only; }

void waypost_disk_set_drops_syncs(waypost_disk *disk, bool drops_syncs) { disk->drops_syncs = drops_syncs; }

void waypost_disk_set_time(waypost_disk *disk, int64_t milliseconds) { disk->milliseconds = milliseconds; }

void waypost_disk_trace(waypost_disk *disk, void (*trace)(void *, const char *), void *context) {
    disk->trace = trace;
    disk->context = context;
}

// MARK: Counters

int64_t waypost_disk_used(const waypost_disk *disk) { return tree_used(&disk->tree) * sector_bytes; }

int64_t waypost_disk_unsynced(const waypost_disk *disk) {
    int64_t bytes = 0;
    for (const content *file = disk->tree.files; file != NULL; file = file->next) bytes += content_unsynced(file);
    return bytes;
}

waypost_disk_counters waypost_disk_count(const waypost_disk *disk) { return disk->counters; }

// MARK: Operations

static bool has_fault(waypost_disk *disk, unsigned kind) {
    if (!disk->has_faults) return false;
    bool fails = false;
    for (fault *fault = disk->faults; fault < disk->faults + most_faults; fault++) {
        if (fault->times == 0 || (fault->kinds & kind) == 0) continue;
        if (fault->after > 0) {
            fault->after--;
        } else {
            fault->times--;
            fails = true;
        }
    }
    return fails;
}

bool disk_begin(waypost_disk *disk, unsigned kind) {
    disk->counters.operations++;
    if (disk->power_left == 0) disk->is_off = true;
    if (disk->power_left > 0) disk->power_left--;
    return !disk->is_off && !has_fault(disk, kind);
}

bool disk_begin_read(waypost_disk *disk, const char *name) {
    bool is_older = name != NULL && strstr(name, ".corrupt-") != NULL;
    return disk_begin(disk, WAYPOST_DISK_READS | (is_older ? WAYPOST_DISK_OLDER_READS : 0));
}

int disk_end(waypost_disk *disk, const char *verb, const char *name, int64_t offset, int64_t length, int code) {
    if (disk->trace == NULL) return code;
    char line[640];
    snprintf(
        line, sizeof(line), "%s %s %lld %lld = %d", verb, name != NULL ? name : "(temporary)", (long long)offset,
        (long long)length, code);
    disk->trace(disk->context, line);
    return code;
}

/// Returns how much of a write fits, in whole sectors.
static int64_t fitting(const waypost_disk *disk, const content *file, int64_t offset, int64_t length) {
    if (disk->capacity == INT64_MAX) return length;
    int64_t missing = content_missing(file, offset, length);
    int64_t free = (disk->capacity - waypost_disk_used(disk)) / sector_bytes;
    if (missing == 0 || missing <= free) return length;
    int64_t end = offset;
    while (end < offset + length) {
        int64_t next = (end / sector_bytes + 1) * sector_bytes;
        if (content_missing(file, end, 1) > 0 && --free < 0) break;
        end = next < offset + length ? next : offset + length;
    }
    return end - offset;
}

/// A failed write may have written its first part.
static int64_t some_of(waypost_disk *disk, int64_t length) {
    return (int64_t)chance_below(&disk->chance, (uint64_t)(length / sector_bytes + 1)) * sector_bytes;
}

int disk_write(waypost_disk *disk, content *file, int64_t offset, const void *bytes, int64_t length) {
    bool goes = disk_begin(disk, WAYPOST_DISK_WRITES);
    if (disk->is_off) return EIO;
    if (disk->is_read_only || disk->is_view) return EROFS;
    int64_t fits = fitting(disk, file, offset, length);
    if (!goes) {
        int64_t some = some_of(disk, length);
        content_write(file, offset, bytes, some < fits ? some : fits);
        return EIO;
    }
    content_write(file, offset, bytes, fits);
    disk->counters.bytes_written += fits;
    return fits < length ? ENOSPC : 0;
}

/// Like the kernel, tries once: data that did not reach the card is dropped, and the next sync
/// succeeds.
static void sync_badly(waypost_disk *disk, content *file) {
    if (chance_next(&disk->chance) & 1) return;
    content_settle(file, &disk->chance, (waypost_disk_harshness){.kept = 1, .lost = 1, .torn = 1});
}

int disk_sync(waypost_disk *disk, content *file) {
    bool goes = disk_begin(disk, WAYPOST_DISK_SYNCS);
    if (disk->is_off) return EIO;
    if (disk->is_read_only) return EROFS;
    disk->counters.syncs++;
    if (!goes) {
        sync_badly(disk, file);
        return EIO;
    }
    if (disk->drops_syncs) return 0;
    content_sync(file);
    tree_sync(&disk->tree);
    return 0;
}

int disk_change(waypost_disk *disk) {
    bool goes = disk_begin(disk, WAYPOST_DISK_WRITES);
    if (disk->is_off) return EIO;
    if (disk->is_read_only || disk->is_view) return EROFS;
    return goes ? 0 : EIO;
}

int disk_resize(waypost_disk *disk, content *file, int64_t bytes) {
    int code = disk_change(disk);
    if (code == 0) content_resize(file, bytes);
    return code;
}

int disk_remove(waypost_disk *disk, const char *name) {
    int code = disk_change(disk);
    if (code != 0) return code;
    return tree_remove(&disk->tree, name) ? 0 : ENOENT;
}
