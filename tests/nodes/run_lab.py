"""A run of the lab as its tests start it: every process that it makes carries a mark, which shows what stays behind."""
import os
import subprocess
import time
import uuid

LAB = os.path.join(os.path.dirname(os.path.realpath(__file__)), "lab")


class Lab:
    def __init__(self, *arguments, environment=None):
        self.mark = f"LAB_TEST_MARK={uuid.uuid4()}"
        self.process = subprocess.Popen(
            [LAB, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | dict([self.mark.split("=")]) | (environment or {}))

    def end(self):
        """Waits for the end: its status, output, errors, and what stays behind a little later."""
        self.output, self.errors = self.process.communicate()
        self.status = self.process.returncode
        limit = time.monotonic() + 10
        while (left := self.leftovers()) and time.monotonic() < limit:
            time.sleep(0.1)
        self.left = left
        return self

    def leftovers(self):
        found = []
        for process in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/environ", "rb") as file:
                    found += [process] if self.mark.encode() in file.read() else []
            except OSError:
                pass
        return found

    def lines(self, rank):
        """What this rank, or node, has printed."""
        begin = f"[{rank}] "
        return [line[len(begin):] for line in self.output.splitlines() if line.startswith(begin)]


def lab(*arguments, environment=None):
    return Lab(*arguments, environment=environment).end()


def check(test, run, status=0):
    """The run's status is as expected and nothing stays behind; a lab that cannot run here skips the test."""
    if run.status == 77 != status:
        test.skipTest(run.output.strip())
    test.assertEqual((run.status, run.left), (status, []), run.output + run.errors)


def main(unittest):
    """As unittest.main; 77 with the reason where all that failed to pass was skipped."""
    result = unittest.main(verbosity=2, exit=False).result
    if result.skipped and len(result.skipped) == result.testsRun:
        print(result.skipped[0][1])
        return 77
    return not result.wasSuccessful()
