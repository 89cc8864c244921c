# SPDX-License-Identifier: Apache-2.0
"""Certificates and kubeconfigs of the test cluster, by the openssl program, below settings.PKI.

Two authorities, as Kubernetes has them: `ca` for clients and servers, `front-proxy-ca` for the API
server's calls to aggregated servers. They live as long as the cluster.
"""

import base64
import json
import subprocess

from tests.cluster.settings import ADMIN, API, API_SERVICE, CONTROL_PLANE, DOMAIN, PKI

DAYS = "30"
CLIENTS = {  # kubeconfig -> subject
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
}
API_NAMES = ["DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
             f"DNS:kubernetes.default.svc.{DOMAIN}", "DNS:localhost", f"DNS:{CONTROL_PLANE.name}",
             "IP:127.0.0.1", f"IP:{CONTROL_PLANE.address}", f"IP:{API_SERVICE}"]


def openssl(*words, text=None):
    subprocess.run(["openssl", *words], cwd=PKI, check=True, input=text, text=True,
                   capture_output=True)


def key(name):
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")


def authority(name):
    key(name)
    openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-days", DAYS,
            "-out", f"{name}.crt")


def certificate(name, subject, signer="ca", names=()):
    key(name)
    extensions = "keyUsage=critical,digitalSignature,keyEncipherment\n" \
                 "extendedKeyUsage=clientAuth,serverAuth\n"
    if names:
        extensions += f"subjectAltName={','.join(names)}\n"
    (PKI / f"{name}.ext").write_text(extensions)
    openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{signer}.crt", "-CAkey", f"{signer}.key",
            "-CAcreateserial", "-days", DAYS, "-extfile", f"{name}.ext", "-out", f"{name}.crt")


def kubeconfig(name, path=None):
    def data(file):
        return base64.b64encode((PKI / file).read_bytes()).decode()

    # YAML takes JSON as it is.
    (path or PKI / f"{name}.conf").write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "weft-test",
        "contexts": [{"name": "weft-test", "context": {"cluster": "weft-test", "user": name}}],
        "clusters": [{"name": "weft-test", "cluster": {
            "server": API, "certificate-authority-data": data("ca.crt")}}],
        "users": [{"name": name, "user": {"client-certificate-data": data(f"{name}.crt"),
                                          "client-key-data": data(f"{name}.key")}}]}))


def make_for(node):
    """A kubelet's certificate and kubeconfig."""
    certificate(f"kubelet-{node.name}", f"/O=system:nodes/CN=system:node:{node.name}",
                names=[f"DNS:{node.name}", f"IP:{node.address}"])
    kubeconfig(f"kubelet-{node.name}")


def make(nodes):
    PKI.mkdir(mode=0o700, parents=True)
    authority("ca")
    authority("front-proxy-ca")
    certificate("apiserver", "/CN=kube-apiserver", names=API_NAMES)
    certificate("apiserver-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    certificate("front-proxy", "/CN=front-proxy-client", signer="front-proxy-ca")
    for node in nodes:
        make_for(node)
    for name, subject in CLIENTS.items():
        certificate(name, subject)
        kubeconfig(name, ADMIN if name == "admin" else None)
    key("service-accounts")
    openssl("ec", "-in", "service-accounts.key", "-pubout", "-out", "service-accounts.pub")
