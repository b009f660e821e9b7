// libcrypto of OpenSSL: AES-CCM through EVP. libcurl loads the library anyway.
#pragma once
#include <openssl/evp.h>
