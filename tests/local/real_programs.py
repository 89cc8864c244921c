# SPDX-License-Identifier: Apache-2.0
"""Debian's PostgreSQL, nginx and Redis as services of a test: in a folder of the test, on sockets there, not
as root, ended by their ids."""

import contextlib
import http.client
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess

from tests.local.weft_local import BUILD, PATIENCE, is_running

POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")
NGINX = "/usr/sbin/nginx"
REDIS = "/usr/bin/redis-server"
UNPRIVILEGED = 65534


def not_as_root():
    """Returns the words before a command that give up root's rights, if the test has them."""
    return ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"] if os.geteuid() == 0 else []


def run(*command, **options):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=PATIENCE, check=True,
                          **options).stdout


class Service:
    """A program that runs until it is stopped. A test starts `command`, alone or recorded."""

    def __init__(self, test, name):
        if subprocess.run([*not_as_root(), "test", "-r", BUILD / "lib" / "libweft.so"], check=False).returncode != 0:
            test.skipTest("another user cannot reach the build folder")
        self.test = test
        self.folder = test.folder / name
        self.folder.mkdir()
        if os.geteuid() == 0:
            os.chown(self.folder, UNPRIVILEGED, UNPRIVILEGED)
        self.command = []
        test.addCleanup(self.stop)

    def pid(self):
        """Returns the id that the program wrote; None: it does not run."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.folder / "pid").read_text().split()[0])
            return pid if is_running(pid) else None
        return None

    def is_ready(self):
        raise NotImplementedError

    def wait(self, process):
        """Waits until the service takes requests. `process` is what was started: its end is an error."""
        self.test.wait_for(lambda: self.is_ready() or process.poll() is not None, f"{self.command} is not ready")
        if process.poll() is not None:
            self.test.fail(process.communicate(timeout=PATIENCE))

    def stop(self, how=signal.SIGTERM):
        pid = self.pid()
        if pid:
            os.kill(pid, how)
            self.test.wait_for(lambda: not is_running(pid), f"{self.command} does not end")

    @contextlib.contextmanager
    def plain(self):
        """Runs it without weft."""
        with subprocess.Popen([*map(str, self.command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:
            self.wait(process)
            try:
                yield
            finally:
                self.stop()
                process.communicate(timeout=PATIENCE)

    @contextlib.contextmanager
    def recorded(self, *options, output="trace"):
        """Runs it in a recording. Gives a list to which the messages of weft are added at the end."""
        weft = self.test.start(*options, program=self.command, output=output, errors="replace")
        self.wait(weft)
        messages = []
        try:
            yield messages
        finally:
            self.stop()
            messages += self.test.finish(weft)[1].splitlines()


class Postgres(Service):
    def __init__(self, test):
        super().__init__(test, "postgres")
        data = self.folder / "data"
        run(*not_as_root(), POSTGRES / "initdb", "-D", data, "-N", "-A", "trust", "-U", "test", "--no-locale", "-E",
            "UTF8", cwd=self.folder)
        self.settings = {"listen_addresses": "", "unix_socket_directories": self.folder, "fsync": "off",
                         "shared_preload_libraries": "pg_stat_statements", "shared_buffers": "16MB",
                         "external_pid_file": self.folder / "pid", "max_wal_senders": 0, "wal_level": "minimal"}
        self.command = [*not_as_root(), POSTGRES / "postgres", "-D", data,
                        *(word for name, value in self.settings.items() for word in ("-c", f"{name}={value}"))]

    def is_ready(self):
        return self.pid() and subprocess.run([POSTGRES / "pg_isready", "-q", "-h", self.folder, "-d", "postgres", "-U",
                                              "test"], check=False, timeout=PATIENCE).returncode == 0

    def sql(self, text, **options):
        """Returns what psql prints, with the errors that the server reported."""
        return run(POSTGRES / "psql", "-X", "-A", "-t", "-h", self.folder, "-U", "test", "-d", "postgres",
                   input=text, **options)

    def bench(self, *options):
        return run(POSTGRES / "pgbench", "-h", self.folder, "-U", "test", *options, "postgres")

    def stop(self, how=signal.SIGINT):  # it does not wait for its clients
        super().stop(how)


class Redis(Service):
    def __init__(self, test):
        super().__init__(test, "redis")
        self.socket = self.folder / "socket"
        self.command = [*not_as_root(), REDIS, "--port", 0, "--unixsocket", self.socket, "--unixsocketperm", 777,
                        "--dir", self.folder, "--pidfile", self.folder / "pid", "--daemonize", "no", "--save", "",
                        "--logfile", self.folder / "log", "--enable-debug-command", "yes"]

    def is_ready(self):
        return self.pid() and self.socket.exists() and self.cli("ping").strip() == "PONG"

    def cli(self, *words, **options):
        return run("redis-cli", "-s", self.socket, *words, **options)


class Nginx(Service):
    """Serves the files of `www` with TLS. Each request is a line of the access log."""

    def __init__(self, test):
        super().__init__(test, "nginx")
        self.socket = self.folder / "socket"
        self.www = self.folder / "www"
        self.www.mkdir()
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.folder / "key", "-out",
            self.folder / "certificate", "-days", "2", "-subj", "/CN=localhost")
        (self.folder / "key").chmod(0o644)  # of this test alone
        self.log = self.folder / "access"
        temporary = "".join(f"{name}_temp_path {self.folder}/{name};\n"
                            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(f"""
worker_processes 2; daemon off; pid {self.folder}/pid; error_log {self.folder}/error crit;
events {{}}
http {{
  log_format counts '$status $request_length $bytes_sent'; access_log {self.log} counts;
  gzip on; gzip_types text/plain; types {{ text/plain txt; }} {temporary}
  server {{
    listen unix:{self.socket} ssl; root {self.www};
    ssl_certificate {self.folder}/certificate; ssl_certificate_key {self.folder}/key;
  }}
}}
""")
        self.command = [*not_as_root(), NGINX, "-c", self.folder / "nginx.conf", "-e", self.folder / "error"]

    def is_ready(self):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.socket))
            return self.pid() is not None
        return False

    def client(self):
        """Returns a connection that speaks TLS."""
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(PATIENCE)
        plain.connect(str(self.socket))
        context = ssl.create_default_context(cafile=self.folder / "certificate")
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = context.wrap_socket(plain, server_hostname="localhost")
        return connection

    def stop(self, how=signal.SIGQUIT):  # when all requests are answered and logged
        super().stop(how)

    def logged(self):
        """Returns the requests of the access log as (status, bytes read, bytes sent)."""
        return [tuple(map(int, line.split())) for line in self.log.read_text().splitlines()]


def missing(*programs):
    return [str(program) for program in programs if shutil.which(program) is None]
