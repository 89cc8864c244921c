# SPDX-License-Identifier: Apache-2.0
"""Tests the named sets of functions on unmodified programs: results are those without weft, and counts are those of
the program itself, or of a library that counts calls."""

import collections
import os
import platform
import shutil
import socket
import ssl
import subprocess
import threading
import unittest

from tests.local.weft_local import BUILD, PATIENCE, LocalTest

PROGRAM = BUILD / "tests" / "local" / "local_functions_sets"
COUNTER = BUILD / "tests" / "local" / "local_call_counter.so"
MYLIB = BUILD / "examples" / "libmylib.so"
PYTHON = "/usr/bin/python3"
BEGIN_BYTES, END_BYTES = 424242, 424243
WIDE = ("--subbuf-size", "4Mi", "--subbufs", "8")


class SetsTest(LocalTest):
    def recorded(self, *options, program):
        out, err = self.record(*options, program=program)
        self.assertNotIn("hooked 0 functions", err)
        self.assertEqual(self.counts()["discarded"], {})
        return out

    def calls(self, output="trace"):
        """Returns (function, payload) of all events."""
        return [(event["event"].removeprefix("function:").removesuffix("_call"), event["payload"])
                for event in self.view(output) if event["event"].startswith("function:")]

    def file(self):
        path = self.folder / "file"
        path.write_text("1234567890")
        return path


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class Counts(SetsTest):
    def assert_counts(self, calls, times):
        """Checks the calls of the program's own sizes, files and texts."""
        made = [c for name, c in calls if name == "malloc" and c["size"] == 12345]
        self.assertEqual(len(made), times)
        grown = [c for name, c in calls if name == "realloc" and c["size"] == 23456]
        self.assertEqual(len(grown), times)
        counts = collections.Counter(
            name for name, c in calls if (name, c.get("size"), c.get("count")) in
            (("calloc", 1763, 7), ("posix_memalign", 6400, None), ("read", 5, None), ("pread", 2, None))
            or name == "lseek" or name == "open" and c["path"] == str(self.folder / "file"))
        self.assertEqual(counts, dict.fromkeys(("calloc", "posix_memalign", "read", "pread", "lseek", "open"), times))
        for name, c in calls:
            if name == "open" and c["path"] == str(self.folder / "file"):
                self.assertGreaterEqual(c["ret"], 0)
            if name == "read" and c["size"] == 5:
                self.assertEqual(c["ret"], 5)

    def test_heap_and_files_of_threads(self):
        self.recorded("--function-set", "malloc,io", *WIDE, program=[PROGRAM, "calls", 500, self.file()])
        self.assert_counts(self.calls(), 2000)

    def test_heap_and_files_beside_children(self):
        """Also those of fork children. The shells are programs of their own."""
        self.recorded("--function-set", "malloc,io,pthread,dl", *WIDE, program=[PROGRAM, "children", 20, self.file()])
        self.assert_counts(self.calls(), 40)

    def test_waiting_for_a_lock_is_its_calls_duration(self):
        out = self.recorded("--function-set", "pthread", program=[PROGRAM, "locks", 10])
        least = [int(line) for line in out.split()]
        self.assertEqual(len(least), 10)
        locks = [c for name, c in self.calls() if name == "pthread_mutex_lock"]
        mutex = collections.Counter(c["mutex"] for c in locks).most_common(1)[0][0]
        locks = [c["duration"] for c in locks if c["mutex"] == mutex]
        self.assertEqual(len(locks), 20)
        for waited, enough in zip(sorted(locks)[10:], sorted(least)):
            self.assertGreaterEqual(waited, enough)

    def test_libraries_are_opened_as_before(self):
        self.recorded("--function-set", "dl", program=[PROGRAM, "libraries", MYLIB])
        calls = self.calls()
        self.assertIn(("dlopen_entry", str(MYLIB)), [(name, c.get("file")) for name, c in calls])
        self.assertEqual([c["name"] for name, c in calls if name == "dlsym_entry" and
                          c["name"] in ("my_checksum", "no_such_function")], ["my_checksum", "no_such_function"])
        self.assertEqual([c["ret"] for name, c in calls if name == "dlclose"], [0])


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class RealPrograms(SetsTest):
    def counted(self, sets, program, start="setlocale", text=os.devnull):
        """Records a program beside the library that counts. Returns its output, the counts, and the calls."""
        counts = self.folder / "counts"
        script = f"LD_PRELOAD={COUNTER}:$LD_PRELOAD CALL_COUNTS={counts} COUNT_FROM={start} PYTHONMALLOC=malloc exec \"$@\" <{text}"
        out = self.recorded("--function-set", sets, *WIDE, program=["sh", "-c", script, "sh", *program])
        lines = (line.split() for line in counts.read_text().splitlines())
        return out, {name: int(count) for name, count in lines}, self.calls()

    def between_marks(self, calls):
        sizes = [c.get("size") if name == "malloc" else None for name, c in calls]
        return calls[sizes.index(BEGIN_BYTES) + 1:sizes.index(END_BYTES)]

    def test_heap_of_sort(self):
        lines = [f"{i * 7919 % 10007} line\n" for i in range(20000)]
        path = self.folder / "lines"
        path.write_text("".join(lines))
        program = ["sort", "--parallel=1", "-S", "64K", path]
        out, counts, calls = self.counted("malloc", program)
        plain = subprocess.run(program, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        self.assertEqual(out, plain)
        found = collections.Counter(name for name, _ in self.between_marks(calls))
        self.assertGreater(found["malloc"], 20)
        for name in ("malloc", "calloc", "realloc", "free"):
            self.assertEqual(found[name], counts[name], name)

    @unittest.skipUnless(os.access(PYTHON, os.X_OK), "needs Debian's python3")
    def test_heap_and_files_of_python(self):
        """Calls that the program makes itself are at depth 0; those inside libc's functions are not counted."""
        code = ("import os\n"
                "for i in range(300):\n"
                "    f = os.open('/dev/null', os.O_RDWR); os.write(f, b'hello, all'); os.read(f, 3); os.close(f)\n"
                "print(len(str([str(i) for i in range(3000)])))\n")
        out, counts, calls = self.counted("malloc,io", [PYTHON, "-c", code])
        self.assertEqual(out, f"{len(str([str(i) for i in range(3000)]))}\n")
        calls = self.between_marks(calls)
        found = collections.Counter(name for name, _ in calls)
        own = collections.Counter(name for name, c in calls if c["depth"] == 0)
        self.assertGreater(found["malloc"], 3000)
        for name in ("malloc", "calloc", "realloc", "free"):
            self.assertEqual(found[name], counts[name], name)
        self.assertEqual(sum(name == "write" and c["size"] == 10 for name, c in calls), 300)
        for name in ("open", "read", "write", "close"):
            self.assertEqual(own[name], counts[name] + counts.get(name + "64", 0), name)

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_connection_of_openssl(self):
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True,
                       capture_output=True, timeout=PATIENCE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(PATIENCE)
        got = []

        def serve():
            plain, _ = listener.accept()
            with context.wrap_socket(plain, server_side=True) as connection:
                connection.sendall(b"welcome\n")
                got.append(connection.recv(100))
                connection.unwrap()

        server = threading.Thread(target=serve)
        server.start()
        port = listener.getsockname()[1]
        text = self.folder / "input"
        text.write_text("hello\n")
        out, counts, calls = self.counted("ssl", ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{port}"],
                                          start="main", text=text)
        server.join()
        listener.close()
        self.assertEqual(got, [b"hello\n"])
        self.assertIn("welcome", out)
        found = collections.Counter(name for name, c in calls if c["depth"] == 0)
        self.assertEqual(found, {name: count for name, count in counts.items() if count and name.startswith("SSL_")})


if __name__ == "__main__":
    unittest.main()
