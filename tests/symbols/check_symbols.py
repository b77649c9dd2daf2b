#!/usr/bin/python3
"""The dynamic symbols that a library defines are exactly the functions that its header declares as TUTTI_API.

usage: check_symbols.py HEADER LIBRARY"""
import pathlib
import re
import subprocess
import sys


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.S)
    return set(re.findall(r"^TUTTI_API\s[^;]*?\b(tutti_\w+)\(", text, re.M))


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    # Type A is the version's own name; the version stands behind the symbol as name@@TUTTI_0.
    return {re.sub(r"@.*", "", fields[2]) for fields in map(str.split, lines.splitlines()) if fields[1] != "A"}


def main(header, library):
    wanted, found = declared(header), exported(library)
    for name in sorted(wanted - found):
        print(f"declared in {header}, missing in {library}: {name}")
    for name in sorted(found - wanted):
        print(f"exported by {library}, not declared in {header}: {name}")
    print(f"{len(wanted)} functions declared, {len(found)} symbols exported")
    return 0 if wanted and wanted == found else 1


sys.exit(main(*sys.argv[1:]))
