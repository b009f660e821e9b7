// A file system that passes everything on to a folder and keeps a log of what was changed and synced, in the form
// of `struct entry` of Tests/FieldFaults/fieldfaults.c: what a disk holds after a power cut is made of it.
//
//   cc -O2 -o writelog writelog.c $(pkg-config --cflags --libs fuse3)
//   writelog BACKING LOG MOUNTPOINT
//
// Unlike a library that is loaded before others it sees what stdio writes and what is written into mapped memory:
// such pages come when the kernel writes them back, at a sync at the latest. It runs until it is unmounted.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct entry {
    uint64_t time, inode, offset, length, covers, began;
    uint32_t paths;
    uint8_t kind, flag, pad[2];
};

static char backing[PATH_MAX], mounted[PATH_MAX];
static int log_file;
static uint64_t log_size;

static uint64_t boottime(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const char *below(const char *path, char *buffer) {
    snprintf(buffer, PATH_MAX, "%s%s", backing, path);
    return buffer;
}
#define PATH(path) below(path, (char[PATH_MAX]){0})
#define ANSWER(call) return (call) == -1 ? -errno : 0

// One thread serves all: the log is in the order in which things were done.
static void note(struct entry e, const char *path, const char *other, const void *data) {
    char first[PATH_MAX] = "", second[PATH_MAX] = "";
    if (path) snprintf(first, sizeof first, "%s%s", mounted, path);
    if (other) snprintf(second, sizeof second, "%s%s", mounted, other);
    e.time = boottime();
    e.paths = (uint32_t)(strlen(first) | strlen(second) << 16);
    size_t length = data ? (size_t)e.length : 0;
    struct iovec parts[] = {
        {&e, sizeof e}, {first, strlen(first)}, {second, strlen(second)}, {(void *)data, length}};
    ssize_t done = writev(log_file, parts, 4);
    if (done != (ssize_t)(sizeof e + strlen(first) + strlen(second) + length)) {
        fprintf(stderr, "writelog: the log cannot be written\n");
        _exit(99);
    }
    log_size += (uint64_t)done;
}

static uint64_t inode(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// MARK: Names

static void *begin(struct fuse_conn_info *connection, struct fuse_config *config) {
    // Nobody else changes the folder: what the kernel knows stays true.
    connection->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
    config->entry_timeout = config->attr_timeout = 3600;
    config->negative_timeout = 0;
    config->nullpath_ok = 1;
    return 0;
}

static int get_attributes(const char *path, struct stat *status, struct fuse_file_info *file) {
    if (file) ANSWER(fstat((int)file->fh, status));
    ANSWER(lstat(PATH(path), status));
}

static int open_folder(const char *path, struct fuse_file_info *file) {
    DIR *folder = opendir(PATH(path));
    file->fh = (uint64_t)(uintptr_t)folder;
    return folder ? 0 : -errno;
}
static int list(const char *path, void *buffer, fuse_fill_dir_t fill, off_t at, struct fuse_file_info *file,
                enum fuse_readdir_flags flags) {
    (void)path, (void)at, (void)flags;
    DIR *folder = (DIR *)(uintptr_t)file->fh;
    rewinddir(folder);
    for (struct dirent *next; (next = readdir(folder));) fill(buffer, next->d_name, 0, 0, 0);
    return 0;
}
static int release_folder(const char *path, struct fuse_file_info *file) {
    (void)path;
    closedir((DIR *)(uintptr_t)file->fh);
    return 0;
}

static int open_at(const char *path, mode_t mode, struct fuse_file_info *file) {
    char real[PATH_MAX];
    below(path, real);
    int made = (file->flags & O_CREAT) && access(real, F_OK) != 0;
    // Appending is done by the kernel above, which says where; a mapped file is read, too.
    int flags = file->flags & ~(O_APPEND | O_NOFOLLOW | O_EXCL | O_DIRECT);
    if ((flags & O_ACCMODE) == O_WRONLY) flags = (flags & ~O_ACCMODE) | O_RDWR;
    int fd = open(real, flags, mode);
    if (fd < 0) return -errno;
    file->fh = (uint64_t)fd;
    note((struct entry){.kind = 'o', .inode = inode(fd), .flag = (uint8_t)made}, path, 0, 0);
    if (!made && (flags & O_TRUNC)) note((struct entry){.kind = 't', .inode = inode(fd)}, 0, 0, 0);
    return 0;
}
static int open_file(const char *path, struct fuse_file_info *file) { return open_at(path, 0, file); }
static int create_file(const char *path, mode_t mode, struct fuse_file_info *file) {
    file->flags |= O_CREAT;
    return open_at(path, mode, file);
}
static int release_file(const char *path, struct fuse_file_info *file) {
    (void)path;
    close((int)file->fh);
    return 0;
}

static int rename_file(const char *path, const char *other, unsigned flags) {
    if (renameat2(AT_FDCWD, PATH(path), AT_FDCWD, PATH(other), flags) != 0) return -errno;
    note((struct entry){.kind = 'r'}, path, other, 0);
    return 0;
}
static int link_file(const char *path, const char *other) {
    if (link(PATH(path), PATH(other)) != 0) return -errno;
    note((struct entry){.kind = 'l'}, path, other, 0);
    return 0;
}
static int unlink_file(const char *path) {
    if (unlink(PATH(path)) != 0) return -errno;
    note((struct entry){.kind = 'u'}, path, 0, 0);
    return 0;
}
static int make_folder(const char *path, mode_t mode) { ANSWER(mkdir(PATH(path), mode)); }
static int remove_folder(const char *path) { ANSWER(rmdir(PATH(path))); }
static int set_mode(const char *path, mode_t mode, struct fuse_file_info *file) {
    if (file) ANSWER(fchmod((int)file->fh, mode));
    ANSWER(chmod(PATH(path), mode));
}
static int set_owner(const char *path, uid_t user, gid_t group, struct fuse_file_info *file) {
    if (file) ANSWER(fchown((int)file->fh, user, group));
    ANSWER(lchown(PATH(path), user, group));
}
static int set_times(const char *path, const struct timespec times[2], struct fuse_file_info *file) {
    if (file) ANSWER(futimens((int)file->fh, times));
    ANSWER(utimensat(AT_FDCWD, PATH(path), times, AT_SYMLINK_NOFOLLOW));
}
static int room(const char *path, struct statvfs *status) { ANSWER(statvfs(PATH(path), status)); }

// MARK: Contents

static int read_file(const char *path, char *data, size_t count, off_t at, struct fuse_file_info *file) {
    (void)path;
    ssize_t done = pread((int)file->fh, data, count, at);
    return done < 0 ? -errno : (int)done;
}
static int write_file(const char *path, const char *data, size_t count, off_t at, struct fuse_file_info *file) {
    (void)path;
    ssize_t done = pwrite((int)file->fh, data, count, at);
    if (done < 0) return -errno;
    note((struct entry){.kind = 'w', .inode = inode((int)file->fh), .offset = (uint64_t)at,
        .length = (uint64_t)done}, 0, 0, data);
    return (int)done;
}
static int resize(const char *path, off_t size, struct fuse_file_info *file) {
    int fd = file ? (int)file->fh : open(PATH(path), O_RDWR | O_CLOEXEC);
    if (fd < 0) return -errno;
    int code = ftruncate(fd, size) == 0 ? 0 : -errno;
    if (code == 0) note((struct entry){.kind = 't', .inode = inode(fd), .offset = (uint64_t)size}, 0, 0, 0);
    if (!file) close(fd);
    return code;
}
static int allocate(const char *path, int mode, off_t at, off_t length, struct fuse_file_info *file) {
    (void)path;
    if (mode != 0) return -EOPNOTSUPP;
    if (fallocate((int)file->fh, mode, at, length) != 0) return -errno;
    note((struct entry){.kind = 'a', .inode = inode((int)file->fh), .offset = (uint64_t)at,
        .length = (uint64_t)length}, 0, 0, 0);
    return 0;
}
static int sync_file(const char *path, int data_only, struct fuse_file_info *file) {
    (void)path, (void)data_only;
    struct entry e = {.kind = 's', .inode = inode((int)file->fh), .covers = log_size, .began = boottime()};
    if (fdatasync((int)file->fh) != 0) return -errno;
    note(e, 0, 0, 0);
    return 0;
}
static int sync_folder(const char *path, int data_only, struct fuse_file_info *file) {
    (void)path, (void)data_only;
    uint64_t number = inode(dirfd((DIR *)(uintptr_t)file->fh));
    note((struct entry){.kind = 's', .inode = number, .covers = log_size, .began = boottime()}, 0, 0, 0);
    return 0;
}

static const struct fuse_operations operations = {
    .init = begin, .getattr = get_attributes, .opendir = open_folder, .readdir = list,
    .releasedir = release_folder, .open = open_file, .create = create_file,
    .release = release_file, .rename = rename_file, .link = link_file, .unlink = unlink_file,
    .mkdir = make_folder, .rmdir = remove_folder, .chmod = set_mode, .chown = set_owner, .utimens = set_times,
    .statfs = room, .read = read_file, .write = write_file, .truncate = resize, .fallocate = allocate,
    .fsync = sync_file, .fsyncdir = sync_folder,
};

int main(int count, char **words) {
    if (count != 4 || !realpath(words[1], backing) || !realpath(words[3], mounted)) {
        fprintf(stderr, "writelog BACKING LOG MOUNTPOINT\n");
        return 64;
    }
    log_file = open(words[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_file < 0) return 1;
    umask(0);
    char *arguments[] = {words[0], "-f", "-s", "-o", "allow_other,fsname=writelog", mounted, 0};
    return fuse_main(6, arguments, &operations, 0);
}
