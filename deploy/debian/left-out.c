#include <stdint.h>

// Stubs that debian/ld links in place of Swift's tables of the names, ages, scripts, words and folded cases of all
// Unicode characters (0.5 MB). Regular expressions ask for them, and programs by functions that debian/rules looks for.
int64_t __wrap__swift_stdlib_getScalarName(uint32_t scalar, uint8_t *buffer, int64_t capacity) {
    (void)scalar, (void)buffer, (void)capacity;
    return 0;
}

const uint8_t *__wrap__swift_stdlib_getScriptExtensions(uint32_t scalar, uint8_t *count) {
    (void)scalar;
    *count = 0;
    return 0;
}

void __wrap__swift_stdlib_getCaseMapping(uint32_t scalar, uint32_t *buffer) { *buffer = scalar; }

uint16_t __wrap__swift_stdlib_getAge(uint32_t scalar) { return (void)scalar, 0; }
uint8_t __wrap__swift_stdlib_getScript(uint32_t scalar) { return (void)scalar, 0; }
uint8_t __wrap__swift_stdlib_getWordBreakProperty(uint32_t scalar) { return (void)scalar, 0; }
