// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors
//
// Textures and surfaces by the number of their object, as nvcc writes them for CUDA's objects:
//   tex[.level|.grad].SHAPE.v4.RESULT.COORDINATE {d, d, d, d}[|p], [object, {c, ...}][, level | ,
//   {dx}, {dy}] tld4.CHANNEL.2d.v4.RESULT.f32 {d, d, d, d}[|p], [object, {x, y}] txq|suq.QUERY.b32
//   d, [object] suld.b.SHAPE[.VECTOR].TYPE.EDGE {d, ...}, [object, {c, ...}];  sust likewise, the
//   other way
// References of a module, samplers apart from their textures, offsets and depth comparison are not
// known.

#include <string_view>

#include "simgpu/exec/function_builder.hpp"

namespace simgpu::exec {

namespace {

using ast::Operand;
using ast::OperandKind;

class TextureDecoder {
  public:
    TextureDecoder(FunctionBuilder& builder, const Opcode& opcode)
        : b_(builder), opcode_(opcode), operands_(builder.statement().operands) {}

    void run() {
        const std::string_view base = opcode_.base();
        const bool decoded = base == "tex"                      ? texture()
                             : base == "tld4"                   ? gather()
                             : base == "txq" || base == "suq"   ? query()
                             : base == "suld" || base == "sust" ? surface(base == "sust")
                                                                : false;
        if (!decoded) return b_.unknown();
        if (b_.failed()) return;
        OpKey key;
        key.op = op_;
        Inst inst;
        inst.imm = static_cast<std::int64_t>(b_.function().textures.size());
        b_.function().textures.push_back(site_);
        b_.emit(key, inst);
    }

  private:
    struct ShapeName {
        std::string_view text;
        TextureShape shape;
    };

    bool shape(bool of_surface) {
        static constexpr ShapeName kNames[] = {
            {"1d", TextureShape::Line},    {"2d", TextureShape::Plane},
            {"3d", TextureShape::Volume},  {"a1d", TextureShape::Lines},
            {"a2d", TextureShape::Planes}, {"cube", TextureShape::Cube},
            {"acube", TextureShape::Cubes}};
        for (const ShapeName& name : kNames) {
            if (!opcode_.has(name.text)) continue;
            site_.shape = name.shape;
            return !of_surface || name.shape < TextureShape::Cube;
        }
        return false;
    }

    std::size_t axes() const {
        switch (site_.shape) {
            case TextureShape::Line:
            case TextureShape::Lines:
                return 1;
            case TextureShape::Plane:
            case TextureShape::Planes:
                return 2;
            default:
                return 3;
        }
    }

    bool layered() const {
        return site_.shape == TextureShape::Lines || site_.shape == TextureShape::Planes ||
               site_.shape == TextureShape::Cubes;
    }

    /// The object, in a register.
    bool handle(const Operand& operand) {
        if (operand.kind != OperandKind::Address || operand.bits != 0) return false;
        const auto symbol = b_.find(operand.name);
        if (!symbol || symbol->kind != SymbolKind::Register || type_bytes(symbol->type) != 8)
            return false;
        Operand name;
        name.kind = OperandKind::Name;
        name.name = operand.name;
        site_.handle = b_.read(name, Type::B64);
        return true;
    }

    /// [object, {layer, x, y, z}]; what a vector has beyond the shape's coordinates is padding.
    bool place(const Operand& operand, Type type) {
        if (!handle(operand) || operand.parts.size() != 1) return false;
        const Operand& vector = operand.parts[0];
        const std::size_t first = layered() ? 1 : 0;
        if (vector.kind != OperandKind::Vector || vector.parts.size() < first + axes())
            return false;
        if (first != 0) site_.layer = b_.read(vector.parts[0], Type::B32);
        for (std::size_t k = 0; k < axes(); ++k)
            site_.at[k] = b_.read(vector.parts[first + k], type);
        return true;
    }

    bool results(const Operand& operand, std::size_t count, Type type) {
        const bool vector = operand.kind == OperandKind::Vector;
        const std::size_t given = vector ? operand.parts.size() : 1;
        if (given != count) return false;
        for (std::size_t k = 0; k < count; ++k)
            site_.values[k] = b_.write(vector ? operand.parts[k] : operand, type);
        if (operand.predicate.empty()) return true;
        Operand predicate;
        predicate.kind = operand.predicate == "_" ? OperandKind::Sink : OperandKind::Name;
        predicate.name = operand.predicate;
        site_.resident = b_.write_predicate(predicate);
        return true;
    }

    /// v4, the results' type, the coordinates' type.
    bool texture_types() const {
        const Type result = opcode_.type(0);
        const bool result_known = result == Type::F32 || result == Type::S32 || result == Type::U32;
        return opcode_.has("v4") && opcode_.types() == 2 && result_known;
    }

    bool texture() {
        static constexpr std::string_view kKnown[] = {"level", "grad", "1d",   "2d",    "3d",
                                                      "a1d",   "a2d",  "cube", "acube", "v4"};
        op_ = Op::Texture;
        const Type coordinate = opcode_.type(1);
        if (!opcode_.only(kKnown) || !texture_types() || !shape(false)) return false;
        site_.integers = coordinate == Type::S32;
        if (!site_.integers && coordinate != Type::F32) return false;
        const bool level = opcode_.has("level");
        const bool gradients = opcode_.has("grad");
        if (operands_.size() != (level ? 3U : gradients ? 4U : 2U)) return false;
        if (!place(operands_[1], coordinate) || !results(operands_[0], 4, Type::B32)) return false;
        if (level) {
            site_.level_source = LevelSource::Operand;
            // With texels' numbers, a level's number.
            site_.level = b_.read(operands_[2], site_.integers ? Type::S32 : Type::F32);
        }
        if (!gradients) return true;
        site_.level_source = LevelSource::Gradients;
        return differences(operands_[2], site_.dx) && differences(operands_[3], site_.dy);
    }

    bool differences(const Operand& operand, std::array<std::uint32_t, 3>& into) {
        const bool vector = operand.kind == OperandKind::Vector;
        if ((vector ? operand.parts.size() : 1) < axes()) return false;
        for (std::size_t k = 0; k < axes(); ++k)
            into[k] = b_.read(vector ? operand.parts[k] : operand, Type::F32);
        return true;
    }

    bool gather() {
        static constexpr std::string_view kKnown[] = {"r", "g", "b", "a", "2d", "v4"};
        static constexpr std::string_view kChannels = "rgba";
        op_ = Op::TextureGather;
        if (!opcode_.only(kKnown) || !texture_types() || opcode_.type(1) != Type::F32 ||
            !shape(false) || operands_.size() != 2)
            return false;
        const std::size_t channel = kChannels.find(opcode_.suffix(0));
        if (opcode_.suffix(0).size() != 1 || channel == std::string_view::npos) return false;
        site_.channel = static_cast<std::uint32_t>(channel);
        return place(operands_[1], Type::F32) && results(operands_[0], 4, Type::B32);
    }

    bool query() {
        struct Name {
            std::string_view text;
            TextureQuery query;
        };
        static constexpr Name kNames[] = {{"width", TextureQuery::Width},
                                          {"height", TextureQuery::Height},
                                          {"depth", TextureQuery::Depth},
                                          {"array_size", TextureQuery::Layers},
                                          {"num_mipmap_levels", TextureQuery::Levels}};
        op_ = Op::TextureQuery;
        if (opcode_.suffixes() != 2 || opcode_.type() != Type::B32 || operands_.size() != 2)
            return false;
        for (const Name& name : kNames) {
            if (opcode_.suffix(0) != name.text) continue;
            site_.query = name.query;
            site_.of_surface = opcode_.base() == "suq";
            return handle(operands_[1]) && results(operands_[0], 1, Type::B32);
        }
        return false;
    }

    bool surface(bool store) {
        static constexpr std::string_view kKnown[] = {"b",  "1d", "2d",   "3d",    "a1d", "a2d",
                                                      "v2", "v4", "trap", "clamp", "zero"};
        op_ = store ? Op::SurfaceStore : Op::SurfaceLoad;
        if (!opcode_.only(kKnown) || opcode_.suffix(0) != "b" || opcode_.types() != 1 ||
            !shape(true) || operands_.size() != 2)
            return false;
        const Type type = opcode_.type();
        site_.elements = opcode_.has("v4") ? 4 : opcode_.has("v2") ? 2 : 1;
        site_.element_bytes = type_bytes(type);
        constexpr std::uint32_t kMostBytes = 16;
        if (site_.element_bytes == 0 || site_.element_bytes > 8 ||
            site_.elements * site_.element_bytes > kMostBytes)
            return false;
        site_.edge = opcode_.has("clamp")  ? SurfaceEdge::Clamp
                     : opcode_.has("zero") ? SurfaceEdge::Zero
                                           : SurfaceEdge::Trap;
        if (!place(operands_[store ? 0 : 1], Type::S32)) return false;
        if (!store) return results(operands_[0], site_.elements, type);
        return sources(operands_[1], type);
    }

    bool sources(const Operand& operand, Type type) {
        const bool vector = operand.kind == OperandKind::Vector;
        if ((vector ? operand.parts.size() : 1) != site_.elements) return false;
        for (std::size_t k = 0; k < site_.elements; ++k)
            site_.values[k] = b_.read(vector ? operand.parts[k] : operand, type);
        return true;
    }

    FunctionBuilder& b_;
    const Opcode& opcode_;
    const std::vector<Operand>& operands_;
    Op op_ = Op::Texture;
    TextureSite site_;
};

}  // namespace

void decode_texture(FunctionBuilder& builder, const Opcode& opcode) {
    TextureDecoder(builder, opcode).run();
}

}  // namespace simgpu::exec
