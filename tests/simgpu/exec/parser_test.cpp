// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The libswap authors

#include "tests/simgpu/exec/kernel_fixture.hpp"

namespace simgpu::exec {

namespace {

const std::string kHeader = ".version 9.0\n.target sm_80\n.address_size 64\n";

ptx::Module parsed(const std::string& text) {
    auto module = ptx::parse(text);
    EXPECT_TRUE(module.has_value()) << module.error().line << ": " << module.error().reason;
    return module ? std::move(*module) : ptx::Module{};
}

TEST(Parser, ParametersHaveTheirPlaces) {
    const auto module = parsed(
        kHeader +
        ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 16 "
        ".b8 c[20], .param .f32 d[3])\n.maxntid 128, 2, 1\n.minnctapersm 2\n{ ret; }");
    ASSERT_EQ(module.kernels.size(), 1U);
    const ptx::Kernel& kernel = module.kernels[0];
    ASSERT_EQ(kernel.params.size(), 4U);
    EXPECT_EQ(kernel.params[1].offset_bytes, 8U);
    EXPECT_EQ(kernel.params[2].offset_bytes, 16U);
    EXPECT_EQ(kernel.params[2].bytes, 20U);
    EXPECT_EQ(kernel.params[3].offset_bytes, 36U);
    EXPECT_EQ(kernel.param_bytes, 48U);
    EXPECT_EQ(kernel.max_block[0], 128U);
    EXPECT_EQ(kernel.max_block[1], 2U);
}

TEST(Parser, GuessedRegistersLetTheLargestBlockRun) {
    std::string body = "{ .reg .f32 %f<1000>;\n";
    for (int k = 0; k < 1000; ++k) body += "mov.f32 %f" + std::to_string(k) + ", 0f00000000;\n";
    body += "ret; }\n";
    const auto module = parsed(kHeader + ".visible .entry open()" + body +
                               ".visible .entry bounded()\n.maxntid 16, 16, 1\n" + body +
                               ".visible .entry small() { ret; }");
    ASSERT_EQ(module.kernels.size(), 3U);
    EXPECT_LE(module.kernels[0].registers * 1024, 65536U);
    EXPECT_GT(module.kernels[1].registers, module.kernels[0].registers);
    EXPECT_LE(module.kernels[1].registers * 256, 65536U);
    EXPECT_LT(module.kernels[2].registers, module.kernels[0].registers);
}

TEST(Parser, VariablesKeepTheirInitialValues) {
    const auto module =
        parsed(kHeader +
               ".global .align 4 .f32 f[3] = {0f3F800000, -2.5, 3};\n.const .u16 c[] = {1, 0x10, "
               "077};\n.visible .global .u64 p[2] = {generic(f)+4, c};\n"
               ".extern .global .u32 e;\n.global .attribute(.managed) .b32 m;\n.global .v4 .f32 "
               "v;\n.global .u8 z[2][3] = {{1, 2}, {3, 4, 5}};");
    ASSERT_EQ(module.globals.size(), 7U);
    const auto& f = *module.find_global("f");
    EXPECT_EQ(f.bytes, 12U);
    float values[3];
    std::memcpy(values, f.initial.data(), 12);
    EXPECT_EQ(values[0], 1.0F);
    EXPECT_EQ(values[1], -2.5F);
    EXPECT_EQ(values[2], 3.0F);
    EXPECT_TRUE(module.find_global("c")->constant);
    EXPECT_EQ(module.find_global("c")->bytes, 6U);
    EXPECT_EQ(module.find_global("p")->relocations.at(0).symbol, "f");
    EXPECT_EQ(module.find_global("p")->relocations.at(0).addend, 4);
    EXPECT_TRUE(module.find_global("e")->external);
    EXPECT_TRUE(module.find_global("m")->managed);
    EXPECT_EQ(module.find_global("v")->align, 16U);
    const auto bytes =
        ptx::initial_bytes(module, *module.find_global("p"), {{"f", 0x1000}, {"c", 0x2000}});
    ASSERT_TRUE(bytes.has_value());
    std::uint64_t pointers[2];
    std::memcpy(pointers, bytes->data(), 16);
    EXPECT_EQ(pointers[0], 0x1004U);
    EXPECT_EQ(pointers[1], 0x2000U);
    EXPECT_FALSE(ptx::initial_bytes(module, *module.find_global("p"), {{"f", 0x1000}}).has_value());
}

TEST(Parser, UnknownInstructionsMarkTheirKernelOnly) {
    const auto module = parsed(kHeader +
                               ".visible .entry good() { ret; }\n.visible .entry bad() { .reg .b32 "
                               "%r<9>;\n mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                               "{%r1,%r2}, {%r3}, {%r4}, {%r5};\n ret; }\n"
                               ".extern .func malloc(.param .b64 n);\n.visible .entry calls() { { "
                               ".param .b64 q; call malloc, (q); } ret; }\n"
                               ".func helper() { wgmma.fence.sync.aligned; ret; }\n.visible .entry "
                               "indirect() { call helper; ret; }");
    EXPECT_TRUE(module.find_kernel("good")->executable());
    EXPECT_EQ(module.find_kernel("bad")->unknown.substr(0, 16), "mma.sync.aligned");
    EXPECT_NE(module.find_kernel("calls")->unknown.find("malloc"), std::string::npos);
    EXPECT_EQ(module.find_kernel("indirect")->unknown, "wgmma.fence.sync.aligned");
    FlatMemory memory;
    const RunResult result = run(module, *module.find_kernel("bad"), {}, {}, memory, {});
    EXPECT_EQ(result.status, RunStatus::UnknownInstruction);
    EXPECT_EQ(result.detail.substr(0, 3), "mma");
}

TEST(Parser, ErrorsNameTheirLine) {
    const auto check = [](const std::string& text, std::uint32_t line, const std::string& reason) {
        const auto module = ptx::parse(text);
        ASSERT_FALSE(module.has_value()) << text;
        EXPECT_EQ(module.error().line, line) << module.error().reason;
        EXPECT_NE(module.error().reason.find(reason), std::string::npos) << module.error().reason;
    };
    check("", 1, "this is not PTX");
    check("hello", 1, "directive");
    check(".version 9.0\n.target sm_80\n.address_size 32\n", 4, "64-bit");
    check(kHeader + ".visible .entry k(", 4, "");
    check(kHeader + ".visible .entry k()\n{\n ret;\n", 7, "without an end");
    check(kHeader + ".global .u32 x = {1, 2};\n", 4, "larger than its variable");
    check(kHeader + ".global .what x;\n", 4, "type");
    check(kHeader + ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n", 5, "twice");
    check(kHeader + "\x01", 4, "character");
}

TEST(Parser, ScopesAndLabelsOfInlineAssembly) {
    const auto module = parsed(kHeader + R"(.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %rd<2>;
    mov.u32 %r1, 0;
    // begin inline asm
    { .reg .pred p; .reg .b32 %r1; mov.u32 %r1, 3; AGAIN: sub.u32 %r1, %r1, 1; setp.ne.u32 p, %r1, 0; @p bra AGAIN; mov.u32 %r2, %r1; }
    // end inline asm
    { .reg .pred p; AGAIN: add.u32 %r1, %r1, 5; setp.lt.u32 p, %r1, 12; @p bra AGAIN; }
    ld.param.u64 %rd1, [out]; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;
    ret;
})");
    ASSERT_EQ(module.kernels.at(0).unknown, "");
    FlatMemory memory;
    const auto out = memory.allocate(4);
    ASSERT_TRUE(run(module, module.kernels[0], {}, params(out).bytes(), memory, {}).ok());
    EXPECT_EQ(memory.download<std::uint32_t>(out, 1)[0], 15U);
}

TEST(Parser, SharedMemoryIsLaidOutForWhatAKernelReaches) {
    const auto module =
        parsed(kHeader +
               ".shared .align 8 .b8 a[24];\n.shared .align 4 .f32 b;\n.extern .shared .align 16 "
               ".b8 dynamic[];\n"
               ".visible .entry k() { .reg .b32 r; .shared .align 4 .b8 c[5]; ld.shared.u32 r, "
               "[a]; ld.shared.u8 r, [c]; ld.shared.u32 r, [dynamic]; ret; }\n"
               ".visible .entry none() { ret; }");
    EXPECT_EQ(module.find_kernel("k")->static_shared_bytes, 29U);
    EXPECT_EQ(module.find_kernel("none")->static_shared_bytes, 0U);
}

TEST(Parser, LaunchesThatDoNotFitAreRefused) {
    const auto module = parsed(kHeader +
                               ".global .u32 g;\n.visible .entry k(.param .u64 p) { .reg .b32 r; "
                               "ld.global.u32 r, [g]; ret; }");
    FlatMemory memory;
    const auto attempt = [&](LaunchGeometry geometry, const Params& p,
                             const ptx::SymbolAddresses& addresses) {
        return run(module, module.kernels[0], geometry, p.bytes(), memory, addresses).status;
    };
    const ptx::SymbolAddresses known{{"g", memory.allocate(4)}};
    const Params full = params(std::uint64_t{0});
    EXPECT_EQ(attempt({}, full, known), RunStatus::Ok);
    EXPECT_EQ(attempt({}, full, {}), RunStatus::InvalidLaunch);
    EXPECT_EQ(attempt({}, params(1), known), RunStatus::InvalidLaunch);
    EXPECT_EQ(attempt({{0, 1, 1}, {1, 1, 1}, 0}, full, known), RunStatus::InvalidLaunch);
    EXPECT_EQ(attempt({{1, 1, 1}, {1025, 1, 1}, 0}, full, known), RunStatus::InvalidLaunch);
    EXPECT_EQ(attempt({{1, 1, 1}, {1, 1, 1}, 1U << 20}, full, known), RunStatus::InvalidLaunch);
}

/// Damaged text is refused or read, but never brings the parser down.
TEST(ParserFuzz, SurvivesDamagedText) {
    const std::string good = read_ptx("device_code", "compute_80");
    if (good.empty()) GTEST_SKIP() << "no PTX to damage";
    std::mt19937 random(3);
    const std::string pieces = "{}()[];:,.@!%$_0123456789abcdefx<>=+-|\"/*\n ";
    int refused = 0;
    for (int round = 0; round < SIMGPU_FUZZ_ROUNDS; ++round) {
        std::string text = good;
        if (round % 3 == 0) text.resize(random() % text.size());
        for (std::uint32_t k = 0; k < random() % 8; ++k) {
            if (text.empty()) break;
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
                case 0:
                    text[at] = pieces[random() % pieces.size()];
                    break;
                case 1:
                    text.erase(at, random() % 40);
                    break;
                case 2:
                    text.insert(at, text.substr(random() % text.size(), random() % 60));
                    break;
                default:
                    text[at] = static_cast<char>(random());
            }
        }
        refused += ptx::parse(text).has_value() ? 0 : 1;
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, SIMGPU_FUZZ_ROUNDS);
}

}  // namespace

}  // namespace simgpu::exec
