"""What each node of the lab does for hosts_test.py: runs an sshd; node 0 then runs the command that it is given. Its
arguments are that command."""
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
"""
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
        wait_for(lambda: is_there("done"), "the test was not done", 300)
        return 0
    wait_for(lambda: all(is_there(f"listens.{other}") for other in range(nodes)), "not every sshd did listen")
    status = subprocess.run(sys.argv[1:]).returncode
    touch("done")
    return status


if __name__ == "__main__":
    sys.exit(main())
