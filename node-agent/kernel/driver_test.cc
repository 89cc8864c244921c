// SPDX-License-Identifier: Apache-2.0
// The search for weft.ko and what is said where it cannot be had, on a machine made of files.
#include "node-agent/kernel/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "node-agent/kernel/driver_build.h"
#include "node-agent/kernel/module_file.h"

namespace weft::kernel {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kRelease = "6.1.0-56-amd64";

class Driver : public ::testing::Test {
 protected:
  Driver() {
    char name[] = "/tmp/weft-driver-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    host_.release = kRelease;
    host_.root = folder_ / "root";
    host_.sys = folder_ / "sys";
    host_.proc = folder_ / "proc";
    host_.device = folder_ / "weft";
    host_.load = [this](const UniqueFd&) {
      ++loads_;
      if (load_error_ == 0) Loaded("new");
      return load_error_;
    };
    host_.unload = [this] {
      if (unload_error_ == 0) fs::remove_all(folder_ / "sys/module/weft");
      return unload_error_;
    };
    host_.open = [this](const std::string&) -> Result<UniqueFd> {
      if (refusal_) return Fail(*refusal_, "refused");
      return UniqueFd();
    };
    host_.make_node = [this](const std::string&, unsigned major, unsigned minor) {
      node_ = std::to_string(major) + ":" + std::to_string(minor);
      return node_error_;
    };
    Write("proc/sys/kernel/modules_disabled", "0\n");
  }
  ~Driver() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void Module(const std::string& name, const std::string& source = "new",
              const std::string& release = kRelease, const std::string& abi = "1u",
              const std::string& end = "") const {
    Write(name, testing::ModuleFile({"name=weft", "version=0.1", "srcversion=" + source,
                                     "weft_abi=" + abi, "vermagic=" + release + " SMP "}) +
                    end);
  }
  void Loaded(const std::string& source, const std::string& version = "0.1") const {
    Write("sys/module/weft/srcversion", source + "\n");
    Write("sys/module/weft/version", version + "\n");
    Write("sys/class/misc/weft/dev", "10:123\n");
  }
  DriverState Prepare() const {
    return PrepareDriver(host_, {.folders = {folder_ / "own", folder_ / "image"}});
  }

  fs::path folder_;
  Host host_;
  int load_error_ = 0, unload_error_ = 0, node_error_ = 0, loads_ = 0;
  std::optional<ErrorCode> refusal_;
  std::string node_;
};

TEST_F(Driver, AFileForThisKernelIsLoaded) {
  Module("image/" + std::string(kRelease) + "/weft.ko");
  const DriverState state = Prepare();
  EXPECT_TRUE(state.is_ready) << state.message;
  EXPECT_EQ(state.reason, "Loaded");
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(node_, "10:123");
}

TEST_F(Driver, FindsAModuleInThisKernelsPackages) {
  Module("root/lib/modules/" + std::string(kRelease) + "/updates/dkms/weft.ko");
  EXPECT_TRUE(Prepare().is_ready);
}

TEST_F(Driver, OtherKernelsAndInterfacesArePassedOverByName) {
  Module("own/" + std::string(kRelease) + "/weft.ko", "new", "6.1.0-1-amd64");
  Module("image/" + std::string(kRelease) + "/weft.ko", "new", kRelease, "2u");
  const DriverState state = Prepare();
  EXPECT_EQ(state.reason, kNoBuildForKernel);
  EXPECT_THAT(state.message, HasSubstr("was built for kernel 6.1.0-1-amd64"));
  EXPECT_THAT(state.message, HasSubstr("version 2 of the interface"));
  EXPECT_THAT(state.message, HasSubstr("looked for " + (folder_ / "own/").string()));
  EXPECT_EQ(loads_, 0);
}

TEST_F(Driver, TakesTheLoadedModule) {
  Loaded("old");
  EXPECT_TRUE(Prepare().is_ready);
  Module("own/" + std::string(kRelease) + "/weft.ko", "old");
  EXPECT_TRUE(Prepare().is_ready);
  EXPECT_EQ(loads_, 0);
}

TEST_F(Driver, AnotherBuildIsReplacedUnlessItIsUsed) {
  Loaded("old");
  Module("own/" + std::string(kRelease) + "/weft.ko");
  unload_error_ = EBUSY;
  EXPECT_TRUE(Prepare().is_ready);
  EXPECT_EQ(loads_, 0);
  unload_error_ = 0;
  EXPECT_TRUE(Prepare().is_ready);
  EXPECT_EQ(loads_, 1);
}

TEST_F(Driver, AnOlderVersionReplacesOnlyAnUnusableModule) {
  Module("own/" + std::string(kRelease) + "/weft.ko");  // 0.1
  for (const char* later : {"0.2", "0.10", "1.0"}) {
    Loaded("other", later);
    EXPECT_TRUE(Prepare().is_ready);
    EXPECT_EQ(loads_, 0) << later;
  }
  refusal_ = ErrorCode::kUnsupported;
  (void)Prepare();
  EXPECT_EQ(loads_, 1) << "it speaks another interface";
  refusal_.reset();
  Loaded("other", "0.0.9");
  EXPECT_TRUE(Prepare().is_ready);
  EXPECT_EQ(loads_, 2);
}

TEST_F(Driver, ReportsAnIncompatibleModuleThatIsInUse) {
  Loaded("old");
  unload_error_ = EBUSY;
  refusal_ = ErrorCode::kUnsupported;
  EXPECT_EQ(Prepare().reason, kIncompatible);
}

TEST_F(Driver, ReportsTheReasonOfEachFailure) {
  const std::string path = "own/" + std::string(kRelease) + "/weft.ko";
  const auto reason = [&](int error) {
    load_error_ = error;
    return Prepare().reason;
  };
  EXPECT_EQ(reason(0), kNoBuildForKernel);
  Module(path);
  EXPECT_EQ(reason(EKEYREJECTED), kSignatureRequired);
  EXPECT_EQ(reason(ENOEXEC), kIncompatible);
  EXPECT_EQ(reason(ENOENT), kIncompatible);
  EXPECT_EQ(reason(ENOMEM), kLoadFailed);
  EXPECT_EQ(reason(EPERM), kNotPermitted);
  Write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  EXPECT_EQ(reason(EPERM), kLockedDown);
  Write("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  EXPECT_EQ(reason(EPERM), kNotPermitted);
  Write("proc/sys/kernel/modules_disabled", "1\n");
  EXPECT_EQ(reason(0), kModulesDisabled);
  fs::remove(folder_ / "proc/sys/kernel/modules_disabled");
  EXPECT_EQ(reason(0), kModulesDisabled);
}

TEST_F(Driver, AFileWithoutTheSignatureThatIsRequiredIsNotTried) {
  const std::string path = "own/" + std::string(kRelease) + "/weft.ko";
  Write("sys/module/module/parameters/sig_enforce", "Y\n");
  Module(path);
  EXPECT_EQ(Prepare().reason, kSignatureRequired);
  EXPECT_EQ(loads_, 0);
  Module(path, "new", kRelease, "1u", "~Module signature appended~\n");
  EXPECT_TRUE(Prepare().is_ready);
}

TEST_F(Driver, ReportsADeviceThatCannotBeMade) {
  Loaded("old");
  node_error_ = EPERM;
  EXPECT_EQ(Prepare().reason, kNotPermitted);
  node_error_ = 0;
  Write("weft", "");
  EXPECT_THAT(Prepare().message, HasSubstr("in the way"));
}

TEST_F(Driver, TheFirstOfSeveralUsableFilesIsTaken) {
  const std::string name = "/" + std::string(kRelease) + "/weft.ko";
  const std::string packages = "root/lib/modules/" + std::string(kRelease);
  const auto found = [this] {
    const auto file = FindDriver(host_, {.folders = {folder_ / "own", folder_ / "image"}});
    return file ? fs::relative(file->path, folder_).string() : file.error().message;
  };
  const std::string in_order[] = {packages + "/extra/weft.ko", packages + "/updates/weft.ko",
                                  packages + "/updates/dkms/weft.ko", "image" + name, "own" + name};
  for (const std::string& file : in_order) {
    Module(file);
    EXPECT_EQ(found(), file);
  }
  // A file that is of no use does not hide the next one.
  Module("own" + name, "new", "6.1.0-1-amd64");
  EXPECT_EQ(found(), "image" + name);
  Write("image" + name, "no module");
  EXPECT_EQ(found(), packages + "/updates/dkms/weft.ko");
}

// ./dev kmod build calls its folders as it calls kernels.
TEST_F(Driver, AmongBuildsOfSeveralKernelsThatOfThisOneIsTaken) {
  const auto found = [this] {
    const auto file =
        FindDriver(host_, {.folders = {folder_ / "own"}, .builds = {folder_ / "kmod"}});
    return file ? fs::relative(file->path, folder_).string() : file.error().message;
  };
  EXPECT_THAT(found(), HasSubstr("there is no weft.ko for kernel"));
  Module("kmod/6.12/weft.ko", "new", "6.12.95+deb12-amd64");
  Write("kmod/newest/source/README", "compiled only");
  EXPECT_THAT(found(), HasSubstr("kmod/6.12/weft.ko: was built for kernel 6.12.95+deb12-amd64"));
  Module("kmod/6.1/weft.ko");
  EXPECT_EQ(found(), "kmod/6.1/weft.ko");
  const std::string own = "own/" + std::string(kRelease) + "/weft.ko";
  Module(own);
  EXPECT_EQ(found(), own);
}

// Building, with this machine's make and compiler, and headers of a kernel whose module is a file
// that is there.
class DriverBuild : public Driver {
 protected:
  DriverBuild() {
    host_.release = "0.0.0-weft-test";
    host_.root.clear();
    host_.headers = folder_ / "headers";
    fs::create_directories(folder_ / "sources/kmod");
    fs::create_directories(folder_ / "sources/lib");
    compiler_ = Output("LC_ALL=C gcc --version");
    Headers(compiler_, "cp " + (folder_ / "prepared").string() + " $(M)/weft.ko");
    Module("prepared", "new", host_.release);
  }

  // Returns the first line.
  static std::string Output(const char* command) {
    std::FILE* pipe = popen(command, "re");
    if (pipe == nullptr) return "";
    char line[256] = {};
    const char* read = std::fgets(line, sizeof(line), pipe);
    pclose(pipe);
    const std::string text = read == nullptr ? "" : read;
    return text.substr(0, text.find('\n'));
  }
  void Headers(const std::string& compiler, const std::string& recipe) const {
    Write("headers/include/config/auto.conf", "CONFIG_CC_VERSION_TEXT=\"" + compiler + "\"\n");
    Write("headers/Makefile", "modules:\n\techo $(CC) $(LLVM) > " + (folder_ / "built").string() +
                                  "\n\t" + recipe + "\n");
  }
  DriverState Prepare() const {
    return PrepareDriver(host_, {.folders = {folder_ / "own"},
                                 .sources = folder_ / "sources",
                                 .build_folder = folder_ / "build"});
  }
  bool WasBuilt() const { return fs::exists(folder_ / "built"); }

  std::string compiler_;
};

TEST_F(DriverBuild, BuildsAndLoadsAModuleIfThereIsNoFile) {
  ASSERT_FALSE(compiler_.empty());
  const DriverState state = Prepare();
  EXPECT_TRUE(state.is_ready) << state.message;
  EXPECT_THAT(state.message, HasSubstr(folder_ / "build"));
  EXPECT_TRUE(WasBuilt());
  EXPECT_EQ(loads_, 1);
}

TEST_F(DriverBuild, BuildsNothingIfThereIsAFileOrALoadedModule) {
  Module("own/" + host_.release + "/weft.ko", "new", host_.release);
  EXPECT_TRUE(Prepare().is_ready);
  fs::remove_all(folder_ / "own");
  EXPECT_TRUE(Prepare().is_ready) << "it is loaded now";
  EXPECT_FALSE(WasBuilt());
}

TEST_F(DriverBuild, BuildsNothingUnlessRequested) {
  EXPECT_EQ(PrepareDriver(host_, {.folders = {folder_ / "own"}}).reason, kNoBuildForKernel);
  EXPECT_FALSE(WasBuilt());
}

TEST_F(DriverBuild, AnotherVersionOfTheCompilerIsRefused) {
  Headers("gcc (Debian 99.9) 99.9.0", "true");
  const DriverState state = Prepare();
  EXPECT_EQ(state.reason, kNoBuildForKernel);
  EXPECT_THAT(state.message, HasSubstr("there is no weft.ko for kernel 0.0.0-weft-test"));
  EXPECT_THAT(state.message, HasSubstr("the kernel was built with gcc (Debian 99.9) 99.9.0, the "
                                       "node has " +
                                       compiler_));
  Headers("no-such-gcc-1 (Debian 1) 1", "true");
  EXPECT_THAT(Prepare().message, HasSubstr("the node has no no-such-gcc-1 (Debian 1) 1"));
  EXPECT_FALSE(WasBuilt());
  EXPECT_EQ(loads_, 0);
}

// Distributions have several versions beside each other, one of which may be called clang.
TEST_F(DriverBuild, ClangByTheNameOfItsVersionAndWithTheLinkerOfTheKernel) {
  const std::string clang = Output("LC_ALL=C clang-19 --version");
  ASSERT_THAT(clang, HasSubstr("clang version 19."));
  const std::string recipe = "cp " + (folder_ / "prepared").string() + " $(M)/weft.ko";
  const auto words = [&] {
    std::ifstream in(folder_ / "built");
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  Headers(clang, recipe);
  EXPECT_TRUE(Prepare().is_ready);
  const bool is_plain = Output("LC_ALL=C clang --version 2>&1") == clang;
  EXPECT_EQ(words(), is_plain ? "clang\n" : "clang-19\n");
  Headers(clang, recipe);
  Write("headers/include/config/auto.conf",
        "CONFIG_CC_VERSION_TEXT=\"" + clang + "\"\nCONFIG_LD_IS_LLD=y\n");
  fs::remove_all(folder_ / "sys/module/weft");
  EXPECT_TRUE(Prepare().is_ready);
  EXPECT_EQ(words(), is_plain ? "clang 1\n" : "clang-19 -19\n");
  fs::remove_all(folder_ / "sys/module/weft");
  Headers("Debian clang version 99.1.0", recipe);
  EXPECT_THAT(Prepare().message, HasSubstr("the node has no Debian clang version 99.1.0"));
}

TEST_F(DriverBuild, ReportsAFailedBuildWithTheCompilersMessage) {
  Headers(compiler_, "echo 'ring.c:1: no such thing'; false");
  const DriverState state = Prepare();
  EXPECT_EQ(state.reason, kNoBuildForKernel);
  EXPECT_THAT(state.message, HasSubstr("ring.c:1: no such thing"));
  EXPECT_EQ(loads_, 0);
}

TEST_F(DriverBuild, ABuiltModuleIsNotSigned) {
  load_error_ = EKEYREJECTED;
  EXPECT_EQ(Prepare().reason, kSignatureRequired);
  EXPECT_TRUE(WasBuilt());
}

TEST_F(Driver, BuildingNeedsTheKernelsHeadersAndCompiler) {
  host_.root.clear();
  host_.headers = folder_ / "headers";
  const auto built = BuildModule(host_, folder_ / "sources", folder_ / "build");
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().message, HasSubstr("no headers of its kernel"));
  EXPECT_EQ(CompilerOf("# x\nCONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian 12.2.0-14) 12.2.0\"\nA=y\n"),
            "gcc-12 (Debian 12.2.0-14) 12.2.0");
  EXPECT_EQ(CompilerOf("CONFIG_CC_VERSION_TEXT=gcc-12 (Debian) 12.2.0\nA=y\n"),
            "gcc-12 (Debian) 12.2.0");
  EXPECT_EQ(CompilerOf("CONFIG_CC_IS_GCC=y\n"), "");
}

}  // namespace
}  // namespace weft::kernel
