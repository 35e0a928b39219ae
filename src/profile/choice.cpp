#include "profile/choice.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/config.hpp"
#include "profile/piece.hpp"

namespace holdfast::profile {

namespace {

constexpr std::array<std::string_view, 12> system_directories{"/dev", "/proc", "/sys", "/etc", "/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/boot", "/run"};

bool lies_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

// libm.so, libm.so.6
bool is_library(std::string_view path) { return path.ends_with(".so") || path.find(".so.", path.rfind('/') + 1) != path.npos; }

bool has_rank_or_is_alone() {
  return environment_variable("HOLDFAST_PROFILE_PIECES").empty() || !rank_of_environment().empty();
}

}  // namespace

bool counts(std::string_view path, const std::vector<std::string>& excluded) {
  if (path.empty() || is_library(path) || path.ends_with(".pyc")) return false;
  if (std::any_of(system_directories.begin(), system_directories.end(), [=](auto directory) { return lies_below(path, directory); })) return false;
  return std::none_of(excluded.begin(), excluded.end(), [named = std::string(path)](const std::string& glob) { return glob_matches(glob, named); });
}

bool counts_plain_calls() {
  if (!on()) return false;
  static std::atomic<int> known{-1};
  const int now = known.load(std::memory_order_relaxed);
  if (now >= 0) [[likely]] return now;
  const bool they = has_rank_or_is_alone();
  known.store(they, std::memory_order_relaxed);
  return they;
}

}  // namespace holdfast::profile
