// Names and files of a disk; name changes reach the card in order, as with ext4's journal.
#pragma once
#include <stddef.h>

#include "content.h"

typedef struct {
    char *name;
    content *file;
} entry;

typedef struct names {
    entry *entries;
    size_t count;
    size_t room;
} names;

/// A name change that is not durable: created (no `from`), renamed, or removed (no `to`).
typedef struct {
    char *from;
    char *to;
    content *file;
} step;

typedef struct tree {
    names now;
    names durable;
    step *steps;
    size_t step_count;
    size_t step_room;
    /// All files with a reference.
    content *files;
} tree;

content *tree_find(const tree *tree, const char *name);
content *tree_make(tree *tree, const char *name);
/// Returns false if the name does not exist.
bool tree_rename(tree *tree, const char *from, const char *to);
bool tree_remove(tree *tree, const char *name);
/// Creates a file without a name; it lives as long as its handles.
content *tree_make_nameless(tree *tree);

void tree_retain(content *file);
void tree_release(tree *tree, content *file);

/// Returns the sectors used by files with a name or handles.
int64_t tree_used(const tree *tree);
/// Makes all name changes durable.
void tree_sync(tree *tree);
/// Cuts the power: a random prefix of the name changes and random changes of the files survive.
void tree_crash(tree *tree, chance *chance, waypost_disk_harshness harshness);
/// Copies into an empty tree.
void tree_copy(tree *tree, const struct tree *from);
/// Copies the current content into an empty tree, borrowing its bytes.
void tree_borrow(tree *tree, const struct tree *from);
void tree_clear(tree *tree);
