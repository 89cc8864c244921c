# SPDX-License-Identifier: Apache-2.0
"""Packs files into a container image, without a daemon, a registry or privileges.

The result is one tar file that is an OCI image layout (image-spec, image-layout.md) and what
`docker load` reads, both; `ctr images import`, `docker load` and `podman load` take it. One layer,
uncompressed: it is meant for machines that have the file. The same input gives the same bytes.
"""

import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import tarfile
import tempfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
OCI = "application/vnd.oci.image"
EPOCH = "1970-01-01T00:00:00Z"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A file is named by what it is needed as, so that it runs without the packer's users.
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
                  "weft:x:65532:65532:weft:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\nweft:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
LOADED = re.compile(r"(?:=> )?(/\S+) \(0x[0-9a-f]+\)$")


class CannotPack(Exception):
    """What was to be packed is not there or does not run; the text says which."""


def libraries(program):
    """Paths of the shared objects that a program loads, its loader too; none for a static one."""
    # Not the packer's own preloads and search path.
    env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    done = subprocess.run(["ldd", str(program)], check=False, capture_output=True, text=True, env=env)
    if "not a dynamic executable" in done.stderr or "statically linked" in done.stdout:
        return []
    if done.returncode != 0 or "not found" in done.stdout:
        raise CannotPack(f"{program}: {done.stdout.strip()} {done.stderr.strip()}")
    return [match.group(1) for match in map(LOADED.search, done.stdout.splitlines()) if match]


def without_debug_information(program):
    """The bytes of a program; most of ours are debug information. By .debug_frame a debugger passes libweft.so."""
    if not pathlib.Path(program).is_file():
        raise CannotPack(f"there is no {program}")
    with tempfile.NamedTemporaryFile() as stripped:
        done = subprocess.run(["strip", "--strip-debug", "--keep-section=.debug_frame", "-o", stripped.name,
                               str(program)],
                              check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotPack(f"{program}: {done.stderr.strip()}")
        return pathlib.Path(stripped.name).read_bytes()


class Image:
    """An image in the making. Paths within it are relative to its root."""

    def __init__(self, name, entrypoint=(), command=(), user="0"):
        self.name = name
        self.config = {"Env": [PATH], "WorkingDir": "/", "User": user}
        if entrypoint:
            self.config["Entrypoint"] = list(entrypoint)
        if command:
            self.config["Cmd"] = list(command)
        self.entries = {}  # path -> (TarInfo, bytes)
        self.folder("tmp", 0o1777)
        for path, text in ACCOUNTS.items():
            self.put(path, text.encode())

    def entry(self, path, kind, mode, data=b"", target=""):
        path = str(path).strip("/")
        if path in self.entries:
            return
        parent = os.path.dirname(path)
        if parent:
            self.entry(parent, tarfile.DIRTYPE, 0o755)
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.size, info.linkname = kind, mode, len(data), target
        self.entries[path] = (info, data)

    def folder(self, path, mode=0o755):
        self.entry(path, tarfile.DIRTYPE, mode)

    def link(self, path, target):
        self.entry(path, tarfile.SYMTYPE, 0o777, target=target)

    def put(self, path, data, mode=0o644):
        self.entry(path, tarfile.REGTYPE, mode, data)

    def file(self, source, path):
        source = pathlib.Path(source)
        if not source.is_file():
            raise CannotPack(f"there is no {source}")
        executable = os.access(source, os.X_OK)
        self.put(path, source.read_bytes(), 0o755 if executable else 0o644)

    def program(self, source, path):
        """A program, without what only a debugger reads, and the shared objects it loads, these at
        the paths they have here."""
        self.put(path, without_debug_information(source), 0o755)
        for library in libraries(source):
            # The layout of the root is one with /lib inside /usr, as Debian's is.
            for top in ("lib", "lib64"):
                self.link(top, f"usr/{top}")
            self.file(library, re.sub(r"^/lib", "usr/lib", library))

    def layer(self):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(self.entries):  # so a folder comes before what is in it
                info, data = self.entries[path]
                tar.addfile(info, io.BytesIO(data))
        return raw.getvalue()

    def write(self, path):
        """Writes the image file; it appears complete or not at all."""
        blobs = {}

        def blob(data, kind):
            digest = hashlib.sha256(data).hexdigest()
            blobs[f"blobs/sha256/{digest}"] = data
            return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

        architecture = ARCHITECTURES[platform.machine()]
        layer = blob(self.layer(), "layer.v1.tar")
        config = blob(dump({
            "architecture": architecture, "os": "linux", "created": EPOCH, "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}), "config.v1+json")
        manifest = blob(dump({"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json",
                              "config": config, "layers": [layer]}), "manifest.v1+json")
        manifest |= {"platform": {"os": "linux", "architecture": architecture},
                     "annotations": {"io.containerd.image.name": self.name,
                                     "org.opencontainers.image.ref.name": self.name.rsplit(":")[-1]}}
        index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [manifest]}
        docker = [{"Config": blob_path(config), "RepoTags": [self.name],
                   "Layers": [blob_path(layer)]}]
        files = {"oci-layout": dump({"imageLayoutVersion": "1.0.0"}), "index.json": dump(index),
                 "manifest.json": dump(docker), **blobs}
        write_tar(pathlib.Path(path), files)


def dump(value):
    return json.dumps(value, sort_keys=True).encode()


def blob_path(descriptor):
    return descriptor["digest"].replace("sha256:", "blobs/sha256/")


def write_tar(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + f".{os.getpid()}")
    with tarfile.open(unfinished, "w") as tar:
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    unfinished.rename(path)
