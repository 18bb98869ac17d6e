// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "tests/simgpu/exec/instruction_fixture.hpp"

namespace simgpu::exec {

namespace {

class MemoryInstructions : public InstructionTest {
  protected:
    /// A kernel of two pointers; its body finds the thread's number in t and them in a and b.
    static std::string kernel(const std::string& body) {
        return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 pa, "
               ".param .u64 pb)\n{\n"
               ".reg .b32 t, r<9>; .reg .b64 a, b, o, d<9>; .reg .f32 f<9>; .reg .pred p; .shared "
               ".align 8 .b8 box[1024];\n"
               "mov.u32 t, %tid.x; ld.param.u64 a, [pa]; ld.param.u64 b, [pb];\n" +
               body + "\nret;\n}\n";
    }

    RunResult launch(const std::string& body, std::uint64_t a, std::uint64_t b,
                     std::uint32_t threads = 32, std::uint32_t blocks = 1) {
        auto module = ptx::parse(kernel(body));
        EXPECT_TRUE(module.has_value());
        return run(*module, module->kernels[0], {{blocks, 1, 1}, {threads, 1, 1}, 0},
                   params(a, b).bytes(), memory_, {});
    }

    FlatMemory memory_;
};

TEST_F(MemoryInstructions, FaultsNameTheAddress) {
    const auto a = memory_.upload(std::vector<int>(64, 1));
    const RunResult result = launch("mad.wide.u32 o, t, 4, b; st.global.u32 [o], t;", a, 0x1234500);
    EXPECT_EQ(result.status, RunStatus::IllegalAddress);
    EXPECT_EQ(result.address, 0x1234500U);
    EXPECT_EQ(launch("ld.global.u32 r1, [b+4];", a, 0).address, 4U);
}

TEST_F(MemoryInstructions, MisalignedAddressesFault) {
    const auto a = memory_.upload(std::vector<int>(64, 1));
    const RunResult result = launch("ld.global.u32 r1, [a+2];", a, 0);
    EXPECT_EQ(result.status, RunStatus::MisalignedAddress);
    EXPECT_EQ(result.address, a + 2);
    EXPECT_EQ(launch("ld.global.v2.u32 {r1, r2}, [a+4];", a, 0).status,
              RunStatus::MisalignedAddress);
    EXPECT_TRUE(launch("ld.global.v2.u32 {r1, r2}, [a+8];", a, 0).ok());
}

TEST_F(MemoryInstructions, AFaultingStoreWritesNothing) {
    const auto a = memory_.upload(std::vector<int>(64, 7));
    const RunResult result = launch(
        "setp.eq.u32 p, t, 20; mad.wide.u32 o, t, 4, a; @p mov.u64 o, 64; st.global.u32 [o], t; "
        "st.global.u32 [a], t;",
        a, 0);
    EXPECT_EQ(result.status, RunStatus::IllegalAddress);
    EXPECT_EQ(result.address, 64U);
    EXPECT_EQ(memory_.download<int>(a, 64), std::vector<int>(64, 7));
}

TEST_F(MemoryInstructions, ReadOnlyPagesMayBeRead) {
    const auto a = memory_.upload(std::vector<int>(64, 7));
    memory_.protect(a);
    EXPECT_TRUE(launch("ld.global.u32 r1, [a];", a, 0).ok());
    EXPECT_EQ(launch("st.global.u32 [a], t;", a, 0).status, RunStatus::IllegalAddress);
    EXPECT_EQ(launch("red.global.add.u32 [a], t;", a, 0).status, RunStatus::IllegalAddress);
}

TEST_F(MemoryInstructions, InactiveLanesNeverFault) {
    const auto a = memory_.upload(std::vector<int>(64, 7));
    EXPECT_TRUE(launch("setp.lt.u32 p, t, 5; mov.u64 o, 3; @p mov.u64 o, a; @p ld.global.u32 r1, "
                       "[o]; @p st.global.u32 [o], r1;",
                       a, 0)
                    .ok());
}

TEST_F(MemoryInstructions, SharedMemoryEndsWhereItEnds) {
    const auto a = memory_.upload(std::vector<int>(64, 7));
    EXPECT_TRUE(launch("st.shared.u32 [box+1020], t;", a, 0).ok());
    EXPECT_EQ(launch("st.shared.u32 [box+1024], t;", a, 0).status, RunStatus::IllegalAddress);
    EXPECT_EQ(
        launch("mov.u32 r1, box; mul.lo.u32 r2, t, 64; add.u32 r1, r1, r2; ld.shared.u32 r3, [r1];",
               a, 0)
            .status,
        RunStatus::IllegalAddress);
}

TEST_F(MemoryInstructions, AccessesCrossPages) {
    const auto a = memory_.allocate(2 * kPageBytes);
    const std::uint64_t at = a + kPageBytes - 64;
    ASSERT_TRUE(launch("mad.wide.u32 o, t, 4, b; st.global.u32 [o], t; ld.global.u32 r1, [o]; "
                       "add.u32 r1, r1, 1; st.global.u32 [o], r1;",
                       a, at)
                    .ok());
    const auto out = memory_.download<std::uint32_t>(at, 32);
    for (std::uint32_t t = 0; t < 32; ++t) ASSERT_EQ(out[t], t + 1);
}

TEST_F(MemoryInstructions, SmallTypesExtend) {
    std::vector<std::int8_t> bytes(32);
    for (int t = 0; t < 32; ++t) bytes[t] = static_cast<std::int8_t>(t * 9 - 100);
    const auto a = memory_.upload(bytes);
    const auto b = memory_.allocate(32 * 16);
    ASSERT_TRUE(launch("cvt.u64.u32 o, t; add.u64 o, o, a; ld.global.s8 r1, [o]; ld.global.u8 r2, "
                       "[o]; ld.global.s8 d1, [o]; mad.wide.u32 o, t, 16, b; "
                       "st.global.u32 [o], r1; st.global.u32 [o+4], r2; st.global.u64 [o+8], d1;",
                       a, b)
                    .ok());
    const auto out = memory_.download<std::int32_t>(b, 128);
    for (int t = 0; t < 32; ++t) {
        ASSERT_EQ(out[t * 4], bytes[t]);
        ASSERT_EQ(out[t * 4 + 1], static_cast<std::uint8_t>(bytes[t]));
        ASSERT_EQ(out[t * 4 + 2], bytes[t]);
        ASSERT_EQ(out[t * 4 + 3], bytes[t] < 0 ? -1 : 0);
    }
}

TEST_F(MemoryInstructions, VectorsOfAnyWidthKeepTheirOrder) {
    std::vector<std::uint16_t> values(128);
    for (std::uint16_t k = 0; k < 128; ++k) values[k] = static_cast<std::uint16_t>(k * 3);
    const auto a = memory_.upload(values);
    const auto b = memory_.allocate(256);
    ASSERT_TRUE(launch("mad.wide.u32 o, t, 8, a; ld.global.v4.u16 {r1, r2, r3, r4}, [o]; "
                       "mad.wide.u32 o, t, 8, b; st.global.v4.u16 [o], {r4, r3, r2, r1};",
                       a, b)
                    .ok());
    const auto out = memory_.download<std::uint16_t>(b, 128);
    for (int k = 0; k < 128; ++k) ASSERT_EQ(out[k], values[k / 4 * 4 + 3 - k % 4]);
}

TEST_F(MemoryInstructions, IntegerAtomicsReturnTheOldValue) {
    struct Case {
        const char* op;
        std::uint32_t start;
        std::uint32_t end;
    };
    const Case cases[] = {{"add.u32", 5, 5 + 32 * 31 / 2},
                          {"min.s32", 10, 0},
                          {"max.u32", 3, 31},
                          {"or.b32", 0, 31},
                          {"and.b32", 0xff, 0},
                          {"xor.b32", 1, 1},
                          {"exch.b32", 9, 31}};
    for (const Case& c : cases) {
        for (const std::string space : {"global", "shared"}) {
            const auto a = memory_.upload(std::vector<std::uint32_t>(1, c.start));
            const auto b = memory_.allocate(128);
            const std::string body =
                space == "global"
                    ? std::string("atom.global.") + c.op + " r1, [a], t;"
                    : std::string("ld.global.u32 r2, [a]; st.shared.u32 [box], r2; atom.shared.") +
                          c.op + " r1, [box], t; ld.shared.u32 r3, [box]; st.global.u32 [a], r3;";
            ASSERT_TRUE(launch(body + "mad.wide.u32 o, t, 4, b; st.global.u32 [o], r1;", a, b).ok())
                << c.op;
            EXPECT_EQ(memory_.download<std::uint32_t>(a, 1)[0], c.end) << c.op;
            EXPECT_EQ(memory_.download<std::uint32_t>(b, 1)[0], c.start) << c.op;
        }
    }
}

TEST_F(MemoryInstructions, WrappingAndExchangingAtomics) {
    const auto a = memory_.upload(std::vector<std::uint32_t>{0, 3, 0, 0});
    ASSERT_TRUE(launch("atom.global.inc.u32 r1, [a], 6; atom.global.dec.u32 r1, [a+4], 4; "
                       "atom.global.cas.b32 r1, [a+8], t, 77;",
                       a, 0)
                    .ok());
    const auto out = memory_.download<std::uint32_t>(a, 3);
    EXPECT_EQ(out[0], 32U % 7);
    std::uint32_t expected = 3;
    for (int k = 0; k < 32; ++k) expected = expected == 0 || expected > 4 ? 4 : expected - 1;
    EXPECT_EQ(out[1], expected);
    EXPECT_EQ(out[2], 77U);
}

TEST_F(MemoryInstructions, FloatAtomicsAddInLaneOrder) {
    const auto a = memory_.upload(std::vector<double>{0.5, 0, 0, 0});
    ASSERT_TRUE(launch("cvt.rn.f64.u32 d1, t; red.global.add.f64 [a], d1; cvt.rn.f32.u32 f1, t; "
                       "mov.b32 r1, 0; st.global.u32 [a+8], r1; st.global.u32 [a+12], r1; "
                       "red.global.add.f32 [a+8], f1; red.global.v2.f32.add [a+16], {f1, f1};",
                       a, 0)
                    .ok());
    EXPECT_EQ(memory_.download<double>(a, 1)[0], 496.5);
    EXPECT_EQ(memory_.download<float>(a + 8, 1)[0], 496.0F);
    EXPECT_EQ(memory_.download<float>(a + 20, 1)[0], 496.0F);
}

TEST_F(MemoryInstructions, LaunchesRepeatTheirBytesAndCounts) {
    const auto a = memory_.upload(std::vector<float>(1, 0.0F));
    const std::string body =
        "cvt.rn.f32.u32 f1, t; rcp.rn.f32 f1, f1; add.f32 f1, f1, 0f3DCCCCCD; min.f32 f1, f1, "
        "0f3F000000; red.global.add.f32 [a], f1; bar.sync 0;";
    const RunResult first = launch(body, a, 0, 256, 7);
    const float sum = memory_.download<float>(a, 1)[0];
    const float zero = 0;
    memory_.write(a, &zero, 4);
    const RunResult second = launch(body, a, 0, 256, 7);
    EXPECT_EQ(memory_.download<float>(a, 1)[0], sum);
    EXPECT_EQ(first.counters.thread_instructions, second.counters.thread_instructions);
}

TEST_F(MemoryInstructions, NamedBarriersPairProducersAndConsumers) {
    const auto a = memory_.upload(std::vector<std::uint32_t>(64, 0));
    ASSERT_TRUE(
        launch("setp.lt.u32 p, t, 32; @p bra produce;\nbar.sync 1, 64; sub.u32 r1, t, 32; shl.b32 "
               "r1, r1, 2; mov.u32 r2, box; add.u32 r2, r2, r1; ld.shared.u32 r3, [r2]; "
               "mad.wide.u32 o, t, 4, a; st.global.u32 [o], r3; ret;\nproduce: shl.b32 r1, t, 2; "
               "mov.u32 r2, box; add.u32 r2, r2, r1; add.u32 r3, t, 500; st.shared.u32 [r2], r3; "
               "bar.arrive 1, 64;",
               a, 0, 64)
            .ok());
    const auto out = memory_.download<std::uint32_t>(a, 64);
    for (std::uint32_t t = 32; t < 64; ++t) ASSERT_EQ(out[t], t - 32 + 500);
}

TEST_F(MemoryInstructions, BarriersThatCannotCompleteAreReported) {
    EXPECT_EQ(
        launch("setp.lt.u32 p, t, 32; @p bra one;\nbar.sync 1; ret;\none: bar.sync 2;", 0, 0, 64)
            .status,
        RunStatus::BarrierDeadlock);
}

TEST_F(MemoryInstructions, EndlessRecursionOverflowsTheStack) {
    auto module = ptx::parse(
        ".version 8.0\n.target sm_80\n.address_size 64\n.func down(.param .b32 n)\n{ .local .align "
        "8 .b8 depot[4096]; { .param .b32 q; call.uni down, (q); } ret; }\n"
        ".visible .entry k()\n{ { .param .b32 q; call.uni down, (q); } ret; }\n");
    ASSERT_TRUE(module.has_value());
    EXPECT_EQ(run(*module, module->kernels[0], {}, {}, memory_, {}).status,
              RunStatus::StackOverflow);
}

}  // namespace

}  // namespace simgpu::exec
