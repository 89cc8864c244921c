/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks on functions: what libweft.so [L] and the agent [A] of one node share in the memory of a
 * traced process. docs/adr/0056 and 0057 have the reasons.
 *
 * Terms
 *   hook    what is recorded of one function: where its values are, and its events.
 *   thunk   code beside the function's object: gives the hook to libweft.so, then runs the
 *           instructions that the jump displaced, then jumps back behind the jump.
 *   area    memory in reach of an object's code (2 GiB): code, then hooks.
 *   stub    16 bytes of code in libweft.so that call a function for its caller. The stub's return
 *           address lies where the caller's was, and tells which call returns.
 *
 * L1  At its start, if there is a control file, the library makes the areas and fills weft_hooks
 *     (an exported object, so that an agent finds it in the symbol table). If a channel of the
 *     rules in force records functions, the areas are large, and the library calls the agent at
 *     WEFT_HOOKS_SOCKET. It waits until the agent closes the connection, at most
 *     WEFT_HOOKS_PATIENCE_MS. Otherwise the areas are spare ones, for a Trace that comes later
 *     (docs/adr/0058).
 * A1  The agent writes hook, events, descriptions and thunk into unused parts of an area.
 * A2  It appends the hook to the area's table: `last` of the table, after `next` of the hook.
 *     The thunk of a Go function first does what the displaced instructions do, which is to compare
 *     the stack with its limit, and then gives the hook to enter_go (docs/adr/0066).
 * A3  With all threads stopped, it replaces the function's first bytes with a jump to the thunk;
 *     to take a hook off, it writes the original bytes again. One write, within one page.
 * L2  A function that is called gives its hook to weft_hook_enter.
 *
 * A library that an agent loaded into a running program stands in front of no function, and
 * unwinders do not know it. There, before anything is recorded:
 *
 * A4  The agent makes functions of the program's C library jump to the library's (A1 to A3; such a
 *     hook has WEFT_HOOK_REPLACES). Before, it writes where the displaced original is into the word
 *     that the library names (docs/adr/0065).
 * A5  When the recording ends, the agent takes these jumps away, too. With all threads stopped and
 *     none of them in the library, it first writes the return address of each call that still runs
 *     back to its slot, so that no stub is on a stack, and WEFT_SILENT_DETACHED into the word
 *     `silent`: the library records nothing until an agent has done A4 again, has seen to the
 *     filters that the program installed meanwhile, and writes 0 there (docs/adr/0069).
 *
 * An agent that dies between two steps leaves a process that runs correctly. The next agent finds
 * the hooks in the tables, and compares the function's bytes with `jump`. Nothing in an area is
 * ever moved, changed (but for the events' members that belong to libweft.so) or freed.
 *
 * The agent writes through /proc/PID/mem. The process can write all of this, too: what an agent
 * reads here is foreign, and whatever it says, the agent writes to this process alone.
 */
#ifndef WEFT_LIB_ABI_HOOKS_H_
#define WEFT_LIB_ABI_HOOKS_H_

#include "tracepoint.h"

#define WEFT_HOOKS_MAGIC 0x4b4f4857u /* "WHOK" */
#define WEFT_HOOKS_VERSION 8u
#define WEFT_HOOKS_SYMBOL "weft_hooks"
#define WEFT_HOOKS_SOCKET "hooks.sock" /* in the folder where the library looks for weft */
/* An environment variable of a library that was loaded into a running program. It makes large
 * areas, though it finds no control file. */
#define WEFT_HOOKS_ATTACHED "WEFT_ATTACHED"
/* Likewise, if the program is Go's: hooks of its functions run on stacks of the library. The
 * library also knows it by the program's notes. */
#define WEFT_HOOKS_OF_GO "WEFT_GO"
/* What a busy node needs to read the symbols and types of a large program. An agent that died
 * closes the connection at once, and the keeper ends one that hangs. */
#define WEFT_HOOKS_PATIENCE_MS 10000u

#define WEFT_HOOK_AREAS 2u /* beside the program, and among the libraries */
/* Room for some 16,000 functions, entry and exit. PostgreSQL has 9,552, libcrypto 5,400. */
#define WEFT_HOOK_CODE_BYTES (1024u * 1024u)
#define WEFT_HOOK_DATA_BYTES (12u * 1024u * 1024u)
/* Below a program that is not position-independent, which begins at 4 MiB. */
#define WEFT_HOOK_LOW_CODE_BYTES (512u * 1024u)
#define WEFT_HOOK_LOW_DATA_BYTES (3u * 1024u * 1024u)
/* A spare area: room for some 700 functions, 512 KiB in all. */
#define WEFT_HOOK_SPARE_CODE_BYTES (64u * 1024u)
#define WEFT_HOOK_SPARE_DATA_BYTES (448u * 1024u)
#define WEFT_HOOK_THUNK_BYTES 128u /* of a thunk, at most; the next one begins at 16 bytes */
#define WEFT_HOOK_JUMP_BYTES 5u
#define WEFT_HOOK_MAX_VALUES 16u
#define WEFT_HOOK_STUBS 4096u
#define WEFT_HOOK_STUB_BYTES 16u
#define WEFT_HOOK_STUB_RETURN 6u          /* where in a stub its call returns to */
#define WEFT_HOOK_NAME_PREFIX "function:" /* of events: function:NAME_entry, ..._exit, ..._call */

enum weft_hook_source {
  WEFT_HOOK_NONE = 0,
  /* Argument register `index`: rdi rsi rdx rcx r8 r9; of Go rax rbx rcx rdi rsi r8 r9 r10 r11. */
  WEFT_HOOK_GENERAL = 1,
  WEFT_HOOK_FLOATING = 2, /* xmm register `index` */
  WEFT_HOOK_STACK = 3,    /* 8 bytes at the stack pointer before the call + 8 * `index` */
  WEFT_HOOK_RESULT = 4,   /* rax at the return */
};

enum weft_hook_kind {
  WEFT_HOOK_NUMBER = 0,
  WEFT_HOOK_TEXT = 1,   /* an address: the text there is a segment, its u32 length in the image */
  WEFT_HOOK_BYTES = 2,  /* likewise bytes; needs a detail for their length */
  WEFT_HOOK_SIGNED = 3, /* a number with a sign; of a length only */
};

/* Bytes of all texts and bytes of one call together; they are cut there. A text that cannot be read
 * is "(fault)"; bytes are none then, and a number behind a path is 0. */
#define WEFT_HOOK_TEXT_BYTES 512u
#define WEFT_HOOK_MAX_STEPS 4u

struct weft_hook_value {
  uint8_t source; /* enum weft_hook_source */
  uint8_t index;
  uint8_t size; /* bytes in the image: 1, 2, 4 or 8 */
  uint8_t kind; /* enum weft_hook_kind */
};

/*
 * What is read of the program's memory for a value. The register, or the place on the stack, has an
 * address A. Each step replaces A by the word at A + its offset; the last one of a NUMBER reads the
 * number instead. A text, or bytes, then lie at A + `tail`.
 */
struct weft_hook_detail {
  int32_t offsets[WEFT_HOOK_MAX_STEPS];
  int32_t tail;
  uint32_t length;                  /* BYTES: how many, if `length_of` is NONE */
  struct weft_hook_value length_of; /* BYTES: what has their number */
  uint8_t steps;
  uint8_t at_exit; /* read when the function returns; the address is that of the entry */
  uint16_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_hook_detail) == 32, "hook detail layout");

/* `unwound` of an event. If it is not 0, no value of the end means anything. */
enum weft_hook_unwound {
  WEFT_HOOK_RETURNED = 0,
  WEFT_HOOK_EXCEPTION = 1,  /* an exception left the function */
  WEFT_HOOK_THREAD_END = 2, /* pthread_exit, or the thread was cancelled */
};

/* A hook without flags records numbers only, which libweft.so does quickest. */
enum weft_hook_flag {
  /* A filter of the exit reads arguments: they follow the recorded values of its image. */
  WEFT_HOOK_EXIT_ARGUMENTS = 1 << 0,
  /* Something is read of the program's memory: a value or the result is no mere NUMBER. */
  WEFT_HOOK_READS_MEMORY = 1 << 1,
  /* Events have `faults`: bit N is set if the value number N could not be read. */
  WEFT_HOOK_HAS_FAULTS = 1 << 2,
  /* Nothing is recorded: the function jumps to one of the library. */
  WEFT_HOOK_REPLACES = 1 << 3,
};

/*
 * The images of the events, packed. "Late" values are those that are read at the exit.
 *   entry   arguments; [u16 faults]; u16 depth
 *   exit    [return value]; late values; [u16 faults]; u16 depth; u8 unwound; with
 *           WEFT_HOOK_EXIT_ARGUMENTS the arguments
 *   call    arguments; [return value]; late values; [u16 faults]; u64 duration in ns; u16 depth;
 *           u8 unwound
 * Arguments are those of the entry. The depth is the number of open calls of the thread, without
 * this one, whose end is recorded.
 */
struct weft_hook {
  uint64_t address; /* of the function */
  uint64_t resume;  /* in the thunk: the displaced instructions */
  uint64_t entry;   /* address of a struct weft_event; 0: the entry is not recorded */
  uint64_t exit;    /* likewise */
  uint64_t call;    /* likewise: one event for the whole call, at its end */
  uint64_t next;    /* hook in the table; 0: the last one */
  uint64_t digest;  /* of what is recorded, the agent's */
  uint8_t original[WEFT_HOOK_JUMP_BYTES + 3];
  uint8_t jump[WEFT_HOOK_JUMP_BYTES + 3];
  uint32_t value_count;
  uint32_t flags;                /* enum weft_hook_flag */
  uint32_t floating_count;       /* xmm registers from xmm0 on in which values are */
  struct weft_hook_value result; /* NONE: the return value is not recorded */
  struct weft_hook_value values[WEFT_HOOK_MAX_VALUES];
  uint64_t details; /* address of a struct weft_hook_detail for each value; 0: none has one */
};
WEFT_ABI_ASSERT(sizeof(struct weft_hook) == 160, "hook layout");

/* At the beginning of an area's data. All zero before the first hook. */
struct weft_hook_table {
  uint64_t first; /* address of a hook; 0: none */
  uint64_t last;
  uint64_t code_used; /* bytes */
  uint64_t data_used; /* bytes, this table included; 0: this table is not there yet */
};
WEFT_ABI_ASSERT(sizeof(struct weft_hook_table) == 32, "hook table layout");

struct weft_hook_area {
  uint64_t code; /* address; 0: there is no such area */
  uint64_t code_bytes;
  uint64_t data;
  uint64_t data_bytes;
};

/* Functions of a C library that are replaced. __errno_location is only told to the library. */
enum weft_replaced {
  WEFT_REPLACED_DL_FIND_OBJECT = 0,
  WEFT_REPLACED_DL_ITERATE_PHDR = 1,
  WEFT_REPLACED_CLONE = 2,
  WEFT_REPLACED_PRCTL = 3,
  WEFT_REPLACED_SETNS = 4,
  WEFT_REPLACED_SYSCALL = 5,
  WEFT_REPLACED_UNSHARE = 6,
  WEFT_REPLACED_VFORK = 7,
  WEFT_REPLACED_ERRNO_LOCATION = 8,
  WEFT_REPLACED_COUNT = 9,
};

struct weft_replacement {
  uint64_t function; /* of the library; 0: the program's stays as it is */
  uint64_t original; /* address of a word for the original's address; 0: none is needed */
};

/* What replacements have done. */
enum weft_replaced_state {
  WEFT_REPLACED_TRIED = 1 << 0,
  WEFT_REPLACED_UNWINDERS_KNOW = 1 << 1, /* unwinders find the library's code */
  /* Why they do not; neither: a function could not be replaced. */
  WEFT_REPLACED_NONE_FOUND = 1 << 2,   /* no function tells unwinders of loaded objects */
  WEFT_REPLACED_OTHERS_FOUND = 1 << 3, /* another object has one, too */
};

#define WEFT_SILENT_DETACHED 2u
#define WEFT_FILTER_UNTRIED 1u /* the library tries what filters let pass before it needs it */

/* The first members of a call of a hooked function whose end is recorded. */
struct weft_hook_call_head {
  uint64_t hook;
  uint64_t slot; /* where the stub's return address lies as long as the function runs */
  uint64_t turn; /* odd: it runs, or was left without a return */
};

struct weft_hook_stub_data {
  uint64_t caller; /* where the function's caller goes on: never in a stub */
  uint64_t calls;  /* the function's displaced instructions */
};

/* Addresses of what an agent reads and writes in a library that it loaded itself (A5). */
struct weft_hook_places {
  uint64_t silent;      /* u32; not 0: the library makes no system call */
  uint64_t filter;      /* u32: 0 or WEFT_FILTER_UNTRIED */
  uint64_t clock_known; /* u32; 0: the process may be in another time namespace by now */
  uint64_t calls;       /* u64: address of call number 0; 0: there was no call yet */
  uint64_t calls_used;  /* u32: higher numbers were never used */
  uint64_t call_bytes;  /* no address: distance of two calls */
  uint64_t stubs;       /* stub number 0 */
  uint64_t stub_data;   /* struct weft_hook_stub_data of stub number 0 */
  uint64_t walk;        /* begin of code that calls functions of the program that may throw */
  uint64_t walk_end;
};

struct weft_hooks {
  uint32_t magic; /* stored last: 0 before */
  uint32_t version;
  uint64_t enter; /* where a thunk goes, with the hook's address on the stack */
  struct weft_hook_area areas[WEFT_HOOK_AREAS];
  uint64_t enter_go; /* likewise for functions of Go, with the address in r12; 0: for none */
  uint64_t replaced; /* enum weft_replaced_state, the agent's */
  struct weft_replacement replacements[WEFT_REPLACED_COUNT];
  struct weft_hook_places places;
};
WEFT_ABI_ASSERT(sizeof(struct weft_hooks) == 320, "hooks layout");

#endif /* WEFT_LIB_ABI_HOOKS_H_ */
