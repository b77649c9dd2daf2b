"""What each node of the lab does for hosts_test.py: runs an sshd. Node 0 then runs the command that is its arguments; the
others tell it, by files, which processes they have."""
import os
import socket
import subprocess
import sys
import time

OUT = os.environ.get("LAB_OUT", "")
KEYS = OUT + "/keys"
PORT = 2222
SSHD = f"""
Port {PORT}
HostKey {KEYS}/host
AuthorizedKeysFile {KEYS}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
LogLevel QUIET
SetEnv HOME={OUT}
"""  # a home without start files of shells
SSH = (f"ssh -F none -i {KEYS}/user -o IdentitiesOnly=yes -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no"
       " -o LogLevel=ERROR")


def make_keys():
    os.makedirs(KEYS, mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{KEYS}/{name}"], check=True)
    with open(f"{KEYS}/sshd_config", "w") as file:
        file.write(SSHD)
    touch("keys.made")


def touch(name):
    open(f"{OUT}/{name}", "w").close()


def wait_for(condition, what, seconds=30):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            sys.exit(f"hosts_node: {what} within {seconds} s")
        time.sleep(0.02)


def is_there(name):
    return os.path.exists(f"{OUT}/{name}")


def marked(mark):
    """The processes of this node with that in their environment."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                found += [int(pid)] if mark.encode() in file.read() else []
        except OSError:
            pass
    return found


def marked_on(node, mark):
    """The same on another node, also when no packet gets there."""
    answer = f"{OUT}/answer.{node}"
    with open(f"{OUT}/asking.{node}", "w") as file:
        file.write(mark)
    os.rename(f"{OUT}/asking.{node}", f"{OUT}/ask.{node}")
    wait_for(lambda: is_there(f"answer.{node}"), "no answer came")
    with open(answer) as file:
        text = file.read()
    os.remove(answer)
    return [int(pid) for pid in text.split()]


def answer(node):
    if not is_there(f"ask.{node}"):
        return
    with open(f"{OUT}/ask.{node}") as file:
        mark = file.read()
    os.remove(f"{OUT}/ask.{node}")
    with open(f"{OUT}/answering.{node}", "w") as file:
        file.write(" ".join(map(str, marked(mark))))
    os.rename(f"{OUT}/answering.{node}", f"{OUT}/answer.{node}")


def is_listening():
    try:
        socket.create_connection(("127.0.0.1", PORT), 1).close()
        return True
    except OSError:
        return False


def main():
    node, nodes = int(os.environ["LAB_NODE"]), int(os.environ["LAB_NODES"])
    if node == 0:
        make_keys()
    wait_for(lambda: is_there("keys.made"), "no keys were made")
    os.makedirs("/run/sshd", exist_ok=True)
    subprocess.run(["/usr/sbin/sshd", "-f", f"{KEYS}/sshd_config"], check=True)
    wait_for(is_listening, "sshd did not listen")
    touch(f"listens.{node}")
    if node != 0:
        while not is_there("done"):
            answer(node)
            time.sleep(0.01)
        return 0
    wait_for(lambda: all(is_there(f"listens.{other}") for other in range(nodes)), "not every sshd did listen")
    status = subprocess.run(sys.argv[1:]).returncode
    touch("done")
    return status


if __name__ == "__main__":
    sys.exit(main())
