// Takes the mark "keep me" (SHF_GNU_RETAIN) off the sections of object files and archives, in place. Swift's compiler puts
// it on all that is public, for code that comes later, which a program has none of: the linker could leave out nothing
// of Swift's library. The tables by which the runtime finds types and conformances (swift5_…) keep it.
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define RETAIN (1 << 21)

static void unretain(char *elf) {
    Elf64_Ehdr header;
    memcpy(&header, elf, sizeof header);
    char *table = elf + header.e_shoff;
    // Numbers that are too large for the header stand in the first section's.
    Elf64_Shdr first, names, section;
    memcpy(&first, table, sizeof first);
    size_t count = header.e_shnum ? header.e_shnum : first.sh_size;
    size_t index = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
    memcpy(&names, table + index * sizeof names, sizeof names);
    for (size_t i = 1; i < count; i++) {
        char *place = table + i * sizeof section;
        memcpy(&section, place, sizeof section);
        if (strncmp(elf + names.sh_offset + section.sh_name, "swift5_", 7) == 0) continue;
        section.sh_flags &= ~(Elf64_Xword)RETAIN;
        memcpy(place, &section, sizeof section);
    }
}

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        struct stat status;
        int file = open(paths[i], O_RDWR);
        if (file < 0 || fstat(file, &status)) return perror(paths[i]), 1;
        char *bytes = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (bytes == MAP_FAILED) return perror(paths[i]), 1;
        char *end = bytes + status.st_size;
        if (strncmp(bytes, "!<arch>\n", 8) != 0) {
            unretain(bytes);
            continue;
        }
        // Members of an archive: 60 bytes with the length at 48, then the member, at even places (ar(5)).
        for (char *member = bytes + 8; member + 60 < end;) {
            size_t length = strtoul(member + 48, NULL, 10);
            if (memcmp(member + 60, ELFMAG, SELFMAG) == 0) unretain(member + 60);
            member += 60 + length + length % 2;
        }
    }
    return 0;
}
