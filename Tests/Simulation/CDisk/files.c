// Plain file operations outside SQLite, and damage.
#include <errno.h>
#include <string.h>

#include "disk.h"

int64_t waypost_disk_size(const waypost_disk *disk, const char *name) {
    const content *file = tree_find(&disk->tree, name);
    return file != NULL ? file->now.size : -1;
}

const void *waypost_disk_bytes(const waypost_disk *disk, const char *name) {
    const content *file = tree_find(&disk->tree, name);
    return file != NULL ? file->now.bytes : NULL;
}

uint64_t waypost_disk_fingerprint(const waypost_disk *disk, const char *name) {
    const content *file = tree_find(&disk->tree, name);
    if (file == NULL) return 0;
    // FNV-1a, eight bytes at a time; bytes beyond the size are zeros.
    uint64_t print = 0xCBF29CE484222325 ^ (uint64_t)file->now.size;
    for (int64_t offset = 0; offset < file->now.size; offset += 8) {
        uint64_t word;
        memcpy(&word, file->now.bytes + offset, sizeof(word));
        print = (print ^ word) * 0x100000001B3;
        print ^= print >> 29;
    }
    return print;
}

const char *waypost_disk_file(const waypost_disk *disk, size_t index) {
    return index < disk->tree.now.count ? disk->tree.now.entries[index].name : NULL;
}

int waypost_disk_rename(waypost_disk *disk, const char *from, const char *to) {
    int code = disk_change(disk);
    if (code == 0 && !tree_rename(&disk->tree, from, to)) code = ENOENT;
    return disk_end(disk, "rename", from, 0, 0, code);
}

int waypost_disk_remove(waypost_disk *disk, const char *name) {
    return disk_end(disk, "remove", name, 0, 0, disk_remove(disk, name));
}

int waypost_disk_truncate(waypost_disk *disk, const char *name, int64_t bytes) {
    content *file = tree_find(&disk->tree, name);
    int code = file != NULL ? disk_resize(disk, file, bytes) : ENOENT;
    return disk_end(disk, "truncate", name, bytes, 0, code);
}

static int allocate(waypost_disk *disk, const char *name, int64_t bytes) {
    int code = disk_change(disk);
    if (code != 0) return code;
    content *file = tree_find(&disk->tree, name);
    if (file == NULL) file = tree_make(&disk->tree, name);
    int64_t missing = content_missing(file, 0, bytes) * sector_bytes;
    if (missing > disk->capacity - waypost_disk_used(disk)) return ENOSPC;
    content_hold(file, 0, bytes);
    if (bytes > file->now.size) content_resize(file, bytes);
    return 0;
}

int waypost_disk_allocate(waypost_disk *disk, const char *name, int64_t bytes) {
    return disk_end(disk, "allocate", name, bytes, 0, allocate(disk, name, bytes));
}

int waypost_disk_read(
    waypost_disk *disk, const char *name, int64_t offset, void *bytes, int64_t room, int64_t *length) {
    const content *file = tree_find(&disk->tree, name);
    int64_t left = file != NULL && file->now.size > offset ? file->now.size - offset : 0;
    int code = !disk_begin_read(disk, name) ? EIO : file == NULL ? ENOENT : 0;
    *length = code != 0 ? 0 : left < room ? left : room;
    if (*length > 0) memcpy(bytes, file->now.bytes + offset, (size_t)*length);
    return disk_end(disk, "read", name, offset, room, code);
}

int waypost_disk_write(waypost_disk *disk, const char *name, int64_t offset, const void *bytes, int64_t length) {
    content *file = tree_find(&disk->tree, name);
    int code = 0;
    if (file == NULL) {
        code = disk_change(disk);
        if (code == 0) file = tree_make(&disk->tree, name);
    }
    if (code == 0) code = disk_write(disk, file, offset, bytes, length);
    return disk_end(disk, "write", name, offset, length, code);
}

int waypost_disk_sync(waypost_disk *disk, const char *name) {
    content *file = tree_find(&disk->tree, name);
    int code = file != NULL ? disk_sync(disk, file) : ENOENT;
    return disk_end(disk, "sync", name, 0, 0, code);
}

// MARK: Damage

/// Returns a file after making all its writes durable.
static content *settled(waypost_disk *disk, const char *name) {
    content *file = tree_find(&disk->tree, name);
    if (file == NULL) return NULL;
    content_sync(file);
    tree_sync(&disk->tree);
    return file;
}

int waypost_disk_damage(waypost_disk *disk, const char *name, int64_t offset, const void *bytes, int64_t length) {
    content *file = settled(disk, name);
    if (file == NULL) return ENOENT;
    content_write(file, offset, bytes, length);
    content_sync(file);
    return 0;
}

int waypost_disk_damage_size(waypost_disk *disk, const char *name, int64_t bytes) {
    content *file = settled(disk, name);
    if (file == NULL) return ENOENT;
    content_resize(file, bytes);
    content_sync(file);
    return 0;
}

int waypost_disk_damage_remove(waypost_disk *disk, const char *name) {
    if (settled(disk, name) == NULL) return ENOENT;
    tree_remove(&disk->tree, name);
    tree_sync(&disk->tree);
    return 0;
}
