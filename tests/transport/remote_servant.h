// The end of the lines in the guest that runs no test: it has the true transports of the ranks that a RemoteTransport
// stands for.
#pragma once

namespace tutti::internal::conformance {

// Until the test program ends, or cannot be heard any more; then so does this program.
[[noreturn]] void serve_other_guest();

}  // namespace tutti::internal::conformance
