"""Who is compared: each is called with an operation, a size and how many calls to measure after a tenth of that, and
returns a row as tutti-perf writes it."""
import json
import os
import pathlib
import shlex
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
PEERS = ROOT / "perf" / "peers"
RSH = PEERS / "rsh"

# UCX 1.13 on soft-RoCE: connecting needs ud_verbs beside rc_verbs, and packets arrive by the link-local address only.
MPI_OVER_VERBS = ["--mca", "pml", "ucx", "--mca", "plm", "isolated", "-x", "UCX_TLS=rc_verbs,ud_verbs,self", "-x",
                  "UCX_IB_GID_INDEX=0"]
MPI_OVER_TCP = {"ob1": ["--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp"],
                "ucx": ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
                        "-x", "UCX_TLS=tcp,sm,self"]}


def build_mpi_perf(folder):
    return build(folder, "mpi_perf", "mpicxx")


def build_gloo_perf(folder):
    """None where there is no Gloo."""
    found = subprocess.run(["g++", "-E", "-include", "gloo/allreduce.h", "-x", "c++", "/dev/null"],
                           capture_output=True, check=False)
    return build(folder, "gloo_perf", "g++", "-lgloo", "-lpthread") if found.returncode == 0 else None


def build(folder, name, compiler, *libraries):
    program = pathlib.Path(folder) / name
    subprocess.run([compiler, "-O2", "-std=c++20", str(PEERS / f"{name}.cc"), "-o", str(program), *libraries],
                   check=True)
    return program


def tutti_perf(operation, bytes_, calls, memory):
    size = ["-b", str(bytes_), "-e", str(bytes_)] if operation != "barrier" else []
    how_often = ["-n", str(calls), "-w", str(calls // 10)]
    return [str(BIN / "tutti-perf"), operation, "-c", "--memory", memory, "--json", "-", *how_often, *size]


def row(output):
    return json.loads(next(line for line in output.splitlines() if line.startswith("{")))


def run(command, **how):
    done = subprocess.run(command, capture_output=True, text=True, **how)
    if done.returncode != 0:
        words = shlex.join(map(str, command))
        raise RuntimeError(f"'{words}' ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return row(done.stdout)


# ---- Ranks of this machine ---------------------------------------------------------------------------------------

def tutti_here(ranks, memory, verbs):
    bind = "core" if ranks <= os.cpu_count() else "none"
    environment = os.environ | ({"TUTTI_TRANSPORT": "verbs"} if verbs else {})
    return lambda operation, bytes_, calls: run(
        [str(BIN / "tutti-run"), "-n", str(ranks), "--bind", bind, *tutti_perf(operation, bytes_, calls, memory)],
        env=environment)


def open_mpi_here(program, ranks, verbs):
    command = ["mpirun", "--bind-to", "core", "-n", str(ranks)]
    if ranks > os.cpu_count():
        command = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks)]
    command += MPI_OVER_VERBS if verbs else []
    if os.geteuid() == 0:
        command.insert(1, "--allow-run-as-root")
    return lambda operation, bytes_, calls: run([*command, str(program), operation, str(calls), str(bytes_)])


# ---- Ranks of all nodes of the lab, called in node 0: node N's processes stay on processor N ---------------------

def stay_on_own_cpu():
    os.sched_setaffinity(0, {int(os.environ["LAB_NODE"]) % os.cpu_count()})


def host(node):
    return os.environ["LAB_ADDRESSES"].split()[node]


def run_ranks(nodes, per_node, command_of):
    """Starts command_of(rank, node) in the nodes, and returns what rank 0 reports."""
    def begin(rank):
        node = rank // per_node
        command = command_of(rank, node)
        if node > 0:
            command = [str(RSH), host(node), shlex.join(command)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    processes = [begin(rank) for rank in range(nodes * per_node)]
    outputs = [process.communicate()[0] for process in processes]
    for process, output in zip(processes, outputs):
        if process.returncode != 0:
            raise RuntimeError(f"'{shlex.join(process.args)}' ended with {process.returncode}:\n{output}")
    return row(outputs[0])


def tutti_over_nodes(nodes, per_node, memory):
    def call(operation, bytes_, calls):
        def command_of(rank, _):
            return ["env", f"RANK={rank}", f"WORLD_SIZE={nodes * per_node}", f"LOCAL_RANK={rank % per_node}",
                    f"MASTER_ADDR={host(0)}", "MASTER_PORT=29500", "TUTTI_SECRET=compare",
                    *tutti_perf(operation, bytes_, calls, memory)]
        return run_ranks(nodes, per_node, command_of)
    return call


def open_mpi_over_nodes(program, nodes, per_node, layer):
    hosts = ",".join(f"node{node}:{per_node}" for node in range(nodes))
    command = ["mpirun", "--allow-run-as-root", "--host", hosts, "--bind-to", "none", *MPI_OVER_TCP[layer],
               "--mca", "plm_rsh_agent", str(RSH), "--mca", "oob_tcp_if_include", "eth0",
               "--mca", "btl_tcp_if_include", "eth0", "-x", "UCX_NET_DEVICES=eth0"]
    if per_node > 1:
        command += ["--mca", "mpi_yield_when_idle", "1"]
    return lambda operation, bytes_, calls: run([*command, str(program), operation, str(calls), str(bytes_)])


def gloo_over_nodes(program, nodes, per_node):
    def call(operation, bytes_, calls):
        with tempfile.TemporaryDirectory(dir=os.environ["LAB_OUT"]) as meeting:
            return run_ranks(nodes, per_node, lambda rank, node: [
                str(program), str(rank), str(nodes * per_node), host(node), meeting, operation, str(calls), str(bytes_)])
    return call
