// A classifier with one hidden layer: pixels -> 128 units with tanh -> softmax over the classes. It is smooth on
// purpose: at the kink of a rectifier, a difference in the last bit of a sum can send the training another way.
//
// All parameters lie in one piece of memory, and so does their gradient: one all_reduce covers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataset.h"

namespace train {

inline constexpr size_t kHidden = 128;

// How a span of parameters, or of a gradient, is laid out.
inline constexpr size_t kParameters = kPixels * kHidden + kHidden + kHidden * kClasses + kClasses;

// The start of a training: random weights, the same for every call.
void initialise(std::span<float> parameters);

// Adds the gradient of one image's loss to `gradient`, and returns the loss (cross entropy, in nats).
float add_gradient(std::span<const float> parameters, std::span<const uint8_t, kPixels> image, uint8_t label,
                   std::span<float> gradient);

// The most probable class.
uint8_t classify(std::span<const float> parameters, std::span<const uint8_t, kPixels> image);

}  // namespace train
