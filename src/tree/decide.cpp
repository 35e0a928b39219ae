#include "tree/decide.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/config.hpp"
#include "base/find_number.hpp"
#include "base/launcher_files.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "tree/mounts.hpp"

namespace holdfast::tree {

namespace {

bool in_a_glob(const Settings& settings, const std::string& path) {
  const auto& globs = settings.path_globs;
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return glob_matches(glob, path); });
}

// What a path that the glob matches ends with, whatever its wildcards stand for.
std::string_view fixed_end(std::string_view glob) {
  const size_t last = glob.find_last_of("*?[]\\/");
  return last == std::string_view::npos ? glob : glob.substr(last + 1);
}

// False: no glob matches, wherever the path's directories lead. To follow them costs calls of the system, and most files are none of ours.
bool may_be_in_a_glob(const Settings& settings, const std::string& path) {
  const std::string name = catalog::name_of(path);
  if (name.empty() || name == "." || name == "..") return true;  // named by what a directory leads to
  const auto may = [&](const std::string& glob) {
    return glob.find('/') == std::string::npos ? glob_matches(glob, path) : path.ends_with(fixed_end(glob));
  };
  return std::any_of(settings.path_globs.begin(), settings.path_globs.end(), may);
}

bool is_meant_as(const Settings& settings, const std::string& path, const Scope& scope) {
  if (scope.leaves_system_files && is_of_the_system(path)) return false;
  return in_a_glob(settings, path) && (!scope.heeds_mounts || mount_is_meant(path, settings));
}

Decision stays_plain(std::string remark) { return {Way::as_without, {}, std::move(remark)}; }
Status already_there() { return Status(Kind::exists, "", EEXIST); }

}  // namespace

// Shared memory with a name lies in /dev/shm itself, not below it.
bool is_of_the_system(const std::string& path) {
  if (is_of_the_launcher(path)) return true;
  constexpr std::string_view shared_memory = "/dev/shm/";
  if (path.starts_with(shared_memory)) return path.find('/', shared_memory.size()) == std::string::npos;
  return path.starts_with("/dev/") || path.starts_with("/proc/") || path.starts_with("/sys/");
}

bool is_temporary(const std::string& path) {
  const std::string chosen = environment_variable("TMPDIR");
  const auto lies_in = [&](std::string_view directory) {
    return !directory.empty() && path.starts_with(directory) && (directory.back() == '/' || path.substr(directory.size(), 1) == "/");
  };
  return lies_in("/tmp") || lies_in("/var/tmp") || lies_in("/run") || lies_in("/dev/shm") || lies_in(chosen);
}

bool is_of_this_process(const std::string& path) {
  return is_temporary(path) && tells_a_process(::getpid()) && find_number(path, std::to_string(::getpid())) != std::string::npos;
}

bool is_meant(const Settings& settings, const std::string& path, const Scope& scope) {
  // Where only checkpoints are kept, nothing else is.
  if (settings.path_globs.empty() && (!scope.all_without_globs || !settings.checkpoint.empty())) return false;
  if (!scope.follows_directories) return is_meant_as(settings, path, scope);
  return (settings.path_globs.empty() || may_be_in_a_glob(settings, path)) && is_meant_as(settings, catalog::absolute_path(path), scope);
}

bool is_named(const Settings& settings, const std::string& path, const Scope& scope) {
  return settings.protects() && is_meant(settings, path, scope);
}

bool is_buffered(const Settings& settings, const std::string& path, const Scope& scope) {
  return settings.buffers > 0 && !settings.protects() && is_meant(settings, path, scope);
}

std::optional<target::StripeWish> stripes_of_plain(const Settings& settings, const std::string& path, const Scope& scope) {
  const uint64_t unit = settings.striping_unit.value_or(0);
  const int factor = std::max(settings.striping_factor.value_or(0), 0);
  if (settings.protects() || (unit == 0 && factor == 0) || !is_meant(settings, path, scope)) return std::nullopt;
  return target::StripeWish{unit, factor, factor > 0 ? settings.start_iodevice.value_or(target::any_node) : target::any_node};
}

namespace {

template <class Named>
Decision decide_by(Named named, const std::string& path, const Standing& there, const Opening& opening, const Settings& settings,
                   const Scope& scope) {
  const auto is_wanted = [&] { return opening.writes && named(); };
  switch (there.kind) {
    case catalog::PathKind::protected_file: {
      const bool first = opening.creates && opening.exclusive;
      const bool may_be_made = opening.creates && (!first || scope.torn_is_never_a_file);
      // What a power cut has left of a creation is no file yet.
      if (may_be_made && named() && catalog::is_torn_creation(path)) break;
      if (first) return {Way::refuse, already_there(), {}};
      return {Way::find, {}, {}};
    }
    case catalog::PathKind::plain:
      if (opening.exclusive || !is_wanted()) return {};
      return stays_plain("exists and is not protected, and stays so; to protect it run: holdfast import " + shell_word(path) + " NEW");
    case catalog::PathKind::other: return {};
    case catalog::PathKind::absent:
      if (!opening.creates || !is_wanted()) return {};  // the native call has the right error, or makes the file
      break;
    case catalog::PathKind::empty:
      if (opening.exclusive || there.has_second_names || !is_wanted()) return {};
      if (there.is_mapped) return stays_plain("is mapped by this program, which could not see what is written to a protected file, and stays plain");
      break;
  }
  if (const Status status = scope.refuses_by_settings ? settings.check() : Status(); !status.ok()) return {Way::refuse, status, {}};
  return {Way::make, {}, {}};
}

}  // namespace

Decision decide(const std::string& path, const Standing& there, const Opening& opening, const Settings& settings, const Scope& scope) {
  return decide_by([&] { return is_named(settings, path, scope); }, path, there, opening, settings, scope);
}

Decision decide_named(const std::string& path, const Standing& there, const Opening& opening, const Settings& settings, const Scope& scope) {
  return decide_by([] { return true; }, path, there, opening, settings, scope);
}

}  // namespace holdfast::tree
