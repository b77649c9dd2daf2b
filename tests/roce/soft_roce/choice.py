"""Where a job runs: on this machine, in guests by KVM, or in guests by emulation."""
import dataclasses
import os
import platform

from soft_roce import guests, kernel, native
from soft_roce.tools import Skip

# On some machines a guest under KVM never starts, or only seems to.
KVM_SECONDS = 10


def choose(job):
    """The way and the reason; Skip if there is none, or not all that it needs."""
    if platform.machine() != "x86_64":
        raise Skip(f"the lab knows only x86-64, and this is {platform.machine()}")
    wanted = os.environ.get("TUTTI_LAB_HOW", "")
    if wanted in ("kvm", "tcg"):
        guests.find_tools()
        return wanted, "TUTTI_LAB_HOW says so"
    not_native = "TUTTI_LAB_HOW says so" if wanted == "guest" else native.obstacle(job)
    if not_native is None:
        return "native", "root, and this kernel has rdma_rxe"
    if wanted == "native":
        raise Skip(f"not natively: {not_native}")
    guests.find_tools()
    not_kvm = kvm_obstacle(job)
    if not_kvm is None:
        return "kvm", f"not natively: {not_native}; a guest starts under KVM"
    return "tcg", f"not natively: {not_native}; not by KVM: {not_kvm}"


def kvm_obstacle(job):
    """Why guests cannot run by KVM, or None. What a trial showed is remembered for this kernel and that of guests."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "no /dev/kvm that we may use"
    folder = kernel.kernel()
    verdict = f"{folder}.kvm-on-{platform.release()}"
    if not os.path.exists(verdict):
        works = boots(job, folder)
        with open(f"{verdict}.{os.getpid()}", "w") as file:
            file.write("works" if works else "fails")
        os.rename(file.name, verdict)
    with open(verdict) as file:
        return None if file.read() == "works" else f"no guest started within {KVM_SECONDS} s, says {verdict}"


def boots(job, folder):
    trial = dataclasses.replace(job, guests=1, rails=1, numa=1, cpus=2, out=None, timeout=KVM_SECONDS, command=["true"])
    try:
        return guests.run(trial, "kvm", folder, lambda _: None, KVM_SECONDS) == 0
    except guests.GuestFailed:
        return False
