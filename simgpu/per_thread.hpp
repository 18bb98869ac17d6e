// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <unistd.h>

namespace simgpu {

/// The calling thread's object of a type, good to its very end: a program's static objects free
/// device memory when they are destroyed, and by then the thread_local objects of the thread that
/// ends the process are gone. So the main thread's lives as long as the process; another thread's
/// is deleted when it ends.
template <class T>
T& per_thread() {
    thread_local T* object = nullptr;  // has no destructor
    struct Guard {
        ~Guard() {
            if (gettid() == getpid()) return;
            delete object;
            object = nullptr;
        }
    };
    if (object == nullptr) {
        thread_local Guard guard;
        static_cast<void>(guard);
        object = new T;
    }
    return *object;
}

}  // namespace simgpu
