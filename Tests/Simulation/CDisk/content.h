// The content of one file: as it reads, as it is on the card, and the changes between the two.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "waypost_disk.h"

/// The unit of atomic writes.
enum { sector_bytes = 512 };

typedef struct {
    uint64_t state;
} chance;

uint64_t chance_next(chance *chance);
/// Returns a number from 0 up to, not including, the bound.
uint64_t chance_below(chance *chance, uint64_t bound);

/// Bytes from the size up to the room are always zero.
typedef struct {
    uint8_t *bytes;
    int64_t size;
    int64_t room;
} buffer;

/// An unsynced write or size change.
typedef struct {
    bool is_resize;
    int64_t offset;
    /// The length of a write in bytes.
    int64_t length;
    /// The data, then a byte per sector: whether it survives.
    uint8_t data[];
} change;

/// A file independent of its names: an inode.
typedef struct content {
    buffer now;
    buffer durable;
    change **changes;
    int64_t change_count;
    int64_t change_room;
    /// The bytes belong to another disk and are read-only.
    bool is_borrowed;
    /// The durable bytes differ from the read ones beyond the changes: a sync failed.
    bool is_uncertain;
    /// A byte per sector: whether it takes space or is a hole.
    uint8_t *held;
    int64_t held_room;
    int64_t held_count;
    struct shared_memory *shared;
    /// References that keep it: names (now, durable, or in a pending name change) and handles.
    int references;
    int links;
    int handles;
    struct content *next;
    struct content *twin;
} content;

void *disk_allocate(void *old, size_t bytes);

void content_write(content *file, int64_t offset, const void *bytes, int64_t length);
void content_resize(content *file, int64_t size);
/// Makes all changes durable.
void content_sync(content *file);
/// Makes random changes durable; the others are dropped from the card, but reads still see them.
void content_settle(content *file, chance *chance, waypost_disk_harshness harshness);
/// Reverts to the durable content.
void content_forget(content *file);
int64_t content_unsynced(const content *file);

/// Returns the number of sectors of a range that take no space yet.
int64_t content_missing(const content *file, int64_t offset, int64_t length);
void content_hold(content *file, int64_t offset, int64_t length);

content *content_copy(const content *file);
void content_free(content *file);
