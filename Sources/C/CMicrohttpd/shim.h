// libmicrohttpd: starting it and querying a connection are variadic, so each use has an inline.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/// The limits of one server.
struct waypost_http_bounds {
    size_t connection_memory;   // bytes: header and read buffer of one connection
    unsigned int connections;   // at once; more wait in the backlog of the listening socket
    unsigned int idle_seconds;  // a connection without a byte for so long is closed
};

/// Starts one thread that serves all connections of a listening socket and closes it at the end;
/// NULL on failure.
/// It uses poll: with edge-triggered epoll, the library notices an end that came with the last
/// bytes only at the timeout.
static inline struct MHD_Daemon *waypost_http_start(int listener, struct waypost_http_bounds bounds,
                                                    MHD_AccessHandlerCallback handle,
                                                    MHD_RequestCompletedCallback completed,
                                                    MHD_NotifyConnectionCallback connection, void *context) {
    return MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, context,
                            MHD_OPTION_LISTEN_SOCKET, (MHD_socket)listener,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, bounds.connection_memory,
                            MHD_OPTION_CONNECTION_LIMIT, bounds.connections,
                            MHD_OPTION_CONNECTION_TIMEOUT, bounds.idle_seconds,
                            MHD_OPTION_NOTIFY_COMPLETED, completed, context,
                            MHD_OPTION_NOTIFY_CONNECTION, connection, context,
                            MHD_OPTION_END);
}

/// Converts a flag to the library's enumeration, whose name in Swift depends on the compiler.
static inline enum MHD_Result waypost_http_result(int is_done) { return is_done ? MHD_YES : MHD_NO; }

static inline int waypost_http_is_closed(enum MHD_ConnectionNotificationCode code) {
    return code == MHD_CONNECTION_NOTIFY_CLOSED;
}

/// Returns a header field, or NULL.
static inline const char *waypost_http_field(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static inline enum MHD_Result waypost_http_keep_last(void *last, enum MHD_ValueKind kind, const char *name,
                                                     const char *value) {
    const char **wanted = last;
    if (strcasecmp(name, wanted[0]) == 0 && value) wanted[1] = value;
    return MHD_YES;
}

/// Returns the value of the last of several header fields with this name, or NULL.
static inline const char *waypost_http_last_field(struct MHD_Connection *connection, const char *name) {
    const char *last[2] = {name, NULL};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, waypost_http_keep_last, last);
    return last[1];
}

struct waypost_http_names { int lengths, has_blank; };

static inline enum MHD_Result waypost_http_note_name(void *found, enum MHD_ValueKind kind, const char *name,
                                                     const char *value) {
    struct waypost_http_names *names = found;
    names->lengths += strcasecmp(name, "Content-Length") == 0;
    names->has_blank |= strpbrk(name, " \t") != NULL;
    return MHD_YES;
}

/// Returns true if the header has more than one Content-Length, or a name with a blank in it.
static inline int waypost_http_is_ambiguous(struct MHD_Connection *connection) {
    struct waypost_http_names names = {0, 0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, waypost_http_note_name, &names);
    return names.lengths > 1 || names.has_blank;
}

/// Calls `take` with each name and value of the query, both decoded; a name alone has no value.
static inline void waypost_http_query(struct MHD_Connection *connection, MHD_KeyValueIterator take, void *context) {
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take, context);
}

/// Creates a response with a copy of these bytes, or NULL.
static inline struct MHD_Response *waypost_http_response(const void *bytes, size_t count) {
    return MHD_create_response_from_buffer(count, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

/// Creates an endless response, or NULL: `read` supplies the next bytes, `forget` releases the
/// context.
static inline struct MHD_Response *waypost_http_stream(MHD_ContentReaderCallback read,
                                                       MHD_ContentReaderFreeCallback forget, void *context) {
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read, context, forget);
}

/// Ends the connection if sent bytes are not acknowledged for so long (tcp(7)).
static inline void waypost_http_limit_silence(int socket, unsigned int milliseconds) {
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

/// Returns true if the other end has closed the socket and everything it sent was read.
static inline int waypost_http_is_shut(int socket) {
    char byte;
    ssize_t count = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

/// Queues a response; returns false if the connection cannot be answered now.
static inline int waypost_http_queue(struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response) {
    return MHD_queue_response(connection, status, response) == MHD_YES;
}

/// Returns the connection's socket, or -1.
static inline int waypost_http_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? (int)info->connect_fd : -1;
}

/// Returns the size of the request line and the header.
static inline size_t waypost_http_header_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

/// Writes the client's numeric address; an empty string without one.
static inline void waypost_http_address(struct MHD_Connection *connection, char text[INET6_ADDRSTRLEN]) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    text[0] = 0;
    if (address && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, INET6_ADDRSTRLEN);
    if (address && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, INET6_ADDRSTRLEN);
}

/// Returns a second descriptor of a socket, close-on-exec, or -1.
static inline int waypost_http_keep(int socket) { return fcntl(socket, F_DUPFD_CLOEXEC, 0); }
