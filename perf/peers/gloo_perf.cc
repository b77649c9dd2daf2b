// The Gloo side of a comparison (peer.h): all_reduce, broadcast and barrier over its TCP transport. The ranks
// meet in an empty folder that all of them see; HOST is the name or address by which this one is reached.
//
//   gloo_perf RANK SIZE HOST FOLDER all_reduce 100 8 4096 262144 16777216
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <functional>
#include <memory>

#include "peer.h"

namespace {

template <class T>
void set_max(void* to, const void* a, const void* b, size_t count) {
  gloo::max<T>(to, a, b, count);
}

class Gloo final : public tutti::peers::Peer {
 public:
  Gloo(int rank, int size, const std::string& host, const std::string& folder)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(folder);
    context_->connectFullMesh(store, device);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  // What can be made before is made here, not in every call.
  bool prepare(const std::string& operation, tutti::peers::Buffers& b, int count) override {
    const auto elements = static_cast<size_t>(count);
    if (operation == "all_reduce") {
      auto options = std::make_shared<gloo::AllreduceOptions>(context_);
      options->setInput(b.input.data(), elements);
      options->setOutput(b.output.data(), elements);
      options->setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
      run_ = [options] { gloo::allreduce(*options); };
      return true;
    }
    if (operation == "broadcast") {
      auto options = std::make_shared<gloo::BroadcastOptions>(context_);
      options->setOutput(b.output.data(), elements);
      options->setRoot(0);
      run_ = [options] { gloo::broadcast(*options); };
      return true;
    }
    run_ = [this] { barrier(); };
    return operation == "barrier";
  }
  void run() override { run_(); }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void max(std::vector<double>& values) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(&set_max<double>);
    gloo::allreduce(options);
  }

 private:
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::function<void()> run_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fprintf(stderr, "usage: gloo_perf RANK SIZE HOST FOLDER OPERATION CALLS BYTES...\n");
    return 2;
  }
  Gloo gloo(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], argv[4]);
  const int status = run_peer(gloo, argc - 4, argv + 4);
  gloo.barrier();
  return status;
}
