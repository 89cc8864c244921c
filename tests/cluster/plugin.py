# SPDX-License-Identifier: Apache-2.0
"""kubectl weft as a user of the cluster who is no administrator: a service account, by its token."""

import json
import pathlib
import subprocess

from tests.cluster import programs, settings
from tests.cluster.relay_api import token_of
from tests.cluster.weft_cluster import TOP, kubectl


class User:
    """kubectl finds the plugin in PATH, and both read the user's kubeconfig in `folder`."""

    def __init__(self, folder, namespace, account):
        server = json.loads(kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"]["server"]
        self.folder = pathlib.Path(folder)
        self.kubeconfig = self.folder / f"{account}.kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": server,
                                                   "certificate-authority": str(settings.PKI / "ca.crt")}}],
            "users": [{"name": "u", "user": {"token": token_of(namespace, account)}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": namespace}}]}))

    def begin(self, *words, **popen):
        """Starts `kubectl weft WORDS`; the process is the plugin itself, since all before it become it."""
        path = f"PATH={TOP / 'build/install/bin'}:{programs.folder()}:/usr/bin:/bin"
        return subprocess.Popen([str(TOP / "dev"), "cluster", "run", "env", path, f"KUBECONFIG={self.kubeconfig}",
                                 "kubectl", "weft", *map(str, words)], stdin=subprocess.DEVNULL, text=True, **popen)

    def run(self, *words):
        """The exit status, and what was printed."""
        process = self.begin(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = process.communicate(timeout=settings.PATIENCE)
        return process.returncode, out
