// A fuzz target without a fuzzer: the corpus of the tree, and seeded changes to it, with the compiler that everything
// else is built with.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> corpus() {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_FUZZ_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void run(const std::string& input) {
  EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size()), 0);
}

TEST(Replay, TheCorpusDoesNoHarm) {
  ASSERT_FALSE(corpus().empty());
  for (const std::string& input : corpus()) run(input);
}

TEST(Replay, ChangedInputsDoNoHarm) {
  const char* given = std::getenv("TUTTI_TEST_SEED");
  const auto seed = static_cast<uint32_t>(given ? std::strtoul(given, nullptr, 10) : std::random_device{}());
  std::printf("seed %u (TUTTI_TEST_SEED)\n", seed);
  std::mt19937 random(seed);
  const std::vector<std::string> inputs = corpus();
  for (int round = 0; round < 20'000; ++round) {
    std::string input = inputs[random() % inputs.size()];
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % (input.size() + 1);
      switch (random() % 3) {
        case 0: input.insert(at, 1, static_cast<char>(random())); break;
        case 1: input.erase(at, 1 + random() % 8); break;
        default:
          if (at < input.size()) input[at] = static_cast<char>(random());
      }
    }
    run(input);
  }
}

}  // namespace
