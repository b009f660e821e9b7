// SQLite. SQLITE_TRANSIENT is a cast that Swift cannot import, so binding copies goes through C.
#pragma once
#include <sqlite3.h>

static inline int waypost_bind_text(sqlite3_stmt *statement, int index, const char *text, int bytes) {
    return sqlite3_bind_text(statement, index, text, bytes, SQLITE_TRANSIENT);
}
static inline int waypost_bind_blob(sqlite3_stmt *statement, int index, const void *data, int bytes) {
    return bytes == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob(statement, index, data, bytes, SQLITE_TRANSIENT);
}
// The file object of an open database, for access that bypasses SQLite.
static inline sqlite3_file *waypost_file(sqlite3 *database) {
    sqlite3_file *file = 0;
    sqlite3_file_control(database, 0, SQLITE_FCNTL_FILE_POINTER, &file);
    return file && file->pMethods ? file : 0;
}
static inline int waypost_read_file(sqlite3 *database, long long at, void *to, int count) {
    sqlite3_file *file = waypost_file(database);
    return file ? file->pMethods->xRead(file, to, count, at) : SQLITE_CANTOPEN;
}
static inline int waypost_cut_file(sqlite3 *database, long long bytes) {
    sqlite3_file *file = waypost_file(database);
    int code = file ? file->pMethods->xTruncate(file, bytes) : SQLITE_CANTOPEN;
    return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}
// Extends the WAL with zeros to so many bytes. SQLite reads it only up to its last valid frame.
static inline int waypost_lengthen_journal(sqlite3 *database, long long bytes) {
    // One page of the page cache at a time: larger writes create larger pages, and a commit
    // dirties a whole one.
    static const char zeros[4096];
    sqlite3_file *file = 0;
    sqlite3_file_control(database, 0, SQLITE_FCNTL_JOURNAL_POINTER, &file);
    if (!file || !file->pMethods) return SQLITE_CANTOPEN;
    sqlite3_int64 size = 0;
    int code = file->pMethods->xFileSize(file, &size);
    while (code == SQLITE_OK && size < bytes) {
        int count = (int)sizeof zeros - (int)(size % (int)sizeof zeros);
        if (bytes - size < count) count = (int)(bytes - size);
        code = file->pMethods->xWrite(file, zeros, count, size);
        size += count;
    }
    return code;
}
// sqlite3_db_config is variadic. After this call, closing neither checkpoints nor deletes the WAL.
static inline int waypost_keep_journal(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
