// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include <string>
#include <unordered_map>

#include "simgpu/exec/function_builder.hpp"
#include "simgpu/exec/timed_loads.hpp"

namespace simgpu::exec {

namespace {

using ast::Operand;
using ast::OperandKind;

/// Decodes one instruction; its methods are one per family of opcodes.
class Decoder {
  public:
    explicit Decoder(FunctionBuilder& builder)
        : b_(builder), statement_(builder.statement()), opcode_(statement_.text) {}

    void run() {
        using Method = void (Decoder::*)();
        static const std::unordered_map<std::string_view, Method> kMethods = {
            {"add", &Decoder::add},
            {"sub", &Decoder::add},
            {"addc", &Decoder::add},
            {"subc", &Decoder::add},
            {"mul", &Decoder::multiply},
            {"mad", &Decoder::multiply},
            {"madc", &Decoder::multiply},
            {"fma", &Decoder::fma},
            {"mul24", &Decoder::multiply24},
            {"mad24", &Decoder::multiply24},
            {"div", &Decoder::binary},
            {"rem", &Decoder::binary},
            {"min", &Decoder::min_max},
            {"max", &Decoder::min_max},
            {"abs", &Decoder::unary},
            {"neg", &Decoder::unary},
            {"not", &Decoder::unary},
            {"cnot", &Decoder::unary},
            {"rcp", &Decoder::unary},
            {"sqrt", &Decoder::unary},
            {"rsqrt", &Decoder::unary},
            {"sin", &Decoder::unary},
            {"cos", &Decoder::unary},
            {"lg2", &Decoder::unary},
            {"ex2", &Decoder::unary},
            {"tanh", &Decoder::unary},
            {"brev", &Decoder::unary},
            {"popc", &Decoder::count_bits},
            {"clz", &Decoder::count_bits},
            {"bfind", &Decoder::count_bits},
            {"and", &Decoder::logic},
            {"or", &Decoder::logic},
            {"xor", &Decoder::logic},
            {"shl", &Decoder::shift},
            {"shr", &Decoder::shift},
            {"shf", &Decoder::funnel_shift},
            {"lop3", &Decoder::lop3},
            {"sad", &Decoder::sad},
            {"bfe", &Decoder::bit_field},
            {"bfi", &Decoder::bit_field},
            {"bmsk", &Decoder::bit_mask},
            {"szext", &Decoder::bit_mask},
            {"fns", &Decoder::fns},
            {"prmt", &Decoder::permute},
            {"dp4a", &Decoder::dot},
            {"dp2a", &Decoder::dot},
            {"copysign", &Decoder::binary},
            {"testp", &Decoder::testp},
            {"setp", &Decoder::set_predicate},
            {"set", &Decoder::set},
            {"selp", &Decoder::select},
            {"slct", &Decoder::slct},
            {"mov", &Decoder::mov},
            {"cvt", &Decoder::convert},
            {"cvta", &Decoder::convert_address},
            {"isspacep", &Decoder::isspacep},
            {"ld", &Decoder::load},
            {"ldu", &Decoder::load},
            {"st", &Decoder::store},
            {"atom", &Decoder::atomic},
            {"red", &Decoder::atomic},
            {"shfl", &Decoder::shuffle},
            {"vote", &Decoder::vote},
            {"match", &Decoder::match},
            {"redux", &Decoder::redux},
            {"activemask", &Decoder::activemask},
            {"elect", &Decoder::elect},
            {"bar", &Decoder::barrier},
            {"barrier", &Decoder::barrier},
            {"bra", &Decoder::branch},
            {"brx", &Decoder::branch_indexed},
            {"call", &Decoder::call},
            {"ret", &Decoder::ret},
            {"exit", &Decoder::exit},
            {"trap", &Decoder::trap},
            {"tex", &Decoder::texture},
            {"tld4", &Decoder::texture},
            {"txq", &Decoder::texture},
            {"suq", &Decoder::texture},
            {"suld", &Decoder::texture},
            {"sust", &Decoder::texture},
            {"createpolicy", &Decoder::create_policy},
            {"membar", &Decoder::nothing},
            {"fence", &Decoder::nothing},
            {"prefetch", &Decoder::nothing},
            {"prefetchu", &Decoder::nothing},
            {"discard", &Decoder::nothing},
            {"applypriority", &Decoder::nothing},
            {"nanosleep", &Decoder::nothing},
            {"pmevent", &Decoder::nothing},
            {"griddepcontrol", &Decoder::nothing},
            {"brkpt", &Decoder::nothing},
            {"setmaxnreg", &Decoder::nothing},
        };
        const auto found = kMethods.find(opcode_.base());
        if (statement_.opaque || found == kMethods.end()) return b_.unknown();
        (this->*found->second)();
    }

  private:
    std::size_t operands() const { return statement_.operands.size(); }
    const Operand& operand(std::size_t k) const { return statement_.operands[k]; }

    bool expect(std::size_t count) {
        if (operands() == count) return true;
        b_.unknown();
        return false;
    }

    std::uint32_t read(std::size_t k, Type type) { return b_.read(operand(k), type); }

    void emit(const OpKey& key, const Inst& inst) {
        if (!b_.failed()) b_.emit(key, inst);
    }

    /// d = op(a, b, ...), all of one type except where `types` says otherwise.
    void simple(const OpKey& key, Type result, std::initializer_list<Type> types,
                std::uint8_t flops = 0) {
        if (!expect(types.size() + 1)) return;
        Inst inst;
        std::size_t k = 1;
        for (const Type type : types) {
            inst.op[k] = read(k, type);
            ++k;
        }
        inst.op[0] = b_.write(operand(0), result);
        if (inst.op[0] == kNoSlot) return b_.unknown();
        float_modes(key, inst, flops);
        emit(key, inst);
    }

    /// What directed rounding and 16-bit floats need to know at run time.
    static void float_modes(const OpKey& key, Inst& inst, std::uint8_t flops) {
        if (!is_float(key.type)) return;
        const bool packed = key.type == Type::F16x2 || key.type == Type::BF16x2;
        inst.flops = static_cast<std::uint8_t>(flops * (packed ? 2 : 1));
        if (packed || key.type == Type::F16 || key.type == Type::BF16) {
            inst.mode = static_cast<std::uint8_t>(key.op);
            inst.mode2 = static_cast<std::uint8_t>((key.saturate ? 1 : 0) | (key.relu ? 2 : 0) |
                                                   (key.nan ? 4 : 0));
            return;
        }
        inst.mode = static_cast<std::uint8_t>(key.round);
        inst.mode2 = key.ftz ? 1 : 0;
        inst.mode3 = key.saturate ? 1 : 0;
    }

    static bool is_half(Type type) {
        return is_float(type) && type != Type::F32 && type != Type::F64;
    }

    void add() {
        static constexpr std::string_view kKnown[] = {"cc", "sat", "ftz", "rn", "rz", "rm", "rp"};
        if (!opcode_.only(kKnown) || opcode_.types() != 1) return b_.unknown();
        const Type type = opcode_.type();
        const bool carry_in = opcode_.base() == "addc" || opcode_.base() == "subc";
        const bool subtract = opcode_.base().substr(0, 3) == "sub";
        OpKey key = opcode_.key(subtract ? Op::Sub : Op::Add, type);
        if (carry_in || opcode_.has("cc")) {
            key.op = subtract ? Op::SubCc : Op::AddCc;
            key.carry_in = carry_in;
            key.carry_out = opcode_.has("cc");
        }
        simple(key, type, {type, type}, 1);
    }

    static Type wider(Type type) {
        switch (type) {
            case Type::S16:
                return Type::S32;
            case Type::U16:
                return Type::U32;
            case Type::S32:
                return Type::S64;
            default:
                return Type::U64;
        }
    }

    void multiply() {
        static constexpr std::string_view kKnown[] = {"lo",  "hi", "wide", "cc", "sat",
                                                      "ftz", "rn", "rz",   "rm", "rp"};
        if (!opcode_.only(kKnown) || opcode_.types() != 1) return b_.unknown();
        const Type type = opcode_.type();
        const bool mad = opcode_.base() != "mul";
        if (is_float(type)) {
            OpKey key = opcode_.key(mad ? Op::Fma : Op::MulLo, type);
            return mad ? simple(key, type, {type, type, type}, 2)
                       : simple(key, type, {type, type}, 1);
        }
        const bool wide = opcode_.has("wide");
        const bool high = opcode_.has("hi");
        const bool carries = opcode_.base() == "madc" || opcode_.has("cc");
        OpKey key = opcode_.key(wide ? Op::MulWide : high ? Op::MulHi : Op::MulLo, type);
        if (mad)
            key.op = wide   ? Op::MadWide
                     : high ? (carries ? Op::MadHiCc : Op::MadHi)
                            : (carries ? Op::MadLoCc : Op::MadLo);
        key.carry_in = opcode_.base() == "madc";
        key.carry_out = opcode_.has("cc");
        const Type result = wide ? wider(type) : type;
        if (mad) return simple(key, result, {type, type, result});
        simple(key, result, {type, type});
    }

    void multiply24() {
        const bool mad = opcode_.base() == "mad24";
        const bool high = opcode_.has("hi");
        const Type type = opcode_.type();
        if (opcode_.has("sat")) return b_.unknown();
        const OpKey key = opcode_.key(
            mad ? (high ? Op::Mad24Hi : Op::Mad24Lo) : (high ? Op::Mul24Hi : Op::Mul24Lo), type);
        if (mad) return simple(key, type, {type, type, type});
        simple(key, type, {type, type});
    }

    void fma() {
        static constexpr std::string_view kKnown[] = {"sat", "ftz", "rn", "rz", "rm", "rp", "relu"};
        if (!opcode_.only(kKnown) || opcode_.types() != 1) return b_.unknown();
        const Type type = opcode_.type();
        simple(opcode_.key(Op::Fma, type), type, {type, type, type}, 2);
    }

    void binary() {
        static constexpr std::string_view kKnown[] = {"ftz", "rn",     "rz",  "rm",
                                                      "rp",  "approx", "full"};
        if (!opcode_.only(kKnown) || opcode_.types() != 1) return b_.unknown();
        const Op op = opcode_.base() == "div"   ? Op::Div
                      : opcode_.base() == "rem" ? Op::Rem
                                                : Op::Copysign;
        const Type type = opcode_.type();
        simple(opcode_.key(op, type), type, {type, type}, op == Op::Div ? 1 : 0);
    }

    void min_max() {
        static constexpr std::string_view kKnown[] = {"ftz", "NaN", "relu"};
        const Type type = opcode_.type();
        if (!opcode_.only(kKnown) || opcode_.types() != 1 ||
            (opcode_.has("relu") && !is_half(type)))
            return b_.unknown();
        simple(opcode_.key(opcode_.base() == "min" ? Op::Min : Op::Max, type), type, {type, type},
               1);
    }

    void unary() {
        static constexpr std::string_view kKnown[] = {"ftz", "approx", "rn", "rz", "rm", "rp"};
        static const std::unordered_map<std::string_view, Op> kOps = {
            {"abs", Op::Abs},  {"neg", Op::Neg},   {"not", Op::Not},     {"cnot", Op::Cnot},
            {"rcp", Op::Rcp},  {"sqrt", Op::Sqrt}, {"rsqrt", Op::Rsqrt}, {"sin", Op::Sin},
            {"cos", Op::Cos},  {"lg2", Op::Lg2},   {"ex2", Op::Ex2},     {"tanh", Op::Tanh},
            {"brev", Op::Brev}};
        if (!opcode_.only(kKnown) || opcode_.types() != 1 || operands() != 2) return b_.unknown();
        const Op op = kOps.at(opcode_.base());
        const Type type = opcode_.type();
        if (type == Type::Pred) {
            Inst inst;
            bool negated = false;
            inst.op[1] = b_.read_predicate(operand(1), negated);
            inst.op[0] = b_.write_predicate(operand(0));
            if (op != Op::Not || negated) return b_.unknown();
            return emit(opcode_.key(Op::NotPred, type), inst);
        }
        simple(opcode_.key(op, type), type, {type}, op == Op::Abs || op == Op::Neg ? 0 : 1);
    }

    void count_bits() {
        const Type type = opcode_.type();
        const Op op = opcode_.base() == "popc"  ? Op::Popc
                      : opcode_.base() == "clz" ? Op::Clz
                      : opcode_.has("shiftamt") ? Op::BfindShift
                                                : Op::Bfind;
        simple(opcode_.key(op, type), Type::U32, {type});
    }

    void logic() {
        const Type type = opcode_.type();
        const bool is_and = opcode_.base() == "and";
        const bool is_or = opcode_.base() == "or";
        if (type != Type::Pred)
            return simple(opcode_.key(is_and  ? Op::And
                                      : is_or ? Op::Or
                                              : Op::Xor,
                                      type),
                          type, {type, type});
        if (!expect(3)) return;
        Inst inst;
        for (std::size_t k = 1; k < 3; ++k) {
            bool negated = false;
            inst.op[k] = b_.read_predicate(operand(k), negated);
            if (negated) inst.op[k] = negate_predicate(inst.op[k]);
        }
        inst.op[0] = b_.write_predicate(operand(0));
        emit(opcode_.key(is_and ? Op::AndPred : is_or ? Op::OrPred : Op::XorPred, type), inst);
    }

    std::uint32_t negate_predicate(std::uint32_t slot) {
        Inst inst;
        inst.op[0] = b_.temporary(Type::Pred);
        inst.op[1] = slot;
        emit(opcode_.key(Op::NotPred, Type::Pred), inst);
        return inst.op[0];
    }

    void shift() {
        const Type type = opcode_.type();
        simple(opcode_.key(opcode_.base() == "shl" ? Op::Shl : Op::Shr, type), type,
               {type, Type::U32});
    }

    void funnel_shift() {
        OpKey key = opcode_.key(opcode_.has("l") ? Op::ShfL : Op::ShfR, Type::B32);
        key.wrap = opcode_.has("wrap");
        simple(key, Type::B32, {Type::B32, Type::B32, Type::U32});
    }

    void lop3() {
        if (!expect(5) || operand(4).kind != OperandKind::Integer || opcode_.suffixes() != 1)
            return b_.unknown();
        Inst inst;
        for (std::size_t k = 1; k < 4; ++k) inst.op[k] = read(k, Type::B32);
        inst.op[0] = b_.write(operand(0), Type::B32);
        inst.imm = static_cast<std::int64_t>(operand(4).bits & 0xffU);
        if (inst.op[0] == kNoSlot) return b_.unknown();
        emit(opcode_.key(Op::Lop3, Type::B32), inst);
    }

    void sad() {
        const Type type = opcode_.type();
        simple(opcode_.key(Op::Sad, type), type, {type, type, type});
    }

    void bit_field() {
        const Type type = opcode_.type();
        if (opcode_.base() == "bfe")
            return simple(opcode_.key(Op::Bfe, type), type, {type, Type::U32, Type::U32});
        simple(opcode_.key(Op::Bfi, type), type, {type, type, Type::U32, Type::U32});
    }

    void bit_mask() {
        OpKey key = opcode_.key(opcode_.base() == "bmsk" ? Op::Bmsk : Op::Szext, opcode_.type());
        key.wrap = opcode_.has("wrap");
        simple(key, Type::B32, {Type::B32, Type::B32});
    }

    void fns() {
        simple(opcode_.key(Op::Fns, Type::B32), Type::B32, {Type::B32, Type::B32, Type::S32});
    }

    void permute() {
        static constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
        if (!expect(4)) return;
        Inst inst;
        for (std::size_t k = 1; k < 4; ++k) inst.op[k] = read(k, Type::B32);
        inst.op[0] = b_.write(operand(0), Type::B32);
        OpKey key = opcode_.key(Op::Prmt, Type::B32);
        for (std::uint8_t k = 0; k < 6; ++k) {
            if (opcode_.has(kModes[k])) inst.mode = static_cast<std::uint8_t>(k + 1);
        }
        key.wrap = inst.mode != 0;
        emit(key, inst);
    }

    void dot() {
        if (opcode_.types() != 2) return b_.unknown();
        OpKey key = opcode_.key(opcode_.base() == "dp4a" ? Op::Dp4a
                                : opcode_.has("lo")      ? Op::Dp2aLo
                                                         : Op::Dp2aHi,
                                opcode_.type(0));
        key.from = opcode_.type(1);
        simple(key, Type::B32, {Type::B32, Type::B32, Type::B32});
    }

    void testp() {
        static constexpr std::string_view kProperties[] = {"finite",     "infinite", "number",
                                                           "notanumber", "normal",   "subnormal"};
        if (!expect(2)) return;
        Inst inst;
        for (std::uint8_t k = 0; k < 6; ++k) {
            if (opcode_.has(kProperties[k])) inst.mode = k;
        }
        inst.op[0] = b_.write_predicate(operand(0));
        inst.op[1] = read(1, opcode_.type());
        emit(opcode_.key(Op::Testp, opcode_.type()), inst);
    }

    bool comparison(Compare& compare) {
        struct Name {
            std::string_view text;
            Compare compare;
        };
        static constexpr Name kNames[] = {
            {"eq", Compare::Eq},   {"ne", Compare::Ne},   {"lt", Compare::Lt},
            {"le", Compare::Le},   {"gt", Compare::Gt},   {"ge", Compare::Ge},
            {"lo", Compare::Lt},   {"ls", Compare::Le},   {"hi", Compare::Gt},
            {"hs", Compare::Ge},   {"equ", Compare::Equ}, {"neu", Compare::Neu},
            {"ltu", Compare::Ltu}, {"leu", Compare::Leu}, {"gtu", Compare::Gtu},
            {"geu", Compare::Geu}, {"num", Compare::Num}, {"nan", Compare::Nan}};
        for (const Name& name : kNames) {
            if (opcode_.suffix(0) == name.text) {
                compare = name.compare;
                return true;
            }
        }
        return false;
    }

    Combine combination() const {
        return opcode_.has("and")   ? Combine::And
               : opcode_.has("or")  ? Combine::Or
               : opcode_.has("xor") ? Combine::Xor
                                    : Combine::None;
    }

    /// Sources and modes that setp and set share.
    bool compare_operands(OpKey& key, Inst& inst, Type type) {
        const Combine combine = combination();
        if (!comparison(key.compare) || operands() != (combine == Combine::None ? 3U : 4U))
            return false;
        inst.op[2] = read(1, type);
        inst.op[3] = read(2, type);
        inst.mode = static_cast<std::uint8_t>(combine);
        if (combine == Combine::None) return true;
        bool negated = false;
        inst.op[4] = b_.read_predicate(operand(3), negated);
        inst.mode2 = negated ? 1 : 0;
        return true;
    }

    void set_predicate() {
        const Type type = opcode_.type();
        OpKey key = opcode_.key(Op::Setp, type);
        Inst inst;
        if (opcode_.types() != 1 || !compare_operands(key, inst, type)) return b_.unknown();
        Operand first = operand(0);
        first.parts.clear();
        inst.op[0] = b_.write_predicate(first);
        if (!operand(0).parts.empty()) inst.op[1] = b_.write_predicate(operand(0).parts[0]);
        emit(key, inst);
    }

    void set() {
        const Type type = opcode_.type(0);
        OpKey key = opcode_.key(Op::Set, type);
        key.from = opcode_.type(1);
        Inst inst;
        if (opcode_.types() != 2 || !compare_operands(key, inst, key.from)) return b_.unknown();
        inst.mode3 = type == Type::F32 ? 1 : type == Type::F16 ? 2 : type == Type::BF16 ? 3 : 0;
        inst.op[0] = b_.write(operand(0), type);
        emit(key, inst);
    }

    void select() {
        const Type type = opcode_.type();
        if (!expect(4)) return;
        Inst inst;
        bool negated = false;
        if (type == Type::Pred) return b_.unknown();
        inst.op[1] = read(1, type);
        inst.op[2] = read(2, type);
        inst.op[3] = b_.read_predicate(operand(3), negated);
        inst.mode2 = negated ? 1 : 0;
        inst.op[0] = b_.write(operand(0), type);
        emit(opcode_.key(Op::Selp, type), inst);
    }

    void slct() {
        OpKey key = opcode_.key(Op::Slct, opcode_.type(0));
        key.from = opcode_.type(1);
        simple(key, key.type, {key.type, key.type, key.from});
    }

    void mov() {
        const Type type = opcode_.type();
        if (operands() != 2 || opcode_.types() != 1) return b_.unknown();
        if (type == Type::Pred) return mov_predicate();
        if (operand(1).kind == OperandKind::Vector) return pack(type);
        if (operand(0).kind == OperandKind::Vector) return unpack(type);
        simple(opcode_.key(Op::Mov, type), type, {type});
    }

    void mov_predicate() {
        Inst inst;
        bool negated = false;
        inst.op[1] = b_.read_predicate(operand(1), negated);
        inst.op[0] = b_.write_predicate(operand(0));
        emit(opcode_.key(negated ? Op::NotPred : Op::MovPred, Type::Pred), inst);
    }

    void pack(Type type) {
        const auto& parts = operand(1).parts;
        const std::uint32_t bytes =
            parts.empty() ? 0 : type_bytes(type) / static_cast<std::uint32_t>(parts.size());
        if (parts.size() < 2 || parts.size() > 4 || bytes == 0 || bytes > 4) return b_.unknown();
        Inst inst;
        for (std::size_t k = 0; k < parts.size(); ++k)
            inst.op[k + 1] = b_.read(parts[k], Type::B32);
        inst.op[0] = b_.write(operand(0), type);
        inst.count = static_cast<std::uint8_t>(parts.size());
        inst.mode = static_cast<std::uint8_t>(bytes);
        emit(opcode_.key(Op::Pack, type), inst);
    }

    void unpack(Type type) {
        const auto& parts = operand(0).parts;
        const std::uint32_t bytes =
            parts.empty() ? 0 : type_bytes(type) / static_cast<std::uint32_t>(parts.size());
        if (parts.size() < 2 || parts.size() > 4 || bytes == 0 || bytes > 4) return b_.unknown();
        Inst inst;
        inst.addr = read(1, type);
        for (std::size_t k = 0; k < parts.size(); ++k)
            inst.op[k] = b_.write(parts[k], bytes == 4 ? Type::B32 : Type::B16);
        inst.count = static_cast<std::uint8_t>(parts.size());
        inst.mode = static_cast<std::uint8_t>(bytes);
        emit(opcode_.key(Op::Unpack, type), inst);
    }

    void convert() {
        static constexpr std::string_view kKnown[] = {"ftz", "sat", "rn",  "rz",  "rm",  "rp",
                                                      "rni", "rzi", "rmi", "rpi", "relu"};
        if (!opcode_.only(kKnown) || opcode_.types() != 2) return b_.unknown();
        const Type to = opcode_.type(0);
        const Type from = opcode_.type(1);
        OpKey key = opcode_.key(Op::Cvt, to);
        key.from = from;
        const bool packed = to == Type::F16x2 || to == Type::BF16x2;
        if (packed) key.op = Op::CvtPack2;
        if (packed && from != Type::F32) return b_.unknown();
        if (!expect(packed ? 3 : 2)) return;
        Inst inst;
        inst.op[1] = read(1, from);
        if (packed) inst.op[2] = read(2, from);
        inst.op[0] = b_.write(operand(0), to);
        inst.mode = static_cast<std::uint8_t>(key.round);
        inst.mode2 = key.ftz ? 1 : 0;
        inst.mode3 = key.saturate ? 1 : key.relu ? 2 : 0;
        emit(key, inst);
    }

    static bool space_named(std::string_view name, Space& space) {
        if (name == "global")
            space = Space::Global;
        else if (name == "const")
            space = Space::Const;
        else if (name == "shared" || name == "shared::cta")
            space = Space::Shared;
        else if (name == "local")
            space = Space::Local;
        else if (name == "param" || name == "param::entry" || name == "param::func")
            space = Space::Param;
        else
            return false;
        return true;
    }

    bool find_space(Space& space) const {
        space = Space::Generic;
        for (std::size_t k = 0; k < opcode_.suffixes(); ++k) {
            if (opcode_.suffix(k) == "shared::cluster") return false;
            if (space_named(opcode_.suffix(k), space)) return true;
        }
        return true;
    }

    void convert_address() {
        Space space = Space::Generic;
        if (!find_space(space) || space == Space::Generic || type_bytes(opcode_.type()) != 8)
            return b_.unknown();
        OpKey key = opcode_.key(opcode_.has("to") ? Op::CvtaTo : Op::Cvta, Type::B64);
        if (space == Space::Global || space == Space::Const) key.op = Op::Mov;
        if (!expect(2)) return;
        Inst inst;
        inst.op[1] = read(1, Type::B64);
        inst.op[0] = b_.write(operand(0), Type::B64);
        inst.mode = static_cast<std::uint8_t>(space);
        emit(key, inst);
    }

    void isspacep() {
        Space space = Space::Generic;
        if (!expect(2) || !find_space(space)) return b_.unknown();
        Inst inst;
        inst.op[0] = b_.write_predicate(operand(0));
        inst.op[1] = read(1, Type::B64);
        inst.mode = static_cast<std::uint8_t>(space);
        emit(opcode_.key(Op::Isspacep, Type::B64), inst);
    }

    bool memory_suffixes_known() const {
        static constexpr std::string_view kKnown[] = {
            "global",  "const",   "shared",  "local", "param", "weak",    "volatile", "relaxed",
            "acquire", "release", "acq_rel", "mmio",  "cta",   "cluster", "gpu",      "sys",
            "ca",      "cg",      "cs",      "lu",    "cv",    "wb",      "wt",       "nc",
            "unified", "v2",      "v4",      "v8",    "noftz", "add",     "min",      "max",
            "inc",     "dec",     "and",     "or",    "xor",   "exch",    "cas"};
        return opcode_.only(kKnown);
    }

    std::uint32_t vector_length() const {
        return opcode_.has("v2") ? 2 : opcode_.has("v4") ? 4 : opcode_.has("v8") ? 8 : 1;
    }

    /// Elements of a vector operand, or the one operand.
    static std::vector<Operand> elements(const Operand& operand) {
        if (operand.kind == OperandKind::Vector) return operand.parts;
        return {operand};
    }

    /// Address and space of a memory instruction. Parameters of device functions and of calls lie
    /// in local memory; those of a kernel at fixed places.
    bool place(const Operand& address, Space& space, Inst& inst, bool& fixed_param) {
        fixed_param = false;
        std::optional<Symbol> symbol;
        if (!address.name.empty()) symbol = b_.find(address.name);
        const bool is_address = address.kind == OperandKind::Address;
        if (space == Space::Param && is_address && symbol &&
            symbol->kind == SymbolKind::KernelParam) {
            fixed_param = true;
            inst.imm = static_cast<std::int64_t>(symbol->offset_bytes + address.bits);
            return true;
        }
        if (space == Space::Param && symbol && symbol->kind == SymbolKind::FrameParam)
            space = Space::Local;
        if (space == Space::Param && !b_.function().entry) space = Space::Local;
        if (space == Space::Generic && symbol && symbol->kind == SymbolKind::Shared)
            space = Space::Shared;
        if (space == Space::Generic && symbol &&
            (symbol->kind == SymbolKind::Local || symbol->kind == SymbolKind::FrameParam))
            space = Space::Local;
        inst.mode = static_cast<std::uint8_t>(space == Space::Const ? Space::Global : space);
        return b_.address(address, inst);
    }

    void load() {
        Space space = Space::Generic;
        if (!memory_suffixes_known() || !find_space(space) || operands() < 2 ||
            opcode_.types() != 1)
            return b_.unknown();
        const Type type = opcode_.type();
        const auto targets = elements(operand(0));
        Inst inst;
        bool fixed = false;
        if (targets.size() != vector_length() || type_bytes(type) > 8 ||
            !place(operand(1), space, inst, fixed))
            return b_.unknown();
        if (fixed && static_cast<std::uint64_t>(inst.imm) + targets.size() * type_bytes(type) >
                         param_bytes())
            return b_.unknown();
        if (type == Type::Pred) return b_.unknown();
        for (std::size_t k = 0; k < targets.size(); ++k) inst.op[k] = b_.write(targets[k], type);
        inst.count = static_cast<std::uint8_t>(targets.size());
        inst.mode2 = static_cast<std::uint8_t>(route(space));
        emit(opcode_.key(fixed ? Op::LdParam : Op::Ld, type), inst);
    }

    LoadRoute route(Space space) const {
        if (space == Space::Const) return LoadRoute::Constant;
        if (opcode_.has("nc")) return LoadRoute::ReadOnly;
        for (const char* passing : {"cg", "cv", "volatile", "relaxed", "acquire", "mmio"}) {
            if (opcode_.has(passing)) return LoadRoute::Global;
        }
        return LoadRoute::Data;
    }

    std::uint64_t param_bytes() {
        const auto& params = b_.function().params;
        return params.empty() ? 0 : params.back().offset_bytes + params.back().bytes;
    }

    void store() {
        Space space = Space::Generic;
        if (!memory_suffixes_known() || !find_space(space) || operands() < 2 ||
            opcode_.types() != 1)
            return b_.unknown();
        const Type type = opcode_.type();
        const auto sources = elements(operand(1));
        Inst inst;
        bool fixed = false;
        if (sources.size() != vector_length() || type_bytes(type) > 8 ||
            !place(operand(0), space, inst, fixed) || fixed)
            return b_.unknown();
        for (std::size_t k = 0; k < sources.size(); ++k) inst.op[k] = b_.read(sources[k], type);
        inst.count = static_cast<std::uint8_t>(sources.size());
        emit(opcode_.key(Op::St, type), inst);
    }

    bool atomic_operation(AtomOp& op) const {
        struct Name {
            std::string_view text;
            AtomOp op;
        };
        static constexpr Name kNames[] = {{"add", AtomOp::Add},   {"min", AtomOp::Min},
                                          {"max", AtomOp::Max},   {"inc", AtomOp::Inc},
                                          {"dec", AtomOp::Dec},   {"and", AtomOp::And},
                                          {"or", AtomOp::Or},     {"xor", AtomOp::Xor},
                                          {"exch", AtomOp::Exch}, {"cas", AtomOp::Cas}};
        for (const Name& name : kNames) {
            if (opcode_.has(name.text)) {
                op = name.op;
                return true;
            }
        }
        return false;
    }

    void atomic() {
        const bool returns = opcode_.base() == "atom";
        const std::size_t first = returns ? 1 : 0;
        Space space = Space::Generic;
        OpKey key = opcode_.key(Op::Atom, opcode_.type());
        if (!memory_suffixes_known() || !find_space(space) || !atomic_operation(key.atom) ||
            opcode_.types() != 1 || operands() < first + 2)
            return b_.unknown();
        Inst inst;
        bool fixed = false;
        if (!place(operand(first), space, inst, fixed) || fixed) return b_.unknown();
        const auto values = elements(operand(first + 1));
        const std::uint32_t count = vector_length();
        if (values.size() != count || count * 2 > 8) return b_.unknown();
        const bool float_type = is_float(key.type);
        const Type type = float_type                  ? key.type
                          : type_bytes(key.type) == 8 ? Type::B64
                          : type_bytes(key.type) == 2 ? Type::B16
                                                      : Type::B32;
        for (std::uint32_t k = 0; k < count; ++k) inst.op[count + k] = b_.read(values[k], type);
        if (key.atom == AtomOp::Cas) {
            if (count != 1 || operands() < first + 3) return b_.unknown();
            inst.op[2] = read(first + 2, type);
        }
        if (returns) {
            const auto targets = elements(operand(0));
            if (targets.size() != count) return b_.unknown();
            for (std::uint32_t k = 0; k < count; ++k) inst.op[k] = b_.write(targets[k], type);
        }
        inst.count = static_cast<std::uint8_t>(count);
        inst.flops = float_type && key.atom == AtomOp::Add ? 1 : 0;
        emit(key, inst);
    }

    void shuffle() {
        const bool sync = opcode_.has("sync");
        if (!expect(sync ? 5 : 4) || opcode_.type() != Type::B32) return b_.unknown();
        const ShflMode mode = opcode_.has("up")     ? ShflMode::Up
                              : opcode_.has("down") ? ShflMode::Down
                              : opcode_.has("bfly") ? ShflMode::Bfly
                                                    : ShflMode::Idx;
        Inst inst;
        Operand first = operand(0);
        first.parts.clear();
        inst.op[0] = b_.write(first, Type::B32);
        if (!operand(0).parts.empty()) inst.op[1] = b_.write_predicate(operand(0).parts[0]);
        for (std::size_t k = 1; k < 4; ++k) inst.op[k + 1] = read(k, Type::B32);
        if (sync) inst.op[5] = read(4, Type::B32);
        OpKey key = opcode_.key(Op::Shfl, Type::B32);
        key.compare = static_cast<Compare>(mode);
        emit(key, inst);
    }

    void vote() {
        const bool sync = opcode_.has("sync");
        if (!expect(sync ? 3 : 2)) return;
        const Op op = opcode_.has("ballot") ? Op::VoteBallot
                      : opcode_.has("all")  ? Op::VoteAll
                      : opcode_.has("any")  ? Op::VoteAny
                                            : Op::VoteUni;
        Inst inst;
        bool negated = false;
        inst.op[0] =
            op == Op::VoteBallot ? b_.write(operand(0), Type::B32) : b_.write_predicate(operand(0));
        inst.op[1] = b_.read_predicate(operand(1), negated);
        inst.mode2 = negated ? 1 : 0;
        if (sync) inst.op[2] = read(2, Type::B32);
        if (inst.op[0] == kNoSlot) return b_.unknown();
        emit(opcode_.key(op, Type::B32), inst);
    }

    void match() {
        if (!expect(3)) return;
        const Type type = opcode_.type();
        Inst inst;
        Operand first = operand(0);
        first.parts.clear();
        inst.op[0] = b_.write(first, Type::B32);
        if (!operand(0).parts.empty()) inst.op[1] = b_.write_predicate(operand(0).parts[0]);
        inst.op[2] = read(1, type);
        inst.op[3] = read(2, Type::B32);
        emit(opcode_.key(opcode_.has("all") ? Op::MatchAll : Op::MatchAny, type), inst);
    }

    void redux() {
        OpKey key = opcode_.key(Op::Redux, opcode_.type());
        if (!expect(3) || !atomic_operation(key.atom)) return b_.unknown();
        Inst inst;
        inst.op[0] = b_.write(operand(0), key.type);
        inst.op[1] = read(1, key.type);
        inst.op[2] = read(2, Type::B32);
        inst.mode = static_cast<std::uint8_t>(key.atom);
        if (inst.op[0] == kNoSlot) return b_.unknown();
        emit(key, inst);
    }

    void activemask() {
        if (!expect(1)) return;
        Inst inst;
        inst.op[0] = b_.write(operand(0), Type::B32);
        if (inst.op[0] == kNoSlot) return b_.unknown();
        emit(opcode_.key(Op::Activemask, Type::B32), inst);
    }

    void elect() {
        if (!expect(2)) return;
        Inst inst;
        Operand first = operand(0);
        first.parts.clear();
        inst.op[0] = b_.write(first, Type::B32);
        if (!operand(0).parts.empty()) inst.op[1] = b_.write_predicate(operand(0).parts[0]);
        inst.op[2] = read(1, Type::B32);
        emit(opcode_.key(Op::Elect, Type::B32), inst);
    }

    void barrier() {
        if (opcode_.has("cluster")) return b_.unknown();
        Inst inst;
        if (opcode_.has("warp")) {
            if (!expect(1)) return;
            inst.op[0] = read(0, Type::B32);
            return emit(opcode_.key(Op::WarpBarrier, Type::B32), inst);
        }
        if (opcode_.has("red")) return barrier_reduction();
        const bool arrive = opcode_.has("arrive");
        if (operands() < (arrive ? 2U : 1U) || operands() > 2) return b_.unknown();
        inst.op[0] = read(0, Type::B32);
        if (operands() == 2) inst.op[1] = read(1, Type::B32);
        emit(opcode_.key(arrive ? Op::BarrierArrive : Op::Barrier, Type::B32), inst);
    }

    void barrier_reduction() {
        if (operands() != 3 && operands() != 4) return b_.unknown();
        Inst inst;
        inst.mode = opcode_.has("popc") ? 0 : opcode_.has("and") ? 1 : 2;
        inst.op[2] =
            inst.mode == 0 ? b_.write(operand(0), Type::B32) : b_.write_predicate(operand(0));
        inst.op[0] = read(1, Type::B32);
        if (operands() == 4) inst.op[1] = read(2, Type::B32);
        bool negated = false;
        inst.op[3] = b_.read_predicate(operand(operands() - 1), negated);
        inst.mode2 = negated ? 1 : 0;
        if (inst.op[2] == kNoSlot) return b_.unknown();
        emit(opcode_.key(Op::BarrierReduce, Type::B32), inst);
    }

    void branch() {
        if (!expect(1) || operand(0).kind != OperandKind::Name) return b_.unknown();
        b_.branch_to(operand(0).name);
        emit(opcode_.key(Op::Bra, Type::B32), Inst{});
    }

    void branch_indexed() {
        if (!expect(2) || operand(1).kind != OperandKind::Name) return b_.unknown();
        const auto table = b_.find(operand(1).name);
        if (!table || table->kind != SymbolKind::Targets) return b_.unknown();
        Inst inst;
        inst.op[0] = read(0, Type::B32);
        inst.imm = b_.branch_table(*table->statement);
        emit(opcode_.key(Op::Brx, Type::B32), inst);
    }

    bool variables(const Operand& group, std::vector<FrameParam>& into) {
        for (const Operand& part : group.parts) {
            const auto symbol = part.kind == OperandKind::Name ? b_.find(part.name) : std::nullopt;
            if (!symbol || symbol->kind != SymbolKind::FrameParam) return false;
            into.push_back({symbol->offset_bytes, symbol->bytes});
        }
        return true;
    }

    void call() {
        CallSite site;
        std::size_t at = 0;
        if (at < operands() && operand(at).kind == OperandKind::Group &&
            !variables(operand(at++), site.results))
            return b_.unknown();
        if (at >= operands() || operand(at).kind != OperandKind::Name) return b_.unknown();
        const Operand& target = operand(at++);
        if (at < operands() && operand(at).kind == OperandKind::Group &&
            !variables(operand(at++), site.arguments))
            return b_.unknown();
        if (!callee(target, site)) return;
        Inst inst;
        inst.imm = static_cast<std::int64_t>(b_.function().calls.size());
        b_.function().calls.push_back(std::move(site));
        emit(opcode_.key(Op::Call, Type::B32), inst);
    }

    bool callee(const Operand& target, CallSite& site) {
        const auto symbol = b_.find(target.name);
        if (!symbol) {
            b_.unknown("call of " + std::string(target.name) + ", which is not declared");
            return false;
        }
        if (symbol->kind == SymbolKind::Register) {
            site.callee = Callee::Indirect;
            site.slot = b_.read(target, Type::B64);
            b_.function().calls_indirectly = true;
            return !b_.failed();
        }
        if (symbol->kind != SymbolKind::Function) {
            b_.unknown();
            return false;
        }
        site.function = symbol->index;
        const Function& function = b_.program().functions[symbol->index];
        if (!function.defined &&
            (function.name == "vprintf" || function.name == "cudaGraphSetConditional"))
            site.callee = Callee::Printf;  // any that returns: call_builtin() tells them apart
        else if (!function.defined && function.name == "__assertfail")
            site.callee = Callee::AssertFail;
        else if (!function.defined)
            b_.unknown("call of " + function.name + ", which the module does not define");
        else
            b_.function().callees.push_back(symbol->index);
        return !b_.failed();
    }

    void ret() { emit(opcode_.key(Op::Ret, Type::B32), Inst{}); }
    void exit() { emit(opcode_.key(Op::Exit, Type::B32), Inst{}); }
    void trap() { emit(opcode_.key(Op::Trap, Type::B32), Inst{}); }
    void texture() { decode_texture(b_, opcode_); }
    void nothing() { emit(opcode_.key(Op::Nothing, Type::B32), Inst{}); }

    /// A cache policy is a value that nothing here looks at.
    void create_policy() {
        if (operands() < 1) return b_.unknown();
        Inst inst;
        inst.op[1] = b_.constant(ConstantKind::Value, true, 0);
        inst.op[0] = b_.write(operand(0), Type::B64);
        emit(opcode_.key(Op::Mov, Type::B64), inst);
    }

    FunctionBuilder& b_;
    const ast::Statement& statement_;
    Opcode opcode_;
};

}  // namespace

void decode_instruction(FunctionBuilder& builder) { Decoder(builder).run(); }

}  // namespace simgpu::exec
