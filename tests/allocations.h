// Counts allocations: a program with allocations.cc in it has an operator new that counts.
#pragma once

#include <cstdint>

namespace tutti_test {

// How often this thread has allocated.
uint64_t allocations_of_this_thread();

}  // namespace tutti_test
