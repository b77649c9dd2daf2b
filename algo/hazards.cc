// See hazards.h. Runs where schedules are built or proved; no state but the object's.
#include "algo/hazards.h"

namespace tutti::internal {

void Hazards::read(const Slice& slice, StepId step, std::vector<StepId>& earlier) {
  map_of(slice).update(slice.offset, slice.offset + slice.bytes, [&](Accesses& accesses) {
    if (accesses.writer != kNoStep) earlier.push_back(accesses.writer);
    if (accesses.readers.empty() || accesses.readers.back() != step) accesses.readers.push_back(step);
  });
}

void Hazards::write(const Slice& slice, StepId step, std::vector<StepId>& earlier) {
  const auto& map = map_of(slice);
  map.visit(slice.offset, slice.offset + slice.bytes, [&](uint64_t, uint64_t, const Accesses& accesses) {
    if (accesses.writer != kNoStep) earlier.push_back(accesses.writer);
    for (const StepId reader : accesses.readers)
      if (reader != step) earlier.push_back(reader);
  });
  map_of(slice).assign(slice.offset, slice.offset + slice.bytes, Accesses{step, {}});
}

void Hazards::access(const Schedule& schedule, const Step& step, StepId id, std::vector<StepId>& earlier) {
  switch (step.kind) {
    case StepKind::send: read(step.slice, id, earlier); return;
    case StepKind::recv: break;
    case StepKind::copy: read(step.source, id, earlier); break;
    case StepKind::reduce:
      for (const Operand& operand : schedule.operands_of(step))
        if (operand.peer == Operand::kLocal) read(operand.slice, id, earlier);
      break;
  }
  write(step.slice, id, earlier);
}

}  // namespace tutti::internal
