// The part of sd-bus(3) that the proxy calls; the ABI of libsystemd.so.0 is stable.
//
// Declared here, because libsystemd-dev needs exactly its own version of systemd: where a newer one
// is at hand, installing it would upgrade the system that builds Waypost.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;
typedef struct {
    const char *name;
    const char *message;
    int _need_free;
} sd_bus_error;
typedef int (*sd_bus_message_handler_t)(sd_bus_message *message, void *userdata, sd_bus_error *error);

int sd_bus_new(sd_bus **bus);
int sd_bus_set_address(sd_bus *bus, const char *address);
int sd_bus_set_bus_client(sd_bus *bus, int isClient);
int sd_bus_start(sd_bus *bus);
int sd_bus_get_fd(sd_bus *bus);
int sd_bus_get_events(sd_bus *bus);
int sd_bus_process(sd_bus *bus, sd_bus_message **message);
void sd_bus_close(sd_bus *bus);
sd_bus *sd_bus_unref(sd_bus *bus);
int sd_bus_add_match_async(sd_bus *bus, sd_bus_slot **slot, const char *match, sd_bus_message_handler_t callback,
                           sd_bus_message_handler_t installed, void *userdata);
int sd_bus_call_async(sd_bus *bus, sd_bus_slot **slot, sd_bus_message *message, sd_bus_message_handler_t callback,
                      void *userdata, uint64_t microseconds);
sd_bus_slot *sd_bus_slot_unref(sd_bus_slot *slot);

int sd_bus_message_new_method_call(sd_bus *bus, sd_bus_message **message, const char *destination, const char *path,
                                   const char *interface, const char *member);
int sd_bus_message_set_auto_start(sd_bus_message *message, int isAllowed);
int sd_bus_message_append_basic(sd_bus_message *message, char type, const void *value);
int sd_bus_message_append_array(sd_bus_message *message, char type, const void *bytes, size_t size);
int sd_bus_message_open_container(sd_bus_message *message, char type, const char *contents);
int sd_bus_message_close_container(sd_bus_message *message);
int sd_bus_message_read_basic(sd_bus_message *message, char type, void *value);
const sd_bus_error *sd_bus_message_get_error(sd_bus_message *message);
const char *sd_bus_message_get_sender(sd_bus_message *message);
sd_bus_message *sd_bus_message_unref(sd_bus_message *message);

// For tests, which play Avahi.
int sd_bus_request_name(sd_bus *bus, const char *name, uint64_t flags);
int sd_bus_release_name(sd_bus *bus, const char *name);
int sd_bus_add_filter(sd_bus *bus, sd_bus_slot **slot, sd_bus_message_handler_t callback, void *userdata);
int sd_bus_send(sd_bus *bus, sd_bus_message *message, uint64_t *cookie);
int sd_bus_send_to(sd_bus *bus, sd_bus_message *message, const char *destination, uint64_t *cookie);
int sd_bus_message_new_method_return(sd_bus_message *call, sd_bus_message **message);
int sd_bus_message_new_signal(sd_bus *bus, sd_bus_message **message, const char *path, const char *interface,
                              const char *member);
int sd_bus_message_is_method_call(sd_bus_message *message, const char *interface, const char *member);
int sd_bus_message_has_signature(sd_bus_message *message, const char *signature);
const char *sd_bus_message_get_member(sd_bus_message *message);
int sd_bus_message_enter_container(sd_bus_message *message, char type, const char *contents);
int sd_bus_message_read_array(sd_bus_message *message, char type, const void **bytes, size_t *size);
int sd_bus_message_skip(sd_bus_message *message, const char *types);
