// The operations that tutti-perf measures, one line each: shapes, what "bytes" means, the bandwidth factor; and how one
// call is made. Everything else in the program reads this table.
#pragma once

#include <tutti/tutti.h>

#include <cstddef>
#include <span>
#include <string>

namespace tutti::perf {

enum class Kind {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  scatter,
  gather,
  all_gather,
  all_to_all,
  send_recv,
};

// What a bandwidth of the operation says about the wires, as in nccl-tests: busbw = algbw * factor.
enum class BusFactor {
  none,    // the operation moves no data
  one,     // 1
  others,  // (n-1)/n: one share stays where it is
  twice,   // 2(n-1)/n: a reduce_scatter and an all_gather
};

struct Operation {
  Kind kind;
  const char* name;
  const char* explained_as;  // its name for tutti_explain
  bool reduces;
  bool rooted;
  bool wide_input;   // the input holds one block of count elements per rank, not one
  bool wide_output;  // the same of the output
  BusFactor bus_factor;
  const char* bytes_are;
};

std::span<const Operation> operations();
// Null for a name that is none.
const Operation* find_operation(const std::string& name);
// The factor for this many ranks; meaningless for one rank.
double bus_factor(const Operation& operation, int ranks);

// Everything that one call needs but the group.
struct Call {
  const Operation* operation;
  tutti_type type;
  tutti_op op;
  int root;
  size_t count;
  void* input;
  void* output;
};

// One blocking call, or an asynchronous one and the wait for it. Throws std::runtime_error with the library's message.
void run(tutti_group* group, const Call& call);
void run_async(tutti_group* group, const Call& call);

// Throws std::runtime_error "what: message of the library" unless the status is TUTTI_OK.
void require(tutti_status status, const std::string& what);

}  // namespace tutti::perf
