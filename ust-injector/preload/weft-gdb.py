# SPDX-License-Identifier: Apache-2.0
"""Complete stacks in gdb, in programs whose functions weft records. Load it with

    source PREFIX/share/weft/gdb/weft-gdb.py

before or after gdb has the program. It adds

  an unwinder   for code that libweft.so runs in front of a function and behind it: stubs, thunks and
                what they lead to. It reads what the process says of them (lib/abi/hooks.h, and
                docs/formats/hooks.md for thunks).
  symbols       of a library that an agent loaded into the running program (weft record --pid): ld.so
                does not list it. Its file is a mapping of the process, which only root may open.

Both change nothing in the process. docs/operations.md says what gdb shows without this file. x86-64 only."""

import re
import struct

import gdb
import gdb.unwinder

MAGIC, VERSION = 0x4b4f4857, 8
STUBS, STUB_BYTES, STUBS_PER_PAGE, STUB_PUSHED = 4096, 16, 256, 11
# Where the members of struct weft_hooks are.
HOOKS_BYTES, AREAS_AT, AREA_BYTES, CALLS_AT = 320, 16, 32, 264
# weft_hook_entry and weft_hook_exit keep so many bytes of registers on the stack, and end like this.
SAVED = 136
ENTRY_TO_STUB = bytes.fromhex("4881c498000000" "ff6424f0")  # add $152, %rsp; jmp *-16(%rsp)
ENTRY_TO_THUNK = bytes.fromhex("4881c490000000" "ff6424f8")  # add $144, %rsp; jmp *-8(%rsp)
EXIT_END = bytes.fromhex("4881c488000000" "c3")  # add $136, %rsp; ret
ADD_BYTES = 7
# A thunk: push and jmp, where the hook's address is, where the displaced instructions begin.
THUNK = bytes.fromhex("ff350a000000" "ff250c000000" "cccccccc")
THUNK_PUSHED, THUNK_HOOK, THUNK_CODE, THUNK_BYTES = 6, 16, 32, 128
JUMP_BYTES = 5
# Code of restartable sequences outside their functions, up to the jump back (lib/ring/writer_x86_64.h).
ASIDE = re.compile(rb"(?:\xff.{1,6}?|\xb8.{4})?(?:\xe9|\x0f\x85)(.{4})", re.DOTALL)
ASIDE_BYTES, ASIDE_JUMPS = 16, 2
# Limits of what is read of a file that has the library's name, and may be another one.
MAX_DYNAMIC_BYTES, MAX_SYMBOLS = 65536, 65536
# Registers that a function leaves as they were.
KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
MAPPING = re.compile(r"^\s*0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)\s+.*/((?:memfd:)?libweft\.so)(?: \(deleted\))?$",
                     re.MULTILINE)


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def words(address, count):
    return struct.unpack(f"<{count}Q", read(address, 8 * count))


def word(address):
    return words(address, 1)[0]


class Object:
    """An ELF object in memory, by its program headers and its dynamic section."""

    def __init__(self, base):
        self.base, self.code, self.dynamic = base, (0, 0), {}
        if read(base, 4) != b"\x7fELF":
            raise ValueError("no ELF object")
        first, count = base + word(base + 32), struct.unpack("<H", read(base + 56, 2))[0]
        for at in range(first, first + 56 * count, 56):
            kind, flags = struct.unpack("<II", read(at, 8))
            begin, size = base + word(at + 16), word(at + 40)
            if kind == 1 and flags & 1:  # PT_LOAD, PF_X
                self.code = begin, begin + size
            elif kind == 2:  # PT_DYNAMIC
                entries = words(begin, min(size, MAX_DYNAMIC_BYTES) // 8)
                self.dynamic = dict(zip(entries[::2], entries[1::2]))

    def table(self, tag):
        """glibc's ld.so puts addresses into the dynamic section, others leave distances."""
        place = self.dynamic[tag]
        return place + (self.base if place < self.base else 0)

    def symbol(self, wanted):
        """Returns a symbol's address, or None if no symbol has this name."""
        hashes, names, symbols = (self.table(tag) for tag in (4, 5, 6))
        count = min(struct.unpack("<I", read(hashes + 4, 4))[0], MAX_SYMBOLS)
        for at in range(symbols, symbols + 24 * count, 24):
            name = names + struct.unpack("<I", read(at, 4))[0]
            if read(name, len(wanted) + 1) == wanted.encode() + b"\0":
                return self.base + word(at + 8)
        return None


class Caller:
    """A frame's own address, as gdb tells frames apart, and where the frame around it goes on."""

    def __init__(self, own, pc, sp):
        self.own, self.pc, self.sp = own, pc, sp


class Library:
    """libweft.so in the process, by what it says of itself."""

    def __init__(self, hooks, code):
        self.code = code  # begin and end
        head = read(hooks, HOOKS_BYTES)
        magic, self.version, self.entry = struct.unpack_from("<IIQ", head)
        self.is_known = (magic, self.version) == (MAGIC, VERSION)
        areas = (struct.unpack_from("<4Q", head, AREAS_AT + AREA_BYTES * i) for i in range(2))
        self.areas = [area for area in areas if area[0] != 0]
        self.calls_at, _, self.call_bytes, self.stubs, self.stub_data = struct.unpack_from("<5Q", head, CALLS_AT)
        if self.is_known:
            jump = self.stubs + STUB_BYTES + STUB_PUSHED
            self.exit = jump + 5 + struct.unpack("<i", read(jump + 1, 4))[0]
            code = read(self.entry, 512)
            self.entry_to_stub = self.entry + code.index(ENTRY_TO_STUB) + ADD_BYTES
            self.entry_to_thunk = self.entry + code.index(ENTRY_TO_THUNK) + ADD_BYTES
            self.exit_end = self.exit + read(self.exit, 256).index(EXIT_END) + ADD_BYTES

    def caller_of(self, pc, sp):
        """Returns the frame around the code of the library at `pc`, or None if gdb's own tables have it."""
        if self.stub_at(pc) is not None:
            return self.caller_of_stub(pc, sp)
        if self.entry <= pc <= self.entry_to_thunk:
            return self.caller_of_entry(pc, sp)
        if self.exit <= pc <= self.exit_end:
            return self.caller_of_exit(pc, sp)
        if self.is_in_thunk(pc):
            return self.caller_of_thunk(pc, sp)
        return self.caller_of_aside(pc, sp)

    def stub_at(self, address):
        number = (address - self.stubs) // STUB_BYTES
        return number if 0 <= number < STUBS and number % STUBS_PER_PAGE != 0 else None

    def is_in_thunk(self, address):
        return any(code <= address < code + size for code, size, _, _ in self.areas)

    def call_of(self, number):
        """Returns hook, slot and turn of a call."""
        return words(word(self.calls_at) + number * self.call_bytes, 3)

    def caller_of_call(self, number, slot):
        """Returns where the function of a call returns to in the end, or None if its number has another call by now."""
        return word(self.stub_data + 16 * number) if self.call_of(number)[1] == slot else None

    def caller_of_stub(self, pc, sp):
        number = self.stub_at(pc)
        stub = self.stubs + number * STUB_BYTES
        # The slot is below the stack pointer but where the stub has just written into it.
        slot = sp if pc - stub == STUB_PUSHED else sp - 8
        caller = self.caller_of_call(number, slot)
        return Caller(stub, caller, slot + 8) if caller else None

    def caller_of_entry(self, pc, sp):
        place = {self.entry: 0, self.entry_to_stub: -16, self.entry_to_thunk: -8}.get(pc, SAVED) + sp
        # The hook; later, where the thread goes on: the thunk's displaced instructions, or a stub.
        said = word(place)
        number = self.stub_at(said)
        if number is not None:
            said = self.call_of(number)[0]
        elif self.is_in_thunk(said):
            said = word(said - THUNK_CODE + THUNK_HOOK)
        return self.in_function(self.entry, said, 0, place + 8)

    def in_function(self, own, hook, distance, sp):
        """Returns the function of a hook as the frame around, in which so many bytes ran already. gdb looks for
        the row of a frame's tables at the byte before its address, as a call's return address is."""
        if not any(data <= hook < data + size for _, _, data, size in self.areas):
            return None
        return Caller(own, word(hook) + distance + 1, sp)

    def caller_of_exit(self, pc, sp):
        slot = sp if pc in (self.exit, self.exit_end) else sp + SAVED
        # The number of the call; later, where it returns to.
        said = word(slot)
        caller = self.caller_of_call(said, slot) if said < STUBS else said
        return Caller(self.exit, caller, slot + 8) if caller else None

    def is_aside(self, pc):
        block = gdb.block_for_pc(pc) if self.code[0] <= pc < self.code[1] else None
        return self.code[0] <= pc < self.code[1] and (block is None or block.function is None)

    def caller_of_aside(self, pc, sp):
        target = pc
        for _ in range(ASIDE_JUMPS):
            jump = ASIDE.match(read(target, ASIDE_BYTES)) if self.is_aside(target) else None
            if jump is None:
                break
            target += jump.end() + struct.unpack("<i", jump[1])[0]
        return Caller(pc, target + 1, sp) if target != pc else None

    def caller_of_thunk(self, pc, sp):
        code = next(area[0] for area in self.areas if area[0] <= pc < area[0] + area[1])
        for thunk in range(pc - pc % 16, max(code, pc - THUNK_BYTES) - 1, -16):
            if read(thunk, len(THUNK)) == THUNK:
                break
        else:
            return None
        hook = word(thunk + THUNK_HOOK)
        if pc - thunk < THUNK_CODE:
            return self.in_function(thunk, hook, 0, sp + 8 * (pc - thunk >= THUNK_PUSHED))
        distance = self.displaced(hook, thunk + THUNK_CODE, pc)
        return None if distance is None else self.in_function(thunk, hook, distance, sp)

    @staticmethod
    def displaced(hook, code, pc):
        """Returns how far in its function a thread at `pc` in the displaced instructions is, or None if these are
        not those of the function."""
        function, = words(hook, 1)
        done = pc - code
        if read(pc, 1) == b"\xe9":  # the jump behind them
            distance = pc + 5 + struct.unpack("<i", read(pc + 1, 4))[0] - function
            if JUMP_BYTES <= distance < THUNK_BYTES:
                return distance
        original = (read(hook + 56, JUMP_BYTES) + read(function + JUMP_BYTES, done))[:done]
        return done if read(code, done) == original else None


class Process:
    """What is known of the process that gdb has selected, until it runs again."""

    def __init__(self):
        self.library, self.known = None, None  # `known`: the inferior and process in which `library` was found
        self.symbols = None  # process and address of the library whose symbols gdb got
        self.warned = None

    def forget(self, *_):
        self.known = None

    def look(self):
        """Returns the library, or None if the process has none."""
        inferior = gdb.selected_inferior()
        if self.known != (inferior.num, inferior.pid):
            self.library, self.known = None, (inferior.num, inferior.pid)
            for mapping in self.mappings():
                self.library = self.library or self.open(mapping)
        return self.library

    @staticmethod
    def mappings():
        try:
            text = gdb.execute("info proc mappings", to_string=True)
        except gdb.error:  # no process
            return []
        found = ((int(m[1], 16), int(m[2], 16), int(m[3], 16), m[4]) for m in MAPPING.finditer(text))
        return [(begin, end, name) for begin, end, offset, name in found if offset == 0]

    def open(self, mapping):
        try:
            found = Object(mapping[0])
            hooks = found.symbol("weft_hooks")
            library = Library(hooks, found.code) if hooks else None
        except (gdb.error, KeyError, OverflowError, ValueError):  # another program's file of that name
            return None
        if library and library.version not in (0, VERSION) and self.warned != library.version:
            self.warned = library.version
            gdb.write(f"weft: libweft.so of this program is another weft's (version {library.version} of weft_hooks, "
                      f"not {VERSION}): take that weft's weft-gdb.py\n", gdb.STDERR)
        return library if library and library.is_known else None

    def stopped(self, *_):
        """Gives gdb the symbols of a library that an agent loaded."""
        self.forget()
        pid = gdb.selected_inferior().pid
        mapping = next((m for m in self.mappings() if m[2].startswith("memfd:")), None)
        if mapping is None or self.symbols == (pid, mapping[0]):
            return
        self.symbols = (pid, mapping[0])
        try:
            gdb.execute(f"add-symbol-file /proc/{pid}/map_files/{mapping[0]:x}-{mapping[1]:x} -o {mapping[0]:#x}",
                        to_string=True)
        except gdb.error as error:
            gdb.write(f"weft: symbols of libweft.so: {error} (only root may open them): stacks end inside it\n",
                      gdb.STDERR)


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


class WeftUnwinder(gdb.unwinder.Unwinder):
    def __init__(self, process):
        super().__init__("weft")
        self.process = process

    def __call__(self, frame):
        if frame.architecture().name() != "i386:x86-64":
            return None
        library = self.process.look()
        if library is None:
            return None
        try:
            pc, sp = (int(frame.read_register(name)) % 2**64 for name in ("rip", "rsp"))
            caller = library.caller_of(pc, sp)
            return self.unwound(frame, caller) if caller is not None else None
        except (gdb.error, OverflowError):  # memory or a register that cannot be read, or bytes that are no address
            return None

    @staticmethod
    def unwound(frame, caller):
        info = frame.create_unwind_info(FrameId(caller.sp, caller.own))
        info.add_saved_register("rip", gdb.Value(caller.pc))
        info.add_saved_register("rsp", gdb.Value(caller.sp))
        for name in KEPT:
            info.add_saved_register(name, frame.read_register(name))
        return info


PROCESS = Process()
gdb.unwinder.register_unwinder(None, WeftUnwinder(PROCESS), replace=True)
gdb.events.stop.connect(PROCESS.stopped)
gdb.events.exited.connect(PROCESS.forget)
if gdb.selected_inferior().pid != 0:
    PROCESS.stopped()
