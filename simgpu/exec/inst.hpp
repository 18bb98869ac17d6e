// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#pragma once

#include <cstdint>

#include "simgpu/exec/types.hpp"

namespace simgpu::exec {

struct Warp;
struct Inst;

/// Does one decoded instruction for the lanes in `Warp::exec`.
using Handler = void (*)(Warp&, const Inst&);

/// What is done, apart from types and modifiers.
enum class Op : std::uint8_t {
    // integer and logic
    Add,
    Sub,
    MulLo,
    MulHi,
    MulWide,
    MadLo,
    MadHi,
    MadWide,
    Mul24Lo,
    Mul24Hi,
    Mad24Lo,
    Mad24Hi,
    Sad,
    Div,
    Rem,
    Abs,
    Neg,
    Min,
    Max,
    And,
    Or,
    Xor,
    Not,
    Cnot,
    Shl,
    Shr,
    ShfL,
    ShfR,
    Lop3,
    Popc,
    Clz,
    Bfind,
    BfindShift,
    Brev,
    Bfe,
    Bfi,
    Bmsk,
    Szext,
    Fns,
    Prmt,
    Dp4a,
    Dp2aLo,
    Dp2aHi,
    AddCc,
    SubCc,
    MadLoCc,
    MadHiCc,
    // floating point
    Fma,
    Rcp,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
    Testp,
    Copysign,
    // compare, select, move, convert
    Setp,
    Set,
    Selp,
    SelpPred,
    Slct,
    Mov,
    MovPred,
    NotPred,
    AndPred,
    OrPred,
    XorPred,
    Cvt,
    CvtPack2,
    Special,
    Pack,
    Unpack,
    // memory
    Ld,
    LdParam,
    St,
    Atom,
    Cvta,
    CvtaTo,
    Isspacep,
    // textures and surfaces; operands are in the function's table, by `imm`
    Texture,
    TextureGather,
    TextureQuery,
    SurfaceLoad,
    SurfaceStore,
    // among the lanes of a warp
    Shfl,
    VoteAll,
    VoteAny,
    VoteUni,
    VoteBallot,
    MatchAny,
    MatchAll,
    Activemask,
    Redux,
    Elect,
    WarpBarrier,
    // control
    Bra,
    Brx,
    Call,
    Ret,
    Exit,
    Trap,
    Barrier,
    BarrierArrive,
    BarrierReduce,
    Nothing,
};

enum class Round : std::uint8_t {
    None,
    Nearest,
    Zero,
    Down,
    Up,
    NearestInt,
    ZeroInt,
    DownInt,
    UpInt
};

enum class Compare : std::uint8_t {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
};

enum class Combine : std::uint8_t { None, And, Or, Xor };

enum class AtomOp : std::uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor, Exch, Cas };

enum class ShflMode : std::uint8_t { Up, Down, Bfly, Idx };

enum class TestProperty : std::uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

enum class SpecialRegister : std::uint8_t {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    LaneId,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    GridId,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    DynamicSharedBytes,
    TotalSharedBytes,
    GridWorkspaceLow,
    GridWorkspaceHigh,
    Zero,
    One,
    WarpSize,
};

/// Names a handler.
struct OpKey {
    Op op = Op::Nothing;
    Type type = Type::None;
    /// Source type of cvt, set and slct.
    Type from = Type::None;
    Round round = Round::None;
    bool ftz = false;
    bool saturate = false;
    bool approximate = false;
    bool nan = false;
    bool relu = false;
    bool carry_in = false;
    bool carry_out = false;
    /// Shifts of shf that wrap instead of clamping.
    bool wrap = false;
    Compare compare = Compare::Eq;
    AtomOp atom = AtomOp::Add;
    Space space = Space::Generic;
};

/// No predicate guards the instruction.
inline constexpr std::uint32_t kNoGuard = ~std::uint32_t{0};
/// Operand that is not there, or whose result is dropped.
inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

/// A decoded instruction. Operands are byte offsets of register slots in the function's frame;
/// immediates and addresses of variables lie in slots as well.
struct alignas(64) Inst {
    Handler fn = nullptr;
    /// Offset of an address, or a handler's constant.
    std::int64_t imm = 0;
    std::uint32_t op[8] = {kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot, kNoSlot};
    std::uint32_t guard = kNoGuard;
    /// Slot of an address; for a branch: where to.
    std::uint32_t addr = kNoSlot;
    bool guard_negated = false;
    /// Elements of a vector access, operands of a pack.
    std::uint8_t count = 1;
    std::uint8_t flops = 0;
    /// The address slot holds 32-bit values.
    bool addr32 = false;
    /// Small constants of a handler: Combine, ShflMode, negated operands, ...
    std::uint8_t mode = 0;
    std::uint8_t mode2 = 0;
    std::uint8_t mode3 = 0;
    std::uint8_t mode4 = 0;
};
static_assert(sizeof(Inst) == 64);

}  // namespace simgpu::exec
