# SPDX-License-Identifier: Apache-2.0
"""Tests what functions of unmodified programs record from memory: texts, bytes and members, of good addresses and of
bad ones."""

import platform
import subprocess
import unittest

from tests.local.weft_local import BUILD, PATIENCE, LocalTest

PROGRAM = BUILD / "tests" / "local" / "local_functions_values"
TYPED = BUILD / "tests" / "local" / "local_functions_values_typed"


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class ValuesTest(LocalTest):
    def trace(self, functions):
        path = self.folder / "functions.yaml"
        path.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec:\n  user:\n"
                        f"    functions: {functions}\n")
        return "-f", path

    def payloads(self, functions, calls=2, program=PROGRAM, output="trace"):
        """Returns the payloads of all events, by their names without "function:"."""
        out, _ = self.record(*self.trace(functions), program=[program, calls], output=output)
        self.assertEqual(out, f"called {calls}\n")
        events = {}
        for event in self.view(output):
            events.setdefault(event["event"].removeprefix("function:"), []).append(event["payload"])
        return events

    def test_returned_text_is_read(self):
        events = self.payloads('[{name: text_of, args: [{name: number, type: int32}], returns: string, '
                               'record: [exit, call], filter: "number != 1"}]')
        texts = [("text 0", 0), ("(fault)", 2)] * 2
        self.assertEqual([(e["ret"], e["number"]) for e in events["text_of_call"]], texts)
        self.assertEqual([e["ret"] for e in events["text_of_exit"]], [text for text, _ in texts])

    def test_filter_reads_returned_text(self):
        events = self.payloads('[{name: text_of, returns: string, record: [exit], filter: "ret == \\"text*\\""}]')
        self.assertEqual([e["ret"] for e in events["text_of_exit"]], ["text 0"] * 2)

    def test_bytes_have_the_length_that_an_argument_says(self):
        events = self.payloads("[{name: take_bytes, record: [entry, call], args: [{name: data, type: bytes, "
                               "length: size}, {name: size, type: int32}, {name: name, type: string}]}]", calls=1)
        for event in ("take_bytes_entry", "take_bytes_call"):
            calls = {e["name"]: e for e in events[event]}
            self.assertEqual((calls["five"]["data"], calls["five"]["faults"]), ([0, 1, 2, 3, 4], 0))
            # More than there is room for: the argument tells how many there were.
            many = next(e for e in events[event] if e["size"] == 1024)
            self.assertEqual((many["data"], many["name"], many["faults"]),
                             ([i % 256 for i in range(1, 513)], "", 0))
            self.assertEqual((calls["less"]["data"], calls["less"]["faults"]), ([], 0))
            self.assertEqual((calls["last"]["data"], calls["last"]["faults"]), ([9, 9, 9], 0))
            self.assertEqual((calls["over"]["data"], calls["over"]["faults"]), ([], 1))
            self.assertEqual((calls["bad"]["data"], calls["bad"]["faults"]), ([], 1))

    def test_bytes_of_a_number(self):
        events = self.payloads("[{name: take_bytes, record: [entry], args: [{name: data, type: bytes, "
                               'length: "2"}, {name: size, type: int32}]}]', calls=1)
        self.assertEqual([e["data"] for e in events["take_bytes_entry"]],
                         [[0, 1], [1, 2], [0, 1], [9, 9], [9, 9], []])

    def test_bytes_that_a_function_fills_are_those_of_its_end(self):
        events = self.payloads("[{name: fill, record: [entry, exit, call], returns: int64, args: "
                               "[{name: to, type: bytes, length: return}, {name: size, type: uint64}]}]")
        self.assertEqual([(e["to"], e["ret"], e["faults"]) for e in events["fill_exit"]],
                         [([1, 2, 3], 3, 0), ([], -1, 0)] * 2)
        self.assertEqual([(e["size"], e["ret"], e["to"]) for e in events["fill_call"]],
                         [(6, 3, [1, 2, 3]), (6, -1, [])] * 2)
        self.assertEqual([set(e) for e in events["fill_entry"]], [{"size", "faults", "depth"}] * 4)

    def test_members_by_offset(self):
        args = ('[{name: request, type: pointer}, {name: id, type: uint64, path: "request->0"}, '
                '{name: size, type: int16, path: "request->8.4"}, {name: name, type: string, path: "request->0x18"}, '
                '{name: label, type: string, path: "&request->16"}, {name: ratio, type: double, path: "request->40"}, '
                '{name: next, type: string, path: "request->32->24"}, '
                '{name: start, type: bytes, length: "3", path: "request->24"}]')
        events = self.payloads(f"[{{name: handle, record: [entry], args: {args}}}]")
        found = [{k: v for k, v in e.items() if k not in ("request", "depth", "_start_length")} for e in events["handle_entry"]]
        for n in range(2):
            outer, inner, none = found[3 * n:3 * n + 3]
            self.assertEqual(outer, {"id": n, "size": 300, "name": "outer", "label": "outside", "ratio": 0.5,
                                     "next": "inner", "start": list(b"out"), "faults": 0})
            self.assertEqual(inner, {"id": 2, "size": -4, "name": "inner", "label": "in", "ratio": 0,
                                     "next": "(fault)", "start": list(b"inn"), "faults": 1 << 6})
            self.assertEqual(none, {"id": 0, "size": 0, "name": "(fault)", "label": "(fault)", "ratio": 0,
                                    "next": "(fault)", "start": [], "faults": 0b11111110})

    def test_members_by_name(self):
        """Their places are those of the debug information; and the arguments, if the Trace has none."""
        args = ('{name: size, type: int16, path: "REQUEST->header.size"}, {name: label, type: string, path: '
                '"REQUEST->label"}, {name: inner, type: string, path: "REQUEST->next->name"}')
        for given, base in (("{name: r, type: pointer}, ", "r"), ("", "request")):
            events = self.payloads(f"[{{name: handle, record: [entry], args: [{given}"
                                   f"{args.replace('REQUEST', base)}]}}]", program=TYPED, output=base)["handle_entry"]
            for event in events:
                self.assertIn(base, event)
            self.assertEqual([(e["size"], e["label"], e["inner"], e["faults"]) for e in events],
                             [(300, "outside", "inner", 0), (-4, "in", "(fault)", 8), (0, "(fault)", "(fault)", 14)] * 2)

    def test_wrong_members_are_refused_with_what_there_is(self):
        for member, kind, said in (("header.sise", "int16", 'has no member "sise" there'),
                                   ("header.size", "int64", "is int64 in the Trace, and int16 in the debug")):
            rule = f'[{{name: handle, args: [{{name: size, type: {kind}, path: "request->{member}"}}]}}]'
            _, err = self.record(*self.trace(rule), program=[TYPED, 1], output=kind, status=121)
            self.assertIn(said, err)

    def test_filter_reads_members(self):
        events = self.payloads('[{name: handle, record: [entry, exit], filter: "size > 0 && faults == 0", args: '
                               '[{name: request, type: pointer}, {name: size, type: int16, path: "request->12"}]}]')
        self.assertEqual([e["size"] for e in events["handle_entry"]], [300, 300])
        self.assertEqual(len(events["handle_exit"]), 2)

    def test_members_of_registers(self):
        """Without types, the argument is a register's word."""
        events = self.payloads('[{name: handle, record: [entry], args: [{name: id, type: uint64, '
                               'path: "rdi->0"}]}]')
        self.assertEqual([e["id"] for e in events["handle_entry"]], [0, 2, 0, 1, 2, 0])

    def test_wrong_arguments_are_refused(self):
        for arguments, said in (
                ("{name: d, type: bytes}", 'argument "d" needs a length'),
                ("{name: d, type: bytes, length: count}, {name: m, type: int8}", "no integer argument of the rule (they "
                 "are: m)"),
                ("{name: d, type: bytes, length: return}", "needs returns: an integer type"),
                ('{name: p, type: pointer}, {name: m, type: int8, path: "q->4"}', "(they are: p)"),
                ('{name: p, type: pointer}, {name: m, type: int8, path: "p.4"}', "must be ARGUMENT->MEMBER")):
            path = self.trace(f"[{{name: fill, args: [{arguments}]}}]")
            done = subprocess.run(self.command(*path, program=[PROGRAM, 1]), capture_output=True, text=True,
                                  check=False, timeout=PATIENCE)
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertIn(said, done.stderr)
            self.assertIn("functions.yaml:6:", done.stderr)


if __name__ == "__main__":
    unittest.main()
