/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Contexts: values that a channel records beside an event's own fields, or that a filter reads.
 * Contexts of user space have the names and meanings of LTTng-UST 2.13.
 *
 * In a record, context values lie before the event's payload, in the order of the channel's context
 * list, packed, with nothing between them:
 *   WEFT_CONTEXT_UINT, WEFT_CONTEXT_INT   `size` bytes, little-endian
 *   WEFT_CONTEXT_TEXT                     `size` bytes, text up to the first NUL
 *   WEFT_CONTEXT_DYNAMIC                  u8 enum weft_context_dynamic, then its value: integers
 *                                         and floats in their size; a string as u32 length in bytes
 *                                         without a NUL, then the bytes; nothing after NONE
 *   WEFT_CONTEXT_ADDRESSES                u32 how many, at most WEFT_CONTEXT_MAX_ADDRESSES, then
 *                                         these, 8 bytes each, the innermost first
 * If a value is not available (a perf counter that was refused), it is 0, or NONE.
 *
 * Extension rules: ids are never reused; new ones are appended in their range (user space below
 * 128, kernel from 128 on); a reader that does not know an id cannot decode the bytes after it, and
 * reports this.
 */
#ifdef WEFT_IN_PROGRAM
#pragma GCC system_header
#endif
#ifndef WEFT_LIB_ABI_CONTEXT_H_
#define WEFT_LIB_ABI_CONTEXT_H_

#include "event.h"

/* The table of contexts: everything that is known of one stands in its row. The enum, the table of
 * weft_context_table, the names that a Trace may use and the pattern in its CRD are made from it.
 *   symbol  WEFT_CONTEXT_SYMBOL is its id
 *   type, bytes, base  as in struct weft_context_info
 *   domain  WEFT_CONTEXT_OF_DOMAIN: where it exists, and for whom
 *   name    as a user writes it; of PERF_THREAD, PERF_CPU and APP what stands before the given
 *           name. These three may be in a list several times.
 * This is the part for user space; weft.ko has the contexts OF_BOTH, too. */
#define WEFT_USER_CONTEXTS(X)                                           \
  X(VPID, 1, INT, 4, 10, BOTH, "vpid")                                  \
  X(VTID, 2, INT, 4, 10, BOTH, "vtid")                                  \
  X(PTHREAD_ID, 3, UINT, 8, 16, USER, "pthread_id")                     \
  X(PROCNAME, 4, TEXT, WEFT_CONTEXT_PROCNAME_SIZE, 0, BOTH, "procname") \
  X(IP, 5, UINT, 8, 16, USER, "ip")                                     \
  X(CPU_ID, 6, INT, 4, 10, BOTH, "cpu_id")                              \
  X(VUID, 7, UINT, 4, 10, BOTH, "vuid")                                 \
  X(VEUID, 8, UINT, 4, 10, BOTH, "veuid")                               \
  X(VSUID, 9, UINT, 4, 10, BOTH, "vsuid")                               \
  X(VGID, 10, UINT, 4, 10, BOTH, "vgid")                                \
  X(VEGID, 11, UINT, 4, 10, BOTH, "vegid")                              \
  X(VSGID, 12, UINT, 4, 10, BOTH, "vsgid")                              \
  X(CGROUP_NS, 13, UINT, 8, 10, BOTH, "cgroup_ns")                      \
  X(IPC_NS, 14, UINT, 8, 10, BOTH, "ipc_ns")                            \
  X(MNT_NS, 15, UINT, 8, 10, BOTH, "mnt_ns")                            \
  X(NET_NS, 16, UINT, 8, 10, BOTH, "net_ns")                            \
  X(PID_NS, 17, UINT, 8, 10, BOTH, "pid_ns")                            \
  X(USER_NS, 18, UINT, 8, 10, BOTH, "user_ns")                          \
  X(UTS_NS, 19, UINT, 8, 10, BOTH, "uts_ns")                            \
  X(TIME_NS, 20, UINT, 8, 10, BOTH, "time_ns")                          \
  X(PERF_THREAD, 21, UINT, 8, 10, USER, "perf:thread:")                 \
  X(APP, 22, DYNAMIC, 0, 0, USER, "$app.")

/* The contexts that only weft.ko has. INTERRUPTIBLE and PREEMPTIBLE are -1 if it cannot know. */
#define WEFT_KERNEL_CONTEXTS(X)                                             \
  X(PID, 128, INT, 4, 10, NODE, "pid")                                      \
  X(TID, 129, INT, 4, 10, NODE, "tid")                                      \
  X(PPID, 130, INT, 4, 10, NODE, "ppid")                                    \
  X(VPPID, 131, INT, 4, 10, KERNEL, "vppid")                                \
  X(PRIO, 132, INT, 4, 10, KERNEL, "prio")                                  \
  X(NICE, 133, INT, 4, 10, KERNEL, "nice")                                  \
  X(UID, 134, UINT, 4, 10, NODE, "uid")                                     \
  X(EUID, 135, UINT, 4, 10, NODE, "euid")                                   \
  X(SUID, 136, UINT, 4, 10, NODE, "suid")                                   \
  X(GID, 137, UINT, 4, 10, NODE, "gid")                                     \
  X(EGID, 138, UINT, 4, 10, NODE, "egid")                                   \
  X(SGID, 139, UINT, 4, 10, NODE, "sgid")                                   \
  X(CGROUP_ID, 140, UINT, 8, 10, FILTERS, "cgroup_id")                      \
  X(HOSTNAME, 141, TEXT, WEFT_CONTEXT_HOSTNAME_SIZE, 0, KERNEL, "hostname") \
  X(INTERRUPTIBLE, 142, INT, 4, 10, KERNEL, "interruptible")                \
  X(PREEMPTIBLE, 143, INT, 4, 10, KERNEL, "preemptible")                    \
  X(NEED_RESCHEDULE, 144, INT, 4, 10, KERNEL, "need_reschedule")            \
  X(MIGRATABLE, 145, INT, 4, 10, KERNEL, "migratable")                      \
  X(CALLSTACK_KERNEL, 146, ADDRESSES, 0, 16, NODE, "callstack-kernel")      \
  X(CALLSTACK_USER, 147, ADDRESSES, 0, 16, KERNEL, "callstack-user")        \
  X(PERF_CPU, 148, UINT, 8, 10, NODE, "perf:cpu:")

#define WEFT_CONTEXT_ENUMERATOR_(symbol, id, type, bytes, base, domain, name) \
  WEFT_CONTEXT_##symbol = id,
enum weft_context_id {
  WEFT_USER_CONTEXTS(WEFT_CONTEXT_ENUMERATOR_) WEFT_KERNEL_CONTEXTS(WEFT_CONTEXT_ENUMERATOR_)
};
#undef WEFT_CONTEXT_ENUMERATOR_

/* For a switch without a default: a `case` for every context that only weft.ko has. */
#define WEFT_CONTEXT_CASE_(symbol, id, type, bytes, base, domain, name) case WEFT_CONTEXT_##symbol:
#define WEFT_KERNEL_CONTEXT_CASES WEFT_KERNEL_CONTEXTS(WEFT_CONTEXT_CASE_)

#define WEFT_CONTEXT_FIRST_KERNEL 128u

enum weft_context_type {
  WEFT_CONTEXT_INT = 1,
  WEFT_CONTEXT_UINT = 2,
  WEFT_CONTEXT_TEXT = 3,
  WEFT_CONTEXT_DYNAMIC = 4,
  WEFT_CONTEXT_ADDRESSES = 5,
};

/* Where a context exists, and who may use it: bits, and the sets of them that the table uses. */
enum weft_context_domain {
  WEFT_CONTEXT_IN_USER = 1,   /* libweft.so has it */
  WEFT_CONTEXT_IN_KERNEL = 2, /* weft.ko has it */
  WEFT_CONTEXT_NODE_WIDE =
      4,                     /* tells of the node or of other tenants: cluster-wide sessions only */
  WEFT_CONTEXT_UNLISTED = 8, /* for filters; a Trace's list of contexts does not take it */
  WEFT_CONTEXT_OF_USER = WEFT_CONTEXT_IN_USER,
  WEFT_CONTEXT_OF_KERNEL = WEFT_CONTEXT_IN_KERNEL,
  WEFT_CONTEXT_OF_BOTH = WEFT_CONTEXT_IN_USER | WEFT_CONTEXT_IN_KERNEL,
  WEFT_CONTEXT_OF_NODE = WEFT_CONTEXT_IN_KERNEL | WEFT_CONTEXT_NODE_WIDE,
  WEFT_CONTEXT_OF_FILTERS = WEFT_CONTEXT_IN_KERNEL | WEFT_CONTEXT_UNLISTED,
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
  uint8_t type;    /* enum weft_context_type */
  uint8_t size;    /* bytes of the value; 0: DYNAMIC, ADDRESSES */
  uint8_t base;    /* how to show integers; 0: no integer */
  uint8_t domains; /* bits of enum weft_context_domain */
  char name[18];
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

/* Returns all contexts, in the order of their ids. Text is inside, so that a position-independent
 * library needs no relocation. `*count` is set if count is not NULL. */
static inline const struct weft_context_info* weft_context_table(uint32_t* count) {
#define WEFT_CONTEXT_ROW_(symbol, id, type, bytes, base, domain, name) \
  {WEFT_CONTEXT_##symbol, WEFT_CONTEXT_##type, bytes, base, WEFT_CONTEXT_OF_##domain, name},
  static const struct weft_context_info table[] = {WEFT_USER_CONTEXTS(WEFT_CONTEXT_ROW_)
                                                       WEFT_KERNEL_CONTEXTS(WEFT_CONTEXT_ROW_)};
#undef WEFT_CONTEXT_ROW_
  if (count) *count = sizeof(table) / sizeof(table[0]);
  return table;
}

/* Returns NULL if there is no such context. */
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
