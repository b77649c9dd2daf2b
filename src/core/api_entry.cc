#include "src/core/api_entry.h"

#include <fmt/core.h>

#include <string>

namespace tutti::internal {
namespace {

struct LastError {
  std::string text;
  int failed_rank = -1;
};

thread_local LastError last_error;

}  // namespace

void keep_last_error(const Status& status) {
  last_error.text = status.message();
  last_error.failed_rank = status.failed_rank();
}

tutti_status finish(const Status& status) {
  if (!status.ok()) [[unlikely]]
    keep_last_error(status);
  return static_cast<tutti_status>(status.code());
}

Status unknown_handle(const char* what, const void* handle) {
  return Status(Code::invalid_argument,
                handle ? fmt::format("{} is not the handle of a {}, or it was given back before", handle, what)
                       : fmt::format("the handle of the {} is NULL", what));
}

Status inherited_handle(const char* what) {
  return Status(Code::unsupported,
                fmt::format("the {} was made by another process before fork: a child cannot use it", what));
}

// Never destroyed: a program may give handles back from its own static objects' destructors.
HandleTable<Group>& group_handles() {
  static auto& table = *new HandleTable<Group>;
  return table;
}

HandleTable<Work>& work_handles() {
  static auto& table = *new HandleTable<Work>;
  return table;
}

}  // namespace tutti::internal

using namespace tutti::internal;

const char* tutti_last_error(void) { return last_error.text.c_str(); }
int tutti_last_failed_rank(void) { return last_error.failed_rank; }

const char* tutti_status_name(tutti_status status) { return code_name(static_cast<Code>(status)); }
const char* tutti_type_name(tutti_type type) {
  return static_cast<unsigned>(type) < kDataTypeCount ? name(static_cast<DataType>(type)) : "?";
}
const char* tutti_op_name(tutti_op op) {
  return static_cast<unsigned>(op) < kReduceOpCount ? name(static_cast<ReduceOp>(op)) : "?";
}
size_t tutti_type_bytes(tutti_type type) {
  return static_cast<unsigned>(type) < kDataTypeCount ? type_bytes(static_cast<DataType>(type)) : 0;
}
const char* tutti_version(void) { return TUTTI_VERSION_STRING; }
