#include "content.h"

#include <stdlib.h>
#include <string.h>

void *disk_allocate(void *old, size_t bytes) {
    void *memory = realloc(old, bytes);
    if (memory == NULL) abort();
    return memory;
}

// SplitMix64: 64 bits of state, random enough for fault injection.
uint64_t chance_next(chance *chance) {
    uint64_t mixed = chance->state += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}

uint64_t chance_below(chance *chance, uint64_t bound) { return chance_next(chance) % bound; }

// MARK: Bytes

static void buffer_resize(buffer *self, int64_t size) {
    if (size > self->room) {
        int64_t room = self->room < 4096 ? 4096 : self->room;
        while (room < size) room *= 2;
        self->bytes = disk_allocate(self->bytes, (size_t)room);
        memset(self->bytes + self->room, 0, (size_t)(room - self->room));
        self->room = room;
    }
    if (size < self->size) memset(self->bytes + size, 0, (size_t)(self->size - size));
    self->size = size;
}

static void buffer_write(buffer *self, int64_t offset, const void *bytes, int64_t length) {
    if (length == 0) return;
    if (offset + length > self->size) buffer_resize(self, offset + length);
    memcpy(self->bytes + offset, bytes, (size_t)length);
}

static void buffer_assign(buffer *self, const buffer *other) {
    buffer_resize(self, other->size);
    if (other->size > 0) memcpy(self->bytes, other->bytes, (size_t)other->size);
}

// MARK: Changes

static int64_t first_sector(const change *change) { return change->offset / sector_bytes; }

static int64_t sector_count(const change *change) {
    return (change->offset + change->length + sector_bytes - 1) / sector_bytes - first_sector(change);
}

static uint8_t *arrives(change *change) { return change->data + change->length; }

static change *add(content *file, int64_t offset, int64_t length, bool is_resize) {
    if (file->change_count == file->change_room) {
        file->change_room = file->change_room * 2 + 16;
        file->changes = disk_allocate(file->changes, (size_t)file->change_room * sizeof(change *));
    }
    int64_t sectors = length / sector_bytes + 2;
    change *added = disk_allocate(NULL, sizeof(change) + (size_t)(length + sectors));
    added->offset = offset;
    added->length = length;
    added->is_resize = is_resize;
    return file->changes[file->change_count++] = added;
}

static void drop_changes(content *file) {
    for (int64_t index = 0; index < file->change_count; index++) free(file->changes[index]);
    file->change_count = 0;
}

void content_write(content *file, int64_t offset, const void *bytes, int64_t length) {
    if (length == 0) return;
    memcpy(add(file, offset, length, false)->data, bytes, (size_t)length);
    buffer_write(&file->now, offset, bytes, length);
    content_hold(file, offset, length);
}

static void release_beyond(content *file, int64_t size) {
    for (int64_t sector = (size + sector_bytes - 1) / sector_bytes; sector < file->held_room; sector++) {
        file->held_count -= file->held[sector];
        file->held[sector] = 0;
    }
}

void content_resize(content *file, int64_t size) {
    if (size == file->now.size) return;
    add(file, size, 0, true);
    if (size < file->now.size) release_beyond(file, size);
    buffer_resize(&file->now, size);
}

void content_sync(content *file) {
    for (int64_t index = 0; index < file->change_count; index++) {
        change *change = file->changes[index];
        if (change->is_resize) {
            buffer_resize(&file->durable, change->offset);
        } else {
            buffer_write(&file->durable, change->offset, change->data, change->length);
        }
    }
    drop_changes(file);
    // After a failed sync the size is still known, even if the bytes are not.
    buffer_resize(&file->durable, file->now.size);
}

int64_t content_unsynced(const content *file) {
    int64_t bytes = 0;
    for (int64_t index = 0; index < file->change_count; index++) bytes += file->changes[index]->length;
    return bytes;
}

// MARK: Random outcomes

static void draw(change *change, chance *chance, waypost_disk_harshness harshness) {
    uint64_t sum = (uint64_t)harshness.kept + harshness.lost + harshness.torn;
    uint64_t drawn = chance_below(chance, sum > 0 ? sum : 1);
    bool is_torn = drawn >= (uint64_t)harshness.kept + harshness.lost;
    bool is_kept = drawn < harshness.kept;
    int64_t count = change->is_resize ? 1 : sector_count(change);
    for (int64_t sector = 0; sector < count; sector++)
        arrives(change)[sector] = is_torn ? chance_next(chance) & 1 : is_kept;
}

/// Makes earlier writes of a sector survive with a later one: a sector reaches the card as a whole.
static void complete_sectors(content *file) {
    int64_t sectors = 0;
    for (int64_t index = 0; index < file->change_count; index++) {
        int64_t end = first_sector(file->changes[index]) + sector_count(file->changes[index]);
        if (end > sectors) sectors = end;
    }
    uint8_t *reached = disk_allocate(NULL, (size_t)sectors + 1);
    memset(reached, 0, (size_t)sectors + 1);
    for (int64_t index = file->change_count - 1; index >= 0; index--) {
        change *change = file->changes[index];
        if (change->is_resize) continue;
        uint8_t *there = reached + first_sector(change);
        for (int64_t sector = 0; sector < sector_count(change); sector++)
            there[sector] = arrives(change)[sector] |= there[sector];
    }
    free(reached);
}

/// Writes the surviving sectors; beyond them the file may have grown and read zeros.
static void land(content *file, change *change, bool grows) {
    int64_t end = change->offset + change->length;
    for (int64_t index = 0; index < sector_count(change); index++) {
        if (!arrives(change)[index]) continue;
        int64_t from = (first_sector(change) + index) * sector_bytes;
        int64_t to = from + sector_bytes < end ? from + sector_bytes : end;
        if (from < change->offset) from = change->offset;
        buffer_write(&file->durable, from, change->data + (from - change->offset), to - from);
    }
    if (grows && end > file->durable.size) buffer_resize(&file->durable, end);
}

void content_settle(content *file, chance *chance, waypost_disk_harshness harshness) {
    if (file->change_count == 0) return;
    for (int64_t index = 0; index < file->change_count; index++) draw(file->changes[index], chance, harshness);
    complete_sectors(file);
    bool loses_all = harshness.kept == 0 && harshness.torn == 0;
    for (int64_t index = 0; index < file->change_count; index++) {
        change *change = file->changes[index];
        if (!change->is_resize) {
            land(file, change, !loses_all && chance_next(chance) & 1);
        } else if (arrives(change)[0]) {
            buffer_resize(&file->durable, change->offset);
        }
    }
    drop_changes(file);
    file->is_uncertain = true;
}

void content_forget(content *file) {
    if (file->change_count == 0 && !file->is_uncertain) return;
    drop_changes(file);
    buffer_assign(&file->now, &file->durable);
    release_beyond(file, file->now.size);
    // Take again the space that a lost truncation had freed.
    static const uint8_t zeros[sector_bytes];
    for (int64_t offset = 0; offset < file->now.size; offset += sector_bytes) {
        int64_t left = file->now.size - offset < sector_bytes ? file->now.size - offset : sector_bytes;
        if (memcmp(file->now.bytes + offset, zeros, (size_t)left) != 0) content_hold(file, offset, left);
    }
    file->is_uncertain = false;
}

// MARK: Space

int64_t content_missing(const content *file, int64_t offset, int64_t length) {
    int64_t missing = 0;
    for (int64_t sector = offset / sector_bytes; sector * sector_bytes < offset + length; sector++)
        missing += sector >= file->held_room || !file->held[sector];
    return missing;
}

void content_hold(content *file, int64_t offset, int64_t length) {
    int64_t end = (offset + length + sector_bytes - 1) / sector_bytes;
    if (end > file->held_room) {
        int64_t room = end * 2 + 8;
        file->held = disk_allocate(file->held, (size_t)room);
        memset(file->held + file->held_room, 0, (size_t)(room - file->held_room));
        file->held_room = room;
    }
    for (int64_t sector = offset / sector_bytes; sector < end; sector++) {
        file->held_count += !file->held[sector];
        file->held[sector] = 1;
    }
}

// MARK: Creation and destruction

content *content_copy(const content *file) {
    content *copy = disk_allocate(NULL, sizeof(content));
    memset(copy, 0, sizeof(content));
    buffer_assign(&copy->now, &file->now);
    buffer_assign(&copy->durable, &file->durable);
    copy->is_uncertain = file->is_uncertain;
    for (int64_t index = 0; index < file->change_count; index++) {
        const change *from = file->changes[index];
        change *to = add(copy, from->offset, from->length, from->is_resize);
        memcpy(to->data, from->data, (size_t)from->length);
    }
    copy->held = disk_allocate(NULL, (size_t)file->held_room + 1);
    if (file->held_room > 0) memcpy(copy->held, file->held, (size_t)file->held_room);
    copy->held_room = file->held_room;
    copy->held_count = file->held_count;
    return copy;
}

void content_free(content *file) {
    drop_changes(file);
    free(file->changes);
    if (!file->is_borrowed) free(file->now.bytes);
    free(file->durable.bytes);
    free(file->held);
    free(file);
}
