#include "topology/svg_box.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "topology/svg_text.h"

namespace tutti::internal {
namespace {

// What a look says of its box's size.
struct Form {
  double side = 0;    // beside what is in it
  double top = 0;     // above its children
  double bottom = 0;  // below them
  double least_width = 0;
  double least_height = 0;
  double most_text = 0;  // how broad it becomes for the sake of its text
};

Form form_of(Look look) {
  switch (look) {
    case Look::frame:
    case Look::shaded: return {.side = kGap, .top = 26, .bottom = kGap, .least_height = 26, .most_text = 360};
    case Look::core:
    case Look::forbidden_core:
      return {.side = 4, .top = 17, .bottom = 4, .least_width = 30, .least_height = 24, .most_text = 160};
    case Look::nic:
    case Look::gpu: return {.side = kGap, .least_height = 34, .most_text = 200};
    case Look::rank: return {.side = 4, .least_width = 18, .least_height = 18, .most_text = 300};
    case Look::tag: return {.side = 5, .least_height = 18, .most_text = 300};
    case Look::note: return {.least_height = 18, .most_text = 900};
    case Look::group: break;
  }
  return {};
}

bool is_core(const Box& box) { return box.look == Look::core || box.look == Look::forbidden_core; }

// The sizes of the columns and rows of a box's children.
struct Grid {
  std::vector<double> widths, heights;

  explicit Grid(const Box& box) {
    widths.resize(std::min(box.columns, box.children.size()));
    heights.resize((box.children.size() + box.columns - 1) / box.columns);
    for (size_t i = 0; i < box.children.size(); ++i) {
      widths[i % box.columns] = std::max(widths[i % box.columns], box.children[i].width);
      heights[i / box.columns] = std::max(heights[i / box.columns], box.children[i].height);
    }
  }
  static double sum(const std::vector<double>& sizes) {
    double total = sizes.empty() ? 0 : kGap * static_cast<double>(sizes.size() - 1);
    for (const double size : sizes) total += size;
    return total;
  }
};

void measure(Box& box) {
  for (Box& child : box.children) measure(child);
  const Form form = form_of(box.look);
  const Grid grid(box);
  const double text = std::max(text_width(box.title, kFont), text_width(box.second, kSmallFont));
  const double inside = std::max(Grid::sum(grid.widths), std::min(text, form.most_text));
  box.width = std::max(form.least_width, inside + 2 * form.side);
  const double below = box.children.empty() ? 0 : form.top + Grid::sum(grid.heights) + form.bottom;
  box.height = std::max(form.least_height, below);
}

void place(Box& box, double x, double y) {
  box.x = x;
  box.y = y;
  const Form form = form_of(box.look);
  const Grid grid(box);
  const double left = is_core(box) ? x + (box.width - Grid::sum(grid.widths)) / 2 : x + form.side;
  double at_x = left, at_y = y + form.top;
  for (size_t i = 0; i < box.children.size(); ++i) {
    const size_t column = i % box.columns, row = i / box.columns;
    if (column == 0 && i > 0) {
      at_x = left;
      at_y += grid.heights[row - 1] + kGap;
    }
    Box& child = box.children[i];
    if (is_core(child)) {  // alike, with ranks or without
      child.width = grid.widths[column];
      child.height = grid.heights[row];
    }
    place(child, at_x, at_y);
    at_x += grid.widths[column] + kGap;
  }
}

double text_room(const Box& box) { return box.width - 2 * form_of(box.look).side; }

}  // namespace

Box box_of(Look look, std::string title) {
  Box box;
  box.look = look;
  box.title = std::move(title);
  return box;
}

Box group_of(std::vector<Box> children, size_t columns) {
  Box box;
  box.children = std::move(children);
  box.columns = std::max<size_t>(columns, 1);
  return box;
}

Box frame_of(Look look, std::string title, std::vector<Box> children) {
  std::erase_if(children, [](const Box& child) { return child.look == Look::group && child.children.empty(); });
  Box box = box_of(look, std::move(title));
  box.children = std::move(children);
  return box;
}

size_t square_columns(size_t count, double breadth) {
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(count) * breadth))));
}

void lay_out(Box& box, double x, double y) {
  measure(box);
  place(box, x, y);
}

std::string fitting_title(const Box& box) { return shortened(box.title, kFont, text_room(box)); }
std::string fitting_second(const Box& box) { return shortened(box.second, kSmallFont, text_room(box)); }

}  // namespace tutti::internal
