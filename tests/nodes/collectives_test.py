#!/usr/bin/python3
"""Worlds over several nodes: what carries their messages, whether every collective is right there, also under trouble,
and what becomes of a node that is cut off. Its argument is the folder of the programs."""
import json
import os
import sys
import unittest

from run_lab import check, lab, main

PROGRAMS = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
INFO, PERF, MATRIX, WORKER = (os.path.join(PROGRAMS, name) for name in (
    "tutti-info", "tutti-perf", "tutti_collectives_worker", "tutti_test_worker"))
ALL_NODE_FIRST = ",".join(f"{operation}:node_first" for operation in (
    "barrier", "broadcast", "reduce", "all_reduce", "scatter", "gather", "reduce_scatter", "all_gather", "all_to_all"))


class OverNodes(unittest.TestCase):
    def run_on(self, ranks, *command, options=(), status=0, environment=None):
        nodes = str(ranks.count(",") + 1)
        run = lab("--nodes", nodes, "--ranks", ranks, *options, "--timeout", "200", "--", *command,
                  environment=environment)
        check(self, run, status)
        return run

    def ways(self, ranks, *options, environment=None):
        """For each rank, what carries its messages to each, as one letter; '-' to itself."""
        run = self.run_on(ranks, INFO, "--peers", "--json", options=options, environment=environment)
        worlds = json.loads("\n".join(run.lines(0)))
        rows = [["-"] * len(worlds) for _ in worlds]
        for world in worlds:
            for peer in world["peers"]:
                rows[world["rank"]][peer["rank"]] = peer["transport"][0]
        return ["".join(row) for row in rows]


class ChoiceTest(OverNodes):
    def test_memory_inside_and_ucx_across(self):
        self.assertEqual(self.ways("2,1,2"), ["-suuu", "s-uuu", "uu-uu", "uuu-s", "uuus-"])

    def test_nodes_that_look_alike(self):
        self.assertEqual(self.ways("2,2", "--clones", "--cyclic"), ["-usu", "u-us", "su-u", "usu-"])

    def test_host_names_with_dots(self):
        """What is before the first dot is alike."""
        run = self.run_on("2,2", "sh", "-c", 'hostname worker.$((LAB_NODE + 1)).lan; exec "$1" --peers', "sh", INFO,
                          options=("--clones",))
        for rank, node, peers in ((0, 1, "1"), (1, 1, "0"), (2, 2, "3"), (3, 2, "2")):
            self.assertRegex(run.output, rf"rank {rank} on worker\.{node}\.lan\n.* shm +to {peers}\n")

    def test_one_transport_for_all(self):
        self.assertEqual(self.ways("2,1", environment={"TUTTI_TRANSPORT": "ucx"}), ["-uu", "u-u", "uu-"])

    def test_ucx_uses_the_chosen_interfaces_alone(self):
        run = self.run_on("1,1", "sh", "-c", """
            ip link add spare0 type veth peer spare1; ip link set spare1 up
            ip address add 10.99.0.$((RANK + 1))/24 dev spare0; ip link set spare0 up
            exec "$1" all_reduce -b 64K -e 64K -n 20 -c""", "sh", PERF,
                          environment={"TUTTI_INTERFACE": "^spare0", "TUTTI_LOG": "debug"})
        for rank in range(2):
            self.assertRegex("\n".join(run.lines(rank)), r"UCX .*: NET_DEVICES is set to (?!.*spare0)\w")

    def test_ranks_that_nothing_connects_are_named(self):
        run = self.run_on("2,1", INFO, "--peers", status=1, environment={"TUTTI_TRANSPORT": "shm,verbs"})
        for rank in range(3):
            [line] = run.lines(rank)
            self.assertRegex(line, r"ranks 0 \(node0\) and 2 \(node1\) cannot exchange messages: shm: they do not share "
                                   r"memory; verbs: .*; ucx: TUTTI_TRANSPORT=shm,verbs leaves it out")


class Matrix(OverNodes):
    def matrix(self, ranks, *options, environment=None):
        run = self.run_on(ranks, MATRIX, options=options, environment=environment)
        for rank in range(sum(map(int, ranks.split(",")))):
            self.assertIn("[  PASSED  ] 1 test.", run.lines(rank))


class MatrixTest(Matrix):
    def test_uneven(self):
        self.matrix("2,1,4")


class MoreOfTheMatrixTest(Matrix):
    def test_interleaved(self):
        self.matrix("3,3", "--cyclic")

    def test_all_node_first(self):
        self.matrix("2,1,4", environment={"TUTTI_ALGORITHM": ALL_NODE_FIRST})

    def test_even(self):
        self.matrix("3,3")

    def test_all_by_ucx(self):
        self.matrix("3,3", environment={"TUTTI_TRANSPORT": "ucx"})

    def test_uneven_by_ucx(self):
        self.matrix("2,1,4", environment={"TUTTI_TRANSPORT": "ucx"})


class TroubleTest(OverNodes):
    def test_signals_that_interrupt_every_call(self):
        run = self.run_on("2,1", WORKER, "signals", "1000")
        for rank in range(3):
            self.assertEqual(run.lines(rank)[-1], "status ok")

    def test_a_link_that_is_off_at_first(self):
        """Rank 1 calls before its packets arrive, and goes on to call."""
        run = self.run_on("1,1", "sh", "-c", """
            [ $RANK = 0 ] || { "$LAB" --link 1 off; (sleep 5; echo link is on; "$LAB" --link 1 on) & }
            exec "$1" once all_reduce 64""", "sh", WORKER)
        self.assertEqual(run.lines(1), ["link is on", "joined", "status ok"])
        for rank in range(2):
            self.assertEqual(run.lines(rank)[-1], "status ok")

    def test_a_server_that_comes_late_and_hears_nothing_at_first(self):
        """Rank 1's requests to connect are refused for three seconds, then not answered for four."""
        run = self.run_on("1,1", "sh", "-c", """
            if [ $RANK = 0 ]; then
              peers=$(getent ahosts node1 | cut -d' ' -f1 | sort -u)
              answers() { for peer in $peers; do ip route $1 blackhole $peer; done; }
              sleep 3; answers add; echo nothing is answered
              (sleep 4; echo answers go; answers delete) &
            fi
            exec "$1" once all_reduce 64""", "sh", WORKER)
        self.assertEqual(run.lines(0), ["nothing is answered", "answers go", "joined", "status ok"])
        self.assertEqual(run.lines(1), ["joined", "status ok"])

    def test_a_link_that_is_off_at_first_contact(self):
        """The ranks join, and a second later write to each other for the first time."""
        run = self.run_on("1,1", "sh", "-c", """
            "$1" first_contact 30 >/dev/shm/output & pid=$!
            until grep -qs joined /dev/shm/output; do sleep 0.1; done
            [ $RANK = 0 ] || { "$LAB" --link 1 off; sleep 5; cat /dev/shm/output; echo link is on; "$LAB" --link 1 on; }
            wait $pid; cat /dev/shm/output""", "sh", WORKER)
        for rank in range(2):
            self.assertEqual(run.lines(rank)[-1], "status ok")
        self.assertEqual(run.lines(1), ["joined", "link is on", "joined", "status ok"])

    def exchange_with_few_descriptors(self, limit):
        for way in ("shm", "ucx"):
            yield self.run_on("16", "sh", "-c", f'ulimit {limit}; "$1" all_to_all -b 1K -e 1K -n 1 -c; echo ended with $?',
                              "sh", PERF, environment={"TUTTI_TRANSPORT": way})

    def test_few_descriptors(self):
        """The limit is raised as far as it may be."""
        for run in self.exchange_with_few_descriptors("-S -n 20"):
            for rank in range(16):
                self.assertEqual(run.lines(rank)[-1], "ended with 0")

    def test_too_few_descriptors(self):
        for run in self.exchange_with_few_descriptors("-n 48"):
            for rank in range(16):
                text = "\n".join(run.lines(rank))
                self.assertRegex(text, r"may need \d+ descriptors; RLIMIT_NOFILE is 48, hard limit 48: raise it")
                self.assertRegex(text, r"ended with [^0]")


class CutTest(OverNodes):
    def test_a_node_that_is_cut_off_is_named_by_all_others(self):
        run = self.run_on("2,1,1", "sh", "-c",
                          '"$1" all_reduce -b 8 -e 8 -n 9000000 & pid=$!; '
                          'if [ $RANK = 3 ]; then sleep 2; "$LAB" --link 1 off; fi; wait $pid', "sh", PERF,
                          status=1, environment={"TUTTI_TIMEOUT": "5"})
        for rank in (0, 1, 3):
            self.assertRegex(run.lines(rank)[-1], r"rank 2\b.*failed|waits for rank 2$")
        self.assertRegex(run.lines(2)[-1], r"rank [013]\b.*failed|waits for rank")


if __name__ == "__main__":
    sys.exit(main(unittest))
