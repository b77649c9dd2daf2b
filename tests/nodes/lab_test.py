#!/usr/bin/python3
"""The lab of nodes keeps its promises: nodes that share files and a network and nothing else, links that can be cut,
output, exit status, and nothing left behind.

Prints "SKIPPED: reason" and exits with 77 where the lab cannot run."""
import os
import signal
import sys
import tempfile
import unittest

from run_lab import Lab, check, lab, main

SEND = """
import os, socket, sys
near, far = os.environ["LAB_ADDRESSES"].split()
if os.environ["RANK"] == "0":
    listener = socket.create_server((near, 7000))
    open(os.environ["LAB_OUT"] + "/listens", "w").close()
    data = b""
    connection, peer = listener.accept()
    while piece := connection.recv(1 << 16):
        data += piece
    print(peer[0], len(data))
else:
    while not os.path.exists(os.environ["LAB_OUT"] + "/listens"):
        pass
    connection = socket.create_connection((near, 7000))
    connection.sendall(bytes(1 << 20))
"""


class LabTest(unittest.TestCase):
    def test_ranks(self):
        """How it is used: ranks over nodes, their output, their status, their results."""
        with tempfile.TemporaryDirectory() as out:
            run = lab("--nodes", "3", "--ranks", "2,0,1", "--rate", "1gbit", "--out", out, "--", "sh", "-c",
                      "echo $RANK/$WORLD_SIZE $LOCAL_RANK $LAB_NODE/$LAB_NODES $MASTER_ADDR $(hostname) \"$1\"; pwd;"
                      " echo error >&2; wc -c; echo >$LAB_OUT/$RANK; printf unfinished; exit $((RANK * 3))", "sh",
                      "it's $HOME")
            check(self, run, 3)
            for rank, line in enumerate(("0/3 0 0/3 node0 node0", "1/3 1 0/3 node0 node0", "2/3 0 2/3 node0 node2")):
                self.assertEqual(run.lines(rank), [line + " it's $HOME", os.getcwd(), "error", "0", "unfinished"])
            self.assertEqual(sorted(os.listdir(out)), ["0", "1", "2"])

    def test_cyclic(self):
        run = lab("--ranks", "2,2", "--cyclic", "--", "sh", "-c", "echo $RANK $LOCAL_RANK $LAB_NODE")
        check(self, run)
        self.assertEqual([run.lines(rank)[0] for rank in range(4)], ["0 0 0", "1 0 1", "2 1 0", "3 1 1"])

    def test_programs_that_end_while_others_start(self):
        check(self, lab("--nodes", "1", "--ranks", "24", "--", "true"))

    def test_what_nodes_have_of_their_own(self):
        run = lab("--nodes", "2", "--", "sh", "-c",
                  "touch /dev/shm/$LAB_NODE; sleep 1; ls /dev/shm /sys/class/net | xargs;"
                  " cat /etc/machine-id; cat /etc/hostname;"
                  " for ns in net uts ipc pid mnt; do readlink /proc/self/ns/$ns; done; ip route | grep -c default;"
                  " getent ahostsv4 node0 | head -1; getent ahostsv4 node1 | head -1; ls -d /proc/[0-9]* | wc -l")
        check(self, run)
        first, second = run.lines(0), run.lines(1)
        self.assertEqual(first[0], "/dev/shm: 0 /sys/class/net: eth0 lo")
        self.assertEqual(second[0], "/dev/shm: 1 /sys/class/net: eth0 lo")
        self.assertFalse(set(first[1:8]) & set(second[1:8]), run.output)
        self.assertEqual(first[8], "0")
        self.assertEqual([line.split()[0] for line in first[9:11]], ["127.0.1.1", "10.78.0.2"])
        self.assertEqual([line.split()[0] for line in second[9:11]], ["10.78.0.1", "127.0.1.1"])
        self.assertLess(int(first[11]), 8)

    def test_clones(self):
        run = lab("--clones", "--", "sh", "-c", "hostname; cat /etc/machine-id")
        check(self, run)
        self.assertEqual(run.lines(0), run.lines(1))

    def test_network(self):
        for links in ([], ["--rate", "100mbit"]):
            run = lab("--ranks", "1,1", *links, "--", sys.executable, "-c", SEND)
            check(self, run)
            self.assertEqual(run.lines(0), ["10.78.0.2 1048576"])

    def test_links(self):
        """A node that is cut off keeps its carrier and hears nothing, until the link is back."""
        connect = (f"{sys.executable} -c 'import socket; socket.create_connection((\"10.78.0.1\", 7001), 3)' 2>&1"
                   " | tail -1")
        run = lab("--", "sh", "-c",
                  f"if [ $LAB_NODE = 0 ]; then {sys.executable} -m http.server 7001 >/dev/null 2>&1 &"
                  "   until [ -e $LAB_OUT/done ]; do sleep 0.1; done; exit; fi;"
                  f" until [ -z \"$({connect})\" ]; do sleep 0.1; done;"
                  f" \"$LAB\" --link 1 off; cat /sys/class/net/eth0/carrier; echo cut $({connect});"
                  f" \"$LAB\" --link 1 on; echo after $({connect}); touch $LAB_OUT/done;"
                  " \"$LAB\" --link 2 off; \"$LAB\" --link 1 away")
        check(self, run, 2)
        self.assertEqual(run.lines(1), ["1", "cut TimeoutError: timed out", "after",
                                        "lab: --link 2 off: '2' is no node from 0 to 1",
                                        "lab: --link 1 away: 'away' is none of off, on and netem"])

    def test_time_out(self):
        run = lab("--timeout", "1", "--", "sh", "-c", "echo begun; [ $LAB_NODE = 0 ] || sleep 100")
        check(self, run, 124)
        self.assertEqual(run.lines(1), ["begun"])
        self.assertIn("lab: not ended within 1 s: 1", run.errors)

    def test_killed(self):
        """What programs have started, in sessions of their own too, ends with the lab."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            run = Lab("--", "sh", "-c", "setsid sleep 1000 & echo up; sleep 1000")
            run.process.stdout.readline()
            run.process.send_signal(number)
            check(self, run.end(), -number)

    def test_a_program_that_is_not_there(self):
        run = lab("--", "/nowhere/program")
        check(self, run, 127)
        self.assertEqual(run.lines(1), ["lab: cannot start '/nowhere/program': No such file or directory"])

    def test_wrong_calls(self):
        for arguments, complaint in ((["--nodes", "0", "--", "true"], "'0' is not a number from 1 to 64"),
                                     (["--ranks", "1,1,1", "--", "true"], "a number for each of the 2 nodes"),
                                     (["--ranks", "0,0", "--", "true"], "not only zeros"),
                                     (["--nodes", "2"], "no program"), (["true"], "unrecognized arguments: true")):
            run = lab(*arguments)
            check(self, run, 2)
            self.assertIn(complaint, run.errors)


class DelayTest(unittest.TestCase):
    def test_delay(self):
        run = lab("--ranks", "1,1", "--delay", "100ms", "--", sys.executable, "-c",
                  SEND.replace("connection = socket.create_connection",
                               "import time; begin = time.monotonic(); connection = socket.create_connection", 1)
                  + "    print(time.monotonic() - begin > 0.2)\n")
        check(self, run)
        self.assertEqual(run.lines(1), ["True"])


if __name__ == "__main__":
    sys.exit(main(unittest))
