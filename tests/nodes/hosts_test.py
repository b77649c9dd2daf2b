#!/usr/bin/python3
"""tutti-run over the nodes of the lab, through a real sshd on each. Its first argument is the folder of the programs; it
runs itself once more, in node 0, where the tests are.

Prints "SKIPPED: reason" and exits with 77 where the lab, or sshd, cannot run."""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
import uuid

import hosts_node
from run_lab import lab

BIN = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
FOLDER = os.path.dirname(os.path.realpath(__file__))
LAUNCHER_FAILED = 125
SHELL = ["sh", "-c"]


def left(mark):
    return ([f"{pid} on node0" for pid in hosts_node.marked(mark)] +
            [f"{pid} on node1" for pid in hosts_node.marked_on(1, mark)])


class Launched:
    """A tutti-run, with a mark in the environment of all that it starts."""

    def __init__(self, *arguments, ssh=hosts_node.SSH, port=hosts_node.PORT, environment=None,
                 stdin=subprocess.DEVNULL):
        self.mark = str(uuid.uuid4())
        self.process = subprocess.Popen(
            [f"{BIN}/tutti-run", "--ssh", ssh, "--ssh-port", str(port), "--env", "MARK", *arguments], stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"MARK": self.mark} | (environment or {}))

    def wait_for(self, text, count):
        """Until so many lines hold it."""
        self.seen = []
        while sum(text in line for line in self.seen) < count:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError("".join(self.seen) + self.process.stderr.read())
            self.seen.append(line)

    def processes_here(self, name):
        found = []
        for pid in hosts_node.marked(self.mark):
            with open(f"/proc/{pid}/comm") as file:
                found += [pid] if file.read().strip() == name else []
        return found

    def end(self, input=None):
        self.output, self.errors = self.process.communicate(input, timeout=60)
        return self.process.returncode


class Hosts(unittest.TestCase):
    def check(self, run, status, errors="", input=None):
        self.assertEqual(run.end(input), status, run.output + run.errors)
        self.assertRegex(run.errors, f"^{errors}$" if not errors else errors)
        limit = time.monotonic() + 20
        while (rest := left(run.mark)) and time.monotonic() < limit:
            time.sleep(0.1)
        self.assertEqual(rest, [], "what stays behind")
        return run

    def started(self, *options, command="echo ready; sleep 300 & setsid sleep 301 & wait"):
        run = Launched("--hosts", "node0:1,node1:2", *options, *SHELL, command)
        run.wait_for("ready", 3)
        return run


class HostsTest(Hosts):
    def test_ranks_add_up(self):
        """How it is used."""
        run = Launched("--hosts", "node0:2,node1:2", f"{BIN}/tutti-perf", "all_reduce", "-b", "8", "-e", "64K", "-f", "64",
                       "--check", environment={"TUTTI_TRANSPORT": "ucx", "TUTTI_LOG": "off"})
        self.check(run, 0)
        self.assertIn("65536", run.output)

    def test_ranks_know_their_place(self):
        run = self.check(Launched("--hosts", "node1:2,node0,[fd78::2]", *SHELL,
                                  "echo $RANK $LOCAL_RANK $WORLD_SIZE $(hostname) $PWD $MASTER_ADDR"), 0)
        self.assertEqual(sorted(run.output.splitlines()),
                         [f"{place} {os.getcwd()} 10.78.0.1" for place in
                          ("0 0 4 node1", "1 1 4 node1", "2 0 4 node0", "3 0 4 node1")])

    def test_arguments_stay_as_they_are(self):
        words = ["it's", "$HOME `id` $(id)", '"', "\\", "a\nb", "", " ", "*", "-x", "é\u00ff", "!!"]
        run = self.check(Launched("--hosts", "node1", "printf", "<%s>", *words), 0)
        self.assertEqual(run.output, "".join(f"<{word}>" for word in words))

    def test_variables(self):
        run = self.check(Launched("--hosts", "node1", "--env", "A=it's \"$B\"\n", "--env", "HERE", *SHELL,
                                  'printf "%s|" "$A" "$HERE" "$TUTTI_WARN_AFTER" "$NOT_HERE"',
                                  environment={"HERE": "x y", "TUTTI_WARN_AFTER": "7", "NOT_HERE": "1"}), 0)
        self.assertEqual(run.output, "it's \"$B\"\n|x y|7||")

    def test_output_by_rank(self):
        run = self.check(Launched("--hosts", "node0:2,node1:2", "--tag-output", *SHELL,
                                  "printf 'a\\nb'; echo error >&2"), 0, r"(?s).*")
        self.assertEqual(sorted(run.output.splitlines()), [f"[{rank}] {text}" for rank in range(4) for text in "ab"])
        self.assertEqual(sorted(run.errors.splitlines()), [f"[{rank}] error" for rank in range(4)])

    def test_input_goes_to_rank_0(self):
        run = Launched("--hosts", "node1,node0", *SHELL, "echo $RANK $(wc -c)", stdin=subprocess.PIPE)
        self.check(run, 0, input="x" * 300_000)
        self.assertEqual(sorted(run.output.splitlines()), ["0 300000", "1 0"])

    def test_the_status_is_that_of_the_first_rank_that_fails(self):
        run = Launched("--hosts", "node0:2,node1:2", *SHELL, "[ $RANK = 3 ] && exit 42; sleep 300")
        self.check(run, 42, r"^tutti-run: node1: rank 3 \(process \d+\) ended with status 42: ending the others\n$")

    def test_a_program_that_is_missing(self):
        self.check(Launched("--hosts", "node0,node1", "./missing"), 127,
                   r"^tutti-run: node[01]: cannot start './missing': No such file or directory")

    def test_ctrl_c(self):
        run = self.started()
        run.process.send_signal(signal.SIGINT)
        self.check(run, 130)

    def test_a_signal_that_ranks_catch(self):
        run = self.started(command="trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.05; done")
        run.process.send_signal(signal.SIGUSR1)
        self.check(run, 0)
        self.assertEqual(run.output, "got\n" * 3)

    def test_time_limit(self):
        self.check(Launched("--hosts", "node0,node1", "--timeout", "1", "sleep", "300"), 124, "not done after --timeout 1 s")

    def test_kill_of_the_first_process(self):
        run = self.started()
        run.process.kill()
        self.check(run, -9, "its first process was killed: ending the ranks")

    def test_kill_of_the_second_process(self):
        run = self.started()
        os.kill(min(run.processes_here("tutti-warden")), signal.SIGKILL)
        self.check(run, 137, "was ended by signal 9")

    def test_kill_of_ssh(self):
        run = self.started()
        os.kill(run.processes_here("ssh")[0], signal.SIGKILL)
        self.check(run, LAUNCHER_FAILED,
                   "^tutti-run: node1: the connection is lost: ssh was ended by signal 9: ending the others\n$")

    def test_a_node_that_is_cut_off(self):
        """Both ends notice: the node's ranks end though nothing reaches them."""
        run = self.started("--host-timeout", "4")
        subprocess.run([os.environ["LAB"], "--link", "1", "off"], check=True)
        begin = time.monotonic()
        try:
            self.assertEqual(run.end(), LAUNCHER_FAILED, run.errors)
            self.assertLess(time.monotonic() - begin, 20)
            self.assertRegex(run.errors, "^tutti-run: node1: it has said nothing for 4 s")
            time.sleep(4)
        finally:
            subprocess.run([os.environ["LAB"], "--link", "1", "on"], check=True)
        self.assertEqual(left(run.mark), [])

    def test_hosts_that_are_not_there(self):
        for host, error in (("nowhere", "Could not resolve hostname nowhere"), ("10.78.0.77", "No route to host")):
            self.check(Launched("--hosts", f"node0:2,{host}", "sleep", "300"), LAUNCHER_FAILED,
                       f"^tutti-run: {host}: ssh ended with status 255 before tutti-run ran there: ssh: .*{error}")

    def test_no_ssh_server(self):
        self.check(Launched("--hosts", "node0:2,node1", "sleep", "300", port=2223), LAUNCHER_FAILED,
                   "^tutti-run: node1: ssh ended with status 255 before .*Connection refused")

    def test_a_key_that_is_not_known_there(self):
        self.check(Launched("--hosts", "node1", "true", ssh=hosts_node.SSH.replace("/user ", "/host ")), LAUNCHER_FAILED,
                   "^tutti-run: node1: ssh ended with status 255 before .*Permission denied")

    def test_no_tutti_run_there(self):
        self.check(Launched("--remote-path", "/it's/nowhere", "--hosts", "node0,node1", "sleep", "300"), LAUNCHER_FAILED,
                   r"^tutti-run: node1: ssh ended with status 127 before .*/it's/nowhere.*\(--remote-path says")


class ClonesTest(Hosts):
    def test_nodes_of_one_name_are_two(self):
        """One host name, one machine id, and a bridge that every host has: ranks meet over the network all the same."""
        for command in (["link", "add", "docker0", "type", "bridge"], ["address", "add", "172.17.0.1/16", "dev", "docker0"],
                        ["link", "set", "docker0", "up"]):
            subprocess.run(["ip", *command], check=True)
        run = Launched("--hosts", "node:2,10.78.0.2:2", *SHELL, f"echo $MASTER_ADDR; exec {BIN}/tutti_test_join_worker",
                       environment={"TUTTI_TRANSPORT": "ucx", "TUTTI_LOG": "off"})
        self.check(run, 0)
        self.assertEqual(sorted(run.output.splitlines()), ["10.78.0.1"] * 4 + ["6 of 4"] * 4)


def run_in_lab():
    for program in ("/usr/sbin/sshd", "ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            print(f"SKIPPED: {program} is missing; install it with: apt-get install openssh-server openssh-client")
            return 77
    clones = ["--clones"] if "ClonesTest" in sys.argv else []
    run = lab("--nodes", "2", *clones, "--timeout", "280", "--", sys.executable, f"{FOLDER}/hosts_node.py", sys.executable,
              os.path.realpath(__file__), BIN, *sys.argv[1:])
    print(run.output + run.errors)
    if run.left:
        print("what stays behind:", run.left)
    return run.status or len(run.left)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2) if "LAB_NODE" in os.environ else run_in_lab())
