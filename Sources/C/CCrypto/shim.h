// OpenSSL's libcrypto: AES-CCM and SHA-256 through EVP. libcurl loads the library anyway.
#pragma once
#include <openssl/crypto.h>
#include <openssl/evp.h>
