// Text for a drawing: valid XML whatever bytes it came from, with a width that is known before it is drawn.
#pragma once

#include <string>

namespace tutti::internal {

// How broad the text becomes at this size, at most: fonts differ.
double text_width(const std::string& text, double font_pixels);

// As much of the text's beginning as fits, with an ellipsis where that is not all.
std::string shortened(const std::string& text, double font_pixels, double width);

// Escaped, with a replacement for what is no UTF-8 and for characters that XML does not allow.
std::string xml_text(const std::string& text);

}  // namespace tutti::internal
