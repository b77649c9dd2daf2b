#!/usr/bin/python3
"""Ranks join over real names, addresses and routes: the store between nodes of the lab. Its one argument is the program
that joins (tests/core/store_worker.cc)."""
import os
import sys
import tempfile
import unittest

from run_lab import check, lab, main

TIMEOUT, MISMATCH = 5, 7  # of tutti.h: the worker ends with the number of its error
# The file is a mount: it can be written, not replaced.
FORGET = 'forget() { hosts=$(sed "/$1/d" /etc/hosts); echo "$hosts" >/etc/hosts; }; '
WORKER = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""


def on_nodes(*nodes):
    """For each rank its node's address, of either family: the first to be tried comes too early for the store now and
    then, and the other is in time."""
    return [rf"(fd78::|10\.78\.0\.){node}" for node in nodes]


class Joined(unittest.TestCase):
    def join(self, script, *options, status=0, ranks="2,1,1"):
        nodes = str(ranks.count(",") + 1)
        run = lab("--nodes", nodes, "--ranks", ranks, *options, "--timeout", "100", "--", "sh", "-c", FORGET + script,
                  "sh", WORKER)
        check(self, run, status)
        return run

    def check_joined(self, run, addresses):
        for rank, address in enumerate(addresses):
            self.assertRegex("\n".join(run.lines(rank)[-2:]), rf"^joined {address}\nleft$", run.output)


class JoiningTest(Joined):
    # Rank 1 shows what rank 0 has published.
    BY_FILE = ("unset MASTER_ADDR MASTER_PORT TUTTI_SECRET; export TUTTI_STORE_FILE=$LAB_OUT/store;"
               " [ $RANK = 0 ] || (i=0; until [ -s $LAB_OUT/store ] || [ $((i += 1)) = 50 ]; do sleep 0.1; done;"
               " cat $LAB_OUT/store); ")

    def test_by_name(self):
        """Each node's own name is 127.0.1.1 there, and a bridge of every host has 172.17.0.1: no rank shows these."""
        run = self.join("ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0 && "
                        " ip link set docker0 up; exec $1 once", ranks="1,2,1")
        self.check_joined(run, on_nodes(1, 2, 2, 3))

    def test_clones(self):
        self.check_joined(self.join("exec $1 once", "--clones"), ["10.78.0.1", "10.78.0.1", "10.78.0.2", "10.78.0.3"])

    def test_interleaved(self):
        self.check_joined(self.join("exec $1 once", "--cyclic", ranks="2,2"), on_nodes(1, 2, 1, 2))

    def test_ipv6_alone(self):
        for name in ("fd78::1", "[fd78::1]", "node0", "node0."):
            run = self.join(f"ip -4 address flush dev eth0; forget 10.78; MASTER_ADDR={name} exec $1 once",
                            ranks="1,1")
            self.check_joined(run, ["fd78::1", "fd78::2"])

    def test_the_name_means_ipv4_to_one_and_ipv6_to_another(self):
        run = self.join("[ $LAB_NODE = 1 ] && forget 10.78 || forget fd78; exec $1 once", ranks="1,1,1")
        self.assertEqual(run.lines(1), ["joined fd78::2", "left"])
        self.assertEqual(run.lines(2), ["joined 10.78.0.3", "left"])

    def test_interfaces_that_lead_nowhere(self):
        """A link-local IPv6 address and one of 169.254, on devices that come first by name."""
        run = self.join("ip link add a0 type veth peer name a1; ip link set a0 up; ip link set a1 up;"
                        " ip link add b0 type bridge; ip address add 169.254.3.1/16 dev b0; ip link set b0 up;"
                        " exec $1 once")
        self.check_joined(run, on_nodes(1, 1, 2, 3))

    def test_local_ranks_given_as_ranks(self):
        run = self.join("RANK=$LOCAL_RANK TUTTI_JOIN_TIMEOUT=20 exec $1 once", ranks="2,2", status=MISMATCH)
        for rank in range(4):
            self.assertIn("joined twice: from ", run.lines(rank)[-1])

    def test_a_route_that_is_missing_at_first(self):
        run = self.join("[ $RANK = 0 ] && exec $1 once; ip route add unreachable 10.78.0.1/32; forget fd78;"
                        " (sleep 3; ip route delete unreachable 10.78.0.1/32) & exec $1 once", ranks="1,1,1")
        self.check_joined(run, ["fd78::1", "10.78.0.2", "10.78.0.3"])

    def test_by_file(self):
        with tempfile.TemporaryDirectory() as out:
            run = self.join("ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0 && "
                            " ip link set docker0 up; " + self.BY_FILE + "exec $1 once",
                            "--out", out, ranks="1,1,1")
            self.check_joined(run, ["10.78.0.1", "10.78.0.2", "10.78.0.3"])
            self.assertIn("10.78.0.1:", run.output)
            for address in ("127.0.0.1:", "[::1]", "172.17.0.1"):
                self.assertNotIn(address, run.output)

    def test_interfaces_by_name(self):
        """Exact names: eth0 is neither eth00 nor eth0.100. The nodes need not name theirs alike."""
        others = ("ip link add eth00 type veth peer name other; ip address add 10.99.0.1/16 dev eth00; ip link set eth00 up;"
                  " ip link set other up; ip link add link eth0 name eth0.100 type vlan id 100 &&"
                  " ip address add 10.98.0.1/16 dev eth0.100 && ip link set eth0.100 up;"
                  " [ $LAB_NODE = 0 ] || { ip link set eth0 down; ip link set eth0 name ens4; ip link set ens4 up; };")
        for choice in ("nope0,eth0,ens4", "^eth00,eth0.100,other"):
            with tempfile.TemporaryDirectory() as out:
                run = self.join(others + self.BY_FILE + f"export TUTTI_INTERFACE='{choice}'; exec $1 once", "--out", out,
                                ranks="1,1")
                self.check_joined(run, ["10.78.0.1", "10.78.0.2"])
                self.assertIn("10.78.0.1:", run.output)
                for address in ("10.99.0.1", "10.98.0.1"):
                    self.assertNotIn(address, run.output)

    def test_an_address_family(self):
        """By a network; and the ranks that join by a name, of both families, keep to it too."""
        for choice, prefix in (("fd78::/64", "fd78::"), ("0.0.0.0/0", "10.78.0.")):
            run = self.join(f"TUTTI_INTERFACE={choice} exec $1 once", ranks="1,1")
            self.check_joined(run, [prefix + "1", prefix + "2"])

    def test_interfaces_that_are_not_there(self):
        # At once: the lab's time is over before that of joining.
        run = self.join("TUTTI_JOIN_TIMEOUT=900 TUTTI_INTERFACE=nope0 exec $1 once", ranks="1,1", status=1)
        for rank in range(2):
            self.assertRegex(run.lines(rank)[-1], r"TUTTI_INTERFACE=nope0 leaves no interface of this machine; it has "
                             rf"lo \(127.0.0.1, ::1\), eth0 \(10.78.0.{rank + 1}, fd78::{rank + 1}, fe80")

    def test_interfaces_that_do_not_lead_there(self):
        run = self.join("TUTTI_JOIN_TIMEOUT=3 TUTTI_INTERFACE=lo exec $1 once", ranks="1,1", status=TIMEOUT)
        self.assertIn("no interface of TUTTI_INTERFACE=lo leads to node0:29500", run.lines(1)[-1])

    def test_ports(self):
        """The first free one of the range; none free is an error that says so."""
        holding = ("import os, socket, sys; s = socket.create_server((\"\", 20000)); s.set_inheritable(True);"
                   " os.execv(sys.argv[1], sys.argv[1:])")
        for ports, status in (("20000-20001", 0), ("20000", 3)):
            with tempfile.TemporaryDirectory() as out:
                run = self.join(self.BY_FILE + f"export TUTTI_PORT_RANGE={ports} TUTTI_JOIN_TIMEOUT=6;"
                                f" exec {sys.executable} -c '{holding}' $1 once", "--out", out, ranks="1,1", status=status)
                if status == 0:
                    self.assertIn("10.78.0.1:20001", run.output)
                else:
                    self.assertIn("every port of TUTTI_PORT_RANGE=20000-20000 is in use", run.lines(0)[-1])


class CutTest(Joined):
    def test_a_node_that_is_cut_off(self):
        """All others hear of its ranks' end within the time of keep-alive; its ranks lose the store."""
        run = self.join("[ $RANK != 1 ] || { sleep 3; \"$LAB\" --link 1 off; } & exec timeout 45 $1 watch",
                        ranks="1,1,1", status=124)  # the others would go on
        for rank in (0, 2):
            self.assertRegex("\n".join(run.lines(rank)), "event 0 1 ")
        self.assertRegex("\n".join(run.lines(1)), "event 0 0 ")


class DelayTest(Joined):
    def test_a_node_that_is_slow(self):
        self.check_joined(self.join("exec $1 once", "--delay", "200ms"), on_nodes(1, 1, 2, 3))


if __name__ == "__main__":
    sys.exit(main(unittest))
