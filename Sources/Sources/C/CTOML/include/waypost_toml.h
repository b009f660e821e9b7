// A TOML document as a flat list of its keys, each with its place in the file; plain C over toml++.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// UTF-8 bytes, not terminated; they live as long as the document.
typedef struct {
    const char *bytes;
    size_t count;
} waypost_toml_text;

typedef enum {
    WAYPOST_TOML_STRING,
    WAYPOST_TOML_INTEGER,
    WAYPOST_TOML_FLOAT,
    WAYPOST_TOML_BOOLEAN,
    /// An array of strings only, the empty one too.
    WAYPOST_TOML_STRINGS,
    /// A table: its keys are entries of their own, down to WAYPOST_TOML_MAX_DEPTH.
    WAYPOST_TOML_TABLE,
    /// Anything else; `string` says what it is.
    WAYPOST_TOML_OTHER
} waypost_toml_kind;

enum { WAYPOST_TOML_MAX_DEPTH = 4 };

typedef struct {
    waypost_toml_kind kind;
    /// The dotted path as TOML writes it: a part that is no bare key is quoted.
    waypost_toml_text path;
    /// The last part of the path, as it is.
    waypost_toml_text key;
    waypost_toml_text string;
    int64_t integer;
    double number;
    bool boolean;
    /// Elements of WAYPOST_TOML_STRINGS.
    size_t strings;
    /// Where the key stands, both from 1.
    uint32_t line;
    uint32_t column;
} waypost_toml_entry;

typedef struct {
    waypost_toml_text description;
    uint32_t line;
    uint32_t column;
} waypost_toml_error;

typedef struct waypost_toml waypost_toml;

/// Parses UTF-8 bytes (a byte order mark and CRLF are fine); NULL when there is no memory for it.
waypost_toml *waypost_toml_parse(const char *bytes, size_t count);

void waypost_toml_free(waypost_toml *document);

/// True, and `error` filled in, when the bytes are not valid TOML; there are no entries then.
bool waypost_toml_failed(const waypost_toml *document, waypost_toml_error *error);

size_t waypost_toml_count(const waypost_toml *document);

/// False when there is no such entry.
bool waypost_toml_get(const waypost_toml *document, size_t index, waypost_toml_entry *entry);

/// An element of a WAYPOST_TOML_STRINGS entry; empty when there is none.
waypost_toml_text waypost_toml_element(const waypost_toml *document, size_t index, size_t element);

#ifdef __cplusplus
}
#endif
