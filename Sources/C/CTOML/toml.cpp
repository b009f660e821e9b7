// Parses TOML with toml++ into a flat list of keys; no exception leaves this file.
#include "waypost_toml.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

// Debian's libtomlplusplus is the compiled library, not the header-only one.
#define TOML_HEADER_ONLY 0
#define TOML_SHARED_LIB 1
#include <toml++/toml.h>

namespace {

struct Entry {
    waypost_toml_kind kind = WAYPOST_TOML_OTHER;
    std::string path;
    std::string key;
    std::string string;
    std::vector<std::string> strings;
    int64_t integer = 0;
    double number = 0;
    bool boolean = false;
    uint32_t line = 0;
    uint32_t column = 0;
};

struct Failure {
    std::string description;
    uint32_t line = 0;
    uint32_t column = 0;
};

waypost_toml_text view(const std::string &text) { return {text.data(), text.size()}; }

/// Returns a part of a path as TOML writes it (TOML 1.0, "Keys").
std::string written(std::string_view key) {
    auto bare = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    };
    if (!key.empty() && std::all_of(key.begin(), key.end(), bare)) return std::string(key);
    std::string text = "\"";
    for (char c : key) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
    }
    return text + "\"";
}

const char *name(toml::node_type type) {
    switch (type) {
    case toml::node_type::table: return "a section";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a text";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "true or false";
    case toml::node_type::date: return "a date";
    case toml::node_type::time: return "a time";
    case toml::node_type::date_time: return "a date and time";
    default: return "nothing";
    }
}

void read_array(const toml::array &array, Entry &entry) {
    entry.kind = WAYPOST_TOML_STRINGS;
    for (const toml::node &element : array) {
        if (const auto *text = element.as_string()) {
            entry.strings.push_back(text->get());
            continue;
        }
        entry.kind = WAYPOST_TOML_OTHER;
        entry.string = std::string("an array that holds ") + name(element.type());
        return;
    }
}

void read_value(const toml::node &node, Entry &entry) {
    if (const auto *array = node.as_array()) {
        read_array(*array, entry);
    } else if (const auto *text = node.as_string()) {
        entry.kind = WAYPOST_TOML_STRING;
        entry.string = text->get();
    } else if (const auto *integer = node.as_integer()) {
        entry.kind = WAYPOST_TOML_INTEGER;
        entry.integer = integer->get();
    } else if (const auto *number = node.as_floating_point()) {
        entry.kind = WAYPOST_TOML_FLOAT;
        entry.number = number->get();
    } else if (const auto *boolean = node.as_boolean()) {
        entry.kind = WAYPOST_TOML_BOOLEAN;
        entry.boolean = boolean->get();
    } else {
        entry.kind = node.is_table() ? WAYPOST_TOML_TABLE : WAYPOST_TOML_OTHER;
        entry.string = name(node.type());
    }
}

void flatten(const toml::table &table, const std::string &prefix, int depth,
             std::vector<Entry> &entries) {
    for (auto &&[key, node] : table) {
        Entry entry;
        entry.key = std::string(key.str());
        entry.path = prefix + written(key.str());
        entry.line = key.source().begin.line;
        entry.column = key.source().begin.column;
        read_value(node, entry);
        std::string inner = entry.path + ".";
        entries.push_back(std::move(entry));
        const auto *child = node.as_table();
        if (child && depth < WAYPOST_TOML_MAX_DEPTH) flatten(*child, inner, depth + 1, entries);
    }
}

struct Job {
    std::string_view bytes;
    waypost_toml *document;
    bool done;
};

}  // namespace

struct waypost_toml {
    bool failed = false;
    Failure failure;
    std::vector<Entry> entries;

    void fail(std::string_view description, uint32_t line = 1, uint32_t column = 1) {
        failed = true;
        entries.clear();
        failure = {std::string(description), line, column};
    }
};

namespace {

void parse(std::string_view bytes, waypost_toml &document) {
    try {
        const toml::table table = toml::parse(bytes);
        flatten(table, "", 1, document.entries);
        auto earlier = [](const Entry &left, const Entry &right) {
            return left.line != right.line ? left.line < right.line : left.column < right.column;
        };
        std::sort(document.entries.begin(), document.entries.end(), earlier);
    } catch (const toml::parse_error &error) {
        const auto &place = error.source().begin;
        document.fail(error.description(), place.line, place.column);
    } catch (const std::bad_alloc &) {
        throw;
    } catch (const std::exception &error) {
        document.fail(error.what());
    }
}

void *run(void *argument) {
    auto *job = static_cast<Job *>(argument);
    try {
        parse(job->bytes, *job->document);
        job->done = true;
    } catch (...) {
        // Out of memory: `done` stays false.
    }
    return nullptr;
}

/// Parses on a separate thread with a large stack: toml++ recurses once per part of a dotted key,
/// without a limit, so `a.a.a.…` would overflow an ordinary one. 1 kB per byte of the file is
/// plenty.
bool parse_on_own_stack(Job &job) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_t thread;
    const size_t stack = (size_t(1) << 20) + job.bytes.size() * 1024;
    const bool started = pthread_attr_setstacksize(&attributes, stack) == 0 &&
                         pthread_create(&thread, &attributes, run, &job) == 0;
    pthread_attr_destroy(&attributes);
    return started && pthread_join(thread, nullptr) == 0 && job.done;
}

}  // namespace

waypost_toml *waypost_toml_parse(const char *bytes, size_t count) {
    auto *document = new (std::nothrow) waypost_toml;
    if (!document) return nullptr;
    Job job{std::string_view(bytes ? bytes : "", bytes ? count : 0), document, false};
    if (parse_on_own_stack(job)) return document;
    delete document;
    return nullptr;
}

void waypost_toml_free(waypost_toml *document) { delete document; }

bool waypost_toml_failed(const waypost_toml *document, waypost_toml_error *error) {
    if (document->failed) {
        const Failure &failure = document->failure;
        *error = {view(failure.description), failure.line, failure.column};
    }
    return document->failed;
}

size_t waypost_toml_count(const waypost_toml *document) { return document->entries.size(); }

bool waypost_toml_get(const waypost_toml *document, size_t index, waypost_toml_entry *entry) {
    if (index >= document->entries.size()) return false;
    const Entry &from = document->entries[index];
    *entry = {from.kind,    view(from.path),     view(from.key), view(from.string), from.integer,
              from.number,  from.boolean,        from.strings.size(), from.line,    from.column};
    return true;
}

waypost_toml_text waypost_toml_element(const waypost_toml *document, size_t index, size_t element) {
    if (index >= document->entries.size()) return {nullptr, 0};
    const auto &strings = document->entries[index].strings;
    return element < strings.size() ? view(strings[element]) : waypost_toml_text{nullptr, 0};
}
