// libbluetooth: HCI sockets, commands and filters.
#pragma once
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <bluetooth/bluetooth.h>
#include <bluetooth/hci.h>
#include <bluetooth/hci_lib.h>

// Wrappers for macros with sizes and for sockaddr casts, which Swift cannot import.

static inline int waypost_hci_up(int socket, int adapter) { return ioctl(socket, HCIDEVUP, adapter); }

static inline int waypost_hci_down(int socket, int adapter) { return ioctl(socket, HCIDEVDOWN, adapter); }

/// Binds an HCI socket; `adapter` is HCI_DEV_NONE for events of no or any adapter.
static inline int waypost_hci_bind(int socket, uint16_t adapter, uint16_t channel) {
    struct sockaddr_hci address = {.hci_family = AF_BLUETOOTH, .hci_dev = adapter, .hci_channel = channel};
    return bind(socket, (struct sockaddr *)&address, sizeof address);
}

/// Receives only what scanning needs: command complete, command status, LE meta, and others'
/// commands.
static inline int waypost_hci_filter(int socket) {
    struct hci_filter filter;
    hci_filter_clear(&filter);
    hci_filter_set_ptype(HCI_EVENT_PKT, &filter);
    hci_filter_set_ptype(HCI_COMMAND_PKT, &filter);
    hci_filter_set_event(EVT_CMD_COMPLETE, &filter);
    hci_filter_set_event(EVT_CMD_STATUS, &filter);
    hci_filter_set_event(EVT_LE_META_EVENT, &filter);
    return setsockopt(socket, SOL_HCI, HCI_FILTER, &filter, sizeof filter);
}

/// Writes the numbers of the present adapters; returns their count, or -1.
static inline int waypost_hci_adapters(int socket, uint16_t *numbers, int limit) {
    struct {
        struct hci_dev_list_req head;
        struct hci_dev_req entries[HCI_MAX_DEV];
    } list = {.head = {.dev_num = HCI_MAX_DEV}};
    if (ioctl(socket, HCIGETDEVLIST, &list) < 0) return -1;
    int count = list.head.dev_num < limit ? list.head.dev_num : limit;
    for (int i = 0; i < count; i++) numbers[i] = list.entries[i].dev_id;
    return count;
}

/// Returns the address of an adapter; 0 if it has none.
static inline uint64_t waypost_hci_address(int socket, uint16_t adapter) {
    struct hci_dev_info info = {.dev_id = adapter};
    uint64_t address = 0;
    if (ioctl(socket, HCIGETDEVINFO, &info) < 0) return 0;
    for (int i = 5; i >= 0; i--) address = address << 8 | info.bdaddr.b[i];
    return address;
}

/// Returns the number of connections of an adapter, or -1.
static inline int waypost_hci_connections(int socket, uint16_t adapter) {
    struct {
        struct hci_conn_list_req head;
        struct hci_conn_info entries[1];
    } list = {.head = {.dev_id = adapter, .conn_num = 1}};
    return ioctl(socket, HCIGETCONNLIST, &list) < 0 ? -1 : list.head.conn_num;
}

/// Receives only the kernel's adapter events: added, removed, up, down.
static inline int waypost_hci_filter_adapters(int socket) {
    struct hci_filter filter;
    hci_filter_clear(&filter);
    hci_filter_set_ptype(HCI_EVENT_PKT, &filter);
    hci_filter_set_event(EVT_STACK_INTERNAL, &filter);
    return setsockopt(socket, SOL_HCI, HCI_FILTER, &filter, sizeof filter);
}
