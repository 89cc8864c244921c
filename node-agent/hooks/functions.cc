// SPDX-License-Identifier: Apache-2.0
// See functions.h.
#include "node-agent/hooks/functions.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <unordered_set>

#include "lib/abi/event.h"
#include "lib/abi/hooks.h"
#include "lib/elf/elf_image.h"
#include "lib/elf/go_table.h"
#include "lib/event/match.h"
#include "lib/event/text.h"
#include "node-agent/hooks/cpp_names.h"
#include "node-agent/hooks/go_functions.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/side_entries.h"

namespace weft::hooks {
namespace {

// These run before there is a stack frame to return to, or not as functions.
constexpr std::string_view kNever[] = {"_start",
                                       "__start",
                                       "_init",
                                       "_fini",
                                       "_dl_start",
                                       "__libc_start_main",
                                       "__libc_start_call_main"};
// They return twice, on another stack, or never; or they ask who called them.
constexpr std::string_view kNoExit[] = {
    "setjmp",      "_setjmp",      "__setjmp",      "sigsetjmp",
    "__sigsetjmp", "longjmp",      "_longjmp",      "siglongjmp",
    "vfork",       "__vfork",      "clone",         "__clone",
    "clone3",      "__clone3",     "getcontext",    "setcontext",
    "swapcontext", "makecontext",  "__getcontext",  "savectx",
    "dlopen",      "dlsym",        "dlvsym",        "dlmopen",
    "dlerror",     "__cxa_throw",  "__cxa_rethrow", "exit",
    "_exit",       "pthread_exit", "abort",         "__builtin_return_address",
    "mcount",      "_mcount",      "__fentry__"};

// In the names that compilers give to copies of functions.
constexpr const char* kCopies[] = {".isra.", ".constprop.", ".part.", ".specialized.", ".argprom"};

// Words that a C++ name can have although its mangled name does not: `std` is St, `int` is i,
// std::string is Ss, an operator is two letters, and so on.
constexpr std::string_view kShortened =
    "std allocator basic_string basic_istream basic_ostream basic_iostream char_traits string "
    "istream ostream iostream operator new delete co_await unsigned signed short int long char "
    "char8_t char16_t char32_t wchar_t bool float double void auto decltype nullptr_t __int128 "
    "__float128 _Float16 true false const volatile restrict anonymous namespace lambda unnamed "
    "type abi clone virtual thunk covariant return to transaction safe noexcept";

// Returns the longest word of a pattern that each symbol must contain that the pattern matches.
std::string LongestWord(const std::string& pattern) {
  std::string longest, word;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  // Arguments are mangled to letters.
  const std::string name = pattern.substr(0, pattern.find('('));
  for (const char c : name + "*") {
    if (is_word(c)) {
      word += c;
      continue;
    }
    // The pattern may have only a part of a word.
    if (word.size() > longest.size() && kShortened.find(word) == std::string_view::npos)
      longest = word;
    word.clear();
  }
  return longest;
}

bool Matches(const std::string& pattern, const std::string& text) {
  return !text.empty() && weft_glob_match_str(pattern.c_str(), text.c_str());
}

// The asterisk of "main.(*service).handle", a method's name in Go, is none.
bool HasWildcard(const std::string& pattern) {
  for (size_t at = pattern.find('*'); at != std::string::npos; at = pattern.find('*', at + 1)) {
    const bool is_type =
        at > 0 && pattern[at - 1] == '(' && at + 1 < pattern.size() &&
        (std::isalpha(static_cast<unsigned char>(pattern[at + 1])) != 0 || pattern[at + 1] == '_');
    if (!is_type) return true;
  }
  return false;
}

struct Symbol {
  std::string name;
  GElf_Sym of{};
};

// Calls `use` with each symbol of code that the file defines.
template <typename Use>
Status EachSymbol(const ElfImage& image, uint32_t table, const Use& use) {
  Status status;
  size_t seen = 0;
  image.EachSection([&](const ElfSection& section) {
    if (section.header.sh_type != table || section.header.sh_entsize != sizeof(Elf64_Sym))
      return true;
    if (section.header.sh_size > kMaxElfSectionBytes) {
      status = Fail(ErrorCode::kLimit, "the file has too many symbols");
      return false;
    }
    Elf_Data* data = section.data();
    if (data == nullptr) return true;
    const size_t count = data->d_size / sizeof(Elf64_Sym);
    for (size_t i = 0; i < count; ++i) {
      if (++seen > kMaxSymbols) {
        status = Fail(ErrorCode::kLimit, "the file has too many symbols");
        return false;
      }
      Symbol symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol.of) == nullptr) break;
      const unsigned type = GELF_ST_TYPE(symbol.of.st_info);
      if (symbol.of.st_shndx == SHN_UNDEF || symbol.of.st_shndx == SHN_ABS) continue;
      const char* name = image.Text(section.header.sh_link, symbol.of.st_name);
      if (name == nullptr || strnlen(name, kMaxSymbolBytes) == kMaxSymbolBytes) continue;
      symbol.name = name;
      use(symbol, type);
    }
    return true;
  });
  return status;
}

// glibc's own symbols carry a version in .symtab.
std::string WithoutVersion(const std::string& symbol) { return symbol.substr(0, symbol.find('@')); }

// What one symbol tells of the code at its address, whatever other symbols are there.
void JudgeSymbol(Function& f, unsigned type) {
  const auto is = [&f](std::string_view name) { return f.symbol == name; };
  if (type == STT_GNU_IFUNC)
    f.why_not = "the symbol is a resolver, which chooses the function (IFUNC)";
  else if (std::ranges::any_of(kNever, is))
    f.why_not = "it is not called as functions are";
  else if (f.symbol.find(".cold") != std::string::npos)
    f.why_not = "it is a part of a function (.cold)";
  if (std::ranges::any_of(kNoExit, is) || f.symbol.starts_with("_Unwind_"))
    f.why_no_exit = "it returns twice, elsewhere or never, or asks for its caller";
}

// Call it when all symbols of the address are known.
void JudgeWhole(Function& f) {
  if (!f.why_not.empty()) return;
  if (f.size == 0)
    f.why_not = "its symbol has no size";
  else if (f.size > kMaxFunctionBytes)
    f.why_not = "it is longer than 1 MiB";
  else if (f.name.size() + sizeof(WEFT_HOOK_NAME_PREFIX "_entry") > WEFT_EVENT_NAME_MAX)
    f.why_not = "its name is too long for an event";
}

// The names of a sanitizer's own functions, and of those that it puts in front of other ones.
bool IsOfSanitizer(std::string_view symbol) {
  constexpr std::array<std::string_view, 13> kBegins = {"__asan_",
                                                        "__lsan_",
                                                        "__tsan_",
                                                        "__msan_",
                                                        "__ubsan_",
                                                        "__hwasan_",
                                                        "__sanitizer_",
                                                        "_ZN6__asan",
                                                        "_ZN6__lsan",
                                                        "_ZN6__tsan",
                                                        "_ZN11__sanitizer",
                                                        "_ZN7__ubsan",
                                                        "_ZN14__interception"};
  return symbol.find("__interceptor_") != std::string_view::npos ||
         std::ranges::any_of(kBegins, [&](auto with) { return symbol.starts_with(with); });
}

class Reader {
 public:
  Reader(const std::vector<HookRule>& rules, const std::vector<size_t>& chosen)
      : rules_(rules), chosen_(chosen) {
    for (const size_t rule : chosen) {
      const std::string& name = rules[rule].rule.name;
      words_.push_back(LongestWord(name));
      if (!HasWildcard(name) && !rules[rule].rule.set) near_.emplace(rule, name);
    }
  }

  void Take(const Symbol& symbol, unsigned type) {
    if (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE)
      file_.values.push_back(symbol.of.st_value);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) return;
    // Such a name would make descriptions of events that readers refuse.
    if (!IsPrintableUtf8(symbol.name)) return;
    const std::string name = WithoutVersion(symbol.name);
    if (IsOfSanitizer(name)) of_sanitizer_.insert(symbol.of.st_value);
    OfferNear(name);
    std::optional<RecordedAs> earlier;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      std::string event;
      if (!Means(i, name, event)) continue;
      if (earlier) {
        file_.recorded_as.try_emplace(chosen_[i], *earlier);
        continue;
      }
      earlier = {.name = event, .rule = chosen_[i]};
      Keep({.name = event,
            .symbol = name,
            .value = symbol.of.st_value,
            .size = symbol.of.st_size,
            .rule = chosen_[i],
            .why_not = {},
            .why_no_exit = {}},
           type);
    }
  }

  Result<FunctionFile> Finish() {
    if (by_value_.size() > kMaxMatches)
      return Fail(ErrorCode::kLimit, "the rules mean more than " + std::to_string(kMaxMatches) +
                                         " functions of it: name fewer");
    for (auto& [value, function] : by_value_) {
      JudgeWhole(function);
      if (of_sanitizer_.contains(value))
        function.why_not = "it is of a sanitizer, which judges by the addresses of its callers";
      file_.functions.push_back(std::move(function));
    }
    for (const auto& [rule, names] : near_)
      if (!names.best().empty()) file_.near.emplace(rule, names.best());
    std::ranges::sort(file_.values);
    const auto rest = std::ranges::unique(file_.values);
    file_.values.erase(rest.begin(), rest.end());
    return std::move(file_);
  }

  FunctionFile& file() { return file_; }

 private:
  // Does a rule, by its place in `chosen`, mean this symbol? Writes the name of its events.
  bool Means(size_t place, const std::string& symbol, std::string& event) {
    if (symbol.find(words_[place]) == std::string::npos) return false;
    const api::FunctionRule& rule = rules_[chosen_[place]].rule;
    if (!MeansFunction(rule.name, symbol, event)) return false;
    near_.erase(chosen_[place]);
    std::string unused;
    return std::ranges::none_of(rule.exclude, [&](const std::string& pattern) {
      return MeansFunction(pattern, symbol, unused);
    });
  }

  void OfferNear(const std::string& symbol) {
    std::string name = symbol;
    if (symbol.starts_with("_Z") && !near_.empty()) {
      if (++demangled_ > kMaxNearDemangled) return;
      const std::vector<std::string> names = CppNames(symbol);
      if (names.size() > 1) name = names[1];
    }
    for (auto& [rule, names] : near_) names.Offer(name, "");
  }

  // Several symbols may name one address: the one of the first rule is taken, and the shorter name.
  void Keep(Function function, unsigned type) {
    JudgeSymbol(function, type);
    const auto [at, is_new] = by_value_.try_emplace(function.value, function);
    if (is_new) return;
    Function& other = at->second;
    if (function.rule > other.rule)
      file_.recorded_as.try_emplace(function.rule, RecordedAs{other.name, other.rule});
    else if (function.rule < other.rule)
      file_.recorded_as.try_emplace(other.rule, RecordedAs{function.name, function.rule});
    if (function.size > other.size) other.size = function.size;
    if (!function.why_no_exit.empty()) other.why_no_exit = function.why_no_exit;
    if (!function.why_not.empty()) other.why_not = function.why_not;
    if (function.rule < other.rule ||
        (function.rule == other.rule && function.name.size() < other.name.size())) {
      other.rule = function.rule;
      other.name = function.name;
      other.symbol = function.symbol;
    }
  }

  const std::vector<HookRule>& rules_;
  const std::vector<size_t>& chosen_;
  std::vector<std::string> words_;
  std::map<size_t, NearNames> near_;  // of rules that mean none so far
  size_t demangled_ = 0;
  std::map<uint64_t, Function> by_value_;
  std::unordered_set<uint64_t> of_sanitizer_;  // malloc is one, where a sanitizer has its own
  FunctionFile file_;
};

uint64_t LowestSegment(const ElfImage& image) {
  uint64_t lowest = UINT64_MAX;
  image.EachSegment([&](const GElf_Phdr& segment) {
    if (segment.p_type == PT_LOAD) lowest = std::min(lowest, segment.p_vaddr);
    return true;
  });
  return lowest == UINT64_MAX ? 0 : lowest & ~uint64_t{4095};
}

bool HasSymbolTable(const ElfImage& image) {
  bool has = false;
  image.EachSection([&](const ElfSection& section) {
    has = section.header.sh_type == SHT_SYMTAB;
    return !has;
  });
  return has;
}

// For a program without a symbol table.
void TakeGoTable(int file, const ElfImage& image, Reader& reader) {
  const Status read = EachGoFunction(file, image, [&](const GoFunction& function) {
    if (function.name.size() >= kMaxSymbolBytes) return;
    Symbol symbol{.name = std::string(function.name)};
    symbol.of.st_value = function.address;
    symbol.of.st_size = function.size;
    reader.Take(symbol, STT_FUNC);
  });
  if (!read) reader.file().why_no_symbols = read.error().message;
}

Status RefuseSideEntries(int file, const ElfImage& image, FunctionFile& functions) {
  std::vector<uint64_t> values;
  for (const Function& function : functions.functions)
    if (function.why_not.empty()) values.push_back(function.value);
  if (values.empty()) return {};
  SideEntries entries(functions.values, values);
  WEFT_TRY(entries.Search(file, image));
  for (Function& function : functions.functions)
    if (entries.found().contains(function.value))
      function.why_not = "another function branches into its first bytes";
  return {};
}

}  // namespace

bool Covers(const HookRule& earlier, const HookRule& rule) {
  using api::FunctionMoment;
  return earlier.trace == rule.trace &&
         std::ranges::all_of(
             std::array{FunctionMoment::kEntry, FunctionMoment::kExit, FunctionMoment::kCall},
             [&](FunctionMoment moment) {
               return earlier.rule.Records(moment) || !rule.rule.Records(moment);
             });
}

bool MeansObject(const std::string& pattern, const std::string& object) {
  if (pattern.empty() || Matches(pattern, object)) return true;
  return pattern.find(".so") != std::string::npos && Matches(pattern + ".*", object);
}

bool MeansFunction(const std::string& pattern, const std::string& symbol, std::string& event_name) {
  event_name = symbol;
  if (Matches(pattern, symbol)) return true;
  const std::vector<std::string> names = CppNames(symbol);
  for (const std::string& name : names) {
    event_name = name;
    if (Matches(pattern, name)) return true;
  }
  // Names that have no arguments have one spelling only.
  if (names.empty() || pattern.find_first_of(" ,<(") == std::string::npos) return false;
  const std::string spelled = SpellPattern(pattern);
  for (const std::string& name : names) {
    event_name = SpellName(name);
    if (Matches(spelled, event_name)) return true;
  }
  return false;
}

Result<FunctionFile> ReadFunctions(int file, const std::vector<HookRule>& rules,
                                   const std::vector<size_t>& chosen,
                                   const std::vector<UniqueFd>& more) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  if (image.header().e_machine != EM_X86_64)
    return Fail(ErrorCode::kUnsupported, "it is not for x86-64");
  Reader reader(rules, chosen);
  reader.file().lowest = LowestSegment(image);
  reader.file().is_go = IsGoProgram(image);
  const auto take = [&](const Symbol& symbol, unsigned type) { reader.Take(symbol, type); };
  WEFT_TRY(EachSymbol(image, SHT_SYMTAB, take));
  WEFT_TRY(EachSymbol(image, SHT_DYNSYM, take));
  for (const UniqueFd& with : more)
    if (const auto symbols = ElfImage::Read(with.get()))
      WEFT_TRY(EachSymbol(*symbols, SHT_SYMTAB, take));
  if (reader.file().is_go && !HasSymbolTable(image)) TakeGoTable(file, image, reader);
  WEFT_ASSIGN(FunctionFile functions, reader.Finish());
  if (!functions.is_go) WEFT_TRY(RefuseSideEntries(file, image, functions));
  for (Function& function : functions.functions)
    if (functions.is_go && IsOfGoRuntime(function.symbol))
      function.why_not = "it is of Go's runtime, which also runs where weft must not";
  return functions;
}

std::vector<uint64_t> AddressesToType(const FunctionFile& file) {
  std::vector<uint64_t> addresses;
  if (file.is_go) return addresses;  // its arguments are not where those of C are
  for (const Function& function : file.functions) {
    const bool is_copy = std::ranges::any_of(
        kCopies, [&](const char* mark) { return function.symbol.find(mark) != std::string::npos; });
    if (function.why_not.empty() && !is_copy) addresses.push_back(function.value);
  }
  return addresses;
}

bool IsCLibrary(const std::string& name) {
  return name.starts_with("libc.so") || name.starts_with("libc-2.") ||
         name.starts_with("libpthread") || name.starts_with("ld-musl");
}

std::string WhyNotObject(const std::string& name) {
  const auto begins = [&name](std::string_view with) { return name.starts_with(with); };
  if (begins("libweft") || begins("memfd:libweft")) return "it is weft's own library";
  if (begins("ld-linux") || begins("ld.so") || begins("ld-2.")) return "it is the dynamic loader";
  if (IsCLibrary(name))
    return "functions of the C library also run in children of posix_spawn, which share the "
           "program's memory: only those of the sets malloc, pthread, dl and io are recorded";
  if (begins("libgcc_s")) return "it walks the stacks that hooks change";
  for (const char* sanitizer :
       {"libasan", "liblsan", "libtsan", "libubsan", "libhwasan", "libclang_rt"})
    if (begins(sanitizer)) return "it is a sanitizer, which judges by the addresses of its callers";
  return "";
}

Result<std::map<std::string, NamedFunction>> FindFunctions(int file,
                                                           const std::set<std::string>& names,
                                                           bool is_static) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  const uint64_t lowest = LowestSegment(image);
  std::map<std::string, NamedFunction> found;
  const auto take = [&](const Symbol& symbol, unsigned type) {
    // In position-independent programs, hidden functions are local.
    const bool is_local = GELF_ST_BIND(symbol.of.st_info) == STB_LOCAL;
    if (type == STT_FUNC && names.contains(symbol.name) &&
        !(is_local && found.contains(symbol.name)))
      found[symbol.name] = {.value = symbol.of.st_value - lowest, .size = symbol.of.st_size};
  };
  WEFT_TRY(EachSymbol(image, is_static ? SHT_SYMTAB : SHT_DYNSYM, take));
  return found;
}

Result<uint64_t> FindDynamicSymbol(int file, const char* name) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  uint64_t value = 0;
  WEFT_TRY(EachSymbol(image, SHT_DYNSYM, [&](const Symbol& symbol, unsigned) {
    if (symbol.name == name) value = symbol.of.st_value;
  }));
  if (value == 0) return Fail(ErrorCode::kNotFound, std::string(name) + ": no such symbol");
  return value - LowestSegment(image);
}

}  // namespace weft::hooks
