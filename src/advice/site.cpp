#include "advice/site.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace holdfast::advice {

bool Place::local() const {
  static constexpr std::array<std::string_view, 7> kernels_own{"tmpfs", "ext4", "xfs", "btrfs", "overlayfs", "f2fs", "zfs"};
  return std::find(kernels_own.begin(), kernels_own.end(), file_system) != kernels_own.end();
}

Place Site::place_of(const std::string& path) const {
  const Place* best = nullptr;
  size_t longest = 0;
  for (const auto& [below, place] : places_) {
    const bool inside = path.starts_with(below) && (path.size() == below.size() || below.ends_with('/') || path[below.size()] == '/');
    if (inside && below.size() >= longest) best = &place, longest = below.size();
  }
  return best ? *best : Place();
}

}  // namespace holdfast::advice
