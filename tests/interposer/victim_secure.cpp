// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <sys/auxv.h>

#include <cstdio>
#include <cstring>

// Says whether libswap is in this process, and whether the process is one that gained privileges.

int main() {
    if (getauxval(AT_SECURE) == 0) return std::puts("not secure") < 0;
    FILE* maps = std::fopen("/proc/self/maps", "r");
    if (!maps) return std::puts("no libswap") < 0;  // a privileged process may not even look
    char line[512];
    bool found = false;
    while (std::fgets(line, sizeof line, maps)) found = found || std::strstr(line, "libswap.so");
    std::fclose(maps);
    return std::puts(found ? "libswap is there" : "no libswap") < 0;
}
