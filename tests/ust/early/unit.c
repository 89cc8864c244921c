/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source file with constructors and destructors, in C++ also objects, that stand before and
 * behind the provider's header; with EARLY_DEFINE it defines the tracepoints, with EARLY_PROBES the
 * provider, with EARLY_MAIN the program's main, which loads and unloads a library. PLACE is the
 * file's name in the trace.
 */
static void constructor_at(const char* place);
static void destructor_at(const char* place);

__attribute__((constructor)) static void constructor_before(void) {
  constructor_at(PLACE " before");
}
__attribute__((destructor)) static void destructor_before(void) { destructor_at(PLACE " before"); }

#ifdef __cplusplus
namespace {
struct Object {
  explicit Object(const char* where);
  ~Object();
  const char* place;
};
const Object object_before(PLACE " before");
}  // namespace
#endif

#ifdef EARLY_DEFINE
#define TRACEPOINT_DEFINE
#endif
#ifdef EARLY_PROBES
#define TRACEPOINT_CREATE_PROBES
#endif
#include "./early/early_tp.h"

static void constructor_at(const char* place) { tracepoint(EARLY, constructor, place); }
static void destructor_at(const char* place) { tracepoint(EARLY, destructor, place); }

__attribute__((constructor)) static void constructor_after(void) { constructor_at(PLACE " after"); }
__attribute__((destructor)) static void destructor_after(void) { destructor_at(PLACE " after"); }

#ifdef __cplusplus
namespace {
Object::Object(const char* where) : place(where) { tracepoint(EARLY, made, place); }
Object::~Object() { tracepoint(EARLY, gone, place); }
const Object object_after(PLACE " after");
}  // namespace
#endif

#ifdef EARLY_MAIN
#include <dlfcn.h>
#include <stdio.h>

extern
#ifdef __cplusplus
    "C"
#endif
    void
    use_archive(void);

int main(int argc, char** argv) {
#ifdef __cplusplus
  const Object local(PLACE " local");
#endif
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "cannot load the library: %s\n", argc > 1 ? dlerror() : "no argument");
    return 1;
  }
  use_archive();
  return dlclose(library);
}
#endif

#ifdef EARLY_ARCHIVE
#ifdef __cplusplus
extern "C"
#endif
    void
    use_archive(void);
/* Unless something calls it, the linker leaves the file in its archive. */
void use_archive(void) {}
#endif
