// A TOML document as a flat list of keys with positions; plain C over toml++.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// UTF-8 bytes, not terminated; valid as long as the document.
typedef struct {
    const char *bytes;
    size_t count;
} waypost_toml_text;

typedef enum {
    WAYPOST_TOML_STRING,
    WAYPOST_TOML_INTEGER,
    WAYPOST_TOML_FLOAT,
    WAYPOST_TOML_BOOLEAN,
    /// An array of strings; also an empty array.
    WAYPOST_TOML_STRINGS,
    /// A table; its keys are separate entries, down to WAYPOST_TOML_MAX_DEPTH.
    WAYPOST_TOML_TABLE,
    /// Anything else; `string` names its type.
    WAYPOST_TOML_OTHER
} waypost_toml_kind;

enum { WAYPOST_TOML_MAX_DEPTH = 4 };

typedef struct {
    waypost_toml_kind kind;
    /// The dotted path as TOML writes it: a part that is not a bare key is quoted.
    waypost_toml_text path;
    /// The last part of the path, unquoted.
    waypost_toml_text key;
    waypost_toml_text string;
    int64_t integer;
    double number;
    bool boolean;
    /// The number of elements of WAYPOST_TOML_STRINGS.
    size_t strings;
    /// The position of the key, counted from 1.
    uint32_t line;
    uint32_t column;
} waypost_toml_entry;

typedef struct {
    waypost_toml_text description;
    uint32_t line;
    uint32_t column;
} waypost_toml_error;

typedef struct waypost_toml waypost_toml;

/// Parses UTF-8 bytes (a byte order mark and CRLF are allowed); NULL without memory.
waypost_toml *waypost_toml_parse(const char *bytes, size_t count);

void waypost_toml_free(waypost_toml *document);

/// Returns true and fills in `error` if the bytes are not valid TOML; there are no entries then.
bool waypost_toml_failed(const waypost_toml *document, waypost_toml_error *error);

size_t waypost_toml_count(const waypost_toml *document);

/// Reads one entry; returns false if there is none at `index`.
bool waypost_toml_get(const waypost_toml *document, size_t index, waypost_toml_entry *entry);

/// Returns an element of a WAYPOST_TOML_STRINGS entry; empty if there is none.
waypost_toml_text waypost_toml_element(const waypost_toml *document, size_t index, size_t element);

#ifdef __cplusplus
}
#endif
