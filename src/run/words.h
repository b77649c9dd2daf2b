// A command as people write it, cut into words, and a word as a shell takes it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace tutti::internal {

// As a shell cuts: blanks, '...', "..." and \. Nothing is expanded. Errors: invalid_argument (a quote without its end).
Result<std::vector<std::string>> split_words(std::string_view text);

// The word in quotes that sh, csh and fish read alike.
std::string shell_quoted(std::string_view word);

}  // namespace tutti::internal
