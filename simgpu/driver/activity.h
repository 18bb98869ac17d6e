/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The libswap authors
 *
 * What the stand-in libcuda.so.1 tells a profiler (the stand-in libcupti.so.13). Get the functions
 * with dlsym: they do not exist on a real GPU.
 */
#ifndef LIBSWAP_SIMGPU_DRIVER_ACTIVITY_H
#define LIBSWAP_SIMGPU_DRIVER_ACTIVITY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum SimgpuOperationKind { SimgpuKernel = 0, SimgpuCopy = 1, SimgpuMemset = 2 };
enum SimgpuMemoryKind { SimgpuPageable = 1, SimgpuPinned = 2, SimgpuDevice = 3 };

/** One operation that is done. Times are those of the simulated clock. Valid during the call. */
typedef struct SimgpuOperation {
    int kind;             /* SimgpuOperationKind */
    uint32_t correlation; /* number of the call that submitted it */
    uint32_t device, context, stream;
    uint64_t start_ns, end_ns;
    uint64_t bytes;
    const char* name; /* of a kernel */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    int from, to;   /* SimgpuMemoryKind of a copy */
    uint32_t value; /* of a memset */
    int in_graph;
} SimgpuOperation;

/** Called on the thread that ends the operation, with the device's lock held: calls nothing of the
 * driver. */
typedef void (*SimgpuOperationListener)(const SimgpuOperation* operation);

/** A call of the driver's API, on its thread: before its work, and after. `correlation` is its
 * number. `result` counts at the exit. What it calls of the driver is not told. */
typedef void (*SimgpuCallListener)(int at_exit, const char* name, uint32_t correlation, int result);

/** NULL: nobody listens (any more). @thread any */
void simgpuListen(SimgpuOperationListener operations, SimgpuCallListener calls);

#ifdef __cplusplus
}
#endif

#endif
