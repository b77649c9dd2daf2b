#include "program.h"

#include <cstdio>
#include <exception>

#include "operation.h"

namespace tutti::perf {
namespace {

void complain(const char* program, const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", program, error.what());
}

}  // namespace

tutti_status join(const std::string& setting, tutti_group** world) {
  const char* settings[] = {setting.c_str(), nullptr};
  tutti_init_options init = TUTTI_INIT_OPTIONS;
  if (!setting.empty()) init.settings = settings;
  return tutti_init(&init, world);
}

int leave(tutti_group* world, const std::string& text, int status) {
  if (tutti_group_rank(world) == 0) {
    std::fputs(text.c_str(), status == 0 ? stdout : stderr);
    std::fflush(nullptr);
  }
  require(tutti_barrier(world, nullptr), "barrier");
  require(tutti_group_free(world), "tutti_group_free");
  return status;
}

int refuse(const std::string& text) {
  tutti_group* world = nullptr;
  require(join("", &world), "tutti_init");
  return leave(world, text, kUsage);
}

int run_in(tutti_group* world, const char* program, const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    complain(program, error);
    // The others wait for this rank in some operation: they learn why it left.
    static_cast<void>(tutti_group_abort(world, error.what()));
    return kWrong;
  }
}

int run_program(const char* program, const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    complain(program, error);
    return kWrong;
  }
}

}  // namespace tutti::perf
