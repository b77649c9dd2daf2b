#!/usr/bin/python3
"""Reads ctest's JUnit files and says what came of the tests: why each skipped one was skipped, what each failed one
printed, and in the last line "N passed, N failed, N skipped". A file that is missing counts as one failure.

usage: report.py NAME=FILE...    exits with 1 if a test failed or none ran"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(output):
    """GoogleTest prints "file:line: Skipped", then the reason; other tests print "SKIPPED: reason"."""
    found = re.search(r": Skipped\n(.*?)\n\s*(?:\n|\[)", output, re.S) or re.search(r"SKIPPED: (.*)", output)
    return " ".join(found.group(1).split()) if found else "no reason given"


def read(name, path):
    """The tests of one file, as (name, "passed" | "failed" | "skipped", output)."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        return [(f"{name}: ctest", "failed", f"no results: {error}")]
    tests = []
    for case in root.iter("testcase"):
        output = case.findtext("system-out") or ""
        outcome = {"run": "passed", "notrun": "skipped", "disabled": "skipped"}.get(case.get("status"), "failed")
        if outcome == "skipped" and not re.search(r"Skipped|SKIPPED", output):
            skipped = case.find("skipped")
            message = skipped.get("message", "") if skipped is not None else ""
            # A program that is not there did not decide to skip: that is a fault of the build.
            if case.get("status") == "notrun" and "Disabled" not in message:
                outcome, output = "failed", f"not run: {message}\n{output}"
        tests.append((f"{name}: {case.get('name')}", outcome, output))
    return tests


def main(arguments):
    tests = [test for argument in arguments for test in read(*argument.split("=", 1))]
    of = {outcome: [test for test in tests if test[1] == outcome] for outcome in ("passed", "failed", "skipped")}
    print()
    for name, _, output in of["skipped"]:
        print(f"skipped  {name}: {skip_reason(output)}")
    for name, _, output in of["failed"]:
        print(f"\n---- failed: {name}\n{output.rstrip()}")
    for name, _, _ in of["failed"]:
        print(f"failed   {name}")
    if not of["passed"] and not of["failed"]:
        print("no test ran")
    print(", ".join(f"{len(of[outcome])} {outcome}" for outcome in ("passed", "failed", "skipped")))
    return 1 if of["failed"] or not of["passed"] else 0


sys.exit(main(sys.argv[1:]))
