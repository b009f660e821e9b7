// The methods of an open file and of the VFS, with the result codes of SQLite's unix VFS
// (os_unix.c).
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"

// MARK: An open file

static bool is_dead(const handle *self) { return self->file == NULL || self->disk->is_off; }

static int close_file(sqlite3_file *file) {
    handle *self = (handle *)file;
    waypost_disk *disk = self->disk;
    handle_unmap(file, 0);
    if (self->file != NULL) {
        handle **place = &disk->handles;
        while (*place != self) place = &(*place)->next;
        *place = self->next;
        self->file->handles--;
        if (self->is_temporary && self->name != NULL && !disk->is_off) tree_remove(&disk->tree, self->name);
        tree_release(&disk->tree, self->file);
    }
    free(self->name);
    disk_disown(disk);
    return SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset) {
    handle *self = (handle *)file;
    if (self->file == NULL) return SQLITE_IOERR;
    bool goes = disk_begin_read(self->disk, self->name);
    if (!goes) return disk_end(self->disk, "read", self->name, offset, length, SQLITE_IOERR_READ);
    int64_t left = self->file->now.size > offset ? self->file->now.size - offset : 0;
    int64_t got = left < length ? left : length;
    if (got > 0) memcpy(bytes, self->file->now.bytes + offset, (size_t)got);
    if (got < length) memset((char *)bytes + got, 0, (size_t)(length - got));
    return disk_end(
        self->disk, "read", self->name, offset, length, got < length ? SQLITE_IOERR_SHORT_READ : SQLITE_OK);
}

static int write_file(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset) {
    handle *self = (handle *)file;
    if (self->file == NULL) return SQLITE_IOERR;
    if (self->is_read_only) return SQLITE_IOERR_WRITE;
    int code = disk_write(self->disk, self->file, offset, bytes, length);
    // Like unix: every error except a full disk is SQLITE_IOERR, also a read-only file system.
    code = code == 0 ? SQLITE_OK : code == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    return disk_end(self->disk, "write", self->name, offset, length, code);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size) {
    handle *self = (handle *)file;
    if (self->file == NULL) return SQLITE_IOERR;
    bool fails = self->is_read_only || disk_resize(self->disk, self->file, size) != 0;
    return disk_end(self->disk, "truncate", self->name, size, 0, fails ? SQLITE_IOERR_TRUNCATE : SQLITE_OK);
}

static int sync_file(sqlite3_file *file, int flags) {
    (void)flags;
    handle *self = (handle *)file;
    if (self->file == NULL) return SQLITE_IOERR;
    int code = disk_sync(self->disk, self->file) != 0 ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    return disk_end(self->disk, "sync", self->name, 0, 0, code);
}

static int size_of_file(sqlite3_file *file, sqlite3_int64 *size) {
    const handle *self = (const handle *)file;
    if (is_dead(self)) return SQLITE_IOERR;
    *size = self->file->now.size;
    return SQLITE_OK;
}

static int control(sqlite3_file *file, int operation, void *argument) {
    const handle *self = (const handle *)file;
    switch (operation) {
    case SQLITE_FCNTL_LOCKSTATE:
        *(int *)argument = self->lock;
        return SQLITE_OK;
    case SQLITE_FCNTL_HAS_MOVED:
        // A renamed database is not checkpointed when it is closed.
        *(int *)argument =
            self->file != NULL && self->name != NULL && tree_find(&self->disk->tree, self->name) != self->file;
        return SQLITE_OK;
    default:
        return SQLITE_NOTFOUND;
    }
}

static int sector_size(sqlite3_file *file) {
    (void)file;
    return sector_bytes;
}

/// Like unix by default: a torn write leaves the bytes before and after it intact, also in its
/// sectors.
static int characteristics(sqlite3_file *file) {
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = size_of_file,
    .xLock = handle_lock,
    .xUnlock = handle_unlock,
    .xCheckReservedLock = handle_check_reserved,
    .xFileControl = control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = handle_map,
    .xShmLock = handle_lock_shared,
    .xShmBarrier = handle_barrier,
    .xShmUnmap = handle_unmap,
};

// MARK: The VFS

static waypost_disk *disk_of(sqlite3_vfs *vfs) { return vfs->pAppData; }

/// Returns the file to open; NULL if it cannot be opened. Clears SQLITE_OPEN_READWRITE if it can
/// only be read.
static content *find(waypost_disk *disk, const char *name, int *flags) {
    if (name == NULL) return disk->is_read_only ? NULL : tree_make_nameless(&disk->tree);
    content *file = tree_find(&disk->tree, name);
    if (file != NULL) {
        if (*flags & SQLITE_OPEN_EXCLUSIVE) return NULL;
        // Like unix: a file that is not writable can still be read.
        bool is_writing = *flags & SQLITE_OPEN_READWRITE;
        if (disk->is_read_only && is_writing) *flags ^= SQLITE_OPEN_READWRITE | SQLITE_OPEN_READONLY;
        return file;
    }
    if (!(*flags & SQLITE_OPEN_CREATE) || disk->is_read_only) return NULL;
    return tree_make(&disk->tree, name);
}

static void attach(handle *self, waypost_disk *disk, content *file, const char *name, int flags) {
    self->disk = disk;
    self->file = file;
    self->name = name != NULL ? strdup(name) : NULL;
    self->is_read_only = !(flags & SQLITE_OPEN_READWRITE);
    self->is_temporary = flags & SQLITE_OPEN_DELETEONCLOSE;
    self->next = disk->handles;
    self->base.pMethods = &file_methods;
    disk->handles = self;
    disk->owners++;
    file->handles++;
    tree_retain(file);
}

static int open_file(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out_flags) {
    waypost_disk *disk = disk_of(vfs);
    memset(file, 0, sizeof(handle));
    bool goes = disk_begin_read(disk, name);
    content *found = goes ? find(disk, name, &flags) : NULL;
    int code = found != NULL ? SQLITE_OK : SQLITE_CANTOPEN;
    if (found != NULL) attach((handle *)file, disk, found, name, flags);
    if (found != NULL && out_flags != NULL) *out_flags = flags;
    return disk_end(disk, "open", name, 0, 0, code);
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs_folder) {
    waypost_disk *disk = disk_of(vfs);
    int code = disk_remove(disk, name);
    if (code == 0 && syncs_folder && !disk->drops_syncs) tree_sync(&disk->tree);
    code = code == 0 ? SQLITE_OK : code == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
    return disk_end(disk, "remove", name, 0, 0, code);
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    waypost_disk *disk = disk_of(vfs);
    if (disk->is_off) return SQLITE_IOERR_ACCESS;
    int64_t size = waypost_disk_size(disk, name);
    // Like unix: an empty file counts as missing.
    *result = flags == SQLITE_ACCESS_EXISTS ? size > 0 : size >= 0 && !disk->is_read_only;
    return SQLITE_OK;
}

static int full_name(sqlite3_vfs *vfs, const char *name, int room, char *full) {
    (void)vfs;
    size_t length = strlen(name) + 1;
    if (length > (size_t)room) return SQLITE_CANTOPEN;
    memcpy(full, name, length);
    return SQLITE_OK;
}

static int randomness(sqlite3_vfs *vfs, int length, char *bytes) {
    for (int index = 0; index < length; index++) bytes[index] = (char)chance_next(&disk_of(vfs)->chance);
    return length;
}

/// Returns at once: no other thread could end the wait.
static int sleep_not(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static int current_time_in_milliseconds(sqlite3_vfs *vfs, sqlite3_int64 *milliseconds) {
    // Milliseconds of the Julian day, which begins at noon in 4714 BC.
    *milliseconds = disk_of(vfs)->milliseconds + 210866760000000;
    return SQLITE_OK;
}

static int current_time(sqlite3_vfs *vfs, double *days) {
    sqlite3_int64 milliseconds = 0;
    current_time_in_milliseconds(vfs, &milliseconds);
    *days = (double)milliseconds / 86400000;
    return SQLITE_OK;
}

static int last_error(sqlite3_vfs *vfs, int room, char *text) {
    (void)vfs;
    if (room > 0) text[0] = 0;
    return 0;
}

void disk_prepare_vfs(waypost_disk *disk) {
    disk->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(handle),
        .mxPathname = 512,
        .zName = disk->name,
        .pAppData = disk,
        .xOpen = open_file,
        .xDelete = delete_file,
        .xAccess = access_file,
        .xFullPathname = full_name,
        .xRandomness = randomness,
        .xSleep = sleep_not,
        .xCurrentTime = current_time,
        .xGetLastError = last_error,
        .xCurrentTimeInt64 = current_time_in_milliseconds,
    };
}
