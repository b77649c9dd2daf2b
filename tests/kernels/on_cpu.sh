#!/bin/bash
# Runs the kernels' tests on an emulated processor: no instruction may be used that it lacks, and the bits stay the same.
# usage: on_cpu.sh CPU WANTED_INSTRUCTION_SET TEST_PROGRAM    exits with 77 where QEMU is not installed
set -euo pipefail
cpu=$1 wanted=$2 program=$3
command -v qemu-x86_64 >/dev/null || { echo "no qemu-x86_64: install qemu-user"; exit 77; }
# Emulation is slow: the grid over all alignments and the exhaustive sums stay with the real processor.
output=$(qemu-x86_64 -cpu "$cpu" "$program" \
  --gtest_filter='-Kernels.Equal*:Kernels.WriteOver*:Numerics.*NearTheLimit*:Numerics.*RoundedOnce*') ||
  { echo "$output"; exit 1; }
echo "$output"
grep -qx "best instruction set: $wanted" <<<"$output" || { echo "$cpu must have $wanted as its best"; exit 1; }
