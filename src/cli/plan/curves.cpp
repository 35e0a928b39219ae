#include "cli/plan/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace holdfast::cli {

namespace {

constexpr double width = 720, height = 440, left = 80, right = 130, top = 44, bottom = 56;
// Told apart also by who does not see red from green (Okabe and Ito, 2008).
constexpr std::array colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

// Where a point of the data lies on the page.
class Page {
 public:
  Page(const std::vector<Curve>& curves, const Axes& axes) : lowest_(std::floor(std::log10(axes.least))) {
    double least = 1;
    for (const Curve& curve : curves)
      for (const auto& [x, y] : curve.points) {
        most_x_ = std::max(most_x_, x);
        if (y >= axes.least) least = std::min(least, y);
      }
    lowest_ = std::max(lowest_, std::floor(std::log10(least)));
  }
  double x(double value) const { return left + (width - left - right) * (value / most_x_); }
  double y(double value) const { return top + (height - top - bottom) * (std::log10(value) / lowest_); }
  double most_x() const { return most_x_; }
  int lowest() const { return int(lowest_); }

 private:
  double most_x_ = 1, lowest_;
};

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n", x1, y1, x2, y2, colour);
}

std::string words(double x, double y, const char* anchor, const std::string& text, const char* colour = "#222") {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}' fill='{}'>{}</text>\n", x, y, anchor, colour, text);
}

// A step of 1, 2 or 5 times a power of ten, about six of them.
double step_of(double most) {
  const double rough = most / 6, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

std::string grid(const Page& page, const Axes& axes) {
  std::string out = words((left + width - right) / 2, top - 18, "middle", axes.title);
  const int step = std::max(1, -page.lowest() / 8);
  for (int power = 0; power >= page.lowest(); power -= step) {
    const double y = page.y(std::pow(10, power));
    out += line(left, y, width - right, y, "#ddd") + words(left - 8, y + 4, "end", power == 0 ? "1" : fmt::format("1e{}", power));
  }
  for (double x = 0; x <= page.most_x(); x += step_of(page.most_x()))
    out += line(page.x(x), height - bottom, page.x(x), height - bottom + 5, "#222") +
           words(page.x(x), height - bottom + 20, "middle", fmt::format("{:g}", x));
  out += line(left, height - bottom, width - right, height - bottom, "#222") + line(left, top, left, height - bottom, "#222");
  out += words((left + width - right) / 2, height - 14, "middle", axes.x);
  return out + fmt::format("<text transform='translate(18 {:.1f}) rotate(-90)' text-anchor='middle' fill='#222'>{}</text>\n",
                           (top + height - bottom) / 2, axes.y);
}

std::string path_of(const Curve& curve, const Page& page, const Axes& axes, const char* colour) {
  std::string points;
  for (const auto& [x, y] : curve.points)
    if (y >= axes.least && std::log10(y) >= page.lowest()) points += fmt::format("{:.1f},{:.1f} ", page.x(x), page.y(y));
  return fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2'/>\n", points, colour);
}

}  // namespace

std::string svg_of(const std::vector<Curve>& curves, const Axes& axes) {
  const Page page(curves, axes);
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 {0:.0f} {1:.0f}' "
      "font-family='sans-serif' font-size='13'>\n<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  out += grid(page, axes);
  for (size_t i = 0; i < curves.size(); ++i) {
    const char* colour = colours[i % colours.size()];
    const double y = top + 16 + 20 * double(i);
    out += path_of(curves[i], page, axes, colour) + line(width - right + 12, y - 4, width - right + 34, y - 4, colour) +
           words(width - right + 40, y, "start", curves[i].name);
  }
  return out + "</svg>\n";
}

}  // namespace holdfast::cli
