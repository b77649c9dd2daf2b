"""The guests' kernel: Debian's own package, unpacked but never installed, and an initramfs that loads the modules.

Both are made once for each kernel package and kept in the cache; one lab makes them while others wait, and they appear
under their name when they are complete."""
import contextlib
import fcntl
import glob
import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess

from soft_roce.tools import Skip, find

# rxe needs a crc32 algorithm by name, which modprobe cannot know; netem is there for tests of loss and delay.
MODULES = ("crc32_generic crc32_pclmul crc32c_generic virtio_pci virtio_net virtio_console 9p 9pnet_virtio "
           "ib_uverbs rdma_ucm rdma_rxe dummy veth sch_netem").split()

# All else a guest does is in soft_roce/guest, which the lab hands in: changing that needs no new initramfs.
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module parameters; do insmod /modules/$module $parameters; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none lab /lab
exec sh /lab/guest
"""


def cache_folder():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("TUTTI_LAB_CACHE") or os.path.join(home, "tutti-lab")


@contextlib.contextmanager
def locked(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kernel():
    """The folder with `vmlinux` and `initramfs`, made if need be."""
    cache = cache_folder()
    with open(__file__, "rb") as file:
        recipe = hashlib.sha256(file.read()).hexdigest()[:8]
    package = wanted_package()
    if package is None:
        made = sorted(glob.glob(os.path.join(cache, f"linux-image-*-{recipe}")), key=os.path.getmtime)
        if not made:
            raise Skip("apt knows no package linux-image-amd64, whose kernel the guests run; "
                       "on Debian run: apt-get update")
        return made[-1]
    folder = os.path.join(cache, f"{package}-{recipe}")
    if not os.path.isdir(folder):
        with locked(cache):
            # Somebody may have made it while we waited.
            if not os.path.isdir(folder):
                make(package, folder)
    return folder


def wanted_package():
    """The package that linux-image-amd64 depends on, or None if apt does not know."""
    if shutil.which("apt-cache") is None:
        return None
    shown = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True)
    found = re.search(r"Depends: (linux-image-\S+-amd64)", shown.stdout)
    return found.group(1) if found else None


def make(package, folder):
    tools = {name: find(name, of) for name, of in (("busybox", "busybox-static"), ("cpio", "cpio"),
                                                   ("modprobe", "kmod"), ("depmod", "kmod"))}
    # A lab that was killed may have left it; we hold the lock.
    building = os.path.join(os.path.dirname(folder), "building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        root = os.path.join(building, "root")
        result = os.path.join(building, "result")
        os.makedirs(result)
        version = package.removeprefix("linux-image-")
        unpack(package, building, root)
        uncompress(os.path.join(root, "boot", f"vmlinuz-{version}"), os.path.join(result, "vmlinux"))
        subprocess.run([tools["depmod"], "-b", root, version], check=True)
        tree = os.path.join(building, "tree")
        fill_initramfs(tree, tools, root, version)
        pack(tree, tools, os.path.join(result, "initramfs"))
        os.rename(result, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def unpack(package, building, root):
    download = subprocess.run(["apt-get", "download", package], cwd=building, capture_output=True, text=True)
    packages = glob.glob(os.path.join(building, "*.deb"))
    if download.returncode != 0 or not packages:
        raise Skip(f"the guests' kernel could not be fetched by 'apt-get download {package}'; "
                   f"apt-get update may help: {' '.join(download.stderr.split())}")
    subprocess.run(["dpkg", "-x", packages[0], root], check=True)


def uncompress(vmlinuz, vmlinux):
    """QEMU starts an uncompressed kernel as well, and emulated processors take seconds to uncompress one."""
    with open(vmlinuz, "rb") as file:
        image = file.read()
    # The kernel's Documentation/arch/x86/boot.rst has the offsets.
    setup_sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    with open(vmlinux, "wb") as file:
        # What follows the stream is its uncompressed size.
        file.write(lzma.LZMADecompressor().decompress(image[start:start + length]))


def fill_initramfs(tree, tools, root, version):
    for name in ("bin", "dev", "lab", "modules", "proc", "root", "sys"):
        os.makedirs(os.path.join(tree, name))
    shutil.copy(tools["busybox"], os.path.join(tree, "bin", "busybox"))
    order = []
    for path in module_files(tools["modprobe"], root, version):
        shutil.copy(path, os.path.join(tree, "modules"))
        # Else it makes a device of its own.
        order.append(os.path.basename(path) + (" numdummies=0" if path.endswith("/dummy.ko") else "") + "\n")
    with open(os.path.join(tree, "modules", "order"), "w") as file:
        file.writelines(order)
    with open(os.path.join(tree, "init"), "w") as file:
        file.write(INIT)
    os.chmod(os.path.join(tree, "init"), 0o755)


def module_files(modprobe, root, version):
    """The files of MODULES and of what they need, each once, in an order in which they can be loaded."""
    files = {}
    for module in MODULES:
        shown = subprocess.run([modprobe, "-d", root, "-S", version, "--show-depends", module],
                               check=True, capture_output=True, text=True)
        for line in shown.stdout.splitlines():
            if line.startswith("insmod "):
                files[line.split()[1]] = None
    return list(files)


def pack(tree, tools, path):
    names = "".join(os.path.relpath(os.path.join(folder, name), tree) + "\n"
                    for folder, folders, files in os.walk(tree) for name in folders + files)
    archive = subprocess.run([tools["cpio"], "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=tree,
                             input=names.encode(), stdout=subprocess.PIPE, check=True).stdout
    with open(path, "wb") as file:
        subprocess.run(["gzip", "-c"], input=archive, stdout=file, check=True)
