// OpenSSL's libcrypto: AES-CCM, ChaCha20-Poly1305, X25519, SHA-256 and HMAC. libcurl loads the library anyway.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
