# SPDX-License-Identifier: Apache-2.0
"""Tests of types that a Trace does not give: they come from the program's debug information, from a file that has been
split off it, from a debuginfod server, or not at all; and a Trace that contradicts them is refused."""

import contextlib
import http.server
import json
import lzma
import os
import platform
import shutil
import socket
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

from tests.local.functions_test import BAD_INPUT, FunctionsTest, function_yaml
from tests.local.weft_local import BUILD, PATIENCE, WEFT

PROGRAM = BUILD / "tests" / "local" / "local_functions_typed"


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class Types(FunctionsTest):
    def run_program(self, *functions, program=PROGRAM, status=0):
        out, err = self.record(*self.trace(*functions), program=[program, "2"], status=status)
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

    @unittest.skipUnless(shutil.which("objcopy") and shutil.which("dwz"), "needs objcopy and dwz")
    def test_types_that_dwz_moved_into_a_shared_file_are_found(self):
        debug, other, shared = (self.folder / name for name in ("typed.debug", "other.debug", "shared.debug"))
        for path in debug, other:
            subprocess.run(["objcopy", "--only-keep-debug", PROGRAM, path], check=True)
        program = self.copy("--strip-debug", f"--add-gnu-debuglink={debug}")
        done = subprocess.run(["dwz", "-m", shared, "-M", shared.name, debug, other], check=False,
                              capture_output=True, text=True)
        if "Unknown debugging section" in done.stderr:
            self.skipTest("dwz does not know what this compiler writes: clang's DWARF 5")
        self.assertTrue(shared.exists(), done.stderr)
        events, _ = self.run_program(function_yaml("typed", target=PROGRAM.name), program=program)
        self.assert_typed(events)
        shutil.rmtree(self.folder / "trace")
        shared.unlink()
        events, err = self.run_program(function_yaml("typed", target=PROGRAM.name), program=program)
        self.assertNotIn("ratio", events["function:typed_entry"][0])
        self.assertIn("parts of its debug information are in a file that dwz made, which is not there", err)

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
                                       function_yaml("of_large", returns="double", target=PROGRAM.name),
                                       status=BAD_INPUT)
        self.assertIn('typed of local_functions_typed is not recorded: argument 1 "id" ("id") is int64 in the Trace, '
                      "and int32 in the debug information: give that type", err)
        self.assertIn("of_large of local_functions_typed is not recorded: returns is double in the Trace, and nothing "
                      "that is recorded in the debug information: leave it out", err)
        self.assertEqual(events, {})

    def test_filter_that_compares_a_pointer_with_text_is_refused(self):
        _, err = self.run_program(function_yaml("typed", target=PROGRAM.name, where='text == "na*"'), status=BAD_INPUT)
        self.assertIn("typed of local_functions_typed is not recorded: its filter compares a number with text", err)

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


class BadServer(http.server.BaseHTTPRequestHandler):
    """Answers each request below /garbage with bytes that are no debug file, and below /endless with bytes that
    never end; below /other with another program's debug file."""

    other = b""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):  # the client has enough
            self.wfile.write(self.other if self.path.startswith("/other") else b"garbage" * 10000)
            while self.path.startswith("/endless"):
                self.wfile.write(bytes(65536))

    def log_message(self, *_):
        pass


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
@unittest.skipUnless(shutil.which("objcopy") and shutil.which("debuginfod"), "needs objcopy and debuginfod")
class Servers(FunctionsTest):
    def setUp(self):
        super().setUp()
        self.debug = self.folder / "debug"
        self.debug.mkdir()
        self.program = self.folder / PROGRAM.name
        subprocess.run(["objcopy", "--only-keep-debug", PROGRAM, self.debug / "typed.debug"], check=True)
        subprocess.run(["objcopy", "--strip-all", PROGRAM, self.program], check=True)
        notes = subprocess.run(["readelf", "-n", PROGRAM], check=True, capture_output=True, text=True).stdout
        self.build_id = notes.split("Build ID: ")[1].split()[0]
        self.options = self.trace(function_yaml("typed", target=PROGRAM.name))

    def environment(self, url, cache="cache"):
        return {**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(self.folder / cache),
                "DEBUGINFOD_MAXSIZE": "1000000", "no_proxy": "*"}

    def serve(self):
        """Starts debuginfod; returns its URL when it has the debug file."""
        for _ in range(20):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            self.server = subprocess.Popen(["debuginfod", "-F", "-d", ":memory:", "-p", str(port), self.debug],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(self.end_server)
            url = f"http://127.0.0.1:{port}"
            if self.wait_for(lambda: self.answers(url) or self.server.poll() is not None) and \
                    self.server.poll() is None:
                return url
        self.fail("debuginfod does not start")

    def answers(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with contextlib.suppress(OSError, urllib.error.HTTPError), \
                opener.open(f"{url}/buildid/{self.build_id}/debuginfo", timeout=PATIENCE) as answer:
            return answer.status == 200
        return False

    def end_server(self):
        self.server.kill()
        self.server.wait()

    def wait_for_notice(self, text, output):
        """Waits until the status of a recording has a notice with the text."""
        def is_told():
            shown = subprocess.run([WEFT, "status", "--json"], capture_output=True, text=True, check=True).stdout
            return any(text in notice for session in json.loads(shown)
                       if session["output"] == str(self.folder / output) for notice in session["notices"])
        self.wait_for(is_told, f"there is no notice: {text}")
        self.assertIn(text, subprocess.run([WEFT, "status"], capture_output=True, text=True, check=True).stdout)

    def run_until_told(self, text, url, output, status=0):
        """Records the program until there is a notice. Returns what weft says."""
        end = self.folder / f"end-{output}"
        weft = self.start(*self.options, program=[self.program, "2", end], output=output,
                          env=self.environment(url, cache=f"cache-{output}"))
        self.wait_for_notice(text, output)
        end.touch()
        return self.finish(weft, status)[1]

    def test_symbols_and_types_are_found_on_a_server_and_then_in_its_cache(self):
        url = self.serve()
        told = "arguments of 1 as debug information from a debuginfod server says"
        self.run_until_told(told, url, "first")
        self.end_server()
        _, err = self.record(*self.options, program=[self.program, "2"], output="second",
                             env=self.environment(url, cache="cache-first"))
        self.assertIn(told, err)
        events = [event["payload"] for event in self.view("second") if event["event"] == "function:typed_entry"]
        for fields in events:
            self.assertNotEqual(fields.pop("text"), 0)
        self.assertEqual(events, [{"id": i, "ratio": 2.5, "flag": 200, "depth": 0} for i in (0, 1)])

    def test_server_that_fails_is_told_and_nothing_of_its_answer_is_kept(self):
        BadServer.other = (BUILD / "tests" / "local" / "local_functions_values_typed").read_bytes()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BadServer)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        for name, expected in {"garbage": "the server's answer is not its debug file",
                               "other": "the server's answer is not its debug file",
                               "endless": "its debug file is too large"}.items():
            with self.subTest(name):
                err = self.run_until_told(f"debuginfod: {expected}", f"{url}/{name}", name, BAD_INPUT)
                self.assertIn(f"functions of {PROGRAM.name} are those of its own symbols: debuginfod: {expected}", err)
                kept = [path for path in (self.folder / f"cache-{name}" / self.build_id).glob("*")
                        if path.stat().st_size > 0]
                self.assertEqual(kept, [])

    def test_server_that_is_away_is_told(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # without listen, so that connections are refused
            self.run_until_told("debuginfod: there is no answer (Connection refused",
                                f"http://127.0.0.1:{closed.getsockname()[1]}", "away", BAD_INPUT)


if __name__ == "__main__":
    unittest.main()
