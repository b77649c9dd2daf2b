#!/bin/bash
# Installs tutti, moves the installation, and builds and runs a separate project against it: in C and C++, by
# find_package and by pkg-config, README's first program among them.
# usage: install_test.sh BUILD README CONSUMER
set -euo pipefail
build=$1 readme=$2 consumer=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The programs run in this environment's ranks, not in those of whoever runs the tests.
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT TUTTI_STORE_FILE

step() { printf -- '-- %s\n' "$*"; }

step "install, and move: nothing may remember the first place"
cmake --install "$build" --prefix "$folder/first" >"$folder/install.log" || { cat "$folder/install.log"; exit 1; }
prefix=$folder/moved
mv "$folder/first" "$prefix"
library=$(find "$prefix" -name 'libtutti.so')
libdir=$(dirname "$library")
[ -e "$libdir/libtutti.so.0" ] || { echo "no libtutti.so.0 beside $library"; ls -l "$libdir"; exit 1; }
if grep -rIl "$folder/first" "$prefix"; then echo "these files name the folder of the first install"; exit 1; fi

step "README's first program is the first cpp block"
mkdir "$folder/project"
cp "$consumer"/* "$folder/project"
awk '/^```cpp$/ {inside = 1; next} /^```$/ && inside {exit} inside' "$readme" >"$folder/project/first.cc"
grep -q 'int main()' "$folder/project/first.cc" || { echo "$readme has no program in its first cpp block"; exit 1; }

step "README's second cpp block, with what it takes as given"
{
  cat <<'CPP'
#include <tutti/tutti.hpp>
#include <iostream>
int main() {
  tutti::Group world = tutti::init();
  struct Settings { int depth = 3; };
  std::vector<float> gradient(8, 1.0F), received(8);
  const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + world.size() - 1) % world.size();
CPP
  awk '/^```cpp$/ {++block; next} /^```$/ && block == 2 {exit} block == 2' "$readme"
  echo '  return received[7] == 1.0F ? 0 : 1; }'
} >"$folder/project/more.cc"
grep -q 'tutti::Error' "$folder/project/more.cc" || { echo "$readme has no second cpp block"; exit 1; }

step "find_package"
cmake -S "$folder/project" -B "$folder/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$folder/configure.log" ||
  { cat "$folder/configure.log"; exit 1; }
cmake --build "$folder/build"
step "find_package refuses a version that this is not"
if cmake -S "$folder/project" -B "$folder/other" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DWANTED_VERSION=99.0 \
  >"$folder/other.log" 2>&1; then echo "version 99.0 was accepted"; exit 1; fi
grep -q 'requested version "99.0"' "$folder/other.log" || { cat "$folder/other.log"; exit 1; }

step "pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs tutti)"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$folder/project/main.c" -o "$folder/by_pkgconfig_c" "${flags[@]}"
c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror "$folder/project/first.cc" -o "$folder/by_pkgconfig_cpp" "${flags[@]}"

step "alone: a world of one rank"
export LD_LIBRARY_PATH=$libdir
"$folder/build/consumer_c" 1
step "in ranks, by the installed launcher"
for program in "$folder/build/consumer_more" "$folder/build/consumer_c 3" "$folder/by_pkgconfig_c 3" "$folder/build/consumer_cpp" "$folder/by_pkgconfig_cpp"; do
  read -ra command <<<"$program"
  echo "${command[0]##*/}"
  "$prefix/bin/tutti-run" -n 3 "${command[@]}"
done
step "the installed programs find their library by themselves"
env -u LD_LIBRARY_PATH "$prefix/bin/tutti-run" -n 2 "$prefix/bin/tutti-perf" all_reduce -b 8 -e 8 -n 5 -c
