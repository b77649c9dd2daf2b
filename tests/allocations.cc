#include "allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local uint64_t allocation_count = 0;

void* counted(void* memory) {
  ++allocation_count;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

uint64_t tutti_test::allocations_of_this_thread() { return allocation_count; }

void* operator new(size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
