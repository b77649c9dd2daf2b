// Trains a classifier of Fashion-MNIST on all ranks at once: each takes its share of every batch, and the gradients are
// summed with all_reduce, so that all ranks take the same step. The batch is the same whatever the number of ranks, and
// so are the losses, but for the rounding of sums in another order.
//
//   tutti-run -n 4 train --epochs 3
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "dataset.h"
#include "network.h"

namespace train {
namespace {

constexpr float kLearningRate = 0.1F;

struct Settings {
  int epochs = 3;
  size_t batch = 100;
  std::string data = "/usr/share/datasets/fashion-mnist";
};

// Which of `count` things are this rank's.
struct Share {
  size_t begin, end;
  Share(const tutti::Group& world, size_t count)
      : begin(count * static_cast<size_t>(world.rank()) / static_cast<size_t>(world.size())),
        end(count * (static_cast<size_t>(world.rank()) + 1) / static_cast<size_t>(world.size())) {}
};

class Trainer {
 public:
  Trainer(tutti::Group& world, const Dataset& images, size_t batch)
      : world_(world), images_(images), batch_(batch), parameters_(kParameters) {
    // The gradient goes to the other ranks after every batch: in a window they reach it directly.
    gradient_ = world.alloc<float>(kParameters);
    order_.resize(images.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    if (world.rank() == 0) initialise(parameters_);
    world.broadcast(parameters_, 0);
  }

  // Takes every image once, in an order that is the same on all ranks. Returns the mean loss.
  double epoch() {
    std::shuffle(order_.begin(), order_.end(), random_);
    std::vector<double> loss(1);
    for (size_t at = 0; at < order_.size(); at += batch_)
      loss[0] += step(std::span(order_).subspan(at, std::min(batch_, order_.size() - at)));
    world_.all_reduce(loss, tutti::Op::sum);
    return loss[0] / static_cast<double>(order_.size());
  }

  std::span<const float> parameters() const { return parameters_; }

 private:
  // One step down the mean gradient of a batch. Returns the sum of the losses of this rank's share.
  double step(std::span<const size_t> batch) {
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    double loss = 0;
    const Share share(world_, batch.size());
    for (size_t image : batch.subspan(share.begin, share.end - share.begin))
      loss += static_cast<double>(add_gradient(parameters_, images_.image(image), images_.labels[image], gradient_));
    world_.all_reduce(gradient_, tutti::Op::sum);
    const float rate = kLearningRate / static_cast<float>(batch.size());
    for (size_t i = 0; i < kParameters; ++i) parameters_[i] -= rate * gradient_[i];
    return loss;
  }

  tutti::Group& world_;
  const Dataset& images_;
  size_t batch_;
  std::vector<float> parameters_;
  tutti::Buffer<float> gradient_;
  std::vector<size_t> order_;
  std::mt19937 random_{2};
};

// The part of the images that are classified right, each rank looking at its share.
double accuracy(tutti::Group& world, std::span<const float> parameters, const Dataset& images) {
  std::vector<int64_t> right(1);
  const Share share(world, images.size());
  for (size_t i = share.begin; i < share.end; ++i)
    if (classify(parameters, images.image(i)) == images.labels[i]) ++right[0];
  world.all_reduce(right, tutti::Op::sum);
  return static_cast<double>(right[0]) / static_cast<double>(images.size());
}

void run(const Settings& settings) {
  tutti::Group world = tutti::init();
  const Dataset training = read_dataset(settings.data, "train");
  Trainer trainer(world, training, settings.batch);
  for (int epoch = 1; epoch <= settings.epochs; ++epoch) {
    const double loss = trainer.epoch();
    if (world.rank() == 0) std::printf("epoch %d loss %.7f\n", epoch, loss);
  }
  const double right = accuracy(world, trainer.parameters(), read_dataset(settings.data, "t10k"));
  if (world.rank() == 0) std::printf("test accuracy %.2f %%\n", 100 * right);
}

}  // namespace
}  // namespace train

int main(int argc, char** argv) {
  train::Settings settings;
  CLI::App app("Trains a classifier of Fashion-MNIST by data-parallel gradient descent.");
  app.add_option("--epochs", settings.epochs, "how often each image is looked at")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  app.add_option("--batch", settings.batch, "images per step, over all ranks")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--data", settings.data, "folder of the four idx files")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    train::run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 1;
  }
  return 0;
}
