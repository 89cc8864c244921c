#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev images [NAME...]: packs weft's images, and those of the tests, into build/images.

weft-kmod is an image of modules for all kernels of build/kmod; weft-kmod/KERNEL (a folder there) of that kernel's
alone.

What is packed is the install tree (build/install), under /usr, so that programs find each other
as they do everywhere; test programs that are not installed come from build/release. Without NAMEs
an image whose programs are not built is left out, and a line says so.
"""

import argparse
import pathlib
import re
import subprocess
import sys

from deploy.images.pack import CannotPack, Image
from kmod.qemu.build import TEST_MODULE, sources as kmod_sources

TOP = pathlib.Path(__file__).resolve().parents[2]
INSTALL = TOP / "build/install"
RELEASE = TOP / "build/release"
MODULES = TOP / "build/kmod"
TARGET = TOP / "build/images"
TAG = "dev"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"  # of public authorities, for debuginfod servers
UNPRIVILEGED = "65532:65532"


def weft_image(name, *programs, user=UNPRIVILEGED, files=()):
    """An image of ours. The first program is what it runs."""
    image = Image(f"localhost/{name}:{TAG}", entrypoint=[f"/usr/bin/{programs[0]}"], user=user)
    for program in programs:
        image.program(INSTALL / "bin" / program, f"usr/bin/{program}")
    for file in files:
        image.file(INSTALL / file, f"usr/{file}")
    return image


def modules(image, kernel="*"):
    """Adds weft.ko for each kernel that it was built for (./dev kmod build), where the agent looks."""
    for module in sorted(MODULES.glob(f"{kernel}/weft.ko")):
        image.file(module, f"usr/share/weft/kmod/modules/{release_of(module)}/weft.ko")
    return image


def release_of(module):
    """The kernel's, as uname -r has it there."""
    found = re.search(rb"\0vermagic=(\S+) ", module.read_bytes())
    if not found:
        raise CannotPack(f"{module}: is no kernel module")
    return found.group(1).decode()


def agent():
    # Root, as it reaches into other containers; consumers drop it.
    image = weft_image("weft-agent", "weft-keeper", "weft-node-agent", "weft-consumer", "weft-types",
                       "weft-debuginfod", "weft-install-test", user="0", files=["lib/libweft.so"])
    image.file(CERTIFICATES, CERTIFICATES)
    for source in kmod_sources():
        if str(source).startswith(TEST_MODULE):
            continue
        image.file(TOP / source, f"usr/share/weft/kmod/sources/{source}")
    return modules(image)


def kmod(kernel="*"):
    """The image of modules alone, for nodes whose kernel the agent's image has no module for. It copies them into
    /modules. If `kernel` is one kernel, the tag is that kernel's release."""
    found = sorted(MODULES.glob(f"{kernel}/weft.ko"))
    if not found:
        raise CannotPack(f"there is no build/kmod/{kernel}/weft.ko: ./dev kmod build")
    # A tag has no "+".
    tag = TAG if kernel == "*" else f"{TAG}-{release_of(found[0]).replace('+', '_')}"
    copy = ["/usr/bin/busybox", "cp", "-r", "/usr/share/weft/kmod/modules/.", "/modules"]
    return with_shell(modules(Image(f"localhost/weft-kmod:{tag}", entrypoint=copy), kernel))


def controller():
    return weft_image("weft-controller", "weft-controller", files=["lib/libweft.so"])


def older_controller():
    """A controller with another library, as that of an older weft is: bytes that no loader reads are behind it."""
    image = Image(f"localhost/weft-test/older-controller:{TAG}", entrypoint=["/usr/bin/weft-controller"],
                  user=UNPRIVILEGED)
    image.program(INSTALL / "bin/weft-controller", "usr/bin/weft-controller")
    image.put("usr/lib/libweft.so", (INSTALL / "lib/libweft.so").read_bytes() + b"older\n", 0o755)
    return image


def webhook():
    return weft_image("weft-webhook", "weft-webhook")


def relay():
    # With a reader for what it stores.
    return weft_image("weft-relay", "weft-relay", "weft")


def with_shell(image):
    """Adds Debian's dynamic busybox; its static one crashes where it looks up a name."""
    busybox = "/bin/busybox"
    image.program(busybox, "usr/bin/busybox")
    done = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True)
    image.link("bin", "usr/bin")
    for name in done.stdout.split():
        image.link(f"usr/bin/{name}", "busybox")
    return image


def shell():
    return with_shell(Image(f"localhost/weft-test/shell:{TAG}", command=["sh"]))


def shop():
    image = Image(f"localhost/weft-test/shop:{TAG}", entrypoint=["/usr/bin/shop"], user=UNPRIVILEGED)
    image.program(INSTALL / "share/weft/examples/shop", "usr/bin/shop")
    return with_shell(image)


def sample():
    """The example whose functions are recorded by name; it has no tracepoints."""
    image = Image(f"localhost/weft-test/sample:{TAG}", entrypoint=["/usr/bin/sample_app"], user=UNPRIVILEGED)
    for name in ("sample_app", "libmylib.so"):  # the program looks for the library beside itself
        image.file(INSTALL / "share/weft/examples" / name, f"usr/bin/{name}")
    return with_shell(image)


def database():
    """Debian's PostgreSQL, with pgbench."""
    image = Image(f"localhost/weft-test/database:{TAG}", user=UNPRIVILEGED)
    root = pathlib.Path("/usr/lib/postgresql/15")
    for name in ("postgres", "initdb", "psql", "pgbench", "pg_isready"):
        image.program(root / "bin" / name, root / "bin" / name)
    for name in ("plpgsql", "dict_snowball"):
        image.file(root / f"lib/{name}.so", root / f"lib/{name}.so")
    share = pathlib.Path("/usr/share/postgresql/15")
    for path in sorted(share.rglob("*")):
        if path.is_file() and "man" not in path.relative_to(share).parts and \
                (path.parent.name != "extension" or path.name.startswith("plpgsql")):
            image.file(path, path)
    return with_shell(image)


def web():
    """Debian's nginx, and openssl as its client."""
    image = Image(f"localhost/weft-test/web:{TAG}", user=UNPRIVILEGED)
    for path in ("/usr/sbin/nginx", "/usr/bin/openssl"):
        image.program(path, path)
    image.file("/etc/ssl/openssl.cnf", "/usr/lib/ssl/openssl.cnf")
    return with_shell(image)


def tenant():
    image = Image(f"localhost/weft-test/tenant:{TAG}", entrypoint=["/usr/bin/tenant"],
                  user=UNPRIVILEGED)
    image.program(RELEASE / "tests/cluster/cluster_tenant", "usr/bin/tenant")
    return with_shell(image)


def preloading():
    """A tenant whose image preloads a library, as images with an allocator of their own do."""
    library = "usr/lib/libimage_library.so"
    image = Image(f"localhost/weft-test/preloading:{TAG}", entrypoint=["/usr/bin/tenant"], user=UNPRIVILEGED)
    image.config["Env"].append(f"LD_PRELOAD=/{library}")
    image.program(RELEASE / "tests/cluster/cluster_tenant", "usr/bin/tenant")
    image.file(RELEASE / "tests/cluster/libcluster_image_library.so", library)
    return with_shell(image)


IMAGES = {"weft-agent": agent, "weft-kmod": kmod, "weft-controller": controller, "weft-webhook": webhook,
          "weft-relay": relay, "shell": shell, "shop": shop, "sample": sample, "database": database, "web": web,
          "tenant": tenant, "preloading": preloading, "older-controller": older_controller}


OF_ONE_KERNEL = re.compile(r"weft-kmod/(\w[\w.+-]*)")


def make(name):
    of_one = OF_ONE_KERNEL.fullmatch(name)
    return kmod(of_one[1]) if of_one else IMAGES[name]()


def main(argv):
    parser = argparse.ArgumentParser(prog="./dev images", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(IMAGES))
    names = parser.parse_args(argv).names
    for name in names:
        if name not in IMAGES and not OF_ONE_KERNEL.fullmatch(name):
            parser.error(f"no image '{name}'; there are: {' '.join(IMAGES)}, weft-kmod/KERNEL")
    for name in names or IMAGES:
        path = TARGET / f"{name.replace('/', '-')}.tar"
        try:
            image = make(name)
        except CannotPack as error:
            print(f"images: {name} is left out: {error}", file=sys.stderr)
            path.unlink(missing_ok=True)  # one of an older build
            if names:
                return 1
            continue
        image.write(path)
        print(f"{image.name}  {path.relative_to(TOP)}  {path.stat().st_size >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
