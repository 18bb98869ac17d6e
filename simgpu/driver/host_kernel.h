/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The libswap authors
 *
 * What the stand-in libcuda.so.1 exports beside the vendor's names. Get the functions with dlsym:
 * they do not exist on a real GPU.
 */
#ifndef LIBSWAP_SIMGPU_DRIVER_HOST_KERNEL_H
#define LIBSWAP_SIMGPU_DRIVER_HOST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One launch of a kernel whose work native code does. Valid during the call only. */
typedef struct SimgpuHostLaunch {
    const char* kernel_name;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t param_bytes;
    /** The parameter block, laid out as the kernel's PTX declares it (16-byte aligned). */
    const void* params;
    /** Device of the launch. */
    int device;

    /** Contiguous host pointer for `bytes` bytes at the device address `va`, valid until the
     * function returns. `write` != 0 asks for write access (and counts as a write of those chunks).
     * NULL where a byte of it is not mapped or not granted: the launch then fails with
     * CUDA_ERROR_ILLEGAL_ADDRESS, so just return. Two ranges that the launch touches may alias as
     * they do on a device. */
    void* (*span)(const struct SimgpuHostLaunch* launch, uint64_t va, size_t bytes, int write);

    /** Filled in by the function for the time model: floating point operations and bytes of device
     * memory read and written, as an efficient device kernel would need them. */
    double* flops;
    double* bytes;
    /** Filled in where the launch's time is known beforehand, in nanoseconds: it takes that long in
     * place of what `flops` and `bytes` say, and longer where host memory that it used takes longer
     * over the link. */
    double* duration_ns;

    /** Not 0: no bytes exist (SIMGPU_DATA=none). span() checks and counts, and answers NULL for all
     * device memory; pinned memory is there. */
    int without_data;
    /** How often writes touched the 2 MiB chunk that `va` lies in. Without data a chunk's content
     * is known by it. */
    uint64_t (*write_count)(const struct SimgpuHostLaunch* launch, uint64_t va);

    void* reserved;
} SimgpuHostLaunch;

/** Does the work of one launch. Runs on a thread of the simulator, one at a time per device, in
 * stream order; it must not call the CUDA API. */
typedef void (*SimgpuHostKernel)(const SimgpuHostLaunch* launch);

/** From now on `fn` does the work of launches of kernels called `kernel_name` (the name in the
 * image), in place of their PTX. The parameter block comes from the loaded kernel's declared
 * layout. NULL removes it. Returns 0, or 1 for a NULL name. @thread any */
int simgpuHostKernelRegister(const char* kernel_name, SimgpuHostKernel fn);

/** The same for a function that looks at `without_data`. Others are not called where no bytes
 * exist: their kernels then run as those do whose code cannot be run. @thread any */
int simgpuHostKernelRegisterWithoutData(const char* kernel_name, SimgpuHostKernel fn);

/** Same syntax as SIMGPU_FAULTS ("cuMemCreate:3=2,cuMemMap:1+=999"): adds rules, counted from now
 * on. Names without a suffix stand for all variants of the call. NULL or "" removes all rules.
 * Returns 0, or 1 for a spec that does not parse (nothing changes then). @thread any */
int simgpuFaultSet(const char* spec);

/** Same syntax as SIMGPU_DELAYS ("h2d:5=2ms,kernel:*=100us,kernel:every7=1ms", kinds h2d, d2h, d2d,
 * kernel, memset): adds rules in simulated time. NULL or "" removes all. Returns 0, or 1 for a spec
 * that does not parse. @thread any */
int simgpuDelaySet(const char* spec);

/** How often the call was entered since the start or the last simgpuResetCounts, failed calls
 * included. A base name
 *  ("cuMemAlloc") counts all its variants, a name with suffix only itself ("cuMemAlloc_v2"). 0 for
 * unknown names.
 *  @thread any */
uint64_t simgpuCallCount(const char* name);

/** Sets all call counts to zero. */
void simgpuResetCounts(void);

/** How often writes touched the 2 MiB chunk that `va` lies in, or 0 where nothing is mapped.
 * @thread any */
uint64_t simgpuWriteCount(uint64_t va);

/** The simulated clock of the process's devices, in nanoseconds. @thread any */
uint64_t simgpuClockNs(void);

/** The program was given `bytes` bytes at `va`, or, with 0, gives them back. The stand-in runtime
 * says so: what lies beneath it may put allocations into larger pieces of memory, and kernels whose
 * code cannot be run must not fill more than the program has. @thread any */
void simgpuAllocationNote(uint64_t va, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
