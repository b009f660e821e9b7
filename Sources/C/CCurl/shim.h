// libcurl: curl_easy_setopt and getinfo are variadic, so there is one inline per type of argument.
#pragma once
#include <curl/curl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>

static inline CURLcode waypost_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode waypost_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode waypost_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode waypost_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}
typedef size_t (*waypost_curl_transfer)(char *buffer, size_t size, size_t count, void *context);
static inline CURLcode waypost_curl_set_transfer(CURL *handle, CURLoption option, waypost_curl_transfer value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode waypost_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode waypost_curl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode waypost_curl_get_string(CURL *handle, CURLINFO info, char **value) {
    return curl_easy_getinfo(handle, info, value);
}
/// Returns the socket of a connection made with CURLOPT_CONNECT_ONLY, or -1.
static inline int waypost_curl_socket(CURL *handle) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    return curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK ? socket : -1;
}
typedef int (*waypost_curl_seek)(void *context, curl_off_t offset, int origin);
static inline CURLcode waypost_curl_set_seek(CURL *handle, waypost_curl_seek value) {
    return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, value);
}

typedef int (*waypost_curl_trace)(CURL *handle, curl_infotype kind, char *bytes, size_t count, void *context);
static inline CURLcode waypost_curl_set_trace(CURL *handle, waypost_curl_trace value) {
    return curl_easy_setopt(handle, CURLOPT_DEBUGFUNCTION, value);
}

/// Returns the bytes not yet sent by the kernel, or not acknowledged, on active transfers' sockets.
static inline long waypost_curl_unsent(CURLM *multi) {
    fd_set reading, writing, failing;
    int highest = -1, count = 0;
    long sum = 0;
    FD_ZERO(&reading);
    FD_ZERO(&writing);
    FD_ZERO(&failing);
    if (curl_multi_fdset(multi, &reading, &writing, &failing, &highest) != CURLM_OK) return 0;
    for (int fd = 0; fd <= highest; fd++)
        if ((FD_ISSET(fd, &reading) || FD_ISSET(fd, &writing)) && ioctl(fd, SIOCOUTQ, &count) == 0) sum += count;
    return sum;
}

/// Returns the version of the loaded libcurl as 0xMMmmpp.
static inline unsigned waypost_curl_version(void) { return curl_version_info(CURLVERSION_NOW)->version_num; }

/// Returns a field of the server's certificate as CURLINFO_CERTINFO has it (`Expire date:`), or
/// NULL.
static inline const char *waypost_curl_certificate(CURL *handle, const char *field) {
    struct curl_certinfo *info = NULL;
    if (curl_easy_getinfo(handle, CURLINFO_CERTINFO, &info) != CURLE_OK || !info || info->num_of_certs < 1) return NULL;
    for (struct curl_slist *entry = info->certinfo[0]; entry; entry = entry->next)
        if (strncmp(entry->data, field, strlen(field)) == 0) return entry->data + strlen(field);
    return NULL;
}
