# SPDX-License-Identifier: Apache-2.0
"""A client of the relay's HTTPS API, as docs/openapi/relay.yaml has it: through the API server's service proxy, or
from the cluster's network. It is curl, so that no code of weft's own is on this side."""

import base64
import hashlib
import json
import pathlib
import secrets
import tempfile
import time
import typing

from tests.cluster import settings
from tests.cluster.weft_cluster import dev, kubectl

PROXY = "/api/v1/namespaces/weft/services/https:weft-relay:api/proxy"


class Answer(typing.NamedTuple):
    status: int
    body: bytes

    def json(self):
        return json.loads(self.body)


def token_of(namespace, account, *flags):
    """A token of Kubernetes for a service account."""
    return kubectl("-n", namespace, "create", "token", account, *flags).stdout.strip()


def get_url(url, headers, *flags):
    with tempfile.TemporaryDirectory(prefix="weft-api-") as folder:
        body = pathlib.Path(folder, "body")
        words = [word for header in headers.items() for word in ("--header", ": ".join(header))]
        done = dev("cluster", "run", "curl", "--silent", "--show-error", "--path-as-is",
                   "--max-time", f"{settings.PATIENCE:.0f}", "--output", body, "--write-out", "%{http_code}",
                   *words, *flags, url)
        return Answer(int(done.stdout), body.read_bytes() if body.exists() else b"")


class Visitor:
    """A user of the cluster, by a token of a service account, who comes with the secret of a TraceView or with none."""

    def __init__(self, account_token, weft_token=""):
        self.account_token = account_token
        self.weft_token = weft_token

    def get(self, path, **headers):
        """GET through the API server. headers: Range="bytes=5-"."""
        server = json.loads(kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
        headers["Authorization"] = "Bearer " + self.account_token
        if self.weft_token:
            headers["X-Weft-Token"] = self.weft_token
        return get_url(server + PROXY + path, headers, "--cacert", settings.PKI / "ca.crt")

    def files(self, namespace, folder):
        return {f["path"]: f["size"]
                for f in self.get(f"/v1/namespaces/{namespace}/traces/{folder}/files").json()["files"]}


def view(name, trace, seconds=600, **spec):
    """A TraceView and its secret."""
    secret = secrets.token_urlsafe(32)
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    return {"apiVersion": "weft.dev/v1alpha1", "kind": "TraceView", "metadata": {"name": name},
            "spec": {"trace": trace, "tokenSHA256": hashlib.sha256(secret.encode()).hexdigest(),
                     "expires": expires, **spec}}, secret


def relay_certificate_authority():
    """The CA of weft's servers, in PEM."""
    encoded = kubectl("-n", "weft", "get", "secret", "weft-ca", "--output=jsonpath={.data.tls\\.crt}").stdout
    return base64.b64decode(encoded)
