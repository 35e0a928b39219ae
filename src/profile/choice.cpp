#include "profile/choice.hpp"

#include <limits.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/config.hpp"
#include "base/launcher_files.hpp"
#include "base/raw_syscalls.hpp"
#include "profile/piece.hpp"

namespace holdfast::profile {

namespace {

constexpr std::array<std::string_view, 13> system_directories{"/dev",   "/proc", "/sys",  "/etc", "/usr",  "/lib", "/lib32",
                                                              "/lib64", "/bin",  "/sbin", "/opt", "/boot", "/run"};
// An interpreter's own.
constexpr std::array<std::string_view, 2> package_directories{"/site-packages/", "/dist-packages/"};

// Preloaded like the programs that they start; what they do is not the job's.
constexpr std::string_view launchers[] = {"mpirun",
                                          "mpiexec",
                                          "mpiexec.hydra",
                                          "mpiexec.mpich",
                                          "mpiexec.openmpi",
                                          "mpirun.mpich",
                                          "mpirun.openmpi",
                                          "orterun",
                                          "orted",
                                          "prte",
                                          "prted",
                                          "prterun",
                                          "prun",
                                          "hydra_pmi_proxy",
                                          "hydra_bstrap_proxy",
                                          "hydra_nameserver",
                                          "srun",
                                          "slurmstepd",
                                          "ssh",
                                          "rsh",
                                          "sh",
                                          "bash",
                                          "dash",
                                          "zsh",
                                          "ksh",
                                          "busybox",
                                          "env",
                                          "timeout",
                                          "time",
                                          "nice",
                                          "numactl",
                                          "taskset"};

bool lies_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

// libm.so, libm.so.6
bool is_library(std::string_view path) { return path.ends_with(".so") || path.find(".so.", path.rfind('/') + 1) != path.npos; }

bool has_rank_or_is_alone() {
  return environment_variable("HOLDFAST_PROFILE_PIECES").empty() || !rank_of_environment().empty() || !environment_variable("HOLDFAST_RANK").empty();
}

bool is_launcher() {
  char path[PATH_MAX];
  const ssize_t length = raw::readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path);
  const std::string_view whole(path, size_t(std::max<ssize_t>(length, 0)));
  return std::find(std::begin(launchers), std::end(launchers), whole.substr(whole.rfind('/') + 1)) != std::end(launchers);
}

}  // namespace

bool is_of_the_system(std::string_view path) {
  const auto holds = [=](std::string_view part) { return path.find(part) != path.npos; };
  return path.empty() || is_library(path) || path.ends_with(".pyc") || is_of_the_launcher(path) ||
         std::any_of(package_directories.begin(), package_directories.end(), holds) ||
         std::any_of(system_directories.begin(), system_directories.end(), [=](auto directory) { return lies_below(path, directory); });
}

bool counts(std::string_view path, const std::vector<std::string>& excluded, bool served) {
  bool counted = !path.empty() && (served || !is_of_the_system(path));
  for (const std::string& glob : excluded) {
    const bool back = glob.starts_with('!');
    if (glob_matches(back ? glob.substr(1) : glob, std::string(path))) counted = back;
  }
  return counted;
}

bool counts_plain_calls() {
  if (!on()) return false;
  static std::atomic<int> known{-1};
  const int now = known.load(std::memory_order_relaxed);
  if (now >= 0) [[likely]]
    return now;
  const bool they = has_rank_or_is_alone() && !is_launcher();
  known.store(they, std::memory_order_relaxed);
  return they;
}

}  // namespace holdfast::profile
