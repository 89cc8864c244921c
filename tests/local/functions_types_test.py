# SPDX-License-Identifier: Apache-2.0
"""Tests of types that a Trace does not give: they come from the program's debug information, from a file that has been
split off it, or not at all; and a Trace that contradicts them is refused."""

import lzma
import platform
import shutil
import subprocess
import unittest

from tests.local.functions_test import FunctionsTest, function_yaml
from tests.local.weft_local import BUILD

PROGRAM = BUILD / "tests" / "local" / "local_functions_typed"


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class Types(FunctionsTest):
    def run_program(self, *functions, program=PROGRAM):
        out, err = self.record(*self.trace(*functions), program=[program, "2"])
        self.assertEqual(out, str(0 + 1 + 2 * (ord("a") + 2 + 200) + 0 + 1) + "\n")
        events = {}
        for event in self.view():
            events.setdefault(event["event"], []).append(event["payload"])
        return events, err

    def copy(self, *arguments):
        """Returns a copy of the program that objcopy has changed."""
        path = self.folder / "local_functions_typed"
        subprocess.run(["objcopy", *arguments, PROGRAM, path], check=True)
        return path

    def assert_typed(self, events):
        for i, fields in enumerate(events["function:typed_entry"]):
            self.assertNotEqual(fields.pop("text"), 0)
            self.assertEqual(fields, {"id": i, "ratio": 2.5, "flag": 200, "depth": 0})
        self.assertEqual([fields["ret"] for fields in events["function:typed_exit"]], [299, 300])

    def test_types_are_those_of_the_debug_information(self):
        events, err = self.run_program(function_yaml("typed", target=PROGRAM.name),
                                       function_yaml("of_large", target=PROGRAM.name))
        self.assert_typed(events)
        self.assertIn("arguments of 1 as their debug information says", err)
        large = events["function:of_large_entry"]
        self.assertEqual([sorted(fields) for fields in large], [["a", "depth", "result_address"]] * 2)
        self.assertEqual([fields["a"] for fields in large], [0, 1])

    @unittest.skipUnless(shutil.which("objcopy"), "needs objcopy")
    def test_types_are_found_in_a_file_of_their_own(self):
        debug = self.folder / "typed.debug"
        subprocess.run(["objcopy", "--only-keep-debug", PROGRAM, debug], check=True)
        program = self.copy("--strip-debug", f"--add-gnu-debuglink={debug}")
        events, _ = self.run_program(function_yaml("typed", target=PROGRAM.name), program=program)
        self.assert_typed(events)

    @unittest.skipUnless(shutil.which("objcopy"), "needs objcopy")
    def test_without_types_there_are_words_of_registers(self):
        events, err = self.run_program(function_yaml("typed", target=PROGRAM.name), program=self.copy("--strip-debug"))
        self.assertIn("arguments of 1 as words of registers, since their types are not known", err)
        for i, fields in enumerate(events["function:typed_entry"]):
            self.assertEqual(sorted(fields), ["depth", "r8", "r9", "rcx", "rdi", "rdx", "rsi"])
            self.assertEqual(fields["rdi"] & 0xffffffff, i)
        self.assertEqual(events["function:typed_exit"], [{"depth": 0, "unwound": 0}] * 2)

    def test_trace_that_contradicts_the_debug_information_is_refused_with_both(self):
        events, err = self.run_program(function_yaml("typed", [("id", "int64")], target=PROGRAM.name),
                                       function_yaml("of_large", returns="double", target=PROGRAM.name))
        self.assertIn('typed of local_functions_typed is not recorded: argument 1 "id" ("id") is int64 in the Trace, '
                      "and int32 in the debug information: give that type", err)
        self.assertIn("of_large of local_functions_typed is not recorded: returns is double in the Trace, and nothing "
                      "that is recorded in the debug information: leave it out", err)
        self.assertEqual(events, {})

    def test_function_is_found_in_symbols_that_the_program_has_packed(self):
        symbols, packed = self.folder / "symbols", self.folder / "symbols.xz"
        subprocess.run(["objcopy", "--only-keep-debug", "--strip-debug", PROGRAM, symbols], check=True)
        packed.write_bytes(lzma.compress(symbols.read_bytes()))
        program = self.copy("--strip-all", "--add-section", f".gnu_debugdata={packed}")
        events, err = self.run_program(function_yaml("typed", target=PROGRAM.name), program=program)
        self.assertEqual(len(events["function:typed_entry"]), 2, err)

    def test_debug_information_that_cannot_be_read_is_told(self):
        program = self.copy("--update-section", ".debug_info=/dev/null")
        events, err = self.run_program(function_yaml("typed", target=PROGRAM.name), program=program)
        self.assertEqual(len(events["function:typed_entry"]), 2)
        self.assertIn("as words of registers", err)


if __name__ == "__main__":
    unittest.main()
