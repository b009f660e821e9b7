// Names and files of a disk; changes of names go to the card in their order, as with the journal of ext4.
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

/// A change of names that is not durable: made (no `from`), renamed, or removed (no `to`).
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
    /// All that anything refers to.
    content *files;
} tree;

content *tree_find(const tree *tree, const char *name);
content *tree_make(tree *tree, const char *name);
/// False where there is no such name.
bool tree_rename(tree *tree, const char *from, const char *to);
bool tree_remove(tree *tree, const char *name);
/// A file without a name; it lives as long as its handles.
content *tree_make_nameless(tree *tree);

void tree_retain(content *file);
void tree_release(tree *tree, content *file);

/// Sectors that files with a name or with handles take up.
int64_t tree_used(const tree *tree);
/// All changes of names become durable.
void tree_sync(tree *tree);
/// The power goes: some first part of the changes of names is durable, and of the files what chance decides.
void tree_crash(tree *tree, chance *chance, waypost_disk_harshness harshness);
/// Into an empty tree.
void tree_copy(tree *tree, const struct tree *from);
/// Into an empty tree: what is there now, its bytes borrowed.
void tree_borrow(tree *tree, const struct tree *from);
void tree_clear(tree *tree);
