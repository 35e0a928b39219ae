// A plot of some curves, the second axis by powers of ten.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x > 0 in rising order, y in (0, 1]
};
struct Axes {
  std::string title, x, y;
  double least;  // of y; what is less is not drawn
};
// One SVG file.
std::string svg_of(const std::vector<Curve>& curves, const Axes& axes);

}  // namespace holdfast::cli
