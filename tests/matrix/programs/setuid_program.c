/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a setuid copy of a program that traces and executes it as another user: it must not be
 * traced, regardless of the environment. Root only. */
#include <fcntl.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "hit.h"

static void copy_self(const char* to) {
  char buffer[65536];
  ssize_t n;
  const int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0700);
  REQUIRE(in >= 0 && out >= 0);
  while ((n = read(in, buffer, sizeof(buffer))) > 0) REQUIRE(write(out, buffer, (size_t)n) == n);
  REQUIRE(fchmod(out, 04755) == 0 && close(out) == 0);
}

int main(int argc, char** argv) {
  if (argc > 1) {
    hit_many(10); /* not reported: not recorded */
    printf("secure %lu, uid %d, euid %d\n", getauxval(AT_SECURE), getuid(), geteuid());
    return 3;
  }
  copy_self("secure_copy");
  REQUIRE(setgroups(0, NULL) == 0 && setresuid(65534, 65534, 65534) == 0);
  execl("secure_copy", argv[0], "secure", (char*)NULL);
  return 98;
}
