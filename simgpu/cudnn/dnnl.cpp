// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#include "simgpu/cudnn/dnnl.hpp"

#include <dlfcn.h>
#include <dnnl.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "simgpu/cudnn/log.hpp"

namespace libswap::simgpu::cudnn::dnnl {
namespace {

// Opened when work comes, not linked: the stand-in is preloaded into programs that may never use
// it, or bring a oneDNN of their own.
#define SIMGPU_DNNL_FUNCTIONS(X)                      \
    X(engine_create)                                  \
    X(stream_create)                                  \
    X(stream_wait)                                    \
    X(memory_desc_init_by_strides)                    \
    X(memory_desc_init_by_tag)                        \
    X(memory_desc_equal)                              \
    X(memory_create)                                  \
    X(memory_destroy)                                 \
    X(dilated_convolution_forward_desc_init)          \
    X(dilated_convolution_backward_data_desc_init)    \
    X(dilated_convolution_backward_weights_desc_init) \
    X(primitive_desc_create)                          \
    X(primitive_desc_query_md)                        \
    X(primitive_desc_destroy)                         \
    X(reorder_primitive_desc_create)                  \
    X(primitive_create)                               \
    X(primitive_execute)                              \
    X(primitive_destroy)

struct Functions {
#define SIMGPU_DNNL_MEMBER(name) decltype(&::dnnl_##name) name = nullptr;
    SIMGPU_DNNL_FUNCTIONS(SIMGPU_DNNL_MEMBER)
#undef SIMGPU_DNNL_MEMBER
    /// Of the calling thread's parallel regions; null where it is not built with OpenMP.
    void (*set_threads)(int) = nullptr;
    dnnl_engine_t engine = nullptr;
};

bool resolve(Functions& f) {
    int flags = RTLD_NOW | RTLD_LOCAL;
#ifndef __SANITIZE_ADDRESS__
    flags |= RTLD_DEEPBIND;  // its own functions, not those of a oneDNN inside the program
#endif
    void* library = ::dlopen("libdnnl.so.2", flags);
    if (library == nullptr) {
        say("no libdnnl.so.2: no convolutions (package libdnnl2)");
        return false;
    }
    bool complete = true;
    auto find = [&](const char* name, auto& function) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        complete = complete && function != nullptr;
    };
#define SIMGPU_DNNL_FIND(name) find("dnnl_" #name, f.name);
    SIMGPU_DNNL_FUNCTIONS(SIMGPU_DNNL_FIND)
#undef SIMGPU_DNNL_FIND
    if (!complete || f.engine_create(&f.engine, dnnl_cpu, 0) != dnnl_success) {
        say("libdnnl.so.2 is not as expected: no convolutions");
        return false;
    }
    f.set_threads = reinterpret_cast<void (*)(int)>(::dlsym(library, "omp_set_num_threads"));
    return true;
}

/// Null where there is no oneDNN.
const Functions* functions() {
    static Functions table;
    static const bool found = resolve(table);
    return found ? &table : nullptr;
}

/// A handle of oneDNN that goes with the scope.
template <typename Handle, auto destroy>
class Owned {
  public:
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        if (handle_ != nullptr) {
            (functions()->*destroy)(handle_);
        }
    }
    Handle get() const { return handle_; }
    Handle* out() { return &handle_; }

  private:
    Handle handle_ = nullptr;
};
using Memory = Owned<dnnl_memory_t, &Functions::memory_destroy>;
using Primitive = Owned<dnnl_primitive_t, &Functions::primitive_destroy>;
using PrimitiveDesc = Owned<dnnl_primitive_desc_t, &Functions::primitive_desc_destroy>;

/// oneDNN's view of a tensor of ours: its layout, and one that oneDNN may choose.
struct View {
    dnnl_memory_desc_t plain;
    dnnl_memory_desc_t any;
};

dnnl_memory_desc_t described(int rank, const dnnl_dims_t dims, const dnnl_dims_t strides) {
    dnnl_memory_desc_t desc;
    functions()->memory_desc_init_by_strides(&desc, rank, dims, dnnl_f32, strides);
    return desc;
}

View view_of(int rank, const dnnl_dims_t dims, std::int64_t outer_stride) {
    dnnl_dims_t strides;
    std::int64_t stride = 1;
    for (int i = rank - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= dims[i];
    }
    if (outer_stride != 0) {
        strides[0] = outer_stride;
    }
    View view;
    view.plain = described(rank, dims, strides);
    functions()->memory_desc_init_by_tag(&view.any, rank, dims, dnnl_f32, dnnl_format_tag_any);
    return view;
}

View view_of(const Tensor& tensor, std::int64_t outer_stride = 0) {
    dnnl_dims_t dims;
    std::copy_n(tensor.dims, tensor.rank, dims);
    return view_of(tensor.rank, dims, outer_stride);
}

/// Filters of groups have a dimension more.
View filter_view(const Tensor& tensor, int groups) {
    if (groups == 1) {
        return view_of(tensor);
    }
    dnnl_dims_t dims;
    dims[0] = groups;
    std::copy_n(tensor.dims, tensor.rank, dims + 1);
    dims[1] /= groups;
    return view_of(tensor.rank + 1, dims, 0);
}

/// Copies between layouts.
bool reorder(dnnl_stream_t stream, const dnnl_memory_desc_t& from_desc, dnnl_memory_t from,
             const dnnl_memory_desc_t& to_desc, dnnl_memory_t to) {
    const Functions& f = *functions();
    PrimitiveDesc desc;
    Primitive primitive;
    if (f.reorder_primitive_desc_create(desc.out(), &from_desc, f.engine, &to_desc, f.engine,
                                        nullptr) != dnnl_success ||
        f.primitive_create(primitive.out(), desc.get()) != dnnl_success) {
        return false;
    }
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return f.primitive_execute(primitive.get(), stream, 2, arguments) == dnnl_success;
}

/// A tensor of ours, and its copy in the layout that the primitive wants, if that is another.
class Operand {
  public:
    bool create(const View& view, float* data, const dnnl_memory_desc_t& wanted) {
        const Functions& f = *functions();
        plain_desc_ = view.plain;
        wanted_desc_ = wanted;
        copied_ = f.memory_desc_equal(&view.plain, &wanted) == 0;
        return f.memory_create(plain_.out(), &view.plain, f.engine, data) == dnnl_success &&
               (!copied_ || f.memory_create(wanted_.out(), &wanted, f.engine,
                                            DNNL_MEMORY_ALLOCATE) == dnnl_success);
    }
    bool bring(dnnl_stream_t stream) {
        return !copied_ || reorder(stream, plain_desc_, plain_.get(), wanted_desc_, wanted_.get());
    }
    bool take(dnnl_stream_t stream) {
        return !copied_ || reorder(stream, wanted_desc_, wanted_.get(), plain_desc_, plain_.get());
    }
    dnnl_memory_t memory() const { return copied_ ? wanted_.get() : plain_.get(); }

  private:
    dnnl_memory_desc_t plain_desc_;
    dnnl_memory_desc_t wanted_desc_;
    bool copied_ = false;
    Memory plain_;
    Memory wanted_;
};

struct Geometry {
    dnnl_dims_t stride;
    dnnl_dims_t dilation;
    dnnl_dims_t before;
    dnnl_dims_t after;
};

Geometry geometry_of(const ConvolutionShape& shape) {
    Geometry g;
    for (int i = 0; i < shape.spatial; ++i) {
        g.stride[i] = shape.stride[i];
        g.dilation[i] = shape.dilation[i] - 1;
        g.before[i] = shape.pad_before[i];
        g.after[i] = shape.pad_after[i];
    }
    return g;
}

/// What oneDNN would do, in layouts of its choice.
bool describe(const Convolution& c, const View& x, const View& w, const View& y,
              PrimitiveDesc& out) {
    const Functions& f = *functions();
    const Geometry g = geometry_of(*c.shape);
    dnnl_convolution_desc_t forward;
    if (f.dilated_convolution_forward_desc_init(
            &forward, dnnl_forward_training, dnnl_convolution_direct, &x.any, &w.any, nullptr,
            &y.any, g.stride, g.dilation, g.before, g.after) != dnnl_success) {
        return false;
    }
    if (c.direction == Direction::Forward) {
        return f.primitive_desc_create(out.out(), &forward, nullptr, f.engine, nullptr) ==
               dnnl_success;
    }
    PrimitiveDesc hint;
    if (f.primitive_desc_create(hint.out(), &forward, nullptr, f.engine, nullptr) != dnnl_success) {
        return false;
    }
    dnnl_convolution_desc_t backward;
    const dnnl_status_t status =
        c.direction == Direction::BackwardData
            ? f.dilated_convolution_backward_data_desc_init(&backward, dnnl_convolution_direct,
                                                            &x.any, &w.any, &y.any, g.stride,
                                                            g.dilation, g.before, g.after)
            : f.dilated_convolution_backward_weights_desc_init(
                  &backward, dnnl_convolution_direct, &x.any, &w.any, nullptr, &y.any, g.stride,
                  g.dilation, g.before, g.after);
    return status == dnnl_success && f.primitive_desc_create(out.out(), &backward, nullptr,
                                                             f.engine, hint.get()) == dnnl_success;
}

/// What each tensor is called in a direction.
struct Names {
    dnnl_query_t x_query;
    dnnl_query_t w_query;
    dnnl_query_t y_query;
    int x;
    int w;
    int y;
};

Names names_of(Direction direction) {
    switch (direction) {
        case Direction::Forward:
            break;
        case Direction::BackwardData:
            return {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md,
                    DNNL_ARG_DIFF_SRC,      DNNL_ARG_WEIGHTS,      DNNL_ARG_DIFF_DST};
        case Direction::BackwardFilter:
            return {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md,
                    DNNL_ARG_SRC,      DNNL_ARG_DIFF_WEIGHTS,      DNNL_ARG_DIFF_DST};
    }
    return {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md,
            DNNL_ARG_SRC,      DNNL_ARG_WEIGHTS,      DNNL_ARG_DST};
}

bool run(const Convolution& c) {
    const Functions& f = *functions();
    // One per thread that does work, for good: there are two.
    static thread_local dnnl_stream_t stream = nullptr;
    if (stream == nullptr &&
        f.stream_create(&stream, f.engine, dnnl_stream_default_flags) != dnnl_success) {
        return false;
    }
    if (f.set_threads != nullptr) {
        f.set_threads(1);  // sums are cut the same way everywhere, and no thread spins
    }
    const View x_view = view_of(*c.x_desc);
    const View w_view = filter_view(*c.w_desc, c.shape->groups);
    const View y_view = view_of(*c.y_desc, c.y_image_stride);
    PrimitiveDesc desc;
    Primitive primitive;
    if (!describe(c, x_view, w_view, y_view, desc) ||
        f.primitive_create(primitive.out(), desc.get()) != dnnl_success) {
        return false;
    }
    const Names names = names_of(c.direction);
    Operand x;
    Operand w;
    Operand y;
    if (!x.create(x_view, c.x, *f.primitive_desc_query_md(desc.get(), names.x_query, 0)) ||
        !w.create(w_view, c.w, *f.primitive_desc_query_md(desc.get(), names.w_query, 0)) ||
        !y.create(y_view, c.y, *f.primitive_desc_query_md(desc.get(), names.y_query, 0))) {
        return false;
    }
    Operand& output = c.direction == Direction::Forward        ? y
                      : c.direction == Direction::BackwardData ? x
                                                               : w;
    for (Operand* operand : {&x, &w, &y}) {
        if (operand != &output && !operand->bring(stream)) {
            return false;
        }
    }
    const dnnl_exec_arg_t arguments[] = {
        {names.x, x.memory()}, {names.w, w.memory()}, {names.y, y.memory()}};
    return f.primitive_execute(primitive.get(), stream, 3, arguments) == dnnl_success &&
           output.take(stream) && f.stream_wait(stream) == dnnl_success;
}

}  // namespace

bool convolve(const Convolution& convolution) {
    if (functions() == nullptr) {
        return false;
    }
    if (run(convolution)) {
        return true;
    }
    static std::once_flag said;
    std::call_once(said, [] { say("oneDNN refuses a convolution: plain loops do it"); });
    return false;
}

}  // namespace libswap::simgpu::cudnn::dnnl
