# SPDX-License-Identifier: Apache-2.0
"""The daemons of a node: their configuration files and command lines. Starts nothing (node.py does).

Where a value differs from what a real node would have, the reason stands beside it.
"""

import json

from tests.cluster.settings import CONTAINERD, CONTROL_PLANE, DNS_SERVICE, DOMAIN, PAUSE_IMAGE, PKI, PODS, SERVICES

ETCD = "http://127.0.0.1:2379"
ETCD_PEER = "http://127.0.0.1:2380"
KUBELET = "/var/lib/kubelet"  # the folder that node agents expect
VOLUME_PLUGINS = f"{KUBELET}/volume-plugins"  # by default a folder of the machine, which is made

CONTAINERD_CONFIG = """\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  # Test machines may lack CAP_SYS_RESOURCE, without which no process lowers its OOM score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    discard_unpacked_layers = true
"""


def cni(node):
    address_management = {"type": "host-local", "dataDir": "/run/cni-ipam",
                          "ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
              "ipMasq": False, "ipam": address_management}
    return {"cniVersion": "0.4.0", "name": "weft-test",
            "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]}


def kubelet_config(node):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": "0.0.0.0",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{PKI}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{PKI}/kubelet-{node.name}.crt",
        "tlsPrivateKeyFile": f"{PKI}/kubelet-{node.name}.key",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{node.group}",
        "failCgroupV1": False,  # Kubernetes 1.35 and newer refuse it unless told
        "failSwapOn": False,
        "clusterDomain": DOMAIN, "clusterDNS": [DNS_SERVICE],
        "resolvConf": f"{node.folder}/resolv.conf",
        "volumePluginDir": VOLUME_PLUGINS,
        "podLogsDir": "/var/log/pods",
        # No disk of a test machine is full enough to delete images or evict pods: parts in a hundred
        # of a large disk could be all that is free.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "200Mi",
                         "nodefs.inodesFree": "1%", "imagefs.available": "200Mi"},
        "serializeImagePulls": False,
        "maxPods": 240,  # a node's range has addresses for as many
        # Tests make many pods at once; limits for fairness between nodes are in their way.
        "kubeAPIQPS": 200, "kubeAPIBurst": 400, "eventRecordQPS": 0,
    }


def proxy_config(node):
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "nftables", "clusterCIDR": PODS, "detectLocalMode": "ClusterCIDR",
        "clientConnection": {"kubeconfig": f"{PKI}/proxy.conf"}, "hostnameOverride": node.name,
        "metricsBindAddress": "127.0.0.1:10249",
        # These would be set for the whole machine.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s",
                      "tcpCloseWaitTimeout": "0s"},
        "nftables": {"minSyncPeriod": "100ms"},
    }


def write_configs(node):
    folder = node.folder
    (folder / "cni").mkdir()
    (folder / "cni/weft.conflist").write_text(json.dumps(cni(node)))
    (folder / "containerd.toml").write_text(CONTAINERD_CONFIG.format(
        socket=CONTAINERD, pause=PAUSE_IMAGE, cni=folder / "cni"))
    # YAML takes JSON as it is.
    (folder / "kubelet.yaml").write_text(json.dumps(kubelet_config(node)))
    (folder / "proxy.yaml").write_text(json.dumps(proxy_config(node)))
    (folder / "resolv.conf").write_text("")  # there is no way out


def etcd():
    return ["etcd", "--name=weft-test", "--data-dir=/run/etcd", "--log-level=warn",
            "--unsafe-no-fsync",  # its data ends with the cluster
            f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}",
            f"--listen-peer-urls={ETCD_PEER}", f"--initial-advertise-peer-urls={ETCD_PEER}",
            f"--initial-cluster=weft-test={ETCD_PEER}"]


def api_server(node):
    return ["kube-apiserver", f"--etcd-servers={ETCD}", "--bind-address=0.0.0.0",
            "--secure-port=6443", f"--advertise-address={node.address}",
            f"--service-cluster-ip-range={SERVICES}", "--allow-privileged=true",
            f"--tls-cert-file={PKI}/apiserver.crt", f"--tls-private-key-file={PKI}/apiserver.key",
            f"--client-ca-file={PKI}/ca.crt",
            f"--kubelet-certificate-authority={PKI}/ca.crt",
            f"--kubelet-client-certificate={PKI}/apiserver-kubelet.crt",
            f"--kubelet-client-key={PKI}/apiserver-kubelet.key",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
            f"--service-account-key-file={PKI}/service-accounts.pub",
            f"--service-account-signing-key-file={PKI}/service-accounts.key",
            f"--requestheader-client-ca-file={PKI}/front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={PKI}/front-proxy.crt",
            f"--proxy-client-key-file={PKI}/front-proxy.key",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            "--profiling=false"]


def client_of_api(name):
    conf = f"{PKI}/{name}.conf"
    return [f"--kubeconfig={conf}", f"--authentication-kubeconfig={conf}",
            f"--authorization-kubeconfig={conf}", "--bind-address=127.0.0.1",
            "--leader-elect=false",  # there is one of it
            "--kube-api-qps=500", "--kube-api-burst=1000"]


def controller_manager():
    return ["kube-controller-manager", *client_of_api("controller-manager"),
            "--use-service-account-credentials=true", f"--root-ca-file={PKI}/ca.crt",
            f"--service-account-private-key-file={PKI}/service-accounts.key",
            f"--flex-volume-plugin-dir={VOLUME_PLUGINS}",
            f"--cluster-signing-cert-file={PKI}/ca.crt", f"--cluster-signing-key-file={PKI}/ca.key",
            f"--requestheader-client-ca-file={PKI}/front-proxy-ca.crt"]


def commands(node):
    """Name -> command line, in the order of starting. All but the kubelet, which ends without
    containerd, try again until those before them answer."""
    found = {"containerd": ["containerd", "--config", f"{node.folder}/containerd.toml"]}
    if node == CONTROL_PLANE:
        found |= {"etcd": etcd(), "kube-apiserver": api_server(node),
                  "kube-controller-manager": controller_manager(),
                  "kube-scheduler": ["kube-scheduler", *client_of_api("scheduler")]}
    found["kubelet"] = ["kubelet", f"--config={node.folder}/kubelet.yaml",
                        f"--kubeconfig={PKI}/kubelet-{node.name}.conf",
                        f"--hostname-override={node.name}", f"--node-ip={node.address}",
                        f"--root-dir={KUBELET}"]
    found["kube-proxy"] = ["kube-proxy", f"--config={node.folder}/proxy.yaml"]
    return found
