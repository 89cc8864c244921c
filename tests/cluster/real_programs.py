# SPDX-License-Identifier: Apache-2.0
"""Debian's PostgreSQL and nginx in pods, and their loads, which come from pods of a namespace without weft."""

import re

from tests.cluster.weft_cluster import get, kubectl, pod

CLIENTS = "clients"  # the namespace of the loads
DATABASE_START = """
set -e
export PATH=$PATH:/usr/lib/postgresql/15/bin
initdb -D /data/base -N -A trust -U test --no-locale -E UTF8 >/dev/null
echo 'host all all all trust' >>/data/base/pg_hba.conf
exec postgres -D /data/base -c listen_addresses=* -c unix_socket_directories=/data -c fsync=off \
  -c dynamic_shared_memory_type=mmap -c shared_buffers=16MB
"""
WEB_CONFIGURATION = """
worker_processes 2; daemon off; pid /data/pid; error_log /data/error crit;
events {}
http {
  access_log /data/access; client_body_temp_path /data/a; proxy_temp_path /data/b; fastcgi_temp_path /data/c;
  uwsgi_temp_path /data/d; scgi_temp_path /data/e;
  server { listen 8443 ssl; root /data/www; ssl_certificate /data/certificate; ssl_certificate_key /data/key; }
}
"""
WEB_START = f"""
set -e
openssl req -x509 -newkey rsa:2048 -nodes -keyout /data/key -out /data/certificate -days 2 -subj /CN=web 2>/dev/null
mkdir /data/www
seq 20000 >/data/www/numbers
cat >/data/nginx.conf <<'end'
{WEB_CONFIGURATION}
end
exec nginx -c /data/nginx.conf -e /data/error
"""


class Load:
    """A service in a namespace, and the pod that sends it requests."""

    def __init__(self, test, namespace, image, start):
        self.test = test
        self.namespace = namespace
        self.name = image
        data = {"/data": {"emptyDir": {}}}
        test.apply(pod(image, image, labels={"app": image}, command=["sh", "-c", start], mounts=data),
                   namespace=namespace)
        test.apply(pod(image, image, command=["sleep", "100000"], mounts=data), namespace=CLIENTS)
        test.wait_for_pod(namespace, image)
        test.wait_for_pod(CLIENTS, image)
        self.address = get(namespace, "pod", image)["status"]["podIP"]

    def client(self, script, check=True):
        """Runs a script beside the client. Returns what it prints."""
        done = kubectl("-n", CLIENTS, "exec", self.name, "--", "sh", "-c",
                       f"export PATH=$PATH:/usr/lib/postgresql/15/bin; {script}", check=check)
        return done.stdout

    def wait(self, script, answer):
        """Waits until the service answers a script of the client."""
        self.test.wait_for(lambda: answer in self.client(script, check=False), f"{self.name} does not answer")


class Database(Load):
    def __init__(self, test, namespace):
        super().__init__(test, namespace, "database", DATABASE_START)
        self.options = f"-h {self.address} -U test"
        self.wait(f"pg_isready {self.options}", "accepting connections")
        self.client(f"pgbench {self.options} -i -q -s 1 postgres")

    def run(self, transactions):
        """Returns the number of transactions that pgbench says it made."""
        said = self.client(f"pgbench {self.options} -n -c 4 -t {transactions // 4} postgres")
        return int(re.search(r"actually processed: (\d+)/", said)[1])

    def rows(self):
        """Returns the rows that the transactions inserted; they fit the balances."""
        said = self.client(f"psql {self.options} -X -A -t -d postgres -c 'select count(*), sum(delta) = "
                           "(select sum(abalance) from pgbench_accounts) from pgbench_history'")
        count, fits = said.strip().split("|")
        self.test.assertEqual(fits, "t")
        return int(count)


class Web(Load):
    def __init__(self, test, namespace):
        super().__init__(test, namespace, "web", WEB_START)
        self.request = (f"printf 'GET /numbers HTTP/1.0\\r\\n\\r\\n' | "
                        f"openssl s_client -quiet -connect {self.address}:8443 2>/dev/null | md5sum")
        self.right = self.client("(seq 20000) | md5sum")
        self.wait(self.request.replace("md5sum", "tail -n 1"), "20000")

    def run(self, requests):
        """Sends requests; each answer is whole."""
        body = self.request.replace("| md5sum", "| sed '1,/^\\r*$/d' | md5sum")
        said = self.client(f"for i in $(seq {requests}); do {body}; done")
        self.test.assertEqual(said, self.right * requests)

    def logged(self):
        """Returns the number of requests in the server's log."""
        return int(kubectl("-n", self.namespace, "exec", self.name, "--", "wc", "-l", "/data/access").stdout.split()[0])
