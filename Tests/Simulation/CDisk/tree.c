#include "tree.h"

#include <stdlib.h>
#include <string.h>

// MARK: Files

static content *adopt(tree *tree, content *file) {
    // Append: random numbers are drawn in the order of the files.
    content **last = &tree->files;
    while (*last != NULL) last = &(*last)->next;
    *last = file;
    return file;
}

content *tree_make_nameless(tree *tree) {
    content *file = disk_allocate(NULL, sizeof(content));
    memset(file, 0, sizeof(content));
    return adopt(tree, file);
}

void tree_retain(content *file) { file->references++; }

static void sweep(tree *tree, content *file) {
    content **place = &tree->files;
    while (*place != file) place = &(*place)->next;
    *place = file->next;
    content_free(file);
}

void tree_release(tree *tree, content *file) {
    if (--file->references == 0) sweep(tree, file);
}

int64_t tree_used(const tree *tree) {
    int64_t sectors = 0;
    for (const content *file = tree->files; file != NULL; file = file->next)
        if (file->links > 0 || file->handles > 0) sectors += file->held_count;
    return sectors;
}

// MARK: Names

static entry *names_find(const names *names, const char *name) {
    for (size_t index = 0; index < names->count; index++)
        if (strcmp(names->entries[index].name, name) == 0) return &names->entries[index];
    return NULL;
}

static void link_file(tree *tree, const names *names, content *file, int change) {
    if (names == &tree->now) file->links += change;
    if (change > 0) tree_retain(file);
    if (change < 0) tree_release(tree, file);
}

static void names_remove(tree *tree, names *names, const char *name) {
    entry *found = names_find(names, name);
    if (found == NULL) return;
    content *file = found->file;
    free(found->name);
    size_t after = names->count - (size_t)(found - names->entries) - 1;
    memmove(found, found + 1, after * sizeof(entry));
    names->count--;
    link_file(tree, names, file, -1);
}

static void names_set(tree *tree, names *names, const char *name, content *file) {
    link_file(tree, names, file, 1);
    names_remove(tree, names, name);
    if (names->count == names->room) {
        names->room = names->room * 2 + 8;
        names->entries = disk_allocate(names->entries, names->room * sizeof(entry));
    }
    names->entries[names->count++] = (entry){.name = strdup(name), .file = file};
}

static void names_clear(tree *tree, names *names) {
    while (names->count > 0) names_remove(tree, names, names->entries[names->count - 1].name);
    free(names->entries);
    *names = (struct names){0};
}

static void names_copy(tree *tree, names *to, const names *from) {
    for (size_t index = 0; index < from->count; index++)
        names_set(tree, to, from->entries[index].name, from->entries[index].file);
}

// MARK: Name changes

static char *copy_of(const char *text) { return text != NULL ? strdup(text) : NULL; }

static void remember(tree *tree, const char *from, const char *to, content *file) {
    if (tree->step_count == tree->step_room) {
        tree->step_room = tree->step_room * 2 + 8;
        tree->steps = disk_allocate(tree->steps, tree->step_room * sizeof(step));
    }
    tree_retain(file);
    tree->steps[tree->step_count++] = (step){.from = copy_of(from), .to = copy_of(to), .file = file};
}

static void apply(tree *tree, names *names, const step *step) {
    if (step->to != NULL) names_set(tree, names, step->to, step->file);
    if (step->from != NULL) names_remove(tree, names, step->from);
}

static void change_names(tree *tree, const char *from, const char *to, content *file) {
    remember(tree, from, to, file);
    apply(tree, &tree->now, &tree->steps[tree->step_count - 1]);
}

static void drop_steps(tree *tree) {
    for (size_t index = 0; index < tree->step_count; index++) {
        step *step = &tree->steps[index];
        free(step->from);
        free(step->to);
        tree_release(tree, step->file);
    }
    tree->step_count = 0;
}

content *tree_find(const tree *tree, const char *name) {
    const entry *found = names_find(&tree->now, name);
    return found != NULL ? found->file : NULL;
}

content *tree_make(tree *tree, const char *name) {
    content *file = tree_make_nameless(tree);
    change_names(tree, NULL, name, file);
    return file;
}

bool tree_rename(tree *tree, const char *from, const char *to) {
    content *file = tree_find(tree, from);
    if (file == NULL) return false;
    if (strcmp(from, to) != 0) change_names(tree, from, to, file);
    return true;
}

bool tree_remove(tree *tree, const char *name) {
    content *file = tree_find(tree, name);
    if (file == NULL) return false;
    change_names(tree, name, NULL, file);
    return true;
}

// MARK: Power

void tree_sync(tree *tree) {
    for (size_t index = 0; index < tree->step_count; index++) apply(tree, &tree->durable, &tree->steps[index]);
    drop_steps(tree);
}

void tree_crash(tree *tree, chance *chance, waypost_disk_harshness harshness) {
    // A cut that loses everything, or nothing, does so with names as well.
    bool loses_all = harshness.kept == 0 && harshness.torn == 0;
    bool keeps_all = harshness.lost == 0 && harshness.torn == 0;
    size_t drawn = (size_t)chance_below(chance, tree->step_count + 1);
    size_t survive = loses_all ? 0 : keeps_all ? tree->step_count : drawn;
    for (size_t index = 0; index < survive; index++) apply(tree, &tree->durable, &tree->steps[index]);
    drop_steps(tree);
    names was = tree->now;
    tree->now = (names){0};
    names_copy(tree, &tree->now, &tree->durable);
    for (size_t index = 0; index < was.count; index++) was.entries[index].file->links--;
    for (content *file = tree->files; file != NULL; file = file->next) {
        content_settle(file, chance, harshness);
        content_forget(file);
    }
    names_clear(tree, &was);
}

// MARK: Creation and destruction

/// Copies the names in `from`, which refer to the twins of its files.
static void copy_names(tree *tree, names *to, const names *from) {
    for (size_t index = 0; index < from->count; index++)
        names_set(tree, to, from->entries[index].name, from->entries[index].file->twin);
}

void tree_copy(tree *tree, const struct tree *from) {
    for (content *file = from->files; file != NULL; file = file->next)
        tree_retain(file->twin = adopt(tree, content_copy(file)));
    copy_names(tree, &tree->now, &from->now);
    copy_names(tree, &tree->durable, &from->durable);
    for (size_t index = 0; index < from->step_count; index++) {
        const step *step = &from->steps[index];
        remember(tree, step->from, step->to, step->file->twin);
    }
    // Files that only handles kept are freed again.
    for (content *file = from->files; file != NULL; file = file->next) tree_release(tree, file->twin);
}

void tree_borrow(tree *tree, const struct tree *from) {
    for (size_t index = 0; index < from->now.count; index++) {
        content *file = tree_make(tree, from->now.entries[index].name);
        file->now = from->now.entries[index].file->now;
        file->is_borrowed = true;
    }
    drop_steps(tree);
}

void tree_clear(tree *tree) {
    drop_steps(tree);
    names_clear(tree, &tree->now);
    names_clear(tree, &tree->durable);
    free(tree->steps);
    tree->steps = NULL;
    tree->step_room = 0;
}
