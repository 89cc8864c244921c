# SPDX-License-Identifier: Apache-2.0
"""Tests weft view on traces of other tracers. It prints what babeltrace2 2.0 prints, event by
event; if a trace is damaged, it prints one line for each cause, and the rest of the trace.
foreign_trace.py makes the traces bit by bit."""

import json
import os
import random
import struct
import subprocess
import unittest

from tests.local import foreign_trace as ft
from tests.local.foreign_trace import Array, Enum, Float, Integer, Sequence, String, Struct, Trace, Variant
from tests.local.weft_local import PATIENCE, WEFT, LocalTest, babeltrace_for_ctf_2

CLOCK = "freq = 1000000000; offset_s = 1700000000; offset = 7"
EPOCH = 1700000000


def run(*words):
    done = subprocess.run([*map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                          check=False, env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout.decode(errors="backslashreplace"), done.stderr.decode(errors="replace")


def has_babeltrace_2_0():
    try:
        return " 2.0." in run("babeltrace2", "--version")[1].split("\n", maxsplit=1)[0]
    except FileNotFoundError:
        return False


class ForeignTest(LocalTest):
    def view(self, *options):
        return run(WEFT, "view", *options, self.folder / "t")

    def assert_same(self, lines, babeltrace="babeltrace2"):
        status, out, err = self.view()
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.count("\n"), lines, out)
        theirs = run(babeltrace, self.folder / "t")
        self.assertEqual(theirs[0], 0, theirs[2])
        self.assertEqual(out.split("\n"), theirs[1].split("\n"))

    def assert_rest(self, lines, *causes):
        """Expects `lines` events, exit status 4, and a line for each cause."""
        status, out, err = self.view()
        self.assertEqual(out.count("\n"), lines, out + err)
        said = err.strip().split("\n")
        self.assertEqual(len(said), len(causes), err)
        for line, cause in zip(said, causes):
            self.assertIn(cause, line)
        self.assertEqual(status, 4)
        return out


@unittest.skipUnless(has_babeltrace_2_0(), "there is no babeltrace2 2.0 (2.1 puts several labels into braces)")
class LikeBabeltrace(ForeignTest):
    def write(self, trace, events, **more):
        trace.write(self.folder / "t", {"c_0": trace.packet(events, 1000, 10 ** 6)}, **more)

    def test_random_field_classes_in_both_byte_orders(self):
        for seed in range(24):
            with self.subTest(seed=seed):
                chance = random.Random(seed)
                context = Struct([("_ctx", ft.random_class(chance))]) if seed % 3 == 0 else None
                trace = Trace(seed % 2 == 1, CLOCK, stream_context=context)
                for i in range(4):
                    trace.add_event(f"p:e{i}", ft.random_struct(chance))
                events = []
                for i in range(30):
                    number = chance.randrange(4)
                    event = [number, 1000 + 10 * i]
                    event += [context.random(chance)] if context else []
                    events.append((*event, trace.events[number].random(chance)))
                half = [trace.packet(events[:15], 1000, 1149), trace.packet(events[15:], 1150, 9999, 1, padding=9)]
                trace.write(self.folder / "t", {"c_0": b"".join(half)})
                self.assert_same(30)

    def test_every_size_of_bit_field_behind_every_offset(self):
        for big in (False, True):
            for offset in range(1, 8):
                trace = Trace(big, CLOCK)
                for size in range(1, 65):
                    number = trace.add_event(f"p:s{size}", Struct(
                        [("_before", Integer(offset, 1)), ("_field", Integer(size, 1, size % 2 == 0)),
                         ("_after", Integer(3, 1))]))
                    self.assertEqual(number, size - 1)
                events = []
                for size in range(1, 65):
                    value = 0x9E3779B97F4A7C15 >> 64 - size
                    events.append((size - 1, 1000 + size, [1, value, 5]))
                self.write(trace, events)
                self.assert_same(64)

    def test_labels_of_overlapping_and_counted_ranges(self):
        ranges = Enum(Integer(8, signed=True), [("a", None, None), ("b", None, None), ("c", -3, -1), ("d", 9, 20),
                                                ("e", 15, 30), ("a", 40, 41)])
        trace = Trace(False, CLOCK)
        trace.add_event("p:e", Struct([("_e", ranges)]))
        self.write(trace, [(0, 1000 + i, [value]) for i, value in enumerate(range(-4, 45))])
        self.assert_same(49)

    def test_structures_and_arrays_align_when_empty(self):
        wide = Struct([("_x", Integer(8)), ("_y", Integer(8, 32))])
        trace = Trace(True, CLOCK)
        trace.add_event("p:e", Struct([("_a", Integer(3)), ("_b", Array(wide, 0)), ("_len", Integer(5)),
                                       ("_c", Sequence(wide, "_len")), ("_d", Integer(8)), ("_n", Struct([], 64)),
                                       ("_f", Float(64, 16)), ("_s", String())]))
        self.write(trace, [(0, 1001, [1, [], 0, [], 7, [], 2.5, b"x"]),
                           (0, 1002, [2, [], 2, [[1, 2], [3, 4]], 8, [], -1.0, b"yy"])])
        self.assert_same(2)

    def test_byte_order_of_one_field(self):
        trace = Trace(True, CLOCK)
        trace.add_event("p:e", Struct([(f"_{order}{size}", Integer(size, 8, base=16, order=order))
                                       for order in ("be", "le") for size in (16, 32, 64)]
                                      + [("_fle", Float(32, 8, "le")), ("_fbe", Float(64, 8, "be"))]))
        self.write(trace, [(0, 1001, [0x1234, 0x12345678, 0x123456789ABCDEF0] * 2 + [1.5, -2.5])])
        self.assert_same(1)

    def test_clocks(self):
        for clock in ("freq = 1000; offset_s = 3; offset = 500", "freq = 2400000000; offset_s = 5",
                      "freq = 1000000000; offset_s = -1; offset = 0",
                      "freq = 1000000000; offset = 1700000000000000000", "freq = 32768; offset_s = 1000000"):
            with self.subTest(clock=clock):
                trace = Trace(False, clock)
                trace.add_event("p:e", Struct([("_n", Integer(8))]))
                # The 32 bits of the time overflow between the second and the third event.
                times = [0xFFFFFFF0, 0xFFFFFFFF, 5, 6]
                trace.write(self.folder / "t", {"c_0": trace.packet(
                    [(0, time, [i]) for i, time in enumerate(times)], 0xFFFFFF00, 1 << 33)})
                self.assert_same(4)

    def test_no_clock_and_no_event_header(self):
        trace = Trace(False)
        context = trace.context.tsdl().replace("timestamp_", "time_")
        metadata = ("/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; "
                    f"packet.header := {trace.packet_header.tsdl()}; }};"
                    f"stream {{ packet.context := {context}; }};"
                    "event { name = only; fields := struct { integer { size = 8; } n; string s; }; };")
        trace.add_event("only", Struct([("n", Integer(8)), ("s", String())]))
        trace.header = Struct([])
        trace.header.put = lambda *_: None
        self.write(trace, [(0, 0, [1, b"one"]), (0, 0, [2, b"two"])], metadata=metadata.encode())
        self.assert_same(2)
        self.assertIn('{"time":null,"time_ns":null,"event":"only"', self.view("--json")[1])

    def test_no_stream_block_and_unknown_attributes(self):
        metadata = ("/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = be; later = 5; };"
                    "event { name = \"p:e\"; news = \"x\"; fields := struct {"
                    " integer { size = 16; colour = red; depth = 0x10; tag = \"t\"; } n; }; };")
        trace = Trace(True)
        trace.write(self.folder / "t", {"c": struct.pack(">3H", 1, 2, 65535)}, metadata=metadata.encode())
        self.assert_same(3)

    def test_time_without_a_map_is_of_the_only_clock(self):
        trace = Trace(False, CLOCK, header=Struct([("id", Integer(16)), ("timestamp", Integer(32))]))
        trace.add_event("p:e", Struct([("_n", Integer(8))]))
        self.write(trace, [(0, 1001, [1]), (0, 1002, [2])])
        self.assert_same(2)

    def test_several_clocks_and_streams(self):
        header = Struct([("id", Integer(16)), ("timestamp", Integer(32, clock="other"))])
        context = Struct([(name, Integer(field.size, clock="other" if "time" in name else None))
                          for name, field in Trace(False).context.members])
        first, second = Trace(False, CLOCK), Trace(False, header=header, context=context)
        for trace in (first, second):
            trace.add_event("p:e", Struct([("_n", Integer(8))]))
        more = "".join(second.parts[2:]).replace("stream { id = 0", "stream { id = 4").replace("stream_id = 0",
                                                                                              "stream_id = 4")
        first.parts.append("clock { name = other; freq = 1000000; offset_s = 1700000000; };\n" + more)
        packets = {"a": first.packet([(0, 1000 * i, [i]) for i in range(1, 5)], 1000, 10000)}
        second.packet_header.put = lambda bits, value, scope=None: [
            bits.put(part, size, 8) for part, size in [(ft.MAGIC, 32), *((b, 8) for b in ft.UUID), (4, 32)]]
        packets["b"] = second.packet([(0, i, [i + 100]) for i in range(1, 5)], 1, 9)
        first.write(self.folder / "t", packets)
        self.assert_same(8)

    def test_packets_out_of_order_and_empty_ones_and_index_files(self):
        trace = Trace(False, CLOCK)
        trace.add_event("p:e", Struct([("_n", Integer(8))]))
        packets = [trace.packet([(0, begin + i, [i]) for i in range(count)], begin, begin + 50, padding=begin // 100)
                   for begin, count in ((300, 2), (100, 3), (200, 0), (400, 1))]
        trace.write(self.folder / "t", {"c_0": b"".join(packets)})
        # An index is no stream.
        (self.folder / "t" / "index").mkdir()
        (self.folder / "t" / "index" / "c_0.idx").write_bytes(b"CTFIDX1")
        status, out, err = self.view()
        self.assertEqual((status, err), (0, ""))
        times = [line.split("]")[0] for line in out.strip().split("\n")]
        self.assertEqual((len(times), times), (6, sorted(times)))  # babeltrace2 2.0 refuses it

    def test_events_before_their_packet_and_behind_it(self):
        trace = Trace(False, CLOCK, header=Struct([("id", Integer(16)), ("timestamp", Integer(64, clock="main"))]))
        trace.header.put = lambda bits, value, scope=None: (bits.put(value[0], 16, 8), bits.put(value[1], 64, 8))
        trace.parts[1] += "env { tracer_name = \"lttng-ust\"; tracer_major = 2; tracer_minor = 10; };\n"
        trace.add_event("p:e", Struct([("_n", Integer(8))]))
        self.write(trace, [(0, 1001, [1]), (0, 5000, [2])])
        self.assert_same(2)

    def test_events_later_than_their_packet_of_an_older_lttng(self):
        trace = Trace(False, CLOCK)
        trace.parts[1] += "env { tracer_name = \"lttng-ust\"; tracer_major = 2; tracer_minor = 10; };\n"
        trace.add_event("p:e", Struct([("_n", Integer(8))]))
        packets = [trace.packet([(0, 1001, [1]), (0, 1200, [2])], 1000, 1100),
                   trace.packet([(0, 1301, [3])], 1300, 1400, 1)]
        trace.write(self.folder / "t", {"c_0": b"".join(packets)})
        self.assert_same(3)

    def test_metadata_in_packets_of_both_byte_orders(self):
        for stream_big in (False, True):
            for metadata_big in (False, True):
                trace = Trace(stream_big, CLOCK)
                trace.add_event("p:e", Struct([("_n", Integer(8)), ("_s", String())]))
                self.write(trace, [(0, 1001, [1, b"s"])], metadata=ft.packetized(trace.metadata(), metadata_big))
                if metadata_big == stream_big:
                    self.assert_same(1)
                else:  # babeltrace2 refuses it
                    self.assertEqual((self.view()[0], self.view()[1].count("\n")), (0, 1))

    def test_line_ends_comments_and_escapes_of_metadata(self):
        trace = Trace(False, CLOCK)
        trace.add_event("q\\\"uo\\x41te", Struct([("_n", Integer(8))]), "// one\r\n/* two\r\n */ ")
        self.write(trace, [(0, 1001, [1])], metadata=trace.metadata().replace(b"\n", b"\r\n"))
        self.assert_same(1)


class TheRestIsShown(ForeignTest):
    """Tests which events a damaged class costs, and which it does not."""

    def trace(self, big=False, **more):
        trace = Trace(big, CLOCK, **more)
        trace.add_event("p:good", Struct([("_n", Integer(8))]))
        return trace

    def packets(self, trace, count=4):
        return [trace.packet([(0, 100 * p + e, [p * 10 + e]) for e in (1, 2)], 100 * p, 100 * p + 99, p)
                for p in range(1, count + 1)]

    def test_cut_stream(self):
        trace = self.trace()
        whole = self.packets(trace)
        for cut in (1, 3, 20, 70, len(whole[0]) - 1):
            trace.write(self.folder / "t", {"c": b"".join(whole[:3]) + whole[3][:cut]})
            self.assert_rest(6, "cut off")

    def test_unknown_event_and_events_behind_the_content(self):
        trace = self.trace()
        packets = self.packets(trace)
        packets[1] = trace.packet([(0, 201, [1])], 200, 299, 2)
        at = len(packets[1]) - 7
        packets[1] = packets[1][:at] + struct.pack("<H", 77) + packets[1][at + 2:]
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        self.assert_rest(6, "unknown id 77")

    def test_lengths_beyond_the_packet(self):
        for big in (False, True):
            trace = self.trace(big)
            number = trace.add_event("p:long", Struct([("_len", Integer(64)),
                                                       ("_seq", Sequence(Struct([], 1), "_len"))]))
            text = trace.add_event("p:text", Struct([("_len", Integer(32)),
                                                     ("_seq", Sequence(Integer(8, encoding="UTF8"), "_len"))]))
            packets = self.packets(trace)
            packets[1] = trace.packet([(0, 201, [9]), (number, 202, [2 ** 63, []])], 200, 299, 2)
            packets[2] = trace.packet([(0, 301, [9]), (text, 302, [2 ** 32 - 1, []])], 300, 399, 3)
            trace.write(self.folder / "t", {"c": b"".join(packets)})
            self.assert_rest(6, "'p:long' is cut off", "'p:text' is cut off")

    def test_sizes_that_cannot_be(self):
        trace = self.trace()
        packets = self.packets(trace)
        at = 24 + 16
        for content, size in ((8, 8), (1 << 40, 80), (80, (1 << 63) + 8), (2 ** 64 - 1, 2 ** 64 - 8), (0, 0)):
            broken = packets[1][:at] + struct.pack("<QQ", content, size) + packets[1][at + 16:]
            trace.write(self.folder / "t", {"c": packets[0] + broken + packets[2]})
            status, out, err = self.view()
            self.assertEqual((status, out.count("\n"), err.count("\n")), (4, 2, 1), err)

    def test_file_with_its_packets_twice(self):
        trace = self.trace()
        packets = self.packets(trace)
        trace.write(self.folder / "t", {"c": b"".join(packets) * 2})
        out = self.assert_rest(16, f"packet at byte {len(packets[0]) * 4}: its times go back", "4 packets have times")
        self.assertEqual((out.count("(-0.000000001)"), out.count("(+18446744")), (4, 0), out)
        trace.write(self.folder / "t", {"c": packets[0] * 2})
        out = self.assert_rest(4, f"/c, packet at byte {len(packets[0])}: its times go back: it begins "
                                  "0.000000099 s before the packet at byte 0 ends")
        self.assertIn("(-0.000000001)", out)

    def test_packets_whose_times_overlap(self):
        trace = self.trace()
        packets = [trace.packet([(0, begin + 1, [1])], begin, end, number)
                   for number, (begin, end) in enumerate(((100, 500), (200, 210), (300, 310), (500, 510)))]
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        self.assert_rest(4, "0.000000300 s before the packet at byte 0 ends", "2 packets have times")

    def test_event_times_that_go_back(self):
        trace = self.trace(header=Struct([("id", Integer(16)), ("timestamp", Integer(64, clock="main"))]))
        trace.header.put = lambda bits, value, scope=None: (bits.put(value[0], 16, 8), bits.put(value[1], 64, 8))
        packets = self.packets(trace)
        packets[1] = trace.packet([(0, 205, [1]), (0, 203, [2]), (0, 201, [3])], 200, 299, 2)
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        out = self.assert_rest(9, "an event 'p:good' is 0.000000002 s earlier than what precedes it")
        self.assertEqual(out.count("(-0.000000002)"), 2, out)
        packets[1] = trace.packet([(0, 199, [1])], 200, 299, 2)
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        self.assert_rest(7, "0.000000001 s earlier than what precedes it")

    def test_times_beyond_the_bounds_of_a_packet(self):
        trace = self.trace()
        packets = self.packets(trace)
        packets[1] = trace.packet([(0, 201, [1]), (0, 350, [2])], 200, 299, 2)
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        self.assert_rest(8, "an event 'p:good' is 0.000000051 s later than the packet's end")
        packets[1] = trace.packet([], 200, 199, 2)
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        self.assert_rest(6, "it ends 0.000000001 s before it begins")
        # LTTng writes the end 0 when it takes a packet out of a crashed program's memory.
        packets[1] = trace.packet([(0, 201, [1])], 200, 0, 2)
        trace.write(self.folder / "t", {"c": b"".join(packets)})
        self.assertEqual((self.view()[0], self.view()[1].count("\n"), self.view()[2]), (0, 7, ""))

    def test_a_class_of_events_that_cannot_be_read(self):
        broken = [("struct { floating_point { exp_dig = 15; mant_dig = 113; } f; }", "floats have 32 or 64 bits"),
                  ("struct { integer { size = 65; } i; }", "1 to 64 bits"),
                  ("struct { nothing_known n; }", "there is no type"),
                  ("struct { integer { size = 8; } x[n]; }", "'n' is no integer"),
                  ("struct { string s; } } { ;", ""),
                  ("struct { string \\x; }", "no meaning"),
                  ("struct { " * 40 + "string s;" + " } x;" * 39 + " }", "too deeply"),
                  ("struct { variant <t> { string s; } v; }", "'t' is no integer")]
        for fields, cause in broken[:4] + broken[5:]:
            with self.subTest(fields=fields[:60]):
                trace = self.trace()
                trace.parts.append(f"event {{ name = \"p:bad\"; id = 1; stream_id = 0; fields := {fields}; }};\n")
                trace.events.append(Struct([("_n", Integer(8))]))
                trace.add_event("p:after", Struct([("_m", String())]))
                packets = self.packets(trace)
                trace.write(self.folder / "t", {"c": b"".join(packets) + trace.packet(
                    [(2, 900, [b"later"])], 900, 999, 5)})
                out = self.assert_rest(9, cause)
                self.assertIn("later", out)
                self.assertIn("'p:bad'", self.view()[2])
                # If such an event is in a packet, the rest of that packet cannot be decoded.
                packets[1] = trace.packet([(0, 201, [1]), (1, 202, [1]), (0, 203, [1])], 200, 299, 2)
                trace.write(self.folder / "t", {"c": b"".join(packets)})
                self.assert_rest(7, cause, "'p:bad' cannot be decoded")

    def test_environment_clock_and_names_that_cannot_be_read(self):
        for good, bad, causes in (
                ("clock {", "env { a = @; }; clock {", ["no meaning"]),
                ("clock {", "typealias integer { size = 128; } := uint128_t; clock {", ["1 to 64 bits"]),
                ("clock {", "struct wide { uint128_t x; }; clock {", ["no type 'uint128_t'"]),
                ("offset = 7", "freq = 0", ["frequency is 0", "a clock 'main' that is not there"])):
            with self.subTest(bad=bad):
                trace = self.trace()
                trace.write(self.folder / "t", {"c": b"".join(self.packets(trace))},
                            metadata=trace.metadata().replace(good.encode(), bad.encode()))
                self.assert_rest(8, *causes)

    def test_metadata_that_is_cut_or_spoiled_behind_the_first_events(self):
        trace = self.trace()
        data = b"".join(self.packets(trace))
        good = trace.metadata()
        trace.add_event("p:next", Struct([("_s", String())]))
        event = trace.metadata()[len(good):]
        for at in range(12, len(event) - 4, 7):
            trace.write(self.folder / "t", {"c": data}, metadata=good + event[:at])
            self.assert_rest(8, "metadata, line")
            trace.write(self.folder / "t", {"c": data}, metadata=ft.packetized(good + event[:at], False)[:-1])
            self.assertEqual((self.view()[0], self.view()[1].count("\n")), (4, 8))
        for junk in (b"\x00", b"\xff\xfe", b"@", b"99999999999999999999", b"\"\\q\"", b"}"):
            trace.write(self.folder / "t", {"c": data}, metadata=good + event.replace(b"fields", junk + b" fields"))
            status, out, err = self.view()
            self.assertEqual((status, out.count("\n")), (4, 8), (junk, err))

    def test_times_out_of_range_and_unknown_clocks(self):
        trace = Trace(False, "offset_s = 9223372036")
        trace.add_event("p:good", Struct([("_n", Integer(8))]))
        data = trace.packet([(0, 2 ** 31, [1]), (0, 2 ** 31 + 1, [2])], 1 << 31, 1 << 33)
        trace.write(self.folder / "t", {"c": data})
        self.assertIn("p:good: ", self.assert_rest(2, "2262"))
        trace.write(self.folder / "t", {"c": data}, metadata=trace.metadata().replace(b"name = main", b"name = x"))
        self.assert_rest(2, "a clock 'main' that is not there")

    def test_names_and_texts_that_are_no_utf8(self):
        trace = self.trace()
        trace.add_event("p:\\xff\\x1b[1m", Struct([("_s", String()), ("_e", Enum(
            Integer(8), [("\"l\\xfe\\x07\"", 1, 1)]))]))
        trace.write(self.folder / "t", {"c": trace.packet(
            [(1, 1001, [b"a\xff\xc3b\xe2\x82\xac\xc2\x9b", 1])], 1000, 2000)})
        status, out, err = self.view()
        self.assertEqual((status, err), (0, ""))
        self.assertIn(r'p:\xff\x1b[1m: ', out)
        self.assertIn('s = "a\\xff\\xc3b\u20ac\\xc2\\x9b", e = ( "l\\xfe\\a" : container = 1 )', out)
        event = json.loads(self.view("--json")[1])
        self.assertEqual(event["event"], "p:\\xff\x1b[1m")
        self.assertEqual(bytes(event["payload"]["s"]), b"a\xff\xc3b\xe2\x82\xac\xc2\x9b")
        self.assertEqual(event["payload"]["e"]["labels"], ["l\\xfe\x07"])

    def test_random_damage_ends(self):
        chance = random.Random(5)
        trace = Trace(True, CLOCK)
        for i in range(3):
            trace.add_event(f"p:e{i}", ft.random_struct(chance))
        data = trace.packet([(n % 3, 1000 + n, trace.events[n % 3].random(chance)) for n in range(20)], 1000, 2000)
        metadata = trace.metadata()
        for _ in range(60):
            parts = [bytearray(metadata), bytearray(data)]
            damaged = chance.choice(parts)
            for _ in range(chance.randrange(1, 6)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            trace.write(self.folder / "t", {"c": bytes(parts[1])}, metadata=bytes(parts[0]))
            status, _, err = self.view()
            self.assertIn(status, (0, 4), err)
            self.assertEqual(status == 4, "weft view:" in err, err)


def ctf2(*fragments):
    return "".join("\x1e" + json.dumps(fragment) for fragment in (
        {"type": "preamble", "version": 2}, {"type": "trace-class"},
        {"type": "data-stream-class", "id": 0, "event-record-header-field-class": {
            "type": "structure", "member-classes": [{"name": "id", "field-class": integer(
                8, roles=["event-record-class-id"])}]}}, *fragments)).encode()


def integer(size, kind="fixed-length-unsigned-integer", **more):
    return {"type": kind, "length": size, "byte-order": "little-endian", "alignment": 8, **more}


def event_class(number, name, *members):
    return {"type": "event-record-class", "id": number, "data-stream-class-id": 0, "name": name,
            "payload-field-class": {"type": "structure", "member-classes": [
                {"name": member, "field-class": field} for member, field in members]}}


def location(name):
    return {"origin": "event-record-payload", "path": [name]}


class Ctf2(ForeignTest):
    def write(self, metadata, data):
        Trace(False).write(self.folder / "t", {"c": data}, metadata=metadata)

    def test_every_field_class(self):
        yes = ("yes", integer(8, "fixed-length-boolean"))
        flags = ("f", integer(8, "fixed-length-bit-map", flags={"a": [[0, 1]], "b": [[3, 3]]}))
        optional = {"type": "optional", "field-class": {"type": "null-terminated-string"}}
        chosen = ("o", {**optional, "selector-field-location": location("yes")})
        ranged = ("o", {**optional, "selector-field-location": location("k"), "selector-field-ranges": [[3, 5]]})
        leb = "variable-length-signed-integer"
        table = [
            ([("b", {"type": "static-length-blob", "length": 3, "media-type": "image/x"})], b"\x01\xfe\xff",
             "b = { 01 fe ff }", {"b": [1, 254, 255]}),
            ([("n", integer(16)), ("b", {"type": "dynamic-length-blob", "length-field-location": location("n")})],
             b"\x02\x00{}", "n = 2, b = { 7b 7d }", {"n": 2, "b": [123, 125]}),
            ([("n", integer(8)), ("b", {"type": "dynamic-length-blob", "length-field-location": location("n")})],
             b"\x00", "n = 0, b = { }", {"n": 0, "b": []}),
            ([("u", {"type": "variable-length-unsigned-integer", "preferred-display-base": 16})], b"\x80\x01",
             "u = 0x80", {"u": 128}),
            ([("i", {"type": leb})], b"\x7f", "i = -1", {"i": -1}),
            ([("i", {"type": leb})], b"\x80" * 9 + b"\x7f", "i = -9223372036854775808", {"i": -2 ** 63}),
            ([yes], b"\x02", "yes = true", {"yes": True}),
            ([yes], b"\x00", "yes = false", {"yes": False}),
            ([flags], b"\x0a", 'f = 0xA { "a", "b" }', {"f": {"value": 10, "labels": ["a", "b"]}}),
            ([flags], b"\x14", "f = 0x14", {"f": {"value": 20, "labels": []}}),
            ([yes, chosen], b"\x01str\0", 'yes = true, o = { "str" }', {"yes": True, "o": "str"}),
            ([yes, chosen], b"\x00", "yes = false, o = <none>", {"yes": False, "o": None}),
            ([("k", integer(8)), ranged], b"\x04s\0", 'k = 4, o = { "s" }', {"k": 4, "o": "s"}),
            ([("k", integer(8)), ranged], b"\x06", "k = 6, o = <none>", {"k": 6, "o": None}),
            ([("w", {"type": "null-terminated-string", "encoding": "utf-16le"})],
             "h\u00fc\U0001F600".encode("utf-16le") + b"\0\0", 'w = "h\u00fc\U0001F600"', {"w": "h\u00fc\U0001F600"}),
            ([("w", {"type": "static-length-string", "length": 12, "encoding": "utf-32be"})],
             "\u20ac".encode("utf-32be") + bytes(8), 'w = "\u20ac"', {"w": "\u20ac"}),
            ([("t", integer(8, **{"bit-order": "last-to-first"}))], b"\x01", "t = 128", {"t": 128})]
        for members, data, text, values in table:
            with self.subTest(text):
                self.write(ctf2(event_class(0, "p:e", *members)), b"\0" + data)
                self.assertEqual(self.view(), (0, f"p:e: {{ {text} }}\n", ""))
                self.assertEqual(json.loads(self.view("--json")[1])["payload"], values)
                if babeltrace_for_ctf_2():
                    theirs = run(babeltrace_for_ctf_2(), self.folder / "t")
                    self.assertEqual(theirs[:2], (0, f"p:e: {{ {text} }}\n"), theirs[2])

    def test_an_unreadable_part_costs_its_class_only(self):
        good = event_class(0, "p:good", ("n", integer(8)))
        other = event_class(2, "p:other", ("n", integer(8)))
        broken = {"field class 'of-tomorrow'": event_class(1, "p:bad", ("x", {"type": "of-tomorrow"})),
                  "floats have 32 or 64": event_class(1, "p:bad", ("x", integer(
                      16, "fixed-length-floating-point-number"))),
                  "nothing' is no integer": event_class(1, "p:bad", ("x", {
                      "type": "dynamic-length-blob", "length-field-location": {"origin": "event-record-payload",
                                                                               "path": ["nothing"]}})),
                  "1 to 64 bits": event_class(1, "p:bad", ("x", integer(0)))}
        for cause, bad in broken.items():
            with self.subTest(cause):
                self.write(ctf2(good, bad, other), b"\0\1\2\2\0\3")
                self.assert_rest(3, cause)
                self.assertIn("'p:bad'", self.view()[2])
                self.write(ctf2(good, bad, other), b"\0\1\2\2\1\3\0\3")
                self.assert_rest(2, cause, "'p:bad' cannot be decoded")
        for junk, cause in ((b"\x1e{ no json", "no JSON"), (b"\x1e{\"type\":\"of-tomorrow\"}", "unknown fragment")):
            self.write(ctf2(good) + junk + ctf2(other).split(b"\x1e")[-1].join([b"\x1e", b""]), b"\0\1\2\2")
            self.assert_rest(2, cause)


if __name__ == "__main__":
    unittest.main()
