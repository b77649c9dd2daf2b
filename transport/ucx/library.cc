#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <mutex>

#include "transport/ucx/logging.h"

namespace tutti::internal::ucx {
namespace {

constexpr const char* kName = "libucp.so.0";

Library functions;

// UCX takes over signals of crashes and SIGHUP when it is loaded. A library of the process's does not do that for us:
// if nobody has loaded it before, they stay as they were.
class KeptSignals {
 public:
  KeptSignals() {
    for (size_t number = 1; number < actions_.size(); ++number)
      sigaction(static_cast<int>(number), nullptr, &actions_[number]);
  }
  ~KeptSignals() {
    for (size_t number = 1; number < actions_.size(); ++number) {
      struct sigaction now {};
      sigaction(static_cast<int>(number), nullptr, &now);
      if (now.sa_sigaction != actions_[number].sa_sigaction)
        sigaction(static_cast<int>(number), &actions_[number], nullptr);
    }
  }

 private:
  std::array<struct sigaction, 32> actions_{};
};

void* open() {
  if (void* const there = dlopen(kName, RTLD_NOW | RTLD_NOLOAD)) return there;
  const KeptSignals kept;
  return dlopen(kName, RTLD_NOW | RTLD_NODELETE);
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

Status load() {
  void* const handle = open();
  if (handle == nullptr) return Status(Code::unsupported, fmt::format("UCX cannot be loaded: {}", dlerror()));
#define TUTTI_UCX_FUNCTION(name) \
  if (!find(handle, #name, functions.name)) return Status(Code::unsupported, fmt::format("{} lacks {}", kName, #name));
  TUTTI_UCX_FUNCTIONS(TUTTI_UCX_FUNCTION)
#undef TUTTI_UCX_FUNCTION
  functions.ucs_log_push_handler(log_handler);
  return {};
}

}  // namespace

Status load_library() {
  static std::mutex mutex;
  static bool loaded = false;
  const std::scoped_lock lock(mutex);
  if (loaded) return {};
  TUTTI_RETURN_IF_ERROR(load());
  loaded = true;
  return {};
}

const Library& library() { return functions; }

}  // namespace tutti::internal::ucx
