#!/usr/bin/python3
"""Reads ctest's JUnit files, and in "results" beside them those of programs that ran all of their tests, and says what came of the tests: why each skipped one was skipped, what each failed one
printed, and in the last line "N passed, N failed, N skipped". A file that is missing counts as one failure.

usage: report.py NAME=FILE...    exits with 1 if a test failed or none ran"""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(output):
    """GoogleTest prints "file:line: Skipped", then the reason; other tests print "SKIPPED: reason"."""
    found = re.search(r": Skipped\n(.*?)\n\s*(?:\n|\[)", output, re.S) or re.search(r"SKIPPED: (.*)", output)
    return " ".join(found.group(1).split()) if found else "no reason given"


def read_program(name, path, output):
    """The tests of one program, by its own account."""
    tests = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        title = f"{name}.{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            tests.append((title, "failed", output))
        elif case.get("status") == "notrun":
            tests.append((title, "skipped", "SKIPPED: disabled"))
        elif skipped is not None:
            reason = skipped.get("message", "").split("\n", 1)[-1]
            tests.append((title, "skipped", f"SKIPPED: {' '.join(reason.split())}"))
        else:
            tests.append((title, "passed", ""))
    return tests


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
        results = os.path.join(os.path.dirname(path), "results", f"{case.get('name')}.xml")
        own = read_program(f"{name}: {case.get('name')}", results, output) if os.path.exists(results) else []
        # What it does not tell, as how it ended, is the program's.
        if not own or outcome == "failed" and all(test[1] != "failed" for test in own):
            own.append((f"{name}: {case.get('name')}", outcome, output))
        tests += own
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
        folder = os.path.dirname(arguments[0].split("=", 1)[1])
        print(f"no test ran: `ctest --test-dir {folder} -N` lists those that there are")
    print(", ".join(f"{len(of[outcome])} {outcome}" for outcome in ("passed", "failed", "skipped")))
    return 1 if of["failed"] or not of["passed"] else 0


sys.exit(main(sys.argv[1:]))
