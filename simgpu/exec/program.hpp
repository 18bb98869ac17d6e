// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "simgpu/exec/inst.hpp"
#include "simgpu/exec/sampler.hpp"

namespace simgpu::exec {

/// Where addresses that are not device memory lie in the generic space. Above any address that
/// the host or the device window can have.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{2} << 56;
inline constexpr std::uint64_t kParamWindow = std::uint64_t{3} << 56;
inline constexpr std::uint64_t kFunctionWindow = std::uint64_t{4} << 56;
/// Page of a cooperative launch's own, above all addresses that hosts and devices use.
inline constexpr std::uint64_t kGridWorkspace = std::uint64_t{1} << 52;
inline constexpr std::uint64_t kWindowMask = std::uint64_t{0xff} << 56;

/// What a constant slot of a frame holds.
enum class ConstantKind : std::uint8_t {
    Value,      ///< `bits`
    Global,     ///< address of global `index`, plus `bits`
    Shared,     ///< offset of shared variable `index` in the kernel's layout, plus `bits`
    Local,      ///< offset in the frame's local memory
    Function,   ///< address of function `index`
    Predicate,  ///< `bits`, a predicate for all lanes
};

struct Constant {
    ConstantKind kind = ConstantKind::Value;
    bool wide = false;
    std::uint32_t slot = 0;
    std::uint32_t index = 0;
    std::uint64_t bits = 0;

    bool operator==(const Constant&) const = default;
};

/// A `.param` variable of a function, in its local memory.
struct FrameParam {
    std::uint32_t offset_bytes = 0;
    std::uint32_t bytes = 0;
};

enum class Callee : std::uint8_t { Function, Indirect, Printf, AssertFail };

/// A call: arguments and results are variables in the caller's local memory.
struct CallSite {
    Callee callee = Callee::Function;
    std::uint32_t function = 0;
    /// Slot with the address, of an indirect call.
    std::uint32_t slot = 0;
    std::vector<FrameParam> arguments;
    std::vector<FrameParam> results;
};

/// Where a texture instruction's level of detail comes from.
enum class LevelSource : std::uint8_t { Base, Operand, Gradients };

/// What lies beyond a surface's edge: a fault, the nearest element, or zero.
enum class SurfaceEdge : std::uint8_t { Trap, Clamp, Zero };

/// What a texture query tells of the whole texture.
enum class TextureQuery : std::uint8_t { Width, Height, Depth, Layers, Levels };

/// The operands of a texture or surface instruction. Slots, kNoSlot for what is not there.
struct TextureSite {
    TextureShape shape = TextureShape::Line;
    LevelSource level_source = LevelSource::Base;
    SurfaceEdge edge = SurfaceEdge::Trap;
    TextureQuery query = TextureQuery::Width;
    bool integers = false;
    /// Of a query: what is asked is a surface.
    bool of_surface = false;
    /// Of a surface access. Values, and bytes of each.
    std::uint32_t elements = 1;
    std::uint32_t element_bytes = 4;
    /// Channel of a gather.
    std::uint32_t channel = 0;
    std::uint32_t handle = kNoSlot;
    std::uint32_t layer = kNoSlot;
    std::uint32_t level = kNoSlot;
    /// Predicate that tells whether the texels are there; they are.
    std::uint32_t resident = kNoSlot;
    std::array<std::uint32_t, 3> at{kNoSlot, kNoSlot, kNoSlot};
    std::array<std::uint32_t, 3> dx{kNoSlot, kNoSlot, kNoSlot};
    std::array<std::uint32_t, 3> dy{kNoSlot, kNoSlot, kNoSlot};
    std::array<std::uint32_t, 4> values{kNoSlot, kNoSlot, kNoSlot, kNoSlot};
};

struct Function {
    std::string name;
    bool entry = false;
    bool defined = false;
    std::vector<Inst> code;
    /// Line in the text of each instruction.
    std::vector<std::uint32_t> lines;
    std::vector<Constant> constants;
    std::uint32_t frame_bytes = 0;
    std::uint32_t local_bytes = 0;
    std::vector<FrameParam> params;
    std::vector<FrameParam> returns;
    std::vector<CallSite> calls;
    std::vector<TextureSite> textures;
    std::vector<std::vector<std::uint32_t>> branch_tables;
    std::vector<std::uint32_t> shared_used;
    std::vector<std::uint32_t> callees;
    bool calls_indirectly = false;
    std::string unknown;
};

/// A `.shared` variable, placed anew for each kernel that reaches it.
struct SharedVariable {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t align = 1;
    bool dynamic = false;
};

/// Per kernel: where each shared variable that it reaches lies.
struct SharedLayout {
    std::unordered_map<std::uint32_t, std::uint32_t> offsets;
    std::uint32_t static_bytes = 0;
    std::uint32_t dynamic_offset = 0;
    std::vector<std::uint32_t> globals_used;
};

/// Decoded code of a module.
struct Program {
    std::vector<Function> functions;
    std::vector<SharedVariable> shared;
    /// By function index, for entries only.
    std::unordered_map<std::uint32_t, SharedLayout> layouts;
    std::unordered_map<std::string, std::uint32_t> function_by_name;
    /// Names of the module's globals, by index.
    std::vector<std::string> global_names;
};

/// The handler for `key`, or nullptr. Chosen for this CPU.
Handler find_handler(const OpKey& key);

}  // namespace simgpu::exec
