// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/driver/graph/user_object.hpp"

#include "simgpu/driver/entry.hpp"
#include "simgpu/driver/gpu.hpp"
#include "simgpu/driver/graph/graph.hpp"

namespace simgpu::driver {

namespace {

HandleTable<UserObject>& user_objects() {
    static auto* table =
        new HandleTable<UserObject>;  // leaked: calls may come after static destructors
    return *table;
}

CUresult create(CUuserObject* out, void* pointer, CUhostFn destroy, unsigned references,
                unsigned flags) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    const bool valid = out != nullptr && destroy != nullptr && references != 0 &&
                       flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
    if (!valid) return CUDA_ERROR_INVALID_VALUE;
    auto object = std::make_shared<UserObject>(pointer, destroy, references);
    *out = object->handle();
    user_objects().add(std::move(object));
    return CUDA_SUCCESS;
}

CUresult retain_object(CUuserObject handle, unsigned count) {
    std::shared_ptr<UserObject> object;
    SIMGPU_TRY(find_user_object(handle, object));
    if (count == 0) return CUDA_ERROR_INVALID_VALUE;
    object->retain(count);
    return CUDA_SUCCESS;
}

CUresult release_object(CUuserObject handle, unsigned count) {
    std::shared_ptr<UserObject> object;
    SIMGPU_TRY(find_user_object(handle, object));
    if (count == 0 || count > object->references()) return CUDA_ERROR_INVALID_VALUE;
    object->release(count);
    return CUDA_SUCCESS;
}

CUresult retain_for_graph(CUgraph graph_handle, CUuserObject handle, unsigned count,
                          unsigned flags) {
    std::lock_guard lock(graphs_lock());
    std::shared_ptr<Graph> graph;
    std::shared_ptr<UserObject> object;
    SIMGPU_TRY(find_graph(graph_handle, graph));
    SIMGPU_TRY(find_user_object(handle, object));
    const bool move = flags == CU_GRAPH_USER_OBJECT_MOVE;
    if (count == 0 || (flags != 0 && !move)) return CUDA_ERROR_INVALID_VALUE;
    if (move && count > object->references()) return CUDA_ERROR_INVALID_VALUE;
    graph->retain(object, count);
    if (move) object->release(count);
    return CUDA_SUCCESS;
}

CUresult release_for_graph(CUgraph graph_handle, CUuserObject handle, unsigned count) {
    std::shared_ptr<UserObject> object;
    {
        std::lock_guard lock(graphs_lock());
        std::shared_ptr<Graph> graph;
        SIMGPU_TRY(find_graph(graph_handle, graph));
        SIMGPU_TRY(find_user_object(handle, object));
        const auto held = graph->user_objects.find(object);
        if (count == 0 || held == graph->user_objects.end() || held->second < count)
            return CUDA_ERROR_INVALID_VALUE;
        held->second -= count;
        if (held->second == 0) graph->user_objects.erase(held);
    }
    object->release(count);
    return CUDA_SUCCESS;
}

}  // namespace

void UserObject::release(unsigned count) {
    if (references_.fetch_sub(count) != count) return;
    const auto self = user_objects().remove(this);
    destroy_(pointer_);
}

CUresult find_user_object(CUuserObject handle, std::shared_ptr<UserObject>& out) {
    if (!initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    out = user_objects().find(handle);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simgpu::driver

SIMGPU_CALL(cuUserObjectCreate,
            (CUuserObject * out, void* pointer, CUhostFn destroy, unsigned references,
             unsigned flags),
            { return driver::create(out, pointer, destroy, references, flags); })
SIMGPU_CALL(cuUserObjectRetain, (CUuserObject object, unsigned count),
            { return driver::retain_object(object, count); })
SIMGPU_CALL(cuUserObjectRelease, (CUuserObject object, unsigned count),
            { return driver::release_object(object, count); })
SIMGPU_CALL(cuGraphRetainUserObject,
            (CUgraph graph, CUuserObject object, unsigned count, unsigned flags),
            { return driver::retain_for_graph(graph, object, count, flags); })
SIMGPU_CALL(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned count),
            { return driver::release_for_graph(graph, object, count); })
