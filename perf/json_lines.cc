#include "json_lines.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "operation.h"

namespace tutti::perf {

JsonLines::JsonLines(const std::string& path) : path_(path) {
  if (path.empty() || is_stdout()) return;
  file_.open(path, std::ios::trunc);
  if (!file_) throw std::runtime_error("--json: cannot write '" + path + "': " + std::strerror(errno));
}

void JsonLines::write(const nlohmann::ordered_json& row) {
  if (path_.empty()) return;
  std::ostream& out = is_stdout() ? std::cout : file_;
  out << row.dump() << std::endl;
  if (!out) throw std::runtime_error("--json: writing '" + path_ + "' failed: " + std::strerror(errno));
}

nlohmann::json describe(tutti_group* group) {
  size_t needed = 0;
  require(tutti_describe(group, nullptr, 0, &needed), "tutti_describe");
  std::string text(needed, '\0');
  require(tutti_describe(group, text.data(), text.size(), &needed), "tutti_describe");
  return nlohmann::json::parse(text.c_str());
}

nlohmann::ordered_json origin_of(const nlohmann::json& world, int size) {
  nlohmann::ordered_json origin;
  origin["ranks"] = size;
  origin["transport"] = world.value("transport", "unknown");
  origin["host"] = world.value("host", "unknown");
  origin["cores_shared"] = world.value("cores_shared", false);
  origin["machine"] = world.value("machine", nlohmann::json());
  origin["version"] = world.value("version", tutti_version());
  return origin;
}

void print_shared_cores(const nlohmann::ordered_json& origin) {
  if (origin.at("cores_shared").get<bool>()) std::puts("# more ranks than processors: times include the wait for one");
}

}  // namespace tutti::perf
