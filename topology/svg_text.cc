#include "topology/svg_text.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tutti::internal {
namespace {

constexpr char32_t kReplacement = 0xfffd;

// The character that the text begins with, taken off it; kReplacement, and one byte, where that is none.
char32_t take_character(std::string_view& text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  char32_t character = length == 1 ? first : first & (0xff >> (length + 1));
  bool is_valid = length == 1 || (first >= 0xc2 && first <= 0xf4);
  for (size_t i = 1; i < length; ++i) {
    is_valid = is_valid && (byte(i) & 0xc0) == 0x80;
    character = character << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // a longer form of a shorter one is none
  is_valid = is_valid && character >= kLeast[length] && character <= 0x10ffff;
  text.remove_prefix(is_valid ? length : 1);
  return is_valid ? character : kReplacement;
}

// XML 1.0, section 2.2.
bool is_in_xml(char32_t character) {
  const bool is_surrogate = character >= 0xd800 && character < 0xe000;
  return character >= 0x20 && character != 0x7f && character != 0xfffe && character != 0xffff && !is_surrogate;
}

std::vector<char32_t> characters_of(std::string_view text) {
  std::vector<char32_t> characters;
  while (!text.empty()) {
    const char32_t character = take_character(text);
    characters.push_back(is_in_xml(character) ? character : kReplacement);
  }
  return characters;
}

void append(std::string& text, char32_t character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xff00 >> (more + 1) & 0xff) | character >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (character >> (6 * i) & 0x3f));
}

// Of the broadest font that drawings are commonly shown in (DejaVu Sans, bold), in parts of its size.
double width_of(char32_t character) {
  if (character >= 0x80) return 1.05;
  const char letter = static_cast<char>(character);
  if (std::string_view(" .,:;'|!()[]/-ijlfrt").find(letter) != std::string_view::npos) return 0.5;
  if (std::string_view("mwMW@%&").find(letter) != std::string_view::npos) return 1.1;
  return letter >= 'A' && letter <= 'Z' ? 0.82 : 0.73;
}

}  // namespace

double text_width(const std::string& text, double font_pixels) {
  double width = 0;
  for (const char32_t character : characters_of(text)) width += font_pixels * width_of(character);
  return width;
}

std::string shortened(const std::string& text, double font_pixels, double width) {
  constexpr double kRounding = 0.01;
  if (text_width(text, font_pixels) <= width + kRounding) return text;
  constexpr char32_t kEllipsis = 0x2026;
  std::string result;
  double left = width - font_pixels * width_of(kEllipsis);
  for (const char32_t character : characters_of(text)) {
    left -= font_pixels * width_of(character);
    if (left < 0) break;
    append(result, character);
  }
  append(result, kEllipsis);
  return result;
}

std::string xml_text(const std::string& text) {
  std::string result;
  for (const char32_t character : characters_of(text)) {
    if (character == '<')
      result += "&lt;";
    else if (character == '&')
      result += "&amp;";
    else if (character == '>')
      result += "&gt;";
    else
      append(result, character);
  }
  return result;
}

}  // namespace tutti::internal
