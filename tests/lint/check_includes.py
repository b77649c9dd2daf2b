#!/usr/bin/python3
"""The include rule of docs/architecture.md, checked over a source tree: includes run downward only, each foreign header
stays in one room, and the environment is read in src/base/config alone.

usage: check_includes.py TREE    exits with 1 and one line per fault"""
import pathlib
import re
import sys

# Each room, and the rooms that it may include beside itself. The longest matching folder is the room of a file.
ROOMS = {
    "include": [],
    "src/base": ["include"],
    "topology": ["include", "src/base"],
    "transport": ["include", "src/base"],
    "transport/shm": ["include", "src/base", "transport"],
    "transport/verbs": ["include", "src/base", "transport"],
    "transport/ucx": ["include", "src/base", "transport"],
    "transport/fake": ["include", "src/base", "transport"],
    "algo": ["include", "src/base", "topology"],
    "algo/kernels": ["include", "src/base"],
    "src/core": ["include", "src/base", "topology", "algo", "algo/kernels", "transport", "transport/shm",
                 "transport/verbs", "transport/ucx", "transport/fake"],
    "src/run": ["include", "src/base", "src/core", "topology"],
    "src/info": ["include", "src/base", "topology"],
    "perf": ["include"],
    "examples": ["include"],
    # Tests, and the benches perf/bench_*, look into every room.
    "tests": None,
}

# The reductions are called by whatever moves data.
ROOMS["transport/shm"].append("algo/kernels")
ROOMS["transport/fake"].append("algo/kernels")

# Where a file may name its neighbour without the folder.
NEIGHBOURS = ("tests", "perf", "examples")

# Foreign headers, and the only places (folders, or beginnings of file names) that may include them.
FOREIGN = {
    r"infiniband/.*|rdma/.*": ["transport/verbs"],
    r"ucp/.*|uct/.*|ucs/.*": ["transport/ucx"],
    r"hwloc(/.*|\.h)": ["topology"],
    r"hwy/.*": ["algo/kernels"],
    r"openssl/.*": ["src/core"],
    r"spdlog/.*": ["src/base"],
    r"nlohmann/.*": ["src/base", "src/core", "src/run", "src/info", "topology", "perf"],
    r"CLI/.*": ["src/run", "src/info", "perf", "examples"],
    r"netinet/.*|arpa/inet\.h|netdb\.h|ifaddrs\.h|net/if\.h": ["src/core", "src/run", "transport/verbs"],
    r"mpi\.h|gloo/.*": ["perf/peers"],
}

# Calls that have one home, as (pattern, places, what to use).
CALLS = [
    (r"\b(?:secure_)?getenv\s*\(", ["src/base/config"], "read the environment through src/base/config"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)


def room_of(path):
    """The room of a file or include path, or "" for what is not ours."""
    # A bench measures one room from within, as a test does.
    if path.startswith("perf/bench_"):
        return "tests"
    parents = [parent.as_posix() for parent in pathlib.PurePosixPath(path).parents]
    return next((parent for parent in parents if parent in ROOMS), "")


def is_in(path, places):
    return any(path.startswith(place) for place in places)


def strip_comments(text):
    """Without comments, line numbers kept."""
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match.group().count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def faults_of(path, text):
    """The faults of the file at `path` (relative to the tree), as "path:line: fault"."""
    room, faults = room_of(path), []
    text = strip_comments(text)

    def add(position, fault):
        faults.append(f"{path}:{text.count(chr(10), 0, position) + 1}: {fault}")

    for match in INCLUDE.finditer(text):
        header = match.group(2)
        target = "include" if header.startswith("tutti/") else room_of(header)
        if room != "tests" and target and target != room and target not in ROOMS[room]:
            add(match.start(2), f"{room} may not include {target} ({header})")
        if match.group(1) == '"' and not target and room not in NEIGHBOURS:
            add(match.start(2), f'"{header}" is no path from the root of the tree')
        for pattern, places in FOREIGN.items():
            if room != "tests" and re.fullmatch(pattern, header) and not is_in(path, places):
                add(match.start(2), f"<{header}> stays in {' and '.join(places)}")
    for pattern, places, advice in CALLS:
        if room not in ("tests", "examples"):
            for match in re.finditer(pattern, text):
                if not is_in(path, places):
                    add(match.start(), f"{match.group().strip('( ')}: {advice}")
    return faults


def sources(tree):
    for path in sorted(tree.rglob("*")):
        relative = path.relative_to(tree)
        if path.suffix in (".cc", ".h", ".hpp", ".c") and relative.parts[0] not in ("build", ".git"):
            if room_of(relative.as_posix()):
                yield relative.as_posix(), path.read_text()


def main(tree):
    faults = [fault for path, text in sources(pathlib.Path(tree)) for fault in faults_of(path, text)]
    print("\n".join(faults) if faults else "includes: no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
