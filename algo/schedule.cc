// Schedules for people: text for messages and tests, dot for drawings.
#include "algo/schedule.h"

#include <fmt/format.h>

namespace tutti::internal {
namespace {

std::string text_of(const Slice& slice) {
  static constexpr const char* kBuffers[] = {"input", "output", "scratch"};
  return fmt::format("{}[{},{})", kBuffers[static_cast<size_t>(slice.buffer)], slice.offset,
                     slice.offset + slice.bytes);
}

std::string text_of(const Schedule& schedule, const Step& step) {
  switch (step.kind) {
    case StepKind::send:
      return fmt::format("send {} -> {}", text_of(step.slice), fmt::join(schedule.peers_of(step), " "));
    case StepKind::recv:
      return fmt::format("recv from {} -> {}", fmt::join(schedule.peers_of(step), " "), text_of(step.slice));
    case StepKind::copy: return fmt::format("copy {} -> {}", text_of(step.source), text_of(step.slice));
    case StepKind::reduce: break;
  }
  std::string text = "reduce";
  for (const Operand& operand : schedule.operands_of(step))
    text += operand.peer == Operand::kLocal ? " " + text_of(operand.slice) : fmt::format(" from {}", operand.peer);
  return text + " -> " + text_of(step.slice) + (step.finish ? " finish" : "");
}

std::vector<std::vector<size_t>> predecessors_of(const Schedule& schedule) {
  std::vector<std::vector<size_t>> predecessors(schedule.steps.size());
  for (size_t id = 0; id < schedule.steps.size(); ++id)
    for (const uint32_t successor : schedule.successors_of(schedule.steps[id])) predecessors[successor].push_back(id);
  return predecessors;
}

}  // namespace

std::string to_text(const Schedule& schedule, StepId step) {
  return fmt::format("{} {}", step, text_of(schedule, schedule.steps[static_cast<size_t>(step)]));
}

std::string to_text(const Schedule& schedule) {
  const auto predecessors = predecessors_of(schedule);
  std::string text;
  for (size_t id = 0; id < schedule.steps.size(); ++id) {
    text += to_text(schedule, static_cast<StepId>(id));
    if (!predecessors[id].empty()) text += fmt::format("  after {}", fmt::join(predecessors[id], " "));
    text += '\n';
  }
  return text;
}

std::string to_dot(const Schedule& schedule, const std::string& title) {
  std::string quoted;
  for (const char c : title) quoted += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
  std::string text = fmt::format("digraph schedule {{\n  label=\"{}\";\n  node [shape=box];\n", quoted);
  for (size_t id = 0; id < schedule.steps.size(); ++id)
    text += fmt::format("  s{} [label=\"{}\"];\n", id, to_text(schedule, static_cast<StepId>(id)));
  for (size_t id = 0; id < schedule.steps.size(); ++id)
    for (const uint32_t successor : schedule.successors_of(schedule.steps[id]))
      text += fmt::format("  s{} -> s{};\n", id, successor);
  return text + "}\n";
}

}  // namespace tutti::internal
