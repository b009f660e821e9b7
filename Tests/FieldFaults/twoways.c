// An LD_PRELOAD library that gives a name two addresses: ::1, and 127.0.0.1 behind it.
//
//   cc -shared -fPIC -O1 -o libtwoways.so twoways.c -ldl
//   LD_PRELOAD=libtwoways.so TWOWAYS_HOST=name PROGRAM
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        dlsym(RTLD_NEXT, "getaddrinfo");
    const char *name = getenv("TWOWAYS_HOST");
    if (!name || !host || strcmp(host, name) != 0) return real(host, port, hints, list);
    int family = hints ? hints->ai_family : AF_UNSPEC;
    if (family == AF_INET) return real("127.0.0.1", port, hints, list);
    int code = real("::1", port, hints, list);
    if (code != 0 || family == AF_INET6) return code;
    struct addrinfo *end = *list;
    while (end->ai_next) end = end->ai_next;
    return real("127.0.0.1", port, hints, &end->ai_next);
}
