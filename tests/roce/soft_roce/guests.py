"""Runs the command in guests of QEMU: starts them, passes on what they print, and tells how they ended."""
import os
import selectors
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

from soft_roce.tools import Cleaner, dying_with_us, find

KERNEL_LINE = "console=ttyS0 quiet panic=-1 oops=panic mitigations=off random.trust_cpu=on tsc=reliable init_on_alloc=0"
# Left out is what an emulator does byte by byte or bit by bit, where the kernel would use it for each packet: copies by
# "rep movsb", and checksums by carry-less multiplication. Above, for the same reason: to clear all that is allocated.
# With all of it a guest sends half as fast.
EMULATED_CPU = "max,-erms,-fsrm,-pclmulqdq"
BOOT_SECONDS = 180
NO_STATUS = "ended without its command's status: its kernel died, or its QEMU was killed"
# A guest that has written its status only powers off.
POWER_OFF_SECONDS = 20
# Of these a guest has its own, empty.
OWN_FOLDERS = ("/tmp", "/run", "/var/tmp", "/dev/shm")


class GuestFailed(Exception):
    """A guest did not do what it should; `consoles` are what the kernels said, by guest."""

    def __init__(self, message, consoles):
        super().__init__(message)
        self.consoles = consoles


class TimedOut(GuestFailed):
    """The command did not end in time."""


class Guest:
    """One QEMU and the folder through which we talk with its guest."""

    def __init__(self, index, folder, arguments, wires):
        self.index = index
        self.folder = folder
        self.unfinished = b""
        with open(os.path.join(folder, "errors"), "wb") as errors:
            # A session of its own: Ctrl-C is for us, who then end it. Its input stays open, or the port would be closed.
            self.process = subprocess.Popen(dying_with_us(arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, pass_fds=[wire.fileno() for wire in wires],
                                            start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)

    def said(self, word):
        return os.path.exists(os.path.join(self.folder, "share", word))

    def status(self):
        """The command's exit status, or None if the guest did not tell."""
        try:
            with open(os.path.join(self.folder, "share", "status")) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def console(self):
        text = ""
        for name in ("errors", "console"):
            with open(os.path.join(self.folder, name), errors="replace") as file:
                text += file.read()
        return text

    def kill(self):
        self.process.kill()
        self.process.wait()


def run(job, how, kernel, write, boot_seconds=BOOT_SECONDS):
    """Runs the job's command in its guests, by KVM or TCG; returns the first status that is not zero, or zero.
    `write` takes what the command prints, as bytes."""
    folder = tempfile.mkdtemp(prefix="tutti-lab-")
    with Cleaner('rm -rf "$1"', folder):
        guests = []
        try:
            start(job, how, kernel, folder, guests)
            wait_until_ready(guests, boot_seconds)
            for guest in guests:
                open(os.path.join(guest.folder, "share", "go"), "w").close()
            follow(job, guests, write)
            statuses = [guest.status() for guest in guests]
        finally:
            for guest in guests:
                guest.kill()
        return next((status for status in statuses if status), 0)


def find_tools():
    """The path of QEMU; Skip if it or what a guest uses of this machine is missing."""
    find("rdma", "iproute2")
    find("setpriv", "util-linux")
    return find("qemu-system-x86_64", "qemu-system-x86")


def start(job, how, kernel, folder, guests):
    qemu = find_tools()
    out = job.out or os.path.join(folder, "out")
    os.makedirs(out, exist_ok=True)
    # Each rail is a pair of sockets: no ports that another may take, and nothing is lost unless a test wants it.
    rails = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(job.rails)] if job.guests == 2 else []
    try:
        for index in range(job.guests):
            wires = [rail[index] for rail in rails]
            own = os.path.join(folder, str(index))
            fill_share(job, how, index, os.path.join(own, "share"), out)
            open(os.path.join(own, "console"), "w").close()
            arguments = [qemu, *machine(job, how, kernel), *shares(own, out), *ports(own),
                         *nics(job, index, [wire.fileno() for wire in wires])]
            guests.append(Guest(index, own, arguments, wires))
    finally:
        # Only QEMU holds them now, so that a guest's end is the end of its wires.
        for rail in rails:
            for wire in rail:
                wire.close()


def kept(paths):
    """What guests must see although it lies in folders that are their own: files and folders there that paths lead to."""
    tops = set()
    for path in paths:
        for folder in OWN_FOLDERS:
            if path.startswith(folder + "/"):
                tops.add(os.path.join(folder, os.path.relpath(path, folder).split("/")[0]))
    return sorted(top for top in tops if os.path.exists(top))


def fill_share(job, how, index, share, out):
    """What the guest needs to know, as shell scripts."""
    os.makedirs(share)
    shutil.copy(os.path.join(os.path.dirname(__file__), "guest"), share)
    addresses = " ".join(job.addresses())
    settings = {"lab_guest": index, "lab_rails": job.rails, "lab_addresses": addresses, "lab_out": out,
                "lab_own_folders": " ".join(OWN_FOLDERS),
                "lab_kept": "\n".join(kept([os.getcwd(), *job.command]))}
    environment = job.environment(how, index, [f"rxe{rail}" for rail in range(job.rails)], out)
    environment["LAB_STATUS"] = "/run/lab/status"
    with open(os.path.join(share, "settings"), "w", errors="surrogateescape") as file:
        file.writelines(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())
    with open(os.path.join(share, "command"), "w", errors="surrogateescape") as file:
        file.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
        file.write(f"cd {shlex.quote(os.getcwd())} || exit 125\nexec {shlex.join(job.command)}\n")


def machine(job, how, kernel):
    arguments = ["-machine", "q35", "-nodefaults", "-no-reboot", "-display", "none",
                 "-kernel", os.path.join(kernel, "vmlinux"), "-initrd", os.path.join(kernel, "initramfs"),
                 "-append", KERNEL_LINE, "-m", str(job.memory), "-smp", f"cpus={job.cpus},sockets={job.numa}",
                 "-cpu", "host" if how == "kvm" else EMULATED_CPU,
                 "-accel", "kvm" if how == "kvm" else "tcg,thread=multi"]
    if job.numa == 1:
        return arguments
    per_node = job.cpus // job.numa
    for node in range(job.numa):
        first = node * per_node
        arguments += ["-object", f"memory-backend-ram,id=memory{node},size={job.memory // job.numa}M",
                      "-numa", f"node,nodeid={node},cpus={first}-{first + per_node - 1},memdev=memory{node}",
                      # A host bridge of its own for each node: what hangs on it is near that node.
                      "-device", f"pxb-pcie,id=node{node},bus_nr={32 * (node + 1)},numa_node={node},bus=pcie.0"]
    return arguments


def shares(own, out):
    arguments = []
    for tag, path, options in (("root", "/", "readonly=on,multidevs=remap"),
                               ("lab", os.path.join(own, "share"), "readonly=off"), ("out", out, "readonly=off")):
        arguments += ["-fsdev", f"local,id={tag},path={path.replace(',', ',,')},security_model=none,{options}",
                      "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag},bus=pcie.0"]
    return arguments


def ports(own):
    """The console goes to a file; what the command prints, to our pipe."""
    return ["-serial", f"file:{os.path.join(own, 'console')}",
            "-chardev", "stdio,id=output,signal=off", "-device", "virtio-serial-pci,bus=pcie.0",
            "-device", "virtserialport,chardev=output"]


def nics(job, index, wires):
    """A NIC for each rail, unless a dummy device will do: one guest of one node."""
    arguments = []
    if job.guests == 1 and job.numa == 1:
        return arguments
    for rail in range(job.rails):
        bus = "pcie.0"
        if job.numa > 1:
            bus = f"rail{rail}"
            arguments += ["-device", f"pcie-root-port,id={bus},bus=node{rail % job.numa},chassis={rail + 1}"]
        wire = f"dgram,local.type=fd,local.str={wires[rail]}" if wires else f"hubport,hubid={rail}"
        arguments += ["-netdev", f"{wire},id=wire{rail}",
                      "-device", f"virtio-net-pci,netdev=wire{rail},mac=52:54:00:77:0{rail}:0{index},romfile=,bus={bus}"]
    return arguments


def wait_until_ready(guests, seconds):
    limit = time.monotonic() + seconds
    while not all(guest.said("ready") for guest in guests):
        check_running(guests, "ended before its command started")
        if time.monotonic() > limit:
            late = " and ".join(str(guest.index) for guest in guests if not guest.said("ready"))
            raise GuestFailed(f"guest {late} did not start within {seconds} s", consoles(guests))
        time.sleep(0.05)


def follow(job, guests, write):
    """Passes on the output until all guests are off."""
    limit = time.monotonic() + job.timeout
    off_limit = None
    with selectors.DefaultSelector() as selector:
        for guest in guests:
            selector.register(guest.process.stdout, selectors.EVENT_READ, guest)
        while selector.get_map():
            for key, _ in selector.select(0.2):
                if not forward(key.data, len(guests) > 1, write):
                    selector.unregister(key.fileobj)
            check_running(guests, NO_STATUS)
            if all(guest.status() is not None for guest in guests):
                off_limit = off_limit or time.monotonic() + POWER_OFF_SECONDS
                if time.monotonic() > off_limit:
                    return
            elif time.monotonic() > limit:
                raise TimedOut(f"the command did not end within {job.timeout:g} s", consoles(guests))
    # The output's end comes a little before QEMU's.
    for guest in guests:
        guest.kill()
    check_running(guests, NO_STATUS)


def check_running(guests, complaint):
    for guest in guests:
        if guest.process.poll() is not None and guest.status() is None:
            raise GuestFailed(f"guest {guest.index} {complaint}", consoles(guests))


def consoles(guests):
    return {guest.index: guest.console() for guest in guests}


def forward(guest, prefixed, write):
    """Passes on what there is; of several guests, whole lines. False at the end."""
    data = guest.process.stdout.read(1 << 16)
    if data is None:
        return True
    if not prefixed:
        write(data)
        return bool(data)
    lines = (guest.unfinished + data).split(b"\n")
    guest.unfinished = lines.pop()
    if not data and guest.unfinished:
        lines.append(guest.unfinished)
    write(b"".join(b"[%d] %s\n" % (guest.index, line) for line in lines))
    return bool(data)
