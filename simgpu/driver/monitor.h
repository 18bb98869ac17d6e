/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The libswap authors
 *
 * What the stand-in libcuda.so.1 tells who only looks (the stand-in libnvidia-ml.so.1). Get the
 * functions with dlsym: they do not exist on a real GPU. Nothing is initialised by them: they work
 * before cuInit, and what forks behind them may still use the driver. @thread any
 */
#ifndef LIBSWAP_SIMGPU_DRIVER_MONITOR_H
#define LIBSWAP_SIMGPU_DRIVER_MONITOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A process with device memory. */
typedef struct SimgpuProcess {
    uint32_t pid;
    uint64_t bytes;
} SimgpuProcess;

enum { SimgpuMostProcesses = 64 };

/** A device by its number among all there are, whichever of them this process sees. */
typedef struct SimgpuDeviceState {
    char name[96];
    char uuid[48]; /* as in CUDA_VISIBLE_DEVICES */
    uint32_t bus;  /* on PCI domain 0, slot 0 */
    uint64_t total_bytes;
    uint64_t used_bytes; /* by all processes */
    uint32_t clock_mhz;
    uint32_t busy_percent; /* kernels of this process, of the simulated time so far */
    uint32_t process_count;
    SimgpuProcess processes[SimgpuMostProcesses]; /* this one first, if it holds any */
} SimgpuDeviceState;

int simgpuDeviceCount(void);
int simgpuDriverVersion(void);

/** 0, or 1 where there is no such device. */
int simgpuDeviceState(int number, SimgpuDeviceState* state);

#ifdef __cplusplus
}
#endif

#endif
