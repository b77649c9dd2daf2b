// The boxes of the drawing: boxes within boxes, measured from the inside out and then placed from the outside in.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::internal {

// Pixels.
inline constexpr double kGap = 8;
inline constexpr double kFont = 11, kSmallFont = 10;

enum class Look {
  group,  // is not drawn itself
  frame,
  shaded,
  core,
  forbidden_core,
  nic,
  gpu,
  rank,  // a disc that becomes as broad as its text
  tag,   // where the line of several ranks begins
  note,  // mere text
};

struct Box {
  Look look = Look::group;
  std::string title;
  std::string second;  // a device's second line
  std::vector<Box> children;
  size_t columns = 1;
  int nic = -1;     // whose box it is
  int to_nic = -1;  // where its line goes
  double x = 0, y = 0, width = 0, height = 0;

  double middle_x() const { return x + width / 2; }
  double middle_y() const { return y + height / 2; }
};

Box box_of(Look look, std::string title);
Box group_of(std::vector<Box> children, size_t columns);
// Empty groups among the children are left out.
Box frame_of(Look look, std::string title, std::vector<Box> children);

// For a grid that is about `breadth` times as broad as it is high.
size_t square_columns(size_t count, double breadth);

// Gives it and all in it their sizes and places.
void lay_out(Box& box, double x, double y);

// The texts as they fit.
std::string fitting_title(const Box& box);
std::string fitting_second(const Box& box);

}  // namespace tutti::internal
