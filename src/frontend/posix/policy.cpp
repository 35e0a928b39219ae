#include "frontend/posix/policy.hpp"

#include <algorithm>
#include <string_view>

#include "frontend/posix/mounts.hpp"

namespace holdfast::frontend::posix {

namespace {

// Devices, the kernel's own files, and memory that processes share by name (which lies in /dev/shm itself, not below it).
bool is_system(const std::string& path) {
  constexpr std::string_view shared_memory = "/dev/shm/";
  if (path.starts_with(shared_memory)) return path.find('/', shared_memory.size()) == std::string::npos;
  return path.starts_with("/dev/") || path.starts_with("/proc/") || path.starts_with("/sys/");
}

bool in_a_glob(const Settings& settings, const std::string& path) {
  return !is_system(path) && std::any_of(settings.path_globs.begin(), settings.path_globs.end(),
                                         [&](const std::string& glob) { return glob_matches(glob, path); });
}

}  // namespace

bool names(const Settings& settings, const std::string& path) { return settings.protects() && in_a_glob(settings, path) && mount_is_meant(path, settings); }

bool buffers(const Settings& settings, const std::string& path) {
  return !settings.protects() && settings.buffers > 0 && in_a_glob(settings, path) && mount_is_meant(path, settings);
}

}  // namespace holdfast::frontend::posix
