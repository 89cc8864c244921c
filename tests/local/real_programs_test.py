# SPDX-License-Identifier: Apache-2.0
"""Hooks functions of Debian's PostgreSQL, nginx, Redis and Python under load: their results are those without weft,
and the counts and values are those that the programs count themselves."""

import collections
import hashlib
import os
import pathlib
import platform
import random
import re
import subprocess
import threading
import time
import unittest

from tests.local.real_programs import NGINX, POSTGRES, REDIS, Nginx, Postgres, Redis, missing
from tests.local.weft_local import BUILD, PATIENCE, LocalTest

PYTHON = "/usr/bin/python3"
THROWS = BUILD / "tests" / "local" / "local_functions_throws"
THROWS_SOURCE = pathlib.Path(__file__).with_name("functions_throws.cc")
SWITCH = BUILD / "tests" / "local" / "local_functions_switch"
LONG = os.environ.get("WEFT_LONG") == "1"
# A filter that no call passes: the hook runs, and nothing is written.
NEVER = "depth > 60000"


@unittest.skipUnless(platform.machine() == "x86_64", "functions are hooked on x86-64 only")
class RealProgramsTest(LocalTest):
    def trace(self, *functions, context="[vpid]"):
        """Each function: its YAML as text."""
        path = self.folder / "functions.yaml"
        path.write_text("apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec:\n"
                        f"  context: {context}\n  buffer: {{size: 4Mi, count: 4}}\n  user:\n    functions:\n" +
                        "".join(f"      - {{{function}}}\n" for function in functions))
        return "-f", path

    def everything_of(self, *objects):
        return self.trace(*(f'name: "*", object: "{name}", filter: "{NEVER}"' for name in objects))

    def payloads(self, output="trace"):
        """Returns event -> its payloads."""
        events = collections.defaultdict(list)
        for event in self.view(output):
            events[event["event"].removeprefix("function:")].append(event["payload"])
        counts = self.counts()
        self.assertEqual(sum(map(len, events.values())), counts["emitted"], counts)
        return events

    def assert_hooked(self, messages, share=0.99, at_least=500):
        """Checks that nearly all functions of each rule are hooked, and returns how many."""
        said = "\n".join(messages)
        hooked = sum(int(n) for n in re.findall(r"hooked (\d+) function", said))
        refused = 0
        for names in re.findall(r': (?:the exit of )?([^:]*?) of \S+ (?:is|are) not recorded: ', said):
            others = re.search(r" and (\d+) others$", names)
            refused += len(names.split(", ")) + (int(others[1]) if others else 0)
        self.assertGreaterEqual(hooked, at_least, said)
        self.assertGreaterEqual(hooked, share * (hooked + refused), said)
        self.assertEqual(self.counts()["emitted"], 0)
        return hooked


@unittest.skipIf(missing(POSTGRES / "postgres"), "needs Debian's PostgreSQL 15")
class PostgresTest(RealProgramsTest):
    # What pgbench sends in each transaction: how it begins, and the server's own pattern for it.
    STATEMENTS = ("BEGIN", "END", "SELECT abalance", "UPDATE pgbench_accounts", "UPDATE pgbench_branches",
                  "UPDATE pgbench_tellers", "INSERT INTO pgbench_history")
    # Errors that the server catches itself, with siglongjmp, and that it reports.
    SCRIPT = r"""
create function inner_error(n int) returns int language plpgsql as $$
begin
  return 100 / (n % 7);
exception when division_by_zero then
  raise notice 'caught %', n;
  return -1;
end $$;
create table t as select n, md5(n::text) as text, n * 1.5::numeric as number from generate_series(1, 3000) n;
create index on t (text);
select sum(inner_error(n)) from generate_series(1, 300) n;
select 1 / 0;
select no_such_column from t;
select count(*), max(text), sum(number), md5(string_agg(text, ',' order by text)) from t where text > '4';
with recursive r(a, b) as (select 0::numeric, 1::numeric union all select b, a + b from r where b < 1e60)
  select max(b) from r;
select text ~ '^[0-9]+' as digits, count(*), regexp_replace(min(text), '[a-f]', 'x', 'g') from t group by 1 order by 1;
select jsonb_agg(jsonb_build_object('n', n, 'text', text)) #>> '{3,text}' from t where n < 10;
savepoint none;
begin; insert into t values (1); savepoint a; insert into no_table values (1); rollback to a; commit;
select count(*) from t;
vacuum analyze t;
explain (costs off) select * from t where text = 'x';
drop table t;
drop function inner_error(int);
"""

    def test_queries_in_backends_are_those_that_the_server_counts(self):
        server = Postgres(self)
        functions = ('name: pg_parse_query, object: postgres, args: [{name: query, type: string}], returns: pointer',
                     'name: standard_ExecutorRun, object: postgres, record: [call]')
        with server.recorded(*self.trace(*functions, context="[vpid, vtid]")):
            server.sql("create extension pg_stat_statements")
            server.bench("-i", "-q", "-s", 1)
            server.sql("select pg_stat_statements_reset()")
            said = server.bench("-n", "-c", 4, "-t", 150)
            counted = {begin: int(server.sql("select coalesce(sum(calls), 0) from pg_stat_statements "
                                             f"where query like '{begin}%'")) for begin in self.STATEMENTS}
            right = server.sql("select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts) "
                               "from pgbench_history")
        self.assertIn("actually processed: 600/600", said)
        self.assertEqual(right, "600|t\n")
        self.assertEqual(counted, dict.fromkeys(self.STATEMENTS, 600))
        events = self.payloads()
        queries = [fields["query"] for fields in events["pg_parse_query_entry"]]
        # pgbench -i and psql send some of these words, too, but not as it does in its transactions.
        for begin in self.STATEMENTS[2:]:
            self.assertEqual(sum(query.startswith(begin) for query in queries), counted[begin], begin)
        self.assertEqual(len(events["pg_parse_query_exit"]), len(queries))
        self.assertGreaterEqual(len(events["standard_ExecutorRun_call"]), 5 * 600)

    def test_everything_is_hooked(self):
        server = Postgres(self)
        script = "\\set VERBOSITY verbose\n" + self.SCRIPT
        with server.plain():
            plain = self.answers(server, script)
        with server.recorded(*self.everything_of("postgres", "plpgsql.so")) as messages:
            recorded = self.answers(server, script)
            server.bench("-i", "-q", "-s", 1)
            said = server.bench("-n", "-c", 4, "-t", 50)
            self.assertIn("actually processed: 200/200", said)
            right = server.sql("select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts) "
                               "from pgbench_history")
        self.assertEqual(recorded, plain)
        self.assertEqual(right, "200|t\n")
        self.assert_hooked(messages, at_least=9000)

    def answers(self, server, script):
        done = subprocess.run([POSTGRES / "psql", "-X", "-a", "-h", server.folder, "-U", "test", "-d", "postgres"],
                              input=script, capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.assertIn("division by zero", done.stderr)
        return done.stdout, done.stderr


@unittest.skipIf(missing(NGINX, "openssl"), "needs Debian's nginx")
class NginxTest(RealProgramsTest):
    CLIENTS = 4
    REQUESTS = 30

    def setUp(self):
        super().setUp()
        self.server = Nginx(self)
        rng = random.Random(5)
        self.files = {"small.txt": b"hello\n", "large": rng.randbytes(300_000), "text.txt": b"weft " * 20_000}
        for name, content in self.files.items():
            (self.server.www / name).write_bytes(content)

    def load(self):
        """Sends requests on several connections at once. Returns the answers of each."""
        answers = [[] for _ in range(self.CLIENTS)]

        def client(out):
            connection = self.server.client()
            for i in range(self.REQUESTS):
                name = [*self.files, "none"][i % 4]
                connection.request("GET", "/" + name, headers={"Accept-Encoding": "gzip" if i % 3 else "identity"})
                answer = connection.getresponse()
                out.append((name, answer.status, answer.headers["Content-Encoding"],
                            hashlib.sha256(answer.read()).hexdigest()))
            connection.close()
        threads = [threading.Thread(target=client, args=(out,)) for out in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([len(out) for out in answers], [self.REQUESTS] * self.CLIENTS)
        return answers

    def test_bytes_of_openssl_are_those_of_the_access_log(self):
        with self.server.plain():
            plain = self.load()
        self.server.log.unlink()
        arguments = "args: [{name: ssl, type: pointer}, {name: data, type: pointer}, {name: size, type: int32}]"
        functions = [f'name: {name}, object: "libssl.so*", {arguments}, returns: int32'
                     for name in ("SSL_read", "SSL_write")]
        with self.server.recorded(*self.trace(*functions, "name: ngx_http_process_request, object: nginx")):
            recorded = self.load()
        self.assertEqual(recorded, plain)
        logged = self.server.logged()
        self.assertEqual(len(logged), self.CLIENTS * self.REQUESTS)
        events = self.payloads()
        for moment in ("entry", "exit"):
            self.assertEqual(len(events["ngx_http_process_request_" + moment]), len(logged))
        for name, column in (("SSL_read", 1), ("SSL_write", 2)):
            self.assertEqual(len(events[name + "_entry"]), len(events[name + "_exit"]))
            self.assertEqual(sum(max(0, fields["ret"]) for fields in events[name + "_exit"]),
                             sum(line[column] for line in logged), name)

    def test_everything_is_hooked(self):
        with self.server.plain():
            plain = self.load()
        for objects in (["nginx", "libssl.so*"], ["libcrypto.so*"]):
            with self.server.recorded(*self.everything_of(*objects), output="trace-" + objects[0][:5]) as messages:
                self.assertEqual(self.load(), plain)
            self.assert_hooked(messages)


@unittest.skipIf(missing(REDIS, "redis-benchmark"), "needs Debian's Redis")
class RedisTest(RealProgramsTest):
    BENCHMARK = "set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"

    def load(self, server, calls):
        said = subprocess.run(["redis-benchmark", "-s", server.socket, "-q", "-n", str(calls), "-c", "10", "-r", "100",
                               "-t", self.BENCHMARK], capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.assertNotIn("rror", said.stdout + said.stderr)

    def test_commands_are_those_that_the_server_counts(self):
        server = Redis(self)
        with server.recorded(*self.trace('name: "*Command", object: "redis*", record: [entry]',
                                         'name: call, object: "redis*", record: [call]')):
            server.cli("config", "resetstat")
            self.load(server, 500)
            counted = {m[1]: int(m[2]) for m in re.finditer(r"cmdstat_([a-z]+):calls=(\d+)",
                                                            server.cli("info", "commandstats"))}
        self.assertGreater(counted["set"], 499)
        events = self.payloads()
        for command in self.BENCHMARK.replace("_100", "").split(","):
            self.assertEqual(len(events[command + "Command_entry"]), counted[command], command)
        # Since the reset, and what came before and after: that reset, a ping each time it was not ready, this info.
        self.assertGreaterEqual(len(events["call_call"]), sum(counted.values()))

    def test_everything_is_hooked(self):
        server = Redis(self)
        with server.plain():
            plain = self.answers(server)
        with server.recorded(*self.everything_of("redis*")) as messages:
            recorded = self.answers(server)
            self.load(server, 300)
        self.assertEqual(recorded, plain)
        self.assert_hooked(messages, at_least=3000)

    def test_switching_under_load_and_its_deaths(self):
        """All functions are switched while the server answers, and what switches them is killed at any point."""
        server = Redis(self)
        with server.plain():
            plain = self.answers(server)
        over = threading.Event()
        answers = []

        def ask():
            while not over.is_set():
                answers.append(self.answers(server))
        with server.recorded(*self.trace(f'name: call, object: "redis*", filter: "{NEVER}"')):
            thread = threading.Thread(target=ask)
            thread.start()
            try:
                switch = [SWITCH, str(server.pid()), "100" if LONG else "20", "redis*"]
                subprocess.run(switch, check=True, timeout=PATIENCE)
                for _ in range(100 if LONG else 10):
                    with subprocess.Popen([*switch[:2], "1000000", switch[3]], stderr=subprocess.DEVNULL) as process:
                        time.sleep(random.random() * 0.5)
                        process.kill()
            finally:
                over.set()
                thread.join()
        self.assertGreater(len(answers), 0)
        self.assertEqual([answer for answer in answers if answer != plain][:1], [])

    SCRIPT = """
set text hello
append text -world
getrange text 2 7
set text 1 nx
incr text
rpush list c b a 10 9
sort list alpha
lrange list 0 -1
zadd sorted 1 a 2.5 b -3 c
zrange sorted 0 -1 withscores
hset hash a 1 b 2
hgetall hash
pfadd log a b c d
pfcount log
setbit bits 100 1
bitcount bits
geoadd places 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
geodist places Palermo Catania km
xadd stream 1-1 field value
xrange stream - +
eval "local s = 0 for i = 1, 1000 do s = s + redis.call('incrby', 'n', i) end return {s, pcall(error, 'x')}" 0
eval "return redis.call('no_such_command')" 0
multi
incr n
exec
dump hash
debug reload
debug digest
"""

    def answers(self, server):
        server.cli("flushall")
        return server.cli(input=self.SCRIPT, errors="backslashreplace")


@unittest.skipIf(missing(PYTHON), "needs Debian's python3")
class PythonTest(RealProgramsTest):
    # Waits until the function of a library that was just loaded is hooked: its code begins with a jump then.
    WAIT = ("import ctypes, time\n"
            "def wait(library, function):\n"
            "    code = ctypes.cast(getattr(ctypes.CDLL(library), function), ctypes.c_void_p).value\n"
            "    while ctypes.string_at(code, 1) != b'\\xe9': time.sleep(0.01)\n")

    def test_calls_of_extensions(self):
        code = self.WAIT + ("import _ctypes_test, sqlite3\n"
                            "extension = ctypes.CDLL(_ctypes_test.__file__)\n"
                            "wait(_ctypes_test.__file__, '_testfunc_i_bhilfd')\n"
                            "wait('libsqlite3.so.0', 'sqlite3_bind_int64')\n"
                            "f = extension._testfunc_i_bhilfd\n"
                            "f.argtypes = (ctypes.c_byte, ctypes.c_short, ctypes.c_int, ctypes.c_long, "
                            "ctypes.c_float, ctypes.c_double)\n"
                            "total = sum(f(-1, 2, 3, n, 4.5, 5.25) for n in range(1000))\n"
                            "base = sqlite3.connect(':memory:')\n"
                            "base.execute('create table t (n int)')\n"
                            "base.executemany('insert into t values (?)', ((n,) for n in range(700)))\n"
                            "print(total, base.execute('select sum(n) from t').fetchone())\n")
        arguments = (("b", "int8"), ("h", "int16"), ("i", "int32"), ("l", "int64"), ("f", "float"), ("d", "double"))
        functions = ('name: _testfunc_i_bhilfd, object: "_ctypes_test*", returns: int32, args: [' +
                     ", ".join(f"{{name: {name}, type: {kind}}}" for name, kind in arguments) + "]",
                     'name: sqlite3_bind_int64, object: "libsqlite3.so*", returns: int32, '
                     'args: [{name: statement, type: pointer}, {name: index, type: int32}, {name: value, type: int64}]')
        out, _ = self.record(*self.trace(*functions), program=[PYTHON, "-c", code])
        self.assertEqual(out, "512500 (244650,)\n")
        events = self.payloads()
        self.assertEqual([{**fields, "depth": 0} for fields in events["_testfunc_i_bhilfd_entry"]],
                         [{"b": -1, "h": 2, "i": 3, "l": n, "f": 4.5, "d": 5.25, "depth": 0} for n in range(1000)])
        self.assertEqual([fields["ret"] for fields in events["_testfunc_i_bhilfd_exit"]],
                         [-1 + 2 + 3 + n + 4 + 5 for n in range(1000)])
        self.assertEqual([fields["value"] for fields in events["sqlite3_bind_int64_entry"]], list(range(700)))
        self.assertEqual([fields["ret"] for fields in events["sqlite3_bind_int64_exit"]], [0] * 700)


class CommandsTest(RealProgramsTest):
    """Programs that end by themselves, with all functions of some of their objects hooked. What they print is the same."""

    def check(self, objects, *command, at_least):
        plain = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout
        self.assertGreater(len(plain), 10)
        out, err = self.record(*self.everything_of(*objects), program=command, errors="surrogateescape")
        self.assertEqual(out.encode(errors="surrogateescape"), plain)
        self.assert_hooked(err.splitlines(), at_least=at_least)

    @unittest.skipIf(missing("/usr/bin/g++"), "needs Debian's compiler")
    def test_compiler_with_its_libraries_for_numbers(self):
        """GMP is assembly: some of its functions branch into others."""
        self.check(("libgmp.so*", "libmpfr.so*", "libmpc.so*"), "/usr/bin/g++", "-std=c++20", "-O1", "-S", "-o", "-",
                   THROWS_SOURCE, at_least=1200)

    @unittest.skipIf(missing("/usr/bin/perl"), "needs Debian's perl")
    def test_perl(self):
        self.check(("perl",), "/usr/bin/perl", "-e",
                   "for (1..20000) { my $x = $_; $x =~ s/1/one/g; $h{$x} = sprintf('%x', $_) } "
                   "eval { die 'x' }; print $@, join(',', map { $h{$_} } sort keys %h)", at_least=1700)

    @unittest.skipUnless(LONG, "only in the long form")
    def test_bash(self):
        self.check(("bash",), "/bin/bash", "-c", "f() { local x=$1; echo $((x * x)) | (read -r y; echo \"$y\"); }; "
                   "trap 'echo trap' USR1; for i in {1..200}; do f $i; kill -USR1 $$; done; ls /usr/lib", at_least=1500)

    @unittest.skipUnless(LONG, "only in the long form")
    def test_gdb(self):
        self.check(("libstdc++.so*", "libpython3*"), "gdb", "-nx", "-batch", "-ex", "disassemble main", "-ex",
                   "python import json; print(json.dumps([n / 7 for n in range(20000)]))",
                   THROWS, at_least=3500)


class ExceptionsTest(RealProgramsTest):
    def test_everything_of_the_cpp_library_is_hooked(self):
        """Exceptions cross hooked functions of the program while those of libstdc++, which throw them, are hooked."""
        trace = self.trace(f'name: "*", object: "libstdc++.so*", filter: "{NEVER}"',
                           'name: "shop::*", object: "*throws"')
        out, err = self.record(*trace, program=[THROWS, "3500"])
        self.assertIn("caught 3500", out)
        hooked = int(re.search(r'"libstdc\+\+.so\*": hooked (\d+)', err)[1])
        self.assertGreater(hooked, 3000, err)
        events = self.payloads()
        self.assertEqual(len(events["shop::Price(double)_entry"]), 3500)


if __name__ == "__main__":
    unittest.main()
