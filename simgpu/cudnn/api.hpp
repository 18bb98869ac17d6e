// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

// The vendor's declarations; what a definition follows is exported.
#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop
