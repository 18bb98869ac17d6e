// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "simgpu/image/image.hpp"

#include <fatbinary_section.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "simgpu/exec/ptx.hpp"
#include "simgpu/image/byte_view.hpp"
#include "simgpu/image/cubin.hpp"
#include "simgpu/image/fatbin.hpp"
#include "simgpu/image/ptx_join.hpp"

namespace libswap::simgpu::image {
namespace {

// A program links a handful of objects; the largest list we have seen has a few hundred.
constexpr std::size_t kMostPrelinked = 1 << 16;
// How far a text without a size may reach, read a page at a time until its NUL.
constexpr std::size_t kLargestPtxBytes = std::size_t{256} << 20;
constexpr std::size_t kPageBytes = 4096;

tl::unexpected<ImageError> fail(CUresult code, std::string reason) {
    return tl::make_unexpected(ImageError{code, std::move(reason)});
}

tl::unexpected<ImageError> invalid(std::string reason) {
    return fail(CUDA_ERROR_INVALID_IMAGE, std::move(reason));
}

/// One piece of an image that is still as it came.
struct Piece {
    Packing packing = Packing::Plain;
    std::vector<std::byte> stored;
    std::uint64_t plain_bytes = 0;
};

}  // namespace

struct Image::State {
    Form form = Form::Ptx;
    std::uint32_t architecture = 0;
    std::vector<Piece> pieces;
    std::once_flag unpacked;
    tl::expected<Contents, ImageError> contents;
};

namespace {

std::shared_ptr<Image::State> new_state(Form form, std::uint32_t architecture) {
    auto state = std::make_shared<Image::State>();
    state->form = form;
    state->architecture = architecture;
    return state;
}

Piece piece_of(const FatbinEntry& entry) {
    const auto stored = entry.stored.span();
    return {entry.packing, {stored.begin(), stored.end()}, entry.plain_bytes};
}

/// Newest that `compute_capability` can run, else the oldest there is; null if there is none.
const FatbinEntry* choose(const std::vector<FatbinEntry>& entries, Form form,
                          std::uint32_t compute_capability) {
    const FatbinEntry* best = nullptr;
    for (const FatbinEntry& entry : entries) {
        if (entry.form != form) {
            continue;
        }
        if (best == nullptr) {
            best = &entry;
            continue;
        }
        const bool runs = entry.architecture <= compute_capability;
        const bool best_runs = best->architecture <= compute_capability;
        const bool newer = entry.architecture > best->architecture;
        if (runs != best_runs ? runs : runs == newer && entry.architecture != best->architecture) {
            best = &entry;
        }
    }
    return best;
}

tl::expected<Image, ImageError> load_entries(const std::vector<FatbinEntry>& entries,
                                             std::uint32_t compute_capability) {
    const FatbinEntry* entry = choose(entries, Form::Ptx, compute_capability);
    if (entry == nullptr) {
        entry = choose(entries, Form::Cubin, compute_capability);
    }
    if (entry == nullptr) {
        return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, "fat binary holds neither PTX nor machine code");
    }
    auto state = new_state(entry->form, entry->architecture);
    state->pieces.push_back(piece_of(*entry));
    return Image(std::move(state));
}

/// A fat binary of unknown size, in a copy of our own.
tl::expected<std::vector<std::byte>, ImageError> copy_fatbin(const void* data) {
    const auto header = copy_readable(data, kFatbinHeaderBytes);
    if (!header) {
        return invalid("image cannot be read");
    }
    const auto bytes = fatbin_bytes(ByteView(*header));
    if (!bytes) {
        return tl::make_unexpected(bytes.error());
    }
    auto copy = copy_readable(data, *bytes);
    if (!copy) {
        return invalid(fmt::format("fat binary claims {} bytes that cannot be read", *bytes));
    }
    return std::move(*copy);
}

tl::expected<Image, ImageError> load_fatbin(ByteView bytes, std::uint32_t compute_capability) {
    const auto entries = fatbin_entries(bytes);
    if (!entries) {
        return tl::make_unexpected(entries.error());
    }
    return load_entries(*entries, compute_capability);
}

tl::expected<Image, ImageError> load_fatbin(const void* data, std::uint32_t compute_capability) {
    const auto copy = copy_fatbin(data);
    if (!copy) {
        return tl::make_unexpected(copy.error());
    }
    return load_fatbin(ByteView(*copy), compute_capability);
}

/// PTX of each object that was device-linked, or nothing if one of them has none.
std::optional<std::vector<Piece>> prelinked_ptx(void* const* fatbins,
                                                std::uint32_t compute_capability) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < kMostPrelinked; ++i) {
        const auto pointer = copy_readable(fatbins + i, sizeof(void*));
        if (!pointer) {
            return std::nullopt;
        }
        const void* data;
        std::memcpy(&data, pointer->data(), sizeof data);
        if (data == nullptr) {
            break;
        }
        const auto copy = copy_fatbin(data);
        const auto entries = copy ? fatbin_entries(ByteView(*copy))
                                  : tl::expected<std::vector<FatbinEntry>, ImageError>{};
        const FatbinEntry* entry =
            entries ? choose(*entries, Form::Ptx, compute_capability) : nullptr;
        if (entry == nullptr) {
            return std::nullopt;
        }
        pieces.push_back(piece_of(*entry));
    }
    return pieces.empty() ? std::nullopt : std::optional(std::move(pieces));
}

/// A device-linked program's own image is machine code only; its objects still have their PTX.
tl::expected<Image, ImageError> load_wrapper(const void* data, std::uint32_t compute_capability) {
    const auto copy = copy_readable(data, sizeof(__fatBinC_Wrapper_t));
    if (!copy) {
        return invalid("fat binary wrapper cannot be read");
    }
    __fatBinC_Wrapper_t wrapper;
    std::memcpy(&wrapper, copy->data(), sizeof wrapper);
    if (wrapper.version != FATBINC_VERSION && wrapper.version != FATBINC_LINK_VERSION) {
        return invalid(fmt::format("fat binary wrapper of unknown version {}", wrapper.version));
    }
    if (wrapper.version == FATBINC_LINK_VERSION && wrapper.filename_or_fatbins != nullptr) {
        auto pieces = prelinked_ptx(static_cast<void* const*>(wrapper.filename_or_fatbins),
                                    compute_capability);
        if (pieces) {
            auto state = new_state(Form::Ptx, compute_capability);
            state->pieces = std::move(*pieces);
            return Image(std::move(state));
        }
    }
    if (wrapper.data == nullptr) {
        return invalid("fat binary wrapper points nowhere");
    }
    return load_fatbin(static_cast<const void*>(wrapper.data), compute_capability);
}

tl::expected<Image, ImageError> load_cubin(std::vector<std::byte> bytes) {
    const std::uint32_t architecture = cubin_architecture(ByteView(bytes));
    auto state = new_state(Form::Cubin, architecture);
    const std::uint64_t plain_bytes = bytes.size();
    state->pieces.push_back({Packing::Plain, std::move(bytes), plain_bytes});
    return Image(std::move(state));
}

tl::expected<Image, ImageError> load_cubin(const void* data) {
    auto bytes = copy_readable(data, kElfHeaderBytes);
    if (!bytes) {
        return invalid("cubin header cannot be read");
    }
    auto end = cubin_table_end(ByteView(*bytes));
    if (!end) {
        return tl::make_unexpected(std::move(end.error()));
    }
    bytes = copy_readable(data, *end);
    if (!bytes) {
        return invalid(fmt::format("cubin claims {} bytes that cannot be read", *end));
    }
    end = cubin_extent(ByteView(*bytes));
    if (!end) {
        return tl::make_unexpected(std::move(end.error()));
    }
    if (*end > bytes->size()) {
        bytes = copy_readable(data, *end);
        if (!bytes) {
            return invalid(fmt::format("cubin claims {} bytes that cannot be read", *end));
        }
    }
    return load_cubin(std::move(*bytes));
}

bool starts_like_text(ByteView start) {
    for (std::size_t i = 0; i < start.size(); ++i) {
        const auto c = static_cast<unsigned char>(start.data()[i]);
        if (c != '\t' && c != '\n' && c != '\r' && c != '\f' && (c < 0x20 || c > 0x7E)) {
            return false;
        }
    }
    return start.size() > 0;
}

std::uint32_t target_of(std::string_view ptx) {
    const std::size_t at = ptx.find(".target");
    if (at == std::string_view::npos) {
        return 0;
    }
    std::size_t digit = ptx.find("sm_", at);
    std::uint32_t architecture = 0;
    for (digit += 3; digit < ptx.size() && ptx[digit] >= '0' && ptx[digit] <= '9'; ++digit) {
        architecture = architecture * 10 + static_cast<std::uint32_t>(ptx[digit] - '0');
        if (architecture > 9999) {
            return 0;
        }
    }
    return architecture;
}

tl::expected<Image, ImageError> load_text(std::vector<std::byte> bytes) {
    const auto nul = std::find(bytes.begin(), bytes.end(), std::byte{0});
    bytes.erase(nul, bytes.end());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.find(".version") == std::string_view::npos) {
        return invalid("neither a fat binary, nor a cubin, nor PTX (no .version)");
    }
    auto state = new_state(Form::Ptx, target_of(text));
    const std::uint64_t plain_bytes = bytes.size();
    state->pieces.push_back({Packing::Plain, std::move(bytes), plain_bytes});
    return Image(std::move(state));
}

tl::expected<Image, ImageError> load_text(const void* data) {
    // Up to the page's end first: the text may stop anywhere, and the page after it may not exist.
    std::vector<std::byte> bytes;
    const auto* source = static_cast<const std::byte*>(data);
    while (bytes.size() < kLargestPtxBytes) {
        const auto address = reinterpret_cast<std::uintptr_t>(source);
        const std::size_t step = kPageBytes - address % kPageBytes;
        const auto part = copy_readable(source, step);
        if (!part) {
            return fail(CUDA_ERROR_INVALID_PTX, "PTX text does not end before its memory does");
        }
        bytes.insert(bytes.end(), part->begin(), part->end());
        if (std::memchr(part->data(), 0, step) != nullptr) {
            return load_text(std::move(bytes));
        }
        source += step;
    }
    return fail(CUDA_ERROR_INVALID_PTX, "PTX text has no end");
}

tl::expected<std::vector<std::vector<std::byte>>, ImageError> unpack_all(Image::State& state) {
    std::vector<std::vector<std::byte>> all;
    for (Piece& piece : state.pieces) {
        auto plain = unpack(piece.packing, ByteView(piece.stored), piece.plain_bytes);
        if (!plain) {
            return tl::make_unexpected(std::move(plain.error()));
        }
        all.push_back(std::move(*plain));
    }
    // From here on the contents are all that anybody asks for.
    state.pieces.clear();
    state.pieces.shrink_to_fit();
    return all;
}

KernelInfo kernel_info(const ::simgpu::ptx::Kernel& kernel) {
    KernelInfo info;
    info.name = kernel.name;
    for (const auto& parameter : kernel.params) {
        info.parameters.push_back({parameter.offset_bytes, parameter.bytes});
    }
    info.parameter_bytes = kernel.param_bytes;
    info.static_shared_bytes = kernel.static_shared_bytes;
    info.local_bytes = kernel.local_bytes;
    info.registers = kernel.registers;
    const auto& block = kernel.required_block[0] != 0 ? kernel.required_block : kernel.max_block;
    if (block[0] != 0) {
        const std::uint64_t threads =
            std::uint64_t{block[0]} * std::max(block[1], 1U) * std::max(block[2], 1U);
        info.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 1024));
    }
    return info;
}

VariableInfo variable_info(const ::simgpu::ptx::Global& global) {
    VariableInfo info;
    info.name = global.name;
    info.bytes = global.bytes;
    info.alignment = global.align;
    info.constant = global.constant;
    info.managed = global.managed;
    info.initial = global.initial;
    for (const auto& relocation : global.relocations) {
        info.relocations.push_back({relocation.offset_bytes, relocation.symbol, relocation.addend});
    }
    return info;
}

tl::expected<Contents, ImageError> read_ptx(const std::vector<std::vector<std::byte>>& plain) {
    std::vector<std::string_view> texts;
    for (const auto& bytes : plain) {
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        texts.push_back(text.substr(0, text.find('\0')));
    }
    auto joined = join_ptx(texts);
    if (!joined) {
        return tl::make_unexpected(std::move(joined.error()));
    }
    Contents contents;
    contents.ptx = std::move(*joined);
    auto module = ::simgpu::ptx::parse(contents.ptx);
    if (!module) {
        return fail(CUDA_ERROR_INVALID_PTX,
                    fmt::format("PTX line {}: {}", module.error().line, module.error().reason));
    }
    contents.architecture = target_of(contents.ptx);
    for (const auto& kernel : module->kernels) {
        contents.kernels.push_back(kernel_info(kernel));
    }
    for (const auto& global : module->globals) {
        contents.variables.push_back(variable_info(global));
    }
    contents.module = std::make_shared<const ::simgpu::ptx::Module>(std::move(*module));
    return contents;
}

tl::expected<Contents, ImageError> read_contents(Image::State& state) {
    try {
        const auto plain = unpack_all(state);
        if (!plain) {
            return tl::make_unexpected(plain.error());
        }
        if (state.form == Form::Cubin) {
            return read_cubin(ByteView((*plain)[0]));
        }
        return read_ptx(*plain);
    } catch (const std::bad_alloc&) {
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory to read an image");
    }
}

}  // namespace

Image::Image(std::shared_ptr<State> state) : state_(std::move(state)) {}

Form Image::form() const { return state_->form; }

std::uint32_t Image::architecture() const { return state_->architecture; }

tl::expected<const Contents*, ImageError> Image::contents() const {
    std::call_once(state_->unpacked, [this] { state_->contents = read_contents(*state_); });
    if (!state_->contents) {
        return tl::make_unexpected(state_->contents.error());
    }
    return &*state_->contents;
}

tl::expected<Image, ImageError> load_image(const void* data, std::uint32_t compute_capability) {
    if (data == nullptr) {
        return fail(CUDA_ERROR_INVALID_VALUE, "image is a null pointer");
    }
    // The first byte alone is sure to exist: PTX may be the shortest of texts.
    const auto start = copy_readable(data, 1);
    if (!start) {
        return invalid("image cannot be read");
    }
    const auto magic_bytes = copy_readable(data, sizeof(std::uint32_t));
    const auto magic = magic_bytes ? ByteView(*magic_bytes).read<std::uint32_t>(0)
                                   : std::optional<std::uint32_t>{};
    if (magic == kWrapperMagic) {
        return load_wrapper(data, compute_capability);
    }
    if (magic == kFatbinMagic) {
        return load_fatbin(data, compute_capability);
    }
    if (magic == kElfMagic) {
        return load_cubin(data);
    }
    if (!starts_like_text(ByteView(*start))) {
        return invalid("neither a fat binary, nor a cubin, nor PTX");
    }
    return load_text(data);
}

tl::expected<Image, ImageError> load_image(const void* data, std::size_t bytes,
                                           std::uint32_t compute_capability) {
    if (data == nullptr || bytes == 0) {
        return fail(CUDA_ERROR_INVALID_VALUE, "image is empty");
    }
    const ByteView view(std::span(static_cast<const std::byte*>(data), bytes));
    const auto magic = view.read<std::uint32_t>(0);
    if (magic == kFatbinMagic) {
        return load_fatbin(view, compute_capability);
    }
    if (magic == kElfMagic) {
        return load_cubin(std::vector<std::byte>(view.span().begin(), view.span().end()));
    }
    if (magic == kWrapperMagic && bytes >= sizeof(__fatBinC_Wrapper_t)) {
        return load_wrapper(data, compute_capability);
    }
    if (!starts_like_text(*view.part(0, 1))) {
        return invalid("neither a fat binary, nor a cubin, nor PTX");
    }
    return load_text(std::vector<std::byte>(view.span().begin(), view.span().end()));
}

}  // namespace libswap::simgpu::image
