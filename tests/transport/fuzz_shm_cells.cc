// What a peer may write into our ring: any cells whatever. The rank that reads them stays sound: it completes requests
// with an error or fails the peer, and touches no memory that is not its own.
//
// Both ranks are in this process; the input overwrites cells of the ring from rank 1 to rank 0. Offers of ordinary
// memory are left out: in one process they are plain addresses, which only a rank that can be trusted hands out.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/transport/shm_world.h"
#include "transport/shm/layout.h"
#include "transport/shm/ring.h"

namespace tutti::internal::testing {
namespace {

void keep_first(void* dst, const void* const* sources, int, size_t elements, uint32_t) {
  std::memcpy(dst, sources[0], elements * 4);
}

// Where the ring from `sender` begins in the region of which `window` is the first window.
shm::Cell* ring_of(void* window, int sender, int world_size) {
  const shm::Layout layout(world_size, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  return reinterpret_cast<shm::Cell*>(static_cast<std::byte*>(window) - layout.windows_offset() +
                                      layout.ring_offset(sender));
}

// A rank with something posted in every form, for many inputs: until its peer has failed.
class Stage {
 public:
  Stage() : window_(*reader().allocate(size_t{1} << 20)), ring_(ring_of(window_, 1, 2)) {}

  bool usable() { return written_ < 10'000 && reader().take_failure().peer < 0; }

  void run(const uint8_t* data, size_t size) {
    post();
    std::array<Completion, 4> done;
    for (int cells = 0; size > 0 && cells < 64; ++cells) {
      shm::Cell cell = next_cell(data, size);
      cell.turn = shm::turn_of(written_);
      std::memcpy(static_cast<void*>(&ring_[written_++ % shm::kRingCells]), &cell, sizeof cell);
      for (int i = 0; i < 4; ++i) (void)reader().poll(done);
    }
    reader().cancel(1);
    reader().forget(1);
  }

 private:
  ShmTransport& reader() { return world_.rank(0); }

  void post() {
    (void)reader().post_recv({.channel = 1, .from = {1, 1}, .data = received_.data(), .bytes = received_.size()});
    const std::array<ReduceOperand, 2> operands{{{{1, 2}, nullptr}, {{}, offered_.data()}}};
    (void)reader().post_reduce({.channel = 1,
                                .operands = operands,
                                .dst = reduced_.data(),
                                .element_count = reduced_.size() / 4,
                                .reduction = {keep_first, 4, 0}});
    const Endpoint to{1, 3};
    (void)reader().post_send({.channel = 1, .to = {&to, 1}, .data = offered_.data(), .bytes = offered_.size()});
  }
  // One byte each for kind, length, slot and match, then the payload; zeros where the input ends.
  static shm::Cell next_cell(const uint8_t*& data, size_t& size) {
    std::array<uint8_t, 4 + shm::kCellBytes> bytes{};
    const size_t taken = std::min(size, bytes.size());
    std::memcpy(bytes.data(), data, taken);
    data += taken;
    size -= taken;
    shm::Cell cell{};
    cell.kind = static_cast<shm::CellKind>(bytes[0] % 16);
    if (cell.kind == shm::CellKind::memory) cell.kind = shm::CellKind::stream;
    cell.length = bytes[1];
    cell.released = bytes[2];
    cell.channel = 1;
    cell.match = bytes[3] % 4;
    std::memcpy(cell.payload.data(), bytes.data() + 4, shm::kCellBytes);
    return cell;
  }

  ShmWorld world_{2};
  void* window_;
  shm::Cell* ring_;
  uint64_t written_ = 0;
  std::vector<std::byte> received_ = std::vector<std::byte>(100'000);
  std::vector<std::byte> reduced_ = std::vector<std::byte>(100'000);
  std::vector<std::byte> offered_ = std::vector<std::byte>(100'000);
};

}  // namespace
}  // namespace tutti::internal::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::unique_ptr<tutti::internal::testing::Stage> stage;
  if (stage == nullptr || !stage->usable()) stage = std::make_unique<tutti::internal::testing::Stage>();
  stage->run(data, size);
  return 0;
}
