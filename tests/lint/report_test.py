#!/usr/bin/python3
"""tests/report.py counts each kind of outcome once and cannot pass when nothing ran."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPORT = pathlib.Path(__file__).resolve().parent.parent / "report.py"
PASSED = '<testcase name="a.B.c" status="run"><system-out>[  PASSED  ] 1 test.</system-out></testcase>'
FAILED = '<testcase name="a.B.d" status="fail"><failure/><system-out>expected 1, found 2</system-out></testcase>'
SKIPPED = ('<testcase name="a.B.e" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>'
           "[ RUN      ] B.e\n/src/e.cc:7: Skipped\nneeds two\nNUMA nodes\n\n[  SKIPPED ] B.e (0 ms)\n</system-out></testcase>")
SKIPPED_AT_ONCE = SKIPPED.replace("NUMA nodes\n\n", "NUMA nodes\n").replace("B.e", "B.f")
NOT_BUILT = '<testcase name="a_NOT_BUILT" status="notrun"><skipped message="Unable to find executable"/></testcase>'


def report(*documents):
    """Status and lines for these lists of test cases, one file each; None is a file that is missing."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for number, cases in enumerate(documents):
            path = pathlib.Path(folder) / f"{number}.xml"
            if cases is not None:
                path.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            arguments.append(f"p{number}={path}")
        done = subprocess.run([sys.executable, str(REPORT), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()


def report_program(document, case):
    """The same for one program that ran all of its tests, and wrote `document`."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results"
        results.mkdir()
        (results / "a.xml").write_text(document)
        path = pathlib.Path(folder) / "tests.xml"
        path.write_text(f"<testsuite>{case}</testsuite>")
        done = subprocess.run([sys.executable, str(REPORT), f"p={path}"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()


OWN_PASSED = '<testcase name="c" status="run" result="completed" classname="B"/>'
OWN_SKIPPED = ('<testcase name="e" status="run" result="skipped" classname="B">'
               '<skipped message="/src/e.cc:7&#x0A;needs two&#x0A;NUMA nodes&#x0A;"/></testcase>')
OWN_FAILED = '<testcase name="d" status="run" result="completed" classname="B"><failure message="x"/></testcase>'
RAN = '<testcase name="a" status="run"><system-out>all of it</system-out></testcase>'
ENDED_BADLY = '<testcase name="a" status="fail"><failure/><system-out>a leak</system-out></testcase>'


class Report(unittest.TestCase):
    def test_a_program_tells_of_each_of_its_tests(self):
        status, lines = report_program(f"<testsuites>{OWN_PASSED}{OWN_PASSED}{OWN_SKIPPED}</testsuites>", RAN)
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed, 1 skipped"))
        self.assertIn("skipped  p: a.B.e: needs two NUMA nodes", lines)

    def test_a_program_whose_test_failed(self):
        status, lines = report_program(f"<testsuites>{OWN_PASSED}{OWN_FAILED}</testsuites>", ENDED_BADLY)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("failed   p: a.B.d", lines)

    def test_a_program_that_ended_badly_after_its_tests(self):
        status, lines = report_program(f"<testsuites>{OWN_PASSED}</testsuites>", ENDED_BADLY)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("a leak", lines)

    def test_totals_over_several_files(self):
        status, lines = report([PASSED, PASSED, SKIPPED], [PASSED])
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed, 1 skipped"))

    def test_a_skip_gives_its_reason(self):
        self.assertIn("skipped  p0: a.B.e: needs two NUMA nodes", report([SKIPPED])[1])
        self.assertIn("skipped  p0: a.B.f: needs two NUMA nodes", report([SKIPPED_AT_ONCE])[1])

    def test_a_failure_shows_its_output_and_fails(self):
        status, lines = report([PASSED, FAILED])
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("expected 1, found 2", lines)

    def test_a_program_that_was_not_built_is_a_failure(self):
        self.assertEqual(report([PASSED, NOT_BUILT])[0], 1)

    def test_nothing_run_is_a_failure(self):
        for documents in ([[]], [[SKIPPED]], [[PASSED], None]):
            self.assertEqual(report(*documents)[0], 1, documents)


unittest.main()
