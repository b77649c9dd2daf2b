// The file by which ranks find their store. Rank 0 writes it beside its place and renames it there, readable by its
// user alone; what stood there is overwritten, unless it is somebody else's. Readers trust only a file that belongs to
// their user and that nobody else may touch. A file that an earlier run left is read like any other: nothing answers
// at its addresses, or not to its secret, and the reader looks again.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/core/store/socket.h"

namespace tutti::internal {

struct StoreFile {
  Status status;  // not ok: another look will not help
  std::string unknown_because;
  std::vector<Address> addresses;  // empty: not there, or not whole, yet
  std::string secret;
};

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
};

Result<FileId> write_store_file(const std::string& path, const std::vector<Address>& addresses,
                                const std::string& secret);
StoreFile read_store_file(const std::string& path);
// Where the path still leads to that file.
void remove_store_file(const std::string& path, FileId id);

// The file's text, and back; nothing but `unknown_because` where it is no such text.
std::string store_file_text(const std::vector<Address>& addresses, const std::string& secret);
StoreFile parse_store_file(std::string_view text);

}  // namespace tutti::internal
