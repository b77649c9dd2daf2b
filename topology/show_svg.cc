// The drawing of the boxes, in three layers: boxes, lines, and what must be readable above lines.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "topology/svg_machine.h"
#include "topology/svg_text.h"

namespace tutti::internal {
namespace {

bool is_round(const Box& box) { return box.look == Look::rank || box.look == Look::tag; }

// What lines begin and end at, and what hangs beside it.
bool is_above_lines(const Box& box) { return is_round(box) || box.look == Look::nic || box.look == Look::gpu; }

const char* class_of(Look look) {
  switch (look) {
    case Look::shaded: return "shaded";
    case Look::core: return "core";
    case Look::forbidden_core: return "forbidden";
    case Look::nic: return "nic";
    case Look::gpu: return "gpu";
    case Look::rank: return "rank";
    case Look::tag: return "tag";
    case Look::frame:
    case Look::group:
    case Look::note: break;
  }
  return "frame";
}

std::string rectangle(const Box& box) {
  if (box.look == Look::group || box.look == Look::note) return "";
  const std::string round = is_round(box) ? fmt::format(" rx=\"{:.1f}\"", box.height / 2) : "";
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"{} class=\"{}\"/>\n", box.x,
                     box.y, box.width, box.height, round, class_of(box.look));
}

std::string text_at(double x, double y, const char* style, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, xml_text(text));
}

std::string texts(const Box& box) {
  constexpr double kBelowMiddle = 3.7;  // of the line of writing
  switch (box.look) {
    case Look::group: return "";
    case Look::frame:
    case Look::shaded: return text_at(box.x + kGap, box.y + 17, "title", fitting_title(box));
    case Look::note: return text_at(box.x, box.middle_y() + kBelowMiddle, "note", fitting_title(box));
    case Look::core:
    case Look::forbidden_core: {
      const double y = box.children.empty() ? box.middle_y() + kBelowMiddle : box.y + 13;
      return text_at(box.middle_x(), y, "small", fitting_title(box));
    }
    case Look::nic:
    case Look::gpu:
      if (box.second.empty())
        return text_at(box.middle_x(), box.middle_y() + kBelowMiddle, "device", fitting_title(box));
      return text_at(box.middle_x(), box.y + 14, "device", fitting_title(box)) +
             text_at(box.middle_x(), box.y + 27, "small", fitting_second(box));
    case Look::rank: return text_at(box.middle_x(), box.middle_y() + kBelowMiddle, "number", fitting_title(box));
    case Look::tag: return text_at(box.middle_x(), box.middle_y() + kBelowMiddle, "label", fitting_title(box));
  }
  return "";
}

// Of the box and all in it, of those that are wanted.
template <class Wanted, class Draw>
std::string draw(const Box& box, Wanted wanted, Draw draw_one) {
  std::string svg = wanted(box) ? draw_one(box) : "";
  for (const Box& child : box.children) svg += draw(child, wanted, draw_one);
  return svg;
}

struct Lines {
  std::map<int, const Box*> nics;
  std::map<int, std::vector<const Box*>> starts;  // by the NIC that they go to

  void collect(const Box& box) {
    if (box.nic >= 0) nics[box.nic] = &box;
    if (box.to_nic >= 0) starts[box.to_nic].push_back(&box);
    for (const Box& child : box.children) collect(child);
  }
};

// With a white casing, so that lines which cross can be told apart.
std::string line(double x1, double y1, double x2, double y2) {
  std::string svg;
  for (const char* style : {"casing", "route"})
    svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                       style);
  return svg;
}

// Lines end side by side on the edge of the NIC's box that they come to, in the order in which they come.
std::string lines_to(const Box& nic, std::vector<const Box*> starts) {
  std::ranges::stable_sort(starts, {}, [](const Box* start) { return start->middle_x(); });
  const auto is_above = [&](const Box* start) { return start->middle_y() < nic.middle_y(); };
  const auto above = static_cast<double>(std::ranges::count_if(starts, is_above));
  const double below = static_cast<double>(starts.size()) - above;
  double at_top = 0, at_bottom = 0;
  std::string svg;
  for (const Box* start : starts) {
    const bool top = is_above(start);
    const double part = top ? ++at_top / (above + 1) : ++at_bottom / (below + 1);
    svg += line(start->middle_x(), start->middle_y(), nic.x + nic.width * part, top ? nic.y : nic.y + nic.height);
  }
  return svg;
}

std::string draw_lines(const Box& whole) {
  Lines lines;
  lines.collect(whole);
  std::string svg;
  for (const auto& [nic, starts] : lines.starts)
    if (const auto found = lines.nics.find(nic); found != lines.nics.end()) svg += lines_to(*found->second, starts);
  return svg;
}

// A text has a white edge: a line that runs behind it leaves it readable.
constexpr const char* kStyle = R"(<style>
text { font-family: sans-serif; font-size: 11px; fill: #000; stroke: #fff; stroke-width: 3px; paint-order: stroke; }
.title { font-weight: bold; }
.device { text-anchor: middle; font-weight: bold; }
.small { text-anchor: middle; font-size: 10px; }
.label { text-anchor: middle; stroke: none; }
.number { text-anchor: middle; font-weight: bold; fill: #fff; stroke: none; }
rect { stroke: #000; fill: #fff; }
.page { stroke: none; }
.shaded { fill: #eee; }
.core { stroke: #666; }
.forbidden { stroke: #bbb; fill: #ddd; stroke-dasharray: 2 2; }
.nic { stroke-width: 2.5; }
.gpu { stroke-width: 1.5; stroke-dasharray: 5 2; }
.casing { stroke: #fff; stroke-width: 4; }
.route { stroke: #000; stroke-width: 1.2; }
.rank { fill: #000; stroke: #fff; }
</style>
)";

}  // namespace

std::string to_svg(const Machine& machine, std::span<const DrawnRank> ranks) {
  const DrawnRanks drawn(ranks);
  Box whole = group_of({machine_box(machine, drawn), legend_box(machine, drawn)}, 1);
  lay_out(whole, kGap, kGap);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n",
      whole.width + 2 * kGap, whole.height + 2 * kGap);
  svg += kStyle;
  svg += "<rect width=\"100%\" height=\"100%\" class=\"page\"/>\n";  // white, whatever it is shown on
  svg += draw(
      whole, [](const Box& box) { return !is_above_lines(box); }, rectangle);
  svg += draw_lines(whole);
  svg += draw(
      whole, [](const Box& box) { return !is_above_lines(box); }, texts);
  svg += draw(whole, is_above_lines, [](const Box& box) { return rectangle(box) + texts(box); });
  return svg + "</svg>\n";
}

}  // namespace tutti::internal
