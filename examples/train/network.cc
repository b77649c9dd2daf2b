// The arithmetic of the network: plain loops over kHidden or kClasses floats, which the compiler turns into vectors.
// Pixels that are 0, about half, are passed over.
#include "network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace train {
namespace {

using Hidden = std::array<float, kHidden>;
using Classes = std::array<float, kClasses>;

// The parts of a span of kParameters floats.
template <class T>
struct Layout {
  T* weights1;  // [kPixels][kHidden]
  T* bias1;     // [kHidden]
  T* weights2;  // [kHidden][kClasses]
  T* bias2;     // [kClasses]
  explicit Layout(std::span<T> all)
      : weights1(all.data()),
        bias1(weights1 + kPixels * kHidden),
        weights2(bias1 + kHidden),
        bias2(weights2 + kHidden * kClasses) {}
};

float brightness(uint8_t pixel) { return static_cast<float>(pixel) * (1.0F / 255.0F); }

Hidden hidden_layer(const Layout<const float>& net, std::span<const uint8_t, kPixels> image) {
  Hidden hidden;
  std::copy_n(net.bias1, kHidden, hidden.begin());
  for (size_t p = 0; p < kPixels; ++p) {
    if (image[p] == 0) continue;
    const float x = brightness(image[p]);
    const float* weights = net.weights1 + p * kHidden;
    for (size_t h = 0; h < kHidden; ++h) hidden[h] += x * weights[h];
  }
  for (float& value : hidden) value = std::tanh(value);
  return hidden;
}

Classes scores(const Layout<const float>& net, const Hidden& hidden) {
  Classes score;
  std::copy_n(net.bias2, kClasses, score.begin());
  for (size_t h = 0; h < kHidden; ++h)
    for (size_t c = 0; c < kClasses; ++c) score[c] += hidden[h] * net.weights2[h * kClasses + c];
  return score;
}

// Turns scores into probabilities, and returns the loss of `label`.
float softmax(Classes& score, uint8_t label) {
  const float highest = *std::max_element(score.begin(), score.end());
  const float own = score[label] - highest;
  float sum = 0;
  for (float& value : score) sum += value = std::exp(value - highest);
  for (float& value : score) value /= sum;
  return std::log(sum) - own;
}

}  // namespace

void initialise(std::span<float> parameters) {
  std::mt19937 random(1);
  const auto fill = [&](float* weights, size_t inputs, size_t outputs) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(inputs)));
    std::generate_n(weights, inputs * outputs, [&] { return normal(random); });
  };
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  const Layout<float> net(parameters);
  fill(net.weights1, kPixels, kHidden);
  fill(net.weights2, kHidden, kClasses);
}

float add_gradient(std::span<const float> parameters, std::span<const uint8_t, kPixels> image, uint8_t label,
                   std::span<float> gradient) {
  const Layout<const float> net(parameters);
  const Layout<float> slope(gradient);
  const Hidden hidden = hidden_layer(net, image);
  Classes error = scores(net, hidden);
  const float loss = softmax(error, label);
  error[label] -= 1;  // the loss's slope by each score

  Hidden error_hidden;
  for (size_t h = 0; h < kHidden; ++h) {
    float sum = 0;
    for (size_t c = 0; c < kClasses; ++c) {
      sum += error[c] * net.weights2[h * kClasses + c];
      slope.weights2[h * kClasses + c] += error[c] * hidden[h];
    }
    error_hidden[h] = sum * (1 - hidden[h] * hidden[h]);
  }
  for (size_t c = 0; c < kClasses; ++c) slope.bias2[c] += error[c];
  for (size_t h = 0; h < kHidden; ++h) slope.bias1[h] += error_hidden[h];
  for (size_t p = 0; p < kPixels; ++p) {
    if (image[p] == 0) continue;
    const float x = brightness(image[p]);
    float* weights = slope.weights1 + p * kHidden;
    for (size_t h = 0; h < kHidden; ++h) weights[h] += x * error_hidden[h];
  }
  return loss;
}

uint8_t classify(std::span<const float> parameters, std::span<const uint8_t, kPixels> image) {
  const Layout<const float> net(parameters);
  const Classes score = scores(net, hidden_layer(net, image));
  return static_cast<uint8_t>(std::max_element(score.begin(), score.end()) - score.begin());
}

}  // namespace train
