// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace simgpu::ptx {
struct Module;
}

/// What programs bring: fat binaries, cubins and PTX, read as the driver would read them.
///
/// Images come without a size. Only what their own headers claim is touched, and each inner size is
/// checked against the outer one; a header that claims more than exists cannot be told from a good
/// one.
namespace libswap::simgpu::image {

/// Why an image is refused: the driver's code, and one sentence (no full stop, no newline).
struct ImageError {
    CUresult code;
    std::string reason;
};

/// One kernel parameter inside the parameter block.
struct Parameter {
    std::uint32_t offset;
    std::uint32_t bytes;
};

/// A kernel as the image describes it.
struct KernelInfo {
    std::string name;
    /// In order of their index; offsets count from the start of the parameter block.
    std::vector<Parameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;
    std::uint32_t registers = 32;
    /// Largest block that the image allows (.maxntid or its cubin record), 0 where it says nothing.
    std::uint32_t max_threads = 0;
};

/// A pointer to a variable or function inside another variable's initial data.
struct Relocation {
    std::uint64_t offset;
    std::string symbol;
    std::int64_t addend;
};

/// A __device__, __constant__ or __managed__ variable.
struct VariableInfo {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 1;
    bool constant = false;
    bool managed = false;
    /// Initial bytes; where shorter than `bytes` (or empty) the rest is zero.
    std::vector<std::byte> initial;
    std::vector<Relocation> relocations;
};

/// Where an image's description was read from.
enum class Form { Ptx, Cubin };

/// An image with everything unpacked.
struct Contents {
    Form form = Form::Ptx;
    /// Architecture the code was made for, as in sm_80: 80.
    std::uint32_t architecture = 0;
    /// One PTX text (those of a device-linked program's translation units are joined); empty for a
    /// cubin.
    std::string ptx;
    /// The text parsed; null for a cubin. Its kernels and globals are those below, in their order.
    std::shared_ptr<const ::simgpu::ptx::Module> module;
    std::vector<KernelInfo> kernels;
    std::vector<VariableInfo> variables;

    const KernelInfo* find_kernel(std::string_view name) const;
    const VariableInfo* find_variable(std::string_view name) const;
};

/// An image whose headers were checked. Holds copies of the bytes it may still need (compressed as
/// they came), so the program may free its own. Movable; safe to use from several threads.
class Image {
  public:
    /// Unpacks on the first call, answers from memory later. The contents live as long as the
    /// image.
    tl::expected<const Contents*, ImageError> contents() const;

    /// Form and architecture that were chosen, known without unpacking.
    Form form() const;
    std::uint32_t architecture() const;

    struct State;
    explicit Image(std::shared_ptr<State> state);

  private:
    std::shared_ptr<State> state_;
};

/// Reads what cuModuleLoadData and cuLibraryLoadData take: a fat binary wrapper
/// (__fatBinC_Wrapper_t), a fat binary, a cubin or NUL-terminated PTX. PTX of any architecture is
/// preferred, since it can be executed; among several the newest that is not newer than
/// `compute_capability` (80 for 8.0), else the oldest newer one. Cubins are chosen alike.
/// @thread any
tl::expected<Image, ImageError> load_image(const void* data, std::uint32_t compute_capability = 80);

/// The same with a known size (cuLinkAddData, files): nothing past `bytes` is touched.
/// PTX need not end in NUL.
/// @thread any
tl::expected<Image, ImageError> load_image(const void* data, std::size_t bytes,
                                           std::uint32_t compute_capability);

}  // namespace libswap::simgpu::image
