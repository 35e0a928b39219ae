#include "frontend/posix/policy.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "base/launcher_files.hpp"
#include "frontend/posix/mounts.hpp"
#include "target/directory_stripes.hpp"

namespace holdfast::frontend::posix {

namespace {

// Devices, the kernel's own files, memory that processes share by name (which lies in /dev/shm itself, not below it), and what the launcher
// and the MPI keep for themselves.
bool is_system(const std::string& path) {
  if (is_of_the_launcher(path)) return true;
  constexpr std::string_view shared_memory = "/dev/shm/";
  if (path.starts_with(shared_memory)) return path.find('/', shared_memory.size()) == std::string::npos;
  return path.starts_with("/dev/") || path.starts_with("/proc/") || path.starts_with("/sys/");
}

bool in_a_glob(const Settings& settings, const std::string& path) {
  return !is_system(path) &&
         std::any_of(settings.path_globs.begin(), settings.path_globs.end(), [&](const std::string& glob) { return glob_matches(glob, path); });
}

}  // namespace

bool names(const Settings& settings, const std::string& path) {
  return settings.protects() && in_a_glob(settings, path) && mount_is_meant(path, settings);
}

bool buffers(const Settings& settings, const std::string& path) {
  return !settings.protects() && settings.buffers > 0 && in_a_glob(settings, path) && mount_is_meant(path, settings);
}

bool make_with_stripes(const Settings& settings, int directory, const char* path, const std::string& absolute_path, mode_t mode) {
  const uint64_t unit = settings.striping_unit.value_or(0);
  const int factor = std::max(settings.striping_factor.value_or(0), 0);
  if (settings.protects() || (unit == 0 && factor == 0) || !in_a_glob(settings, absolute_path) || !mount_is_meant(absolute_path, settings))
    return false;
  // It is opened to be asked for the layout, and then once more by the program.
  constexpr mode_t needed = S_IRUSR | S_IWUSR;
  if ((mode & needed) != needed) return false;
  const int start = factor > 0 ? settings.start_iodevice.value_or(target::any_node) : target::any_node;
  return target::make_striped_file(directory, path, mode, {unit, factor, start}).has_value();
}

}  // namespace holdfast::frontend::posix
