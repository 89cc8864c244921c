#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz targets whose inputs are binary formats of weft, or ELF files. It packs
them as the formats' documents say, and uses no code of the targets. Seeds of other targets are
texts, or are made by tests.

    scripts/fuzz_seeds.py      (then commit what changed)
"""

import json
import pathlib
import struct

TOP = pathlib.Path(__file__).resolve().parent.parent


def write(folder, name, content):
    path = TOP / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# --- lib/ring/reader_fuzz: changes of a ring set with two slots of two sub-buffers -------------------

SLOTS, DESCRIPTIONS, DATA = 192, 192 + 2 * 128, 4096
USED = 112  # descriptions_used in struct weft_ring_header
SUBBUF, SLOT_BYTES = 4096, 8192
HEAD, CLOSED, FRONTIER, TAIL, LOCK = 0, 8, 56, 64, 72  # in struct weft_slot


def change(at, content):
    """Changes of the memory from `at` on, which is a multiple of 8."""
    made = b""
    for begin in range(0, len(content), 248):
        part = content[begin:begin + 248]
        made += struct.pack("<HB", (at + begin) // 8, len(part)) + part
    return made


END_OF_GROUP = struct.pack("<HB", 0, 0)


def group(*changes):
    return b"".join(changes) + END_OF_GROUP


def slot_word(slot, word, value):
    return change(SLOTS + 128 * slot + word, struct.pack("<Q", value))


def head(offset, records):
    return offset | records << 32


def records(count, time, event=0, body=b"payload."):
    size = 16 + len(body)
    return b"".join(struct.pack("<IHHQ", size, event, 0, time + i) + body + bytes(-size % 8) for i in range(count))


def at_ring(slot, offset, content):
    return change(DATA + slot * SLOT_BYTES + offset, content)


def sub_buffer(sequence, before):
    return struct.pack("<QQQQ", sequence, before, 0, 0)


def description(event, name):
    text = name.encode() + b"\0"
    size = 24 + len(text)
    whole = struct.pack("<IHHIHHiHHII", 8 + size, event, 0, size, 1, 0, 13, len(text), 0, 0, 0) + text
    return whole + bytes(-len(whole) % 8)


def ring_seeds():
    folder = "lib/ring/reader_fuzz_corpus"
    some = records(3, 1000)
    event = description(0, "app:hit")
    described = change(DESCRIPTIONS, event) + change(USED, struct.pack("<Q", len(event)))
    three = at_ring(0, 32, some) + slot_word(0, HEAD, head(32 + len(some), 3))
    write(folder, "discard", bytes([0, 0]) + group(described, three))
    write(folder, "alike", bytes([4, 0]) + group(described, three))
    full = records(126, 1000, body=bytes(16))  # 32 bytes are left: a pad word follows
    second = sub_buffer(1, 126) + records(2, 2000)
    switched = (at_ring(0, 32, full) + at_ring(0, SUBBUF, second) +
                slot_word(0, HEAD, head(SUBBUF + len(second), 2)))
    write(folder, "switched", bytes([0, 0]) + group(switched))
    write(folder, "resumed", bytes([2, 0]) + group(switched, slot_word(0, TAIL, SUBBUF + 32)))
    grown = at_ring(0, 32 + len(some), records(1, 1003)) + slot_word(0, HEAD, head(32 + 4 * 24, 4))
    write(folder, "grows", bytes([0, 0]) + group(described, three) + group() + group(grown))
    write(folder, "goes_back", bytes([0, 0]) + group(three) + group(slot_word(0, HEAD, head(32, 0))))
    again = sub_buffer(2, 128) + records(1, 3000)
    overtaken = (at_ring(0, 0, again) + slot_word(0, FRONTIER, SUBBUF) +
                 slot_word(0, HEAD, head(len(again), 1)))
    write(folder, "overwrite", bytes([1, 0]) + group(switched))
    write(folder, "overtaken", bytes([1, 0]) + group(switched) + group() + group(overtaken))
    locked = slot_word(1, LOCK, 4711) + slot_word(1, CLOSED, 1)
    write(folder, "both_slots", bytes([5, 0]) + group(three, locked, at_ring(1, 32, some),
                                                      slot_word(1, HEAD, head(32 + len(some), 3))))


# --- lib/stream/stream_data_fuzz: packets of the stream with handle 2 -------------------------------

NO_SEQ = 2 ** 64 - 1


def packet(seq, before, content, handle=2):
    return struct.pack("<QQQQIIII", handle, seq, before, 0, len(content), 0, 1, 0) + content


def stream_seeds():
    folder = "lib/stream/stream_data_fuzz_corpus"
    wire = [packet(0, NO_SEQ, b"abc"), packet(1, 0, b"d"), packet(3, 1, bytes(70))]
    write(folder, "in_order", bytes([63]) + b"".join(wire))
    write(folder, "in_pieces", bytes([6]) + b"".join(wire))
    write(folder, "gap_and_double", bytes([127]) + wire[0] + wire[2] + wire[0] + wire[1] + wire[1])
    write(folder, "other_stream", bytes([127]) + wire[0] + packet(1, 0, b"x", handle=3) + wire[1])
    write(folder, "cut_off", bytes([127]) + wire[0] + wire[2][:60])
    write(folder, "numbers", bytes([0x80 | 99]) + bytes([0, 0, 2, 1, 1, 1, 4, 2, 3, 1, 1, 1, 9, 0]))


# --- lib/live/live_viewer_fuzz: commands of babeltrace2 ----------------------------------------------

def command(number, payload=b""):
    return struct.pack(">QII", len(payload), number, 0) + payload


def viewer_seeds():
    folder = "lib/live/live_viewer_fuzz_corpus"
    begin = [command(1, struct.pack(">QIII", NO_SEQ, 2, 4, 1)), command(8), command(2),
             command(3, struct.pack(">QQI", 1, 0, 2)), command(6, struct.pack(">Q", 2))]
    rounds = [part for stream in (3, 5, 7) for part in (
        command(4, struct.pack(">Q", stream)), command(5, struct.pack(">QQI", stream, 0, 84)),
        command(7, struct.pack(">Q", 1)))]
    end = [command(9, struct.pack(">Q", 1)), command(2)]
    write(folder, "attach", bytes([255]) + b"".join(begin))
    write(folder, "whole", bytes([23]) + b"".join(begin + rounds * 3 + end))
    write(folder, "http", bytes([255]) + b"GET / HTTP/1.1\r\n\r\n")


# --- lib/ipc/ipc_codec_fuzz: messages ----------------------------------------------------------------

COUNTS = {"recorded": 9, "delivered": 5, "overwritten": 1, "in_flight": 1, "discarded": {"full": 3},
          "lost": {"consumer/malformed": 2}, "late": 0, "bytes": 4096, "packets": 1, "streams": 1, "rings": 2,
          "corrupt_rings": 1, "tail_unknown": 0, "missed_anywhere": 0}
RELAY = {"host": "relay", "control_port": 5344, "data_port": 5345}
ANY = {"channel_id": 7, "instance": 42, "process": 3, "key": "k", "name": "n", "fd": 0, "pid": 1, "uid": 1000,
       "gid": 1000, "number": 1, "request": 5, "error": 0, "counts": COUNTS, "reason": "r", "meta": "{}",
       "message": "m", "container": "c", "created": "20261121T103330Z", "output": "/out", "relay": RELAY,
       "ctf_version": "2", "programs": "shop"}
MESSAGES = {
    "Configure": {"journal": 0, "clock": 1, "slot_count": 8, "realtime_offset_ns": -5,
                  "clock_uuid": list(range(16))},
    "ChannelDefinition": {
        "id": 7, "trace": "t", "channel": "user", "trace_path": "ust", "trace_uuid": list(range(16)), "mode": 0,
        "subbuf_shift": 19, "subbufs_shift": 2, "contexts": [{"id": 1, "name": ""}], "hostname": "h",
        "domain": "ust", "node": "", "kubernetes_namespace": "", "pod": "", "pod_uid": "", "trace_uid": "",
        **{key: ANY[key] for key in ("relay", "ctf_version", "created", "programs", "container")}},
    "Ring": {"procname": "shop"}, "ProcessGone": {}, "ForgetRing": {}, "StopChannel": {"more_follows": False}, "ForgetChannel": {},
    "StateComplete": {}, "FileAnswer": {}, "Hello": {"version": 1}, "ChannelReady": {"error": "", "waits": False}, "FileRequest": {},
    "Stats": {}, "RingDone": {"corrupt": True, "refused": False}, "Drained": {}, "Notice": {"component": "agent"},
    "Heartbeat": {"done": 1, "pending": 0}, "Keep": {}, "Drop": {}, "ListenDoorbell": {}, "StartConsumer": {},
    "StopConsumer": {}, "Sync": {}, "Synced": {}, "Quit": {}, "Kept": {"doorbell": "d"}, "KeptComplete": {},
    "Arrived": {"doorbell": "d", "fd": 0, "pidfd": 1}, "Connect": {},
    "ConsumerGone": {"failures": 1, "given_up": False, "retry_seconds": 2, "out_of_memory": False}, "OwnerGone": {}, "Exit": {},
    "CreateSession": {"traces": 0, "file": "t.yaml", "attach": [1]}, "StartSession": {}, "StopSession": {},
    "QuerySession": {}, "DestroySession": {},
    "SessionState": {"phase": 1, "cgroup": "/c", "traces": [{"name": "t", "path": "ust", "counts": COUNTS}],
                     "processes": 1, "recoveries": 0, "notices": ["n"]},
    "Refused": {"kind": "input"}, "ConnectionRequest": {"data": True}, "ConnectionAnswer": {"error": ""}, "CloseDoorbell": {},
    "DumpState": {}, "SlotWentRound": {"slot": 1}, "MoveRing": {"may_lose": True}, "RingMoved": {},
    "TakeOver": {"version": 1, "now": True}, "SilentCaller": {"doorbell": "d"}, "HandedOver": {"version": 1}, "TakenOver": {},
    "RelayRefusal": {"reason": "r"},
}


def message_seeds():
    """Returns seeds of messages. A message may have members that its receiver does not know:
    ANY's."""
    for name, members in MESSAGES.items():
        content = {"type": name, **ANY, **members}
        write("lib/ipc/ipc_codec_fuzz_corpus", name, json.dumps(content, separators=(",", ":")).encode())


# --- cli/elf_fuzz: a library with an event, a needed library and a path ----------------------------

PROGBITS, STRTAB, DYNAMIC = 1, 3, 6
NEEDED, RUNPATH, INTERPRETER, LIBRARY = 1, 29, 3, 3


def elf(sections, segments=()):
    """Returns an ELF-64 file. sections: (name, type, content, link)."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in sections) + b".shstrtab\0"
    sections = [*sections, (".shstrtab", STRTAB, names, 0)]
    at = 64 + 56 * len(segments)
    headers, content = [bytes(64)], b""
    for name, kind, body, link in sections:
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), kind, 0, 0, at + len(content),
                                   len(body), link, 0, 8, 16 if kind == DYNAMIC else 0))
        content += body + bytes(-len(body) % 8)
    programs = b"".join(struct.pack("<IIQQQQQQ", kind, 4, 0, 0, 0, 0, 0, 8) for kind in segments)
    ident = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", LIBRARY, 62, 1, 0x1000, 64, at + len(content), 0, 64, 56,
                                 len(segments), 64, len(headers), len(headers) - 1)
    return header + programs + content + b"".join(headers)


def elf_seeds():
    strings = b"\0libc.so.6\0$ORIGIN/lib:/opt/lib\0"
    dynamic = struct.pack("<QQQQQQ", NEEDED, 1, RUNPATH, 11, 0, 0)
    event = description(0, "app:hit")[8:]
    events = event[:struct.unpack_from("<I", event)[0]]
    write("cli/elf_fuzz_corpus", "library", elf([(".dynstr", STRTAB, strings, 0), (".dynamic", DYNAMIC, dynamic, 1),
                                                 ("weft_desc", PROGBITS, events, 0)]))
    write("cli/elf_fuzz_corpus", "program", elf([(".dynstr", STRTAB, strings, 0), (".dynamic", DYNAMIC, dynamic, 1)],
                                                (INTERPRETER,)))
    write("cli/elf_fuzz_corpus", "no_sections", elf([])[:64])


# --- lib/elf/go_table_fuzz: programs of Go without symbols, one of each layout of the table ----------

GO_TEXT, GO_DATA = 0x401000, 0x402000
GO_NAMES = ("runtime.text", "main.(*service).handle", "main.F[...]")


def go_program(magic, named=True):
    """Returns a program of a segment of code, at 512 in the file, with three functions of 64 bytes,
    and one of data, at 768: the table, and the begin of the module's data. named: it has sections."""
    old = magic == 0xfffffffa
    names, places = b"", []
    for name in GO_NAMES:
        places.append(len(names))
        names += name.encode() + b"\0"
    names += bytes(-len(names) % 8)
    # The pairs are followed by a record each: the address, and the place of the name.
    field, record = ("<Q", "<QI4x") if old else ("<I", "<II")
    addresses = [(GO_TEXT if old else 0) + 64 * i for i in range(len(GO_NAMES) + 1)]
    pairs_size = (2 * len(GO_NAMES) + 1) * struct.calcsize(field)
    pairs_size += -pairs_size % 8
    pairs, records = b"", b""
    for address, place in zip(addresses, places):
        pairs += struct.pack(field, address) + struct.pack(field, pairs_size + len(records))
        records += struct.pack(record, address, place)
    pairs += struct.pack(field, addresses[-1])
    functions = pairs + bytes(pairs_size - len(pairs)) + records

    # The text's begin is not where it was in the header since Go 1.26.
    head = struct.pack("<IBBBBQQ", magic, 0, 0, 1, 8, len(GO_NAMES), 0) + (b"" if old else bytes(8))
    names_at = len(head) + 5 * 8
    functions_at = names_at + len(names)
    table = head + struct.pack("<QQQQQ", names_at, functions_at, functions_at, functions_at, functions_at)
    table += names + functions
    module_at = GO_DATA + len(table)
    module = struct.pack("<Q", GO_DATA)
    for at, size in ((names_at, len(names)), (functions_at, 0), (functions_at, 0), (functions_at, 0),
                     (functions_at, len(functions)), (functions_at, len(GO_NAMES) + 1)):
        module += struct.pack("<QQQ", GO_DATA + at, size, size)
    end = GO_TEXT + 64 * len(GO_NAMES)
    module += struct.pack("<QQQQQ", 0, GO_TEXT, end, GO_TEXT, end)
    data = table + module
    assert module_at % 8 == 0

    note = struct.pack("<III", 4, 4, 4) + b"Go\0\0id\0\0"
    texts = b"\0.gopclntab\0.shstrtab\0"
    at = 768 + len(data)
    content = bytes(512 - 64 - 3 * 56 - len(note)) + bytes(256) + data
    sections = b""
    if named:
        content += texts + bytes(-len(texts) % 8)
        sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, PROGBITS, 2, GO_DATA, 768, len(table), 0, 0, 32, 0)
        sections += struct.pack("<IIQQQQIIQQ", 12, STRTAB, 0, 0, at, len(texts), 0, 0, 1, 0)
        at += len(texts) + -len(texts) % 8
    programs = struct.pack("<IIQQQQQQ", 1, 5, 512, GO_TEXT, GO_TEXT, 256, 256, 256)
    programs += struct.pack("<IIQQQQQQ", 1, 6, 768, GO_DATA, GO_DATA, len(data), len(data), 256)
    programs += struct.pack("<IIQQQQQQ", 4, 4, 64 + 3 * 56, 0, 0, len(note), len(note), 4)
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, GO_TEXT, 64, at if named else 0, 0, 64, 56, 3, 64,
                          3 if named else 0, 2 if named else 0)
    return header + programs + note + content + sections


def go_seeds():
    for name, magic in (("go_1_16", 0xfffffffa), ("go_1_18", 0xfffffff0), ("go_1_20", 0xfffffff1)):
        write("lib/elf/go_table_fuzz_corpus", name, go_program(magic))
    write("lib/elf/go_table_fuzz_corpus", "no_sections", go_program(0xfffffff1, named=False))


# --- cli/kubectl/relay_answer_fuzz: sizes that were asked for, and the relay's answer -----------------


def answer_seeds():
    def part(content):
        return struct.pack("<I", 0xffffffff) if content is None else struct.pack("<I", len(content)) + content

    folder = "cli/kubectl/relay_answer_fuzz_corpus"
    write(folder, "parts", b"\x03\x02\x09\n" + part(b"abc") + part(None) + part(b""))
    write(folder, "too_long", b"\x02\n" + part(b"abc"))
    stream = {"path": "shop-7d9f/main/6f1c0b0e-5b1f-4c44-9a61-0d6f4ad6ac52/ust/uid/0/64-bit/user_0", "size": 8192,
              "offset": 4096, "live": True, "kept": 8192, "safe_time": 1764300000000000000}
    counts = {"events": 9, "bytes": 90, "discarded": 1, "lost": 2}
    pod = {"pod": "shop-7d9f", "total": counts, **{name: [0, count] for name, count in counts.items()}}
    for name, content in (("files", {"files": [stream]}), ("rates", {"seconds": 2, "pods": [pod]})):
        write(folder, name, b"\n" + json.dumps(content, separators=(",", ":")).encode())


if __name__ == "__main__":
    ring_seeds()
    stream_seeds()
    viewer_seeds()
    message_seeds()
    elf_seeds()
    go_seeds()
    answer_seeds()
