// The drawing: boxes within boxes, measured from the inside out and then placed from the outside in.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "topology/show.h"

namespace tutti::internal {
namespace {

// Pixels.
constexpr double kGap = 8;
constexpr double kTitle = 18;
constexpr double kCoreWidth = 30, kCoreHeight = 24;
constexpr double kDeviceHeight = 34;
constexpr double kLetter = 6.6;  // a letter's width at the size of the titles
constexpr double kDisc = 9;

enum class Look { group, frame, shaded, core, forbidden_core, nic, gpu };

struct Box {
  Look look = Look::group;
  std::string title;
  std::string second;  // a device's second line
  std::vector<Box> children;
  size_t columns = 1;
  int core = -1, nic = -1;  // whose box it is
  double x = 0, y = 0, width = 0, height = 0;

  bool has_frame() const { return look == Look::frame || look == Look::shaded; }
};

Box group(std::vector<Box> children, size_t columns) {
  return {.look = Look::group, .title = {}, .second = {}, .children = std::move(children), .columns = columns};
}

Box frame(Look look, std::string title, std::vector<Box> children) {
  std::erase_if(children, [](const Box& child) { return child.look == Look::group && child.children.empty(); });
  return {.look = look, .title = std::move(title), .second = {}, .children = std::move(children), .columns = 1};
}

// As broad as it is high, or a little broader.
size_t square_columns(size_t count, double breadth) {
  return std::max<size_t>(1, static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(count) * breadth))));
}

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
  const double letters = kLetter * static_cast<double>(std::max(box.title.size(), box.second.size()));
  switch (box.look) {
    case Look::core:
    case Look::forbidden_core:
      box.width = kCoreWidth;
      box.height = kCoreHeight;
      return;
    case Look::nic:
    case Look::gpu:
      box.width = letters + 2 * kGap;
      box.height = kDeviceHeight;
      return;
    case Look::group:
    case Look::frame:
    case Look::shaded: break;
  }
  const Grid grid(box);
  const double border = box.has_frame() ? 2 * kGap : 0;
  box.width = std::max(Grid::sum(grid.widths), box.has_frame() ? letters : 0) + border;
  box.height = Grid::sum(grid.heights) + border + (box.has_frame() ? kTitle : 0);
}

void place(Box& box, double x, double y) {
  box.x = x;
  box.y = y;
  const Grid grid(box);
  const double left = x + (box.has_frame() ? kGap : 0);
  double at_x = left, at_y = y + (box.has_frame() ? kGap + kTitle : 0);
  for (size_t i = 0; i < box.children.size(); ++i) {
    const size_t column = i % box.columns;
    if (column == 0 && i > 0) {
      at_x = left;
      at_y += grid.heights[i / box.columns - 1] + kGap;
    }
    place(box.children[i], at_x, at_y);
    at_x += grid.widths[column] + kGap;
  }
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '<')
      result += "&lt;";
    else if (letter == '&')
      result += "&amp;";
    else if (letter == '>')
      result += "&gt;";
    else
      result += letter;
  }
  return result;
}

std::string text_at(double x, double y, const char* style, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, escaped(text));
}

const char* style_of(Look look) {
  switch (look) {
    case Look::shaded: return "shaded";
    case Look::core: return "core";
    case Look::forbidden_core: return "forbidden";
    case Look::nic: return "nic";
    case Look::gpu: return "gpu";
    case Look::group:
    case Look::frame: break;
  }
  return "frame";
}

std::string draw(const Box& box) {
  std::string svg;
  if (box.look != Look::group)
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>\n", box.x,
                       box.y, box.width, box.height, style_of(box.look));
  const double middle = box.x + box.width / 2;
  if (box.has_frame()) {
    svg += text_at(box.x + kGap, box.y + kTitle - 2, "title", box.title);
  } else if (box.look == Look::nic || box.look == Look::gpu) {
    svg += text_at(middle, box.y + 14, "device", box.title);
    svg += text_at(middle, box.y + 27, "small", box.second);
  } else if (box.look != Look::group) {
    svg += text_at(middle, box.y + 16, "small", box.title);
  }
  for (const Box& child : box.children) svg += draw(child);
  return svg;
}

// Makes the boxes of one machine.
class Boxes {
 public:
  explicit Boxes(const Machine& machine) : machine_(machine) {}

  Box whole() const {
    std::vector<Box> packages;
    for (int i = 0; i < static_cast<int>(machine_.packages.size()); ++i) packages.push_back(package(i));
    std::vector<Box> parts{group(std::move(packages), machine_.packages.size() > 2 ? 2 : machine_.packages.size())};
    parts.push_back(group(cores([](const Core& core) { return core.package < 0; }), kManyColumns));
    parts.push_back(devices([](const Place& place) { return place.package < 0 && place.numa < 0; }));
    return frame(Look::frame, machine_.host.empty() ? machine_.source : machine_.host + " (" + machine_.source + ")",
                 std::move(parts));
  }

 private:
  static constexpr size_t kManyColumns = 16;

  template <class Wanted>
  std::vector<Box> cores(Wanted wanted) const {
    std::vector<Box> boxes;
    for (int i = 0; i < static_cast<int>(machine_.cores.size()); ++i) {
      const Core& core = machine_.cores[i];
      if (!wanted(core)) continue;
      const bool allowed = !intersection(core.cpus, machine_.allowed).empty();
      boxes.push_back({.look = allowed ? Look::core : Look::forbidden_core,
                       .title = std::to_string(i),
                       .second = {},
                       .children = {},
                       .core = i});
    }
    return boxes;
  }

  template <class Wanted>
  Box devices(Wanted wanted) const {
    std::vector<Box> boxes;
    for (int i = 0; i < static_cast<int>(machine_.nics.size()); ++i) {
      const Nic& nic = machine_.nics[i];
      if (!wanted(nic.place) || !nic.why_no_use.empty()) continue;
      const std::string speed = nic.gbytes() > 0 ? fmt::format(" {:.3g} GB/s", nic.gbytes()) : "";
      const std::string other = nic.rdma.empty() || nic.nets.empty() ? "" : nic.nets.front();
      boxes.push_back({.look = Look::nic,
                       .title = nic.name(),
                       .second = (other.empty() ? "NIC" : other) + speed,
                       .children = {},
                       .nic = i});
    }
    for (const Gpu& gpu : machine_.gpus)
      if (wanted(gpu.place)) boxes.push_back({.look = Look::gpu, .title = gpu.name(), .second = "GPU", .children = {}});
    const size_t columns = square_columns(boxes.size(), 2);
    return group(std::move(boxes), columns);
  }

  // Cores under their caches, and those without one.
  template <class Wanted>
  std::vector<Box> processors(Wanted wanted) const {
    std::vector<Box> caches;
    for (int l3 = 0; l3 < static_cast<int>(machine_.l3_domains.size()); ++l3) {
      auto inside = cores([&](const Core& core) { return core.l3 == l3 && wanted(core); });
      if (inside.empty()) continue;
      const auto mebibytes = static_cast<double>(machine_.l3_domains[l3].cache_bytes) / (1 << 20);
      const size_t columns = square_columns(inside.size(), 2);
      std::vector<Box> content{group(std::move(inside), columns)};
      caches.push_back(frame(Look::frame, fmt::format("L3 {:.3g} MiB", mebibytes), std::move(content)));
    }
    auto bare = cores([&](const Core& core) { return core.l3 < 0 && wanted(core); });
    const size_t columns = square_columns(bare.size(), 2), cache_columns = square_columns(caches.size(), 2);
    std::vector<Box> parts;
    parts.push_back(group(std::move(caches), cache_columns));
    parts.push_back(group(std::move(bare), columns));
    return parts;
  }

  Box numa(int index) const {
    const NumaNode& node = machine_.numa_nodes[index];
    auto parts = processors([&](const Core& core) { return core.numa == index; });
    parts.push_back(devices([&](const Place& place) { return place.numa == index; }));
    const double gibibytes = static_cast<double>(node.memory_bytes) / (1 << 30);
    return frame(Look::shaded,
                 fmt::format("NUMA node {}: {:.4g} GiB{}", node.os_index, gibibytes,
                             node.kind == MemoryKind::dram ? "" : fmt::format(", {}", to_string(node.kind))),
                 std::move(parts));
  }

  Box package(int index) const {
    const Package& package = machine_.packages[index];
    std::vector<Box> nodes;
    for (int i = 0; i < static_cast<int>(machine_.numa_nodes.size()); ++i)
      if (!machine_.numa_nodes[i].cpus.empty() && contains(package.cpus, machine_.numa_nodes[i].cpus))
        nodes.push_back(numa(i));
    const size_t columns = std::min<size_t>(2, std::max<size_t>(1, nodes.size()));
    std::vector<Box> parts;
    parts.push_back(group(std::move(nodes), columns));
    for (Box& part : processors([&](const Core& core) {
           return core.package == index && (core.numa < 0 || !is_inside(core.numa, package));
         }))
      parts.push_back(std::move(part));
    parts.push_back(devices([&](const Place& place) {
      return place.package == index && (place.numa < 0 || !is_inside(place.numa, package));
    }));
    return frame(Look::frame,
                 fmt::format("package {}{}", package.os_index, package.model.empty() ? "" : ": " + package.model),
                 std::move(parts));
  }

  // A node may span packages: then its cores are drawn in theirs.
  bool is_inside(int numa, const Package& package) const {
    return contains(package.cpus, machine_.numa_nodes[numa].cpus);
  }

  const Machine& machine_;
};

struct Point {
  double x = 0, y = 0;
};

// The middles of cores and NICs on the drawing.
struct Middles {
  std::map<int, Point> cores, nics;

  void collect(const Box& box) {
    const Point middle{box.x + box.width / 2, box.y + box.height / 2};
    if (box.core >= 0) cores[box.core] = middle;
    if (box.nic >= 0) nics[box.nic] = {middle.x, box.y};
    for (const Box& child : box.children) collect(child);
  }
};

std::string draw_ranks(const Middles& middles, std::span<const DrawnRank> ranks) {
  std::string lines, discs;
  std::map<int, int> on_core;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto core = middles.cores.find(ranks[rank].core);
    if (core == middles.cores.end()) continue;
    // Several ranks of one core stand beside each other.
    const double shift = 5.0 * on_core[ranks[rank].core]++;
    const Point at{core->second.x + shift, core->second.y + shift};
    if (const auto nic = middles.nics.find(ranks[rank].nic); nic != middles.nics.end())
      lines += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"route\"/>\n", at.x,
                           at.y, nic->second.x, nic->second.y);
    discs += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"rank\"/>\n", at.x, at.y, kDisc);
    discs += text_at(at.x, at.y + 3.5, "number", std::to_string(rank));
  }
  return lines + discs;
}

constexpr const char* kStyle = R"(<style>
text { font-family: sans-serif; font-size: 11px; fill: #000; }
.title { font-weight: bold; }
.device { text-anchor: middle; font-weight: bold; }
.small { text-anchor: middle; font-size: 10px; }
.number { text-anchor: middle; font-size: 10px; font-weight: bold; fill: #fff; }
rect { stroke: #000; fill: #fff; }
.shaded { fill: #eee; }
.core { stroke: #666; }
.forbidden { stroke: #bbb; fill: #ddd; stroke-dasharray: 2 2; }
.nic { stroke-width: 2.5; }
.gpu { stroke-width: 1.5; stroke-dasharray: 5 2; }
.route { stroke: #000; stroke-width: 1.2; stroke-opacity: 0.75; }
.rank { fill: #000; stroke: #fff; }
</style>
)";

}  // namespace

std::string to_svg(const Machine& machine, std::span<const DrawnRank> ranks) {
  Box whole = Boxes(machine).whole();
  measure(whole);
  place(whole, kGap, kGap);
  Middles middles;
  middles.collect(whole);
  const double width = whole.width + 2 * kGap, height = whole.height + 2 * kGap;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n",
      width, height);
  svg += kStyle;
  svg += draw(whole) + draw_ranks(middles, ranks);
  return svg + "</svg>\n";
}

}  // namespace tutti::internal
