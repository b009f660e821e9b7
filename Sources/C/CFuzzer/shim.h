// libFuzzer as a library (LLVM, FuzzerInterface.h); the compiler links it with -sanitize=fuzzer.
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one)(const uint8_t *data, size_t size));

/// Runs libFuzzer with a program's arguments; returns its exit status.
static inline int waypost_run_fuzzer(int *argc, char *_Nullable *_Nullable *_Nullable argv,
                                     int (*_Nonnull one)(const uint8_t *_Nullable, size_t)) {
    return LLVMFuzzerRunDriver(argc, (char ***)argv, one);
}
