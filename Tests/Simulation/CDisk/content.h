// What is in one file: as it reads, as it is on the card, and the changes between the two.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "waypost_disk.h"

/// What is written as a whole.
enum { sector_bytes = 512 };

typedef struct {
    uint64_t state;
} chance;

uint64_t chance_next(chance *chance);
/// 0 up to below the bound.
uint64_t chance_below(chance *chance, uint64_t bound);

/// Bytes beyond the size, up to the room, are always zero.
typedef struct {
    uint8_t *bytes;
    int64_t size;
    int64_t room;
} buffer;

/// A write or a change of size that is not synced.
typedef struct {
    bool is_resize;
    int64_t offset;
    /// Of a write, in bytes.
    int64_t length;
    /// The data, and a byte for each sector: whether it arrives.
    uint8_t data[];
} change;

/// A file whatever its names are: an inode.
typedef struct content {
    buffer now;
    buffer durable;
    change **changes;
    int64_t change_count;
    int64_t change_room;
    /// The bytes are another disk's, and only looked at.
    bool is_borrowed;
    /// The durable bytes differ from what is read, beyond the changes: a sync failed.
    bool is_uncertain;
    /// A byte for each sector: whether it takes up room (or is a hole).
    uint8_t *held;
    int64_t held_room;
    int64_t held_count;
    struct shared_memory *shared;
    /// Names (now, durable, or in a change of names to come) and handles that keep it.
    int references;
    int links;
    int handles;
    struct content *next;
    struct content *twin;
} content;

void *disk_allocate(void *old, size_t bytes);

void content_write(content *file, int64_t offset, const void *bytes, int64_t length);
void content_resize(content *file, int64_t size);
/// All changes become durable.
void content_sync(content *file);
/// Chance decides which changes become durable; the rest is not tried again, but reads still see it.
void content_settle(content *file, chance *chance, waypost_disk_harshness harshness);
/// What is durable is all there is.
void content_forget(content *file);
int64_t content_unsynced(const content *file);

/// Sectors of a range that take up no room yet.
int64_t content_missing(const content *file, int64_t offset, int64_t length);
void content_hold(content *file, int64_t offset, int64_t length);

content *content_copy(const content *file);
void content_free(content *file);
