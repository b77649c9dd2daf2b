// Reading idx files: a big-endian magic number whose last byte is the number of dimensions, the dimensions, the bytes.
#include "dataset.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace train {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& fault) {
  throw std::runtime_error(path + ": " + fault);
}

class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) fail(path, std::string("cannot be opened: ") + std::strerror(errno));
  }

  uint32_t number() {
    uint8_t bytes[4];
    read(bytes, sizeof bytes);
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }

  void expect(const char* what, uint32_t wanted) {
    const uint32_t found = number();
    if (found != wanted)
      fail(path_, std::string(what) + " is " + std::to_string(found) + ", must be " + std::to_string(wanted));
  }

  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> data(count);
    read(data.data(), count);
    return data;
  }

 private:
  void read(uint8_t* to, size_t count) {
    const int got = gzread(file_.get(), to, static_cast<unsigned>(count));
    if (got < 0 || static_cast<size_t>(got) != count)
      fail(path_, "ends after " + std::to_string(got) + " of " + std::to_string(count) + " bytes");
  }

  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace

Dataset read_dataset(const std::string& folder, const std::string& prefix) {
  constexpr uint32_t kMostImages = 1'000'000;
  const std::string labels_path = folder + "/" + prefix + "-labels-idx1-ubyte.gz";
  Dataset dataset;

  IdxFile labels(labels_path);
  labels.expect("magic number", 0x801);
  const uint32_t count = labels.number();
  if (count == 0 || count > kMostImages)
    fail(labels_path, "number of labels is " + std::to_string(count) + ", must be 1 to " + std::to_string(kMostImages));
  dataset.labels = labels.bytes(count);
  const uint8_t largest = *std::max_element(dataset.labels.begin(), dataset.labels.end());
  if (largest >= kClasses) fail(labels_path, "has a label " + std::to_string(largest) + ", must be below 10");

  IdxFile images(folder + "/" + prefix + "-images-idx3-ubyte.gz");
  images.expect("magic number", 0x803);
  images.expect("number of images", count);
  images.expect("height", 28);
  images.expect("width", 28);
  dataset.pixels = images.bytes(count * kPixels);
  return dataset;
}

}  // namespace train
