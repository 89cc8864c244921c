/* SPDX-License-Identifier: Apache-2.0 */
/* No descriptor is left, before the first event and for good. */
#include <fcntl.h>
#include <sys/resource.h>

#include "hit.h"

int main(void) {
  const struct rlimit few = {64, 64};
  int last = -1, fd;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  while ((fd = open("/dev/null", O_RDONLY)) >= 0) last = fd;
  REQUIRE(last == 63 && errno == EMFILE);
  hit_many(100);
  REQUIRE(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE);
  for (fd = 3; fd < 64; ++fd) REQUIRE(fcntl(fd, F_GETFD) >= 0);
  report();
  return 0;
}
