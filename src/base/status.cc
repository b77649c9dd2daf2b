#include "src/base/status.h"

#include <cerrno>
#include <system_error>

#include "src/base/descriptors.h"

namespace tutti::internal {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid_argument";
    case Code::unsupported: return "unsupported";
    case Code::out_of_resources: return "out_of_resources";
    case Code::peer_failed: return "peer_failed";
    case Code::timeout: return "timeout";
    case Code::aborted: return "aborted";
    case Code::mismatch: return "mismatch";
    case Code::internal: return "internal";
  }
  return "?";
}

Status::Status(Code code, std::string message) : detail_(new Detail{code, -1, std::move(message)}) {}

void Status::Delete::operator()(const Detail* detail) const { delete detail; }
const Status::Detail* Status::copy(const Detail& detail) { return new Detail(detail); }

Status Status::peer_failed(int rank, std::string message) {
  Status status;
  status.detail_.reset(new Detail{Code::peer_failed, rank, std::move(message)});
  return status;
}

Status Status::system(Code code, std::string what, int error_number) {
  const std::string reason = std::generic_category().message(error_number);
  const std::string limit = error_number == EMFILE ? " (" + descriptor_limit() + ")" : "";
  return Status(code, std::move(what) + ": " + reason + limit);
}

const std::string& Status::message() const {
  static const std::string kNone;
  return detail_ ? detail_->message : kNone;
}

}  // namespace tutti::internal
