// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/kernel_types.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/event/description.h"
#include "node-agent/kernel/btf_builder.h"

namespace weft::kernel {
namespace {

using testing::BtfBuilder;
namespace fs = std::filesystem;

class KernelTypesTest : public ::testing::Test {
 protected:
  KernelTypesTest()
      : folder_(fs::temp_directory_path() / ("weft-btf-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    fs::create_directories(loaded_);
    const uint32_t number = kernel_.Int("int", 4, 1);
    AddTracepoint(&kernel_, "of_kernel", number);
    Write("vmlinux", kernel_.Bytes());
    BtfBuilder module(kernel_.next(), kernel_.strings());
    AddTracepoint(&module, "of_module", number);
    Write("some_module", module.Bytes());
  }
  ~KernelTypesTest() override {
    fs::remove_all(folder_);
    fs::remove_all(loaded_);
  }

  static void AddTracepoint(BtfBuilder* b, const std::string& name, uint32_t number) {
    const uint32_t data = b->Pointer(0);
    const uint32_t probe = b->Pairs(13, "", 0, {{"__data", data, 0}, {"count", number, 0}});
    b->Type(12, "__traceiter_" + name, probe);
  }
  void Write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  fs::path folder_;
  fs::path loaded_ = folder_.string() + "-modules";
  BtfBuilder kernel_;
};

TEST_F(KernelTypesTest, HaveTheTracepointsOfKernelAndModules) {
  const auto types = KernelTypes::Load(folder_, loaded_);
  ASSERT_TRUE(types) << types.error().message;
  EXPECT_TRUE(types->problems().empty());
  EXPECT_EQ(types->Match(Catalogue::BuiltIn(), "of_*", {}),
            (std::vector<std::string>{"of_kernel", "of_module"}));
  for (const char* name : {"of_kernel", "of_module"}) {
    const auto resolved = types->Resolve(Catalogue::BuiltIn(), name, {.cluster_wide = true});
    ASSERT_TRUE(resolved) << resolved.error().message;
    EXPECT_EQ(EventDescription::Parse(resolved->description).value().fields.at(0).name, "count");
  }
  EXPECT_EQ(types->Resolve(Catalogue::BuiltIn(), "not_there", {}).error().code,
            ErrorCode::kNotFound);
}

TEST_F(KernelTypesTest, NameAModuleThatCannotBeReadAndGoOn) {
  Write("broken", {1, 2, 3});
  const auto types = KernelTypes::Load(folder_, loaded_);
  ASSERT_TRUE(types);
  ASSERT_EQ(types->problems().size(), 1u);
  const std::string& problem = types->problems().front();
  EXPECT_TRUE(problem.starts_with("the types of module \"broken\" cannot be read: ")) << problem;
  EXPECT_NE(problem.find("broken: BTF"), std::string::npos);
  EXPECT_EQ(types->Match(Catalogue::BuiltIn(), "of_*", {}).size(), 2u);
}

TEST_F(KernelTypesTest, NameALoadedModuleThatHasTracepointsAndNoTypes) {
  for (const char* name : {"some_module/sections/__tracepoints_ptrs",
                           "typeless/sections/__tracepoints_ptrs", "plain/sections/.text"}) {
    fs::create_directories((loaded_ / name).parent_path());
    std::ofstream(loaded_ / name) << "0x0";
  }
  const auto types = KernelTypes::Load(folder_, loaded_);
  ASSERT_TRUE(types);
  EXPECT_EQ(types->problems(),
            (std::vector<std::string>{
                "module \"typeless\" has tracepoints, but was built without types (BTF)"}));
}

TEST_F(KernelTypesTest, AreNothingWithoutTheKernels) {
  fs::remove(folder_ / "vmlinux");
  EXPECT_FALSE(KernelTypes::Load(folder_, loaded_));
}

}  // namespace
}  // namespace weft::kernel
