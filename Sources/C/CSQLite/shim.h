// SQLite. SQLITE_TRANSIENT is a cast that Swift cannot import, so binding copies goes through here.
#pragma once
#include <sqlite3.h>

static inline int waypost_bind_text(sqlite3_stmt *statement, int index, const char *text, int bytes) {
    return sqlite3_bind_text(statement, index, text, bytes, SQLITE_TRANSIENT);
}
static inline int waypost_bind_blob(sqlite3_stmt *statement, int index, const void *data, int bytes) {
    return bytes == 0 ? sqlite3_bind_zeroblob(statement, index, 0)
                      : sqlite3_bind_blob(statement, index, data, bytes, SQLITE_TRANSIENT);
}
// sqlite3_db_config is variadic: closing then neither checkpoints nor deletes the journal.
static inline int waypost_keep_journal(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
