// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// A libcuda.so.1 that does nothing but write down what it is asked for.

#include <stdio.h>
#include <string.h>

static void note(const char* text) {
    fprintf(stderr, "driver: %s\n", text);
}

static int nothing(void) { return 0; }

static int version(int* value) {
    note("cuDriverGetVersion");
    *value = 13000;
    return 0;
}

static int init(unsigned flags) {
    fprintf(stderr, "driver: cuInit(%u)\n", flags);
    return 100;  // no device: nothing after this is of interest
}

static int export_table(const void** table, const void* id) {
    (void)id;
    *table = 0;
    return 500;
}

int cuGetProcAddress_v2(const char* symbol, void** function, int wanted, unsigned long long flags,
                        int* status) {
    fprintf(stderr, "request: '%s' %d %llu%s\n", symbol, wanted, flags, status ? " status" : "");
    *function = (void*)nothing;
    if (strcmp(symbol, "cuDriverGetVersion") == 0) *function = (void*)version;
    // The vendor's runtime goes on with what it gets here.
    if (strcmp(symbol, "cuGetProcAddress") == 0) *function = (void*)cuGetProcAddress_v2;
    if (strcmp(symbol, "cuInit") == 0) *function = (void*)init;
    if (strcmp(symbol, "cuGetExportTable") == 0) *function = (void*)export_table;
    return 0;
}
