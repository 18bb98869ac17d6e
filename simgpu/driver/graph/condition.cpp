// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/condition.hpp"

#include <cstring>
#include <utility>

#include "simgpu/driver/gpu.hpp"

namespace simgpu::driver {

CUresult Condition::create(Context& context, unsigned default_value, unsigned flags,
                           std::shared_ptr<Condition>& out) {
    const auto va = machine().memory().allocate(context.gpu.ordinal, sizeof(unsigned));
    if (!va) return va.error();
    out.reset(new Condition(context, *va));
    out->default_value = default_value;
    out->flags = flags;
    return CUDA_SUCCESS;
}

Condition::~Condition() { static_cast<void>(machine().memory().free(va_)); }

unsigned Condition::value() const {
    const Access access =
        machine().memory().resolve(context_.gpu.ordinal, va_, sizeof(unsigned), false);
    unsigned value = 0;
    if (access.ok && access.host != nullptr) std::memcpy(&value, access.host, sizeof value);
    return value;
}

namespace {

/// The body that the condition's value chooses; its size where none is.
std::size_t chosen(CUgraphConditionalNodeType type, unsigned value, std::size_t bodies) {
    if (type == CU_GRAPH_COND_TYPE_SWITCH) return value;
    if (value != 0) return 0;
    return type == CU_GRAPH_COND_TYPE_IF ? 1 : bodies;
}

}  // namespace

std::function<const std::vector<GraphStep>*()> choice_of(
    std::shared_ptr<Condition> condition, CUgraphConditionalNodeType type,
    std::vector<std::vector<GraphStep>> bodies) {
    auto shared = std::make_shared<const std::vector<std::vector<GraphStep>>>(std::move(bodies));
    return [condition = std::move(condition), type, shared = std::move(shared),
            over = false]() mutable -> const std::vector<GraphStep>* {
        if (over) return nullptr;
        over = type != CU_GRAPH_COND_TYPE_WHILE;
        const std::size_t body = chosen(type, condition->value(), shared->size());
        return body < shared->size() ? &(*shared)[body] : nullptr;
    };
}

}  // namespace simgpu::driver
