"""Runs the command on this machine itself, where its kernel has rxe and we are root: on dummy devices that are ours,
and that are gone when we are."""
import contextlib
import fcntl
import glob
import os
import resource
import subprocess
import tempfile
import time

from soft_roce.guests import TimedOut
from soft_roce.tools import Cleaner, Skip, dying_with_us, find

REMOVE = """
while [ $# -gt 1 ]; do rdma link delete "$1" 2>/dev/null; ip link delete "$1" 2>/dev/null; shift; done
rm -rf "$1"
"""
USABLE_SECONDS = 5


class NoRail(Exception):
    """A rail could not be set up; the message says why."""


def devices(job):
    return [f"tuttilab{rail}" for rail in range(job.rails)]


def obstacle(job):
    """Why the job cannot run on this machine, or None. The rails are set up to see whether that works: rxe does not in
    a container's network, and nothing else tells."""
    if job.guests > 1 or job.numa > 1:
        return "it wants a machine of its own"
    if os.geteuid() != 0:
        return "that needs root"
    try:
        for program in ("rdma", "ip"):
            find(program, "iproute2")
        modprobe = [find("modprobe", "kmod"), "-q", "-a", "rdma_rxe", "rdma_ucm", "dummy"]
        if not os.path.isdir("/sys/module/rdma_rxe") and subprocess.run(modprobe).returncode != 0:
            return "this kernel has no rdma_rxe"
        with rails(job):
            return None
    except (Skip, NoRail) as reason:
        return str(reason)


def run(job):
    """Runs the job's command and returns its status."""
    with rails(job) as folder:
        out = job.out or folder
        os.makedirs(out, exist_ok=True)
        environment = job.environment("native", 0, devices(job), out)
        environment["LAB_STATUS"] = os.path.join(folder, "status")
        return run_command(job, environment)


@contextlib.contextmanager
def rails(job):
    """Sets up the rails, and a folder of ours; whatever becomes of us, they are removed."""
    # One lab at a time, since all use the same names and addresses. A folder can be locked as well as a file.
    lock = os.open("/run", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        used = subprocess.run(["ip", "-o", "address"], capture_output=True, text=True).stdout
        if " 10.77." in used:
            raise NoRail("this machine has an address in 10.77.0.0/16")
        folder = tempfile.mkdtemp(prefix="tutti-lab-")
        with Cleaner(REMOVE, *devices(job), folder):
            for rail, name in enumerate(devices(job)):
                add_rail(name, job.address(0, rail))
            yield folder
    finally:
        os.close(lock)


def add_rail(name, address):
    for command in (["ip", "link", "add", name, "type", "dummy"], ["ip", "link", "set", name, "up"],
                    ["ip", "address", "add", f"{address}/24", "dev", name],
                    ["rdma", "link", "add", name, "type", "rxe", "netdev", name]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise NoRail(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
    # The kernel makes the address a GID, and udev the device file, in their own time.
    limit = time.monotonic() + USABLE_SECONDS
    while not usable(name):
        if time.monotonic() > limit:
            raise NoRail(f"{name} has no GID of its address, no file in /dev/infiniband or no UDP port in this network")
        time.sleep(0.05)


def usable(name):
    def holds(path, word):
        try:
            with open(path) as file:
                return word in file.read()
        except OSError:
            return False

    files = [os.path.basename(os.path.dirname(path)) for path in glob.glob("/sys/class/infiniband_verbs/*/ibdev")
             if holds(path, f"{name}\n")]
    # rxe's UDP port, in hexadecimal. Where rxe knows one network only, another takes its devices but carries nothing.
    return (holds("/proc/self/net/udp", ":12B7 ")
            and holds(f"/sys/class/infiniband/{name}/ports/1/gids/1", "ffff:")
            and any(os.path.exists(f"/dev/infiniband/{file}") for file in files))


def run_command(job, environment):
    # In a PID namespace whose first process is a shell: all that the command started ends with it.
    command = dying_with_us([find("unshare", "util-linux"), "--pid", "--fork", "--kill-child", "--mount-proc",
                             "/bin/sh", "-c", '"$@"; exit $?', "sh", *job.command])
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                               start_new_session=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, unlimited))
    try:
        return process.wait(job.timeout)
    except subprocess.TimeoutExpired:
        raise TimedOut(f"the command did not end within {job.timeout:g} s", {}) from None
    finally:
        process.kill()
        process.wait()
