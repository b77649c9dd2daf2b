// Images and their labels in the idx format of MNIST, gzip compressed, as Fashion-MNIST comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace train {

inline constexpr size_t kPixels = 28 * 28;
inline constexpr size_t kClasses = 10;

struct Dataset {
  std::vector<uint8_t> pixels;  // kPixels of each image, 0 to 255
  std::vector<uint8_t> labels;  // below kClasses

  size_t size() const { return labels.size(); }
  std::span<const uint8_t, kPixels> image(size_t i) const {
    return std::span<const uint8_t, kPixels>(pixels.data() + i * kPixels, kPixels);
  }
};

// Reads FOLDER/PREFIX-images-idx3-ubyte.gz and FOLDER/PREFIX-labels-idx1-ubyte.gz. Throws std::runtime_error, which
// names the file and what is wrong with it.
Dataset read_dataset(const std::string& folder, const std::string& prefix);

}  // namespace train
