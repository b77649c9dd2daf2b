#!/usr/bin/python3
"""The lab keeps its promises: environment, output, exit status, failures that are told, and nothing left behind.

Prints "SKIPPED: reason" and exits with 77 where the lab cannot run."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LAB = os.path.join(os.path.dirname(os.path.realpath(__file__)), "lab")
# Guests may be crashed; this machine may not.
HOW = {"TUTTI_LAB_HOW": "guest"}


class Lab:
    """A run of the lab, in a folder for temporary files that shows what stays behind."""

    def __init__(self, *arguments, environment=HOW):
        self.temporary = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([LAB, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env=os.environ | {"TMPDIR": self.temporary.name} | environment)

    def end(self):
        """Waits for the end: its status, output, errors, and what stays behind a little later."""
        self.output, self.errors = self.process.communicate()
        self.status = self.process.returncode
        limit = time.monotonic() + 10
        self.left = self.leftovers()
        while self.left and time.monotonic() < limit:
            time.sleep(0.1)
            self.left = self.leftovers()
        self.temporary.cleanup()
        return self

    def leftovers(self):
        found = os.listdir(self.temporary.name)
        for process in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline") as file:
                    found += [process] if self.temporary.name in file.read() else []
            except OSError:
                pass
        return found


def lab(*arguments, environment=HOW):
    return Lab(*arguments, environment=environment).end()


class LabTest(unittest.TestCase):
    def check(self, run, status, output=""):
        if run.status == 77 != status:
            self.skipTest(run.output.strip())
        self.assertEqual((run.status, run.left), (status, []), run.output + run.errors)
        self.assertRegex(run.output, re.compile(output, re.M | re.S))

    def test_one_guest(self):
        """How it is used: a command, its output, its status, its results."""
        with tempfile.TemporaryDirectory() as out:
            run = lab("--rails", "2", "--out", out, "--", "sh", "-c",
                      "echo $LAB_GUEST/$LAB_GUESTS $LAB_RAILS $LAB_DEVICES $LAB_ADDRESS $LAB_ADDRESSES \"$UCX_SAID\"; pwd;"
                      " cat /proc/sys/kernel/hostname; ulimit -l; wc -c; echo error >&2;"
                      " ls /dev/infiniband; cat /sys/class/infiniband/rxe1/ports/1/gids/1; echo 1 >$LAB_OUT/result;"
                      " echo \"$1\"; exit 7", "sh", "it's $HOME",
                      environment=HOW | {"UCX_SAID": "a  'b'"})
            self.check(run, 7)
            self.assertEqual(run.output.splitlines(), [
                "0/1 2 rxe0 rxe1 10.77.0.1 10.77.0.1 a  'b'", os.getcwd(), "tutti-guest-0", "unlimited", "0", "error",
                "rdma_cm", "uverbs0", "uverbs1", "0000:0000:0000:0000:0000:ffff:0a4d:0101", "it's $HOME"])
            with open(os.path.join(out, "result")) as file:
                self.assertEqual(file.read(), "1\n")

    def test_programs_in_folders_that_guests_have_of_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "a program")
            with open(program, "w") as file:
                file.write("#!/bin/sh\ncat \"$1\"; ls /tmp\n")
            os.chmod(program, 0o755)
            run = lab("--", program, program)
        self.check(run, 0)
        self.assertIn(os.path.basename(folder), run.output.splitlines())

    def test_two_guests_on_two_nodes(self):
        """Lines say whose they are, guests see each other's files, rails lie near their nodes, and one fails for all."""
        run = lab("--guests", "2", "--rails", "2", "--numa", "2", "--", "sh", "-c",
                  "echo I am $LAB_ADDRESS of $LAB_ADDRESSES; echo >$LAB_OUT/$LAB_GUEST;"
                  " until [ -e $LAB_OUT/0 ] && [ -e $LAB_OUT/1 ]; do sleep 0.1; done;"
                  " for r in 0 1; do cat /sys/class/net/r$r/device/../numa_node; done;"
                  " printf unfinished; exit $((LAB_GUEST * 3))")
        self.check(run, 3)
        for guest in "01":
            lines = [line[4:] for line in run.output.splitlines() if line.startswith(f"[{guest}] ")]
            self.assertEqual(lines, [f"I am 10.77.0.{int(guest) + 1} of 10.77.0.1 10.77.0.2", "0", "1", "unfinished"])
        self.assertEqual(len(run.output.splitlines()), 8)

    def test_kernel_panic(self):
        run = lab("--", "sh", "-c", "echo before; echo c >/proc/sysrq-trigger; sleep 60")
        self.check(run, 125, "^before\n$")
        self.assertRegex(run.errors, r"(?s)console of guest 0\n.*sysrq triggered crash.*lab: guest 0 ended without")

    def test_time_out(self):
        run = lab("--timeout", "1", "--", "sh", "-c", "echo begun; sleep 100")
        self.check(run, 124, "begun")
        self.assertIn("lab: the command did not end within 1 s", run.errors)

    def test_killed(self):
        """Two labs at once; one is asked to end, the other is not asked."""
        runs = [Lab("--", "sh", "-c", "echo up; sleep 1000") for _ in range(2)]
        for run, number in zip(runs, (signal.SIGTERM, signal.SIGKILL)):
            self.assertEqual(run.process.stdout.readline(), "up\n")
            run.process.send_signal(number)
        for run, number in zip(runs, (signal.SIGTERM, signal.SIGKILL)):
            self.check(run.end(), -number)

    def test_missing_tools(self):
        with tempfile.TemporaryDirectory() as empty:
            self.check(lab("--", "true", environment=HOW | {"PATH": empty}), 77, "^SKIPPED: .* is missing; install it with")

    def test_wrong_calls(self):
        for arguments, complaint in ((["--guests", "3", "--", "true"], "'3' is not a number from 1 to 2"),
                                     (["--cpus", "3", "--numa", "2", "--", "true"], "cannot be shared equally"),
                                     (["--guests", "2"], "no command"), (["true"], "unrecognized arguments: true"),
                                     (["--nonsense", "--", "true"], "--nonsense")):
            run = lab(*arguments)
            self.check(run, 2, "^$")
            self.assertIn(complaint, run.errors)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    if result.skipped and result.wasSuccessful():
        print(result.skipped[0][1])
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
