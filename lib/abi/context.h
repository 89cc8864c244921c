/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Contexts: what is recorded beside an event's own fields, or asked for by a filter, where it is
 * wanted: LTTng-UST 2.13's user-space contexts, with its names and meanings.
 *
 * How context values lie in a record: before the event's payload, in the order of the channel's
 * context list, packed, nothing between them:
 *   WEFT_CONTEXT_UINT, WEFT_CONTEXT_INT   `size` bytes, little-endian
 *   WEFT_CONTEXT_TEXT                     `size` bytes, text up to the first NUL
 *   WEFT_CONTEXT_DYNAMIC                  u8 enum weft_context_dynamic, then its value: integers
 *                                         and floats in their size; a string as u32 length in bytes
 *                                         without a NUL, then the bytes; nothing after NONE
 *   WEFT_CONTEXT_ADDRESSES                u32 how many, at most WEFT_CONTEXT_MAX_ADDRESSES, then
 *                                         these, 8 bytes each, the innermost first
 * A value that cannot be had (a perf counter that was refused) is 0, or NONE.
 *
 * Extension rules: ids are never reused; new ones are appended in their range (user space below
 * 128, kernel from 128 on); a reader that does not know an id cannot decode what follows it, and
 * says so.
 */
#ifdef WEFT_IN_PROGRAM
#pragma GCC system_header
#endif
#ifndef WEFT_LIB_ABI_CONTEXT_H_
#define WEFT_LIB_ABI_CONTEXT_H_

#include "event.h"

enum weft_context_id {
  WEFT_CONTEXT_VPID = 1,
  WEFT_CONTEXT_VTID = 2,
  WEFT_CONTEXT_PTHREAD_ID = 3,
  WEFT_CONTEXT_PROCNAME = 4,
  WEFT_CONTEXT_IP = 5,
  WEFT_CONTEXT_CPU_ID = 6,
  WEFT_CONTEXT_VUID = 7,
  WEFT_CONTEXT_VEUID = 8,
  WEFT_CONTEXT_VSUID = 9,
  WEFT_CONTEXT_VGID = 10,
  WEFT_CONTEXT_VEGID = 11,
  WEFT_CONTEXT_VSGID = 12,
  WEFT_CONTEXT_CGROUP_NS = 13,
  WEFT_CONTEXT_IPC_NS = 14,
  WEFT_CONTEXT_MNT_NS = 15,
  WEFT_CONTEXT_NET_NS = 16,
  WEFT_CONTEXT_PID_NS = 17,
  WEFT_CONTEXT_USER_NS = 18,
  WEFT_CONTEXT_UTS_NS = 19,
  WEFT_CONTEXT_TIME_NS = 20,
  WEFT_CONTEXT_PERF_THREAD = 21, /* perf:thread:NAME; may be in a list several times */
  WEFT_CONTEXT_APP = 22,         /* $app.PROVIDER:NAME; may be in a list several times */

  /* weft.ko only. It has of the others all but PTHREAD_ID, IP, PERF_THREAD and APP. */
  WEFT_CONTEXT_PID = 128, /* these as the node sees them: for cluster-wide sessions */
  WEFT_CONTEXT_TID = 129,
  WEFT_CONTEXT_PPID = 130,
  WEFT_CONTEXT_VPPID = 131,
  WEFT_CONTEXT_PRIO = 132,
  WEFT_CONTEXT_NICE = 133,
  WEFT_CONTEXT_UID = 134,
  WEFT_CONTEXT_EUID = 135,
  WEFT_CONTEXT_SUID = 136,
  WEFT_CONTEXT_GID = 137,
  WEFT_CONTEXT_EGID = 138,
  WEFT_CONTEXT_SGID = 139,
  WEFT_CONTEXT_CGROUP_ID = 140, /* cgroup v2 */
  WEFT_CONTEXT_HOSTNAME = 141,
  WEFT_CONTEXT_INTERRUPTIBLE = 142, /* -1: not known */
  WEFT_CONTEXT_PREEMPTIBLE = 143,
  WEFT_CONTEXT_NEED_RESCHEDULE = 144,
  WEFT_CONTEXT_MIGRATABLE = 145,
  WEFT_CONTEXT_CALLSTACK_KERNEL = 146,
  WEFT_CONTEXT_CALLSTACK_USER = 147,
  WEFT_CONTEXT_PERF_CPU = 148, /* perf:cpu:NAME; may be in a list several times */
};

#define WEFT_CONTEXT_FIRST_KERNEL 128u

enum weft_context_type {
  WEFT_CONTEXT_INT = 1,
  WEFT_CONTEXT_UINT = 2,
  WEFT_CONTEXT_TEXT = 3,
  WEFT_CONTEXT_DYNAMIC = 4,
  WEFT_CONTEXT_ADDRESSES = 5,
};

/* The type tags of a DYNAMIC value. */
enum weft_context_dynamic {
  WEFT_DYNAMIC_NONE = 0,
  WEFT_DYNAMIC_S8 = 1,
  WEFT_DYNAMIC_S16 = 2,
  WEFT_DYNAMIC_S32 = 3,
  WEFT_DYNAMIC_S64 = 4,
  WEFT_DYNAMIC_U8 = 5,
  WEFT_DYNAMIC_U16 = 6,
  WEFT_DYNAMIC_U32 = 7,
  WEFT_DYNAMIC_U64 = 8,
  WEFT_DYNAMIC_FLOAT = 9,   /* binary32 */
  WEFT_DYNAMIC_DOUBLE = 10, /* binary64 */
  WEFT_DYNAMIC_STRING = 11,
};

#define WEFT_CONTEXT_PROCNAME_SIZE 16u  /* TASK_COMM_LEN, its NUL included */
#define WEFT_CONTEXT_HOSTNAME_SIZE 65u  /* __NEW_UTS_LEN and its NUL */
#define WEFT_CONTEXT_MAX_STRING 4096u   /* bytes of a DYNAMIC string that are recorded */
#define WEFT_CONTEXT_MAX_ADDRESSES 128u /* of a call stack that are recorded */
#define WEFT_CONTEXT_NAME_MAX 256u      /* bytes of PERF_THREAD's and APP's names with the NUL */

struct weft_context_info {
  uint16_t id;
  uint8_t type; /* enum weft_context_type */
  uint8_t size; /* bytes of the value; 0: DYNAMIC, ADDRESSES */
  uint8_t base; /* how to show integers; 0: no integer */
  /* As a user writes it; PERF_THREAD, PERF_CPU and APP: what stands before the given name. */
  char name[19];
};
WEFT_ABI_ASSERT(sizeof(struct weft_context_info) == 24, "context info has no padding");

/* One entry of a channel's context list (lib/abi/control.h). PERF_THREAD and PERF_CPU
 * ("instructions") and APP ("provider:name") have a name. */
struct weft_context_spec {
  uint16_t id;
  uint16_t name_size;   /* bytes with the NUL; 0: none */
  uint32_t name_offset; /* in what the list is in: from the rule set's start */
  uint64_t perf_config; /* perf_event_attr.config */
  uint32_t perf_type;   /* perf_event_attr.type */
  uint32_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_context_spec) == 24, "context spec is 24 bytes");

/* All contexts, in the order of their ids. Text is inside, so that a position-independent library
 * needs no relocation. `*count` is set if count is not NULL. */
static inline const struct weft_context_info* weft_context_table(uint32_t* count) {
#define WEFT_CONTEXT_UINT_(bytes, show) WEFT_CONTEXT_UINT, bytes, show
#define WEFT_CONTEXT_INT_(bytes, show) WEFT_CONTEXT_INT, bytes, show
  static const struct weft_context_info table[] = {
      {WEFT_CONTEXT_VPID, WEFT_CONTEXT_INT_(4, 10), "vpid"},
      {WEFT_CONTEXT_VTID, WEFT_CONTEXT_INT_(4, 10), "vtid"},
      {WEFT_CONTEXT_PTHREAD_ID, WEFT_CONTEXT_UINT_(8, 16), "pthread_id"},
      {WEFT_CONTEXT_PROCNAME, WEFT_CONTEXT_TEXT, WEFT_CONTEXT_PROCNAME_SIZE, 0, "procname"},
      {WEFT_CONTEXT_IP, WEFT_CONTEXT_UINT_(8, 16), "ip"},
      {WEFT_CONTEXT_CPU_ID, WEFT_CONTEXT_INT_(4, 10), "cpu_id"},
      {WEFT_CONTEXT_VUID, WEFT_CONTEXT_UINT_(4, 10), "vuid"},
      {WEFT_CONTEXT_VEUID, WEFT_CONTEXT_UINT_(4, 10), "veuid"},
      {WEFT_CONTEXT_VSUID, WEFT_CONTEXT_UINT_(4, 10), "vsuid"},
      {WEFT_CONTEXT_VGID, WEFT_CONTEXT_UINT_(4, 10), "vgid"},
      {WEFT_CONTEXT_VEGID, WEFT_CONTEXT_UINT_(4, 10), "vegid"},
      {WEFT_CONTEXT_VSGID, WEFT_CONTEXT_UINT_(4, 10), "vsgid"},
      {WEFT_CONTEXT_CGROUP_NS, WEFT_CONTEXT_UINT_(8, 10), "cgroup_ns"},
      {WEFT_CONTEXT_IPC_NS, WEFT_CONTEXT_UINT_(8, 10), "ipc_ns"},
      {WEFT_CONTEXT_MNT_NS, WEFT_CONTEXT_UINT_(8, 10), "mnt_ns"},
      {WEFT_CONTEXT_NET_NS, WEFT_CONTEXT_UINT_(8, 10), "net_ns"},
      {WEFT_CONTEXT_PID_NS, WEFT_CONTEXT_UINT_(8, 10), "pid_ns"},
      {WEFT_CONTEXT_USER_NS, WEFT_CONTEXT_UINT_(8, 10), "user_ns"},
      {WEFT_CONTEXT_UTS_NS, WEFT_CONTEXT_UINT_(8, 10), "uts_ns"},
      {WEFT_CONTEXT_TIME_NS, WEFT_CONTEXT_UINT_(8, 10), "time_ns"},
      {WEFT_CONTEXT_PERF_THREAD, WEFT_CONTEXT_UINT_(8, 10), "perf:thread:"},
      {WEFT_CONTEXT_APP, WEFT_CONTEXT_DYNAMIC, 0, 0, "$app."},
      {WEFT_CONTEXT_PID, WEFT_CONTEXT_INT_(4, 10), "pid"},
      {WEFT_CONTEXT_TID, WEFT_CONTEXT_INT_(4, 10), "tid"},
      {WEFT_CONTEXT_PPID, WEFT_CONTEXT_INT_(4, 10), "ppid"},
      {WEFT_CONTEXT_VPPID, WEFT_CONTEXT_INT_(4, 10), "vppid"},
      {WEFT_CONTEXT_PRIO, WEFT_CONTEXT_INT_(4, 10), "prio"},
      {WEFT_CONTEXT_NICE, WEFT_CONTEXT_INT_(4, 10), "nice"},
      {WEFT_CONTEXT_UID, WEFT_CONTEXT_UINT_(4, 10), "uid"},
      {WEFT_CONTEXT_EUID, WEFT_CONTEXT_UINT_(4, 10), "euid"},
      {WEFT_CONTEXT_SUID, WEFT_CONTEXT_UINT_(4, 10), "suid"},
      {WEFT_CONTEXT_GID, WEFT_CONTEXT_UINT_(4, 10), "gid"},
      {WEFT_CONTEXT_EGID, WEFT_CONTEXT_UINT_(4, 10), "egid"},
      {WEFT_CONTEXT_SGID, WEFT_CONTEXT_UINT_(4, 10), "sgid"},
      {WEFT_CONTEXT_CGROUP_ID, WEFT_CONTEXT_UINT_(8, 10), "cgroup_id"},
      {WEFT_CONTEXT_HOSTNAME, WEFT_CONTEXT_TEXT, WEFT_CONTEXT_HOSTNAME_SIZE, 0, "hostname"},
      {WEFT_CONTEXT_INTERRUPTIBLE, WEFT_CONTEXT_INT_(4, 10), "interruptible"},
      {WEFT_CONTEXT_PREEMPTIBLE, WEFT_CONTEXT_INT_(4, 10), "preemptible"},
      {WEFT_CONTEXT_NEED_RESCHEDULE, WEFT_CONTEXT_INT_(4, 10), "need_reschedule"},
      {WEFT_CONTEXT_MIGRATABLE, WEFT_CONTEXT_INT_(4, 10), "migratable"},
      {WEFT_CONTEXT_CALLSTACK_KERNEL, WEFT_CONTEXT_ADDRESSES, 0, 16, "callstack-kernel"},
      {WEFT_CONTEXT_CALLSTACK_USER, WEFT_CONTEXT_ADDRESSES, 0, 16, "callstack-user"},
      {WEFT_CONTEXT_PERF_CPU, WEFT_CONTEXT_UINT_(8, 10), "perf:cpu:"},
  };
#undef WEFT_CONTEXT_UINT_
#undef WEFT_CONTEXT_INT_
  if (count) *count = sizeof(table) / sizeof(table[0]);
  return table;
}

/* NULL: no such context. */
static inline const struct weft_context_info* weft_context_by_id(uint16_t id) {
  uint32_t count;
  const struct weft_context_info* table = weft_context_table(&count);
  uint32_t i;

  for (i = 0; i < count; i++)
    if (table[i].id == id) return &table[i];
  return 0; /* NOLINT(modernize-use-nullptr): C as well */
}

/* Finds a context without a given name ("vpid"); `name_size` is without a NUL. NULL: none; names
 * that begin with "perf:thread:", "perf:cpu:" or "$app." are the caller's to take apart. */
static inline const struct weft_context_info* weft_context_by_name(const char* name,
                                                                   uint32_t name_size) {
  uint32_t count;
  const struct weft_context_info* table = weft_context_table(&count);
  uint32_t i, at;

  if (name_size == 0 || name_size >= sizeof(table[0].name))
    return 0; /* NOLINT(modernize-use-nullptr) */
  for (i = 0; i < count; i++) {
    if (table[i].id == WEFT_CONTEXT_PERF_THREAD || table[i].id == WEFT_CONTEXT_PERF_CPU ||
        table[i].id == WEFT_CONTEXT_APP)
      continue;
    for (at = 0; at < name_size && table[i].name[at] == name[at]; at++) {
    }
    if (at == name_size && table[i].name[at] == 0) return &table[i];
  }
  return 0; /* NOLINT(modernize-use-nullptr) */
}

#endif /* WEFT_LIB_ABI_CONTEXT_H_ */
