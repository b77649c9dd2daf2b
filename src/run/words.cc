#include "src/run/words.h"

#include <fmt/core.h>

namespace tutti::internal {

Result<std::vector<std::string>> split_words(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  const auto append = [&](char c) {
    if (!in_word) words.emplace_back();
    in_word = true;
    words.back().push_back(c);
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escapes = c == '\\' && quote != '\'';
    if (escapes && i + 1 == text.size())
      return Status(Code::invalid_argument, fmt::format("'{}': nothing follows its last \\", text));
    if (escapes) {
      append(text[++i]);
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      if (!in_word) words.emplace_back();  // it may stay empty
      in_word = true;
      quote = c;
    } else if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && kBlanks.find(c) != std::string_view::npos) {
      in_word = false;
    } else {
      append(c);
    }
  }
  if (quote != '\0') return Status(Code::invalid_argument, fmt::format("'{}': a {} has no end", text, quote));
  return words;
}

std::string shell_quoted(std::string_view word) {
  std::string result = "'";
  for (const char c : word)
    if (c == '\'')
      result += "'\\''";
    else
      result.push_back(c);
  return result + "'";
}

}  // namespace tutti::internal
