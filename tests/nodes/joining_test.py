#!/usr/bin/python3
"""Ranks join over real names, addresses and routes: the store between nodes of the lab. Its one argument is the program
that joins (tests/core/store_worker.cc)."""
import os
import sys
import tempfile
import unittest

from run_lab import check, lab, main

MISMATCH = 7  # of tutti.h: the worker ends with the number of its error
# The file is a mount: it can be written, not replaced.
FORGET = 'forget() { hosts=$(sed "/$1/d" /etc/hosts); echo "$hosts" >/etc/hosts; }; '
WORKER = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""


class Joined(unittest.TestCase):
    def join(self, script, *options, status=0, ranks="2,1,1"):
        nodes = str(ranks.count(",") + 1)
        run = lab("--nodes", nodes, "--ranks", ranks, *options, "--timeout", "100", "--", "sh", "-c", FORGET + script,
                  "sh", WORKER)
        check(self, run, status)
        return run

    def check_joined(self, run, addresses):
        for rank, address in enumerate(addresses):
            self.assertEqual(run.lines(rank)[-2:], [f"joined {address}", "left"], run.output)


class JoiningTest(Joined):
    def test_by_name(self):
        """Each node's own name is 127.0.1.1 there, and a bridge of every host has 172.17.0.1: no rank shows these."""
        run = self.join("ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0 && "
                        " ip link set docker0 up; exec $1 once", ranks="1,2,1")
        self.check_joined(run, ["fd78::1", "fd78::2", "fd78::2", "fd78::3"])

    def test_clones(self):
        self.check_joined(self.join("exec $1 once", "--clones"), ["10.78.0.1", "10.78.0.1", "10.78.0.2", "10.78.0.3"])

    def test_interleaved(self):
        self.check_joined(self.join("exec $1 once", "--cyclic", ranks="2,2"),
                          ["fd78::1", "fd78::2", "fd78::1", "fd78::2"])

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
        self.check_joined(run, ["fd78::1", "fd78::1", "fd78::2", "fd78::3"])

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
                            " ip link set docker0 up; unset MASTER_ADDR MASTER_PORT TUTTI_SECRET;"
                            " export TUTTI_STORE_FILE=$LAB_OUT/store; if [ $RANK = 1 ]; then"
                            " until [ -s $LAB_OUT/store ]; do sleep 0.1; done; cat $LAB_OUT/store; fi; exec $1 once",
                            "--out", out, ranks="1,1,1")
            self.check_joined(run, ["10.78.0.1", "10.78.0.2", "10.78.0.3"])
            self.assertIn("10.78.0.1:", run.output)
            for address in ("127.0.0.1:", "[::1]", "172.17.0.1"):
                self.assertNotIn(address, run.output)

    def test_a_node_that_is_cut_off(self):
        """All others hear of its ranks' end within the time of keep-alive; its ranks lose the store."""
        run = self.join("[ $RANK != 1 ] || { sleep 3; \"$LAB\" --link 1 off; } & exec timeout 45 $1 watch",
                        ranks="1,1,1", status=124)  # the others would go on
        for rank in (0, 2):
            self.assertRegex("\n".join(run.lines(rank)), "event 0 1 ")
        self.assertRegex("\n".join(run.lines(1)), "event 0 0 ")


class DelayTest(Joined):
    def test_a_node_that_is_slow(self):
        self.check_joined(self.join("exec $1 once", "--delay", "200ms"),
                          ["fd78::1", "fd78::1", "fd78::2", "fd78::3"])


if __name__ == "__main__":
    sys.exit(main(unittest))
