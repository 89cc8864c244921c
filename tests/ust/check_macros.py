#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_macros.py LTTNG_HEADER_FOLDER SOURCE...: names every macro that LTTng-UST's installed headers
offer to programs and that no SOURCE uses; fails if there is one."""

import pathlib
import re
import sys

# Names that look public but that no program is to use: include guards, and names that only the
# headers themselves use.
INTERNAL = re.compile(
    r'LTTNG_UST_TRACEPOINT_(NAME_LEN_MAX|THIS_IP|LIB_SONAME)$'
    r'|LTTNG_UST_TP_(EXTERN_C|RCU_LINK_TEST|TRACELOG_\w+)$|TP_TRACELOG_CB_TEMPLATE$'
    r'|lttng_ust_tracepoint_validate_name_len$'
    r'|lttng_ust_field_array_element_type_is_supported$'
    # Belongs to LTTng's own statedump: it names an argument with a session of its tracer.
    r'|(LTTNG_UST_)?TP_SESSION_CHECK$'
    # The documentation says that a program may define these; the headers only test them.
    r'|LTTNG_UST_TRACEPOINT_(PROVIDER_)?HIDDEN_DEFINITION$')

def public_macros(folder):
  names = set()
  for header in ('tracepoint.h', 'tracepoint-event.h', 'ust-tracepoint-event.h',
                 'ust-tracepoint-event-write.h', 'ust-tracepoint-event-nowrite.h', 'tracef.h',
                 'tracelog.h'):
    text = re.sub(r'/\*.*?\*/', '', (folder / header).read_text(), flags=re.S)
    names |= set(re.findall(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', text, re.M))
    names |= set(re.findall(r'defined\((\w+)\)', text))
  pattern = re.compile(
      r'(lttng_ust_)?(tracepoint|do_tracepoint|tracepoint_enabled|v?tracef|v?tracelog)$'
      r'|lttng_ust_tracepoint_|lttng_ust_field_|ctf_'
      r'|(LTTNG_UST_)?TRACEPOINT_[A-Z]|(LTTNG_UST_)?TP_[A-Z]|TRACE_[A-Z]')
  return {n for n in names if pattern.match(n) and not INTERNAL.match(n)}


def main(folder, sources):
  used = set()
  for source in sources:
    used |= set(re.findall(r'\w+', pathlib.Path(source).read_text()))
  names = public_macros(pathlib.Path(folder))
  if len(names) < 100:
    sys.exit(f'{folder}: only {len(names)} macros found; these headers are not what was expected')
  missing = sorted(names - used)
  for name in missing:
    print(f'{name}: in LTTng-UST\'s headers, not used by the tests')
  print(f'{len(names)} macros, {len(missing)} not used')
  return 1 if missing else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1], sys.argv[2:]))
