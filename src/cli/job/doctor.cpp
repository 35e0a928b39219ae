// holdfast doctor [DIR…]: what of this machine, its settings and its directories helps or hinders Holdfast, each with its mend.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/node_path.hpp"
#include "base/raw_syscalls.hpp"
#include "base/say.hpp"
#include "catalog/catalog.hpp"
#include "catalog/descriptors.hpp"
#include "cli/command.hpp"
#include "cli/files/sets.hpp"
#include "cli/job/doctor_findings.hpp"
#include "cli/job/doctor_nodes.hpp"
#include "cli/job/launcher.hpp"
#include "cli/job/program.hpp"
#include "cli/log/site.hpp"
#include "cli/output.hpp"
#include "layout/geometry.hpp"
#include "target/lane.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::cli {

namespace {

struct DoctorOptions {
  std::vector<std::string> directories;
  std::string hosts;
  bool json = false;
  SettingsOptions settings;
};

Findings look_at_versions() {
  Findings found("version");
  utsname system = {};
  ::uname(&system);
  found.ok(fmt::format("holdfast {} on {} {} ({})", HOLDFAST_VERSION, system.sysname, system.release, system.machine));
  return found;
}

void look_at_launcher(Findings& found, const Launcher& launcher) {
  const Mpi mpi = detect_mpi({launcher.file});
  const std::string called = fmt::format("{} ({})", fmt::join(launcher.words, ", "), launcher.file);
  if (!mpi.launcher) {
    found.warn(fmt::format("{} does not say which MPI it is of: run it with 'holdfast run --library NAME', or mend its installation", called));
    return;
  }
  const auto library = find_library(mpi, "");
  if (library) return found.ok(fmt::format("{} is {} {}, served by {}", called, mpi.name, mpi.version, *library));
  const std::string sentence = fmt::format("{}: {}", called, library.status().sentence());
  // An MPI that lies about under longer names may be nobody's choice.
  const bool first_choice =
      std::any_of(launcher.words.begin(), launcher.words.end(), [](const std::string& word) { return word == "mpirun" || word == "mpiexec"; });
  first_choice ? found.fail(sentence) : found.warn(sentence);
}

Findings look_at_mpis() {
  Findings found("mpi");
  const std::vector<std::string> built = built_libraries();
  if (std::find(built.begin(), built.end(), "posix") == built.end())
    found.fail("the library for programs without MPI (libholdfast-posix.so) is not beside this command: install Holdfast again with 'make install'");
  if (!built.empty()) found.ok(fmt::format("libraries are in place for {}", fmt::join(built, ", ")));
  const std::vector<Launcher> launchers = launchers_on_path();
  if (launchers.empty()) found.warn("no mpirun or mpiexec is on the PATH: load an MPI's module or extend PATH, if the programs need MPI");
  for (const Launcher& launcher : launchers) look_at_launcher(found, launcher);
  return found;
}

// What a call that may hang has to say of a directory.
struct Place {
  Findings found{"directory"};
  dev_t device = 0;
};

void look_at_space(Findings& found, const std::string& path, const struct statfs& fs) {
  const uint64_t block = uint64_t(fs.f_frsize ? fs.f_frsize : fs.f_bsize), total = fs.f_blocks * block, free = fs.f_bavail * block;
  constexpr uint64_t nearly_full = 20;  // less than a twentieth is free
  if (total && free == 0) return found.fail(fmt::format("{} is full: remove something there, or choose another directory", path));
  if (fs.f_files && fs.f_ffree == 0)
    return found.fail(fmt::format("{} has no place for another file: remove some there, or choose another directory", path));
  const std::string sentence = fmt::format("{} has {} free of {}", path, human_bytes(free), human_bytes(total));
  if (free < total / nearly_full) found.warn(sentence + ": make room before a large job, or choose another directory");
  else found.ok(sentence);
}

void look_at_locks(Findings& found, const std::string& path, int directory, uint64_t magic) {
  if (target::locks_reach_all_nodes(directory, magic)) {
    if (target::lock_way() == target::LockWay::names) found.ok(fmt::format("{} could lock by the kernel; the setting locks asks for names", path));
    return;
  }
  if (target::lock_way() == target::LockWay::kernel)
    found.fail(fmt::format("{}: the kernel's locks stop at the node there, and the setting locks is 'kernel': set it to auto", path));
  else
    found.warn(
        fmt::format("{}: the kernel's locks stop at the node, so slower locks by name are used too: mount it with locks at its server (NFS "
                    "without nolock and local_lock, Lustre with flock)",
                    path));
}

// Answers an errno; a write that stops short says why when it is gone on with.
int write_block(int file) {
  const std::string block(4096, 'h');
  for (size_t done = 0; done < block.size();) {
    const ssize_t written = ::pwrite(file, block.data() + done, block.size() - done, off_t(done));
    if (written <= 0) return written < 0 ? errno : EIO;
    done += size_t(written);
  }
  return ::fsync(file) == 0 ? 0 : errno;
}

// Makes a small file there and removes it: whether that goes, quotas included, only trying shows.
void try_a_file(Findings& found, const std::string& path, int directory) {
  const std::string name = fmt::format(".holdfast-doctor-{}", ::getpid()), second = name + "-link";
  const raw::Fd file(::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    const int reason = errno;
    return found.fail(
        fmt::format("{}: no file can be made there ({}): mend its permissions or mount, or choose another directory", path, std::strerror(reason)));
  }
  const int reason = write_block(file.get());
  const bool attributes = ::fsetxattr(file.get(), "user.holdfast", "1", 1, 0) == 0;
  const bool links = ::linkat(directory, name.c_str(), directory, second.c_str(), 0) == 0;
  if (links) ::unlinkat(directory, second.c_str(), 0);
  ::unlinkat(directory, name.c_str(), 0);
  if (reason)
    return found.fail(fmt::format("{}: a file there cannot be written ({}): mend the quota or the mount, or choose another directory", path,
                                  std::strerror(reason)));
  found.ok(
      fmt::format("{} can be written, {} extended attributes and {} hard links", path, attributes ? "with" : "without", links ? "with" : "without"));
}

bool is_empty(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_empty(path, error);
}

void look_at_place(Place& place, const std::string& path, bool as_target) {
  Findings& found = place.found;
  const raw::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    const int reason = errno;
    return found.fail(
        fmt::format("{} cannot be opened as a directory ({}): make it (mkdir -p {}), or is a mount missing?", path, std::strerror(reason), path));
  }
  struct stat st = {};
  struct statfs fs = {};
  if (::fstat(directory.get(), &st) != 0 || ::fstatfs(directory.get(), &fs) != 0)
    return found.fail(fmt::format("{} does not say what it is ({}): mend its mount", path, std::strerror(errno)));
  place.device = st.st_dev;
  const uint64_t magic = uint64_t(fs.f_type) & 0xffffffffu;
  const std::string kind = name_of_file_system(magic);
  found.ok(
      fmt::format("{} is on {}, where {}", path, kind.empty() ? fmt::format("a file system of kind {:#x}", magic) : kind,
                  target::caches_by_node(magic) ? "each node caches for itself: others see a write after its close" : "a write is seen at once"));
  look_at_locks(found, path, directory.get(), magic);
  if (as_target && !is_target(path) && !is_empty(path)) found.fail(fmt::format("{} is not empty and is not a target: give an empty directory", path));
  if (fs.f_flags & ST_RDONLY) return found.fail(fmt::format("{} is mounted read-only: mount it for writing, or choose another directory", path));
  look_at_space(found, path, fs);
  try_a_file(found, path, directory.get());
}

// In a lane: a dead mount is a finding, too, and not the end of all others.
Place look_at_place_in_time(const std::string& path, bool as_target, const Settings& settings) {
  auto lane = target::make_companion_lane(path, std::chrono::milliseconds(settings.deadline_ms));
  auto place = std::make_shared<Place>();
  const Status done = lane->run([place, path, as_target] {
    look_at_place(*place, path, as_target);
    return Status();
  });
  if (done) return std::move(*place);
  Place late;
  late.found.fail(
      fmt::format("{} does not answer within {}: mend its mount or leave it out", path, human_seconds(double(settings.deadline_ms) / 1000)));
  return late;
}

Findings look_at_places(const DoctorOptions& options, const Settings& settings) {
  Findings found("directory");
  std::map<dev_t, std::vector<std::string>> targets;  // by device
  for (const std::string& path : settings.targets) {
    if (names_a_node(path)) continue;
    Place place = look_at_place_in_time(path, true, settings);
    if (place.device) targets[place.device].push_back(path);
    found.add(std::move(place.found));
  }
  for (const auto& [device, paths] : targets)
    if (paths.size() > 1)
      found.warn(
          fmt::format("targets {} are on one device and are lost together: put them on devices of their own where you can", fmt::join(paths, ", ")));
  std::vector<std::string> directories;
  for (const std::string& path : options.directories) directories.push_back(path_from_here(path));
  if (!settings.log_directory.empty()) directories.push_back(path_from_here(settings.log_directory));
  const std::string here = path_from_here("");
  if (std::find(directories.begin(), directories.end(), here) == directories.end()) directories.push_back(here);
  for (const std::string& path : directories) found.add(look_at_place_in_time(path, false, settings).found);
  return found;
}

// A file in its own directory needs storage nodes of the file system's. Whether it has them, only making a file shows.
Status try_a_protected_file(const std::string& directory, const Settings& settings) {
  const std::string path = fmt::format("{}/.holdfast-doctor-{}", directory, ::getpid());
  const Status made = catalog::create(path, settings, 0600).status();
  if (made.ok()) return catalog::remove(path, settings);
  std::string sentence = made.sentence();
  for (size_t at; (at = sentence.find(path)) != std::string::npos;) sentence.replace(at, path.size(), directory);
  return Status(made.kind(), std::move(sentence), made.sys_errno());
}

Findings look_at_protection(const DoctorOptions& options, const Settings& settings) {
  Findings found("protection");
  if (!settings.protect || !layout::Scheme::parse(*settings.protect) || !settings.targets.empty() || !settings.local.empty()) return found;
  std::vector<std::string> directories;
  for (const std::string& path : options.directories) directories.push_back(path_from_here(path));
  if (directories.empty()) directories.push_back(path_from_here(""));
  for (const std::string& path : directories) {
    auto lane = target::make_companion_lane(path, std::chrono::milliseconds(settings.deadline_ms));
    const Status tried = lane->run([path, settings] {
      return ::access(path.c_str(), W_OK | X_OK) == 0 ? try_a_protected_file(path, settings) : Status(Kind::timed_out, "it has been told");
    });
    if (tried.ok()) found.ok(fmt::format("a file of {} can be made in {}", *settings.protect, path));
    else if (tried.kind() != Kind::timed_out) found.fail(tried.sentence());
  }
  return found;
}

// Of a file of the settings' scheme; 0 where there is none.
size_t members_of_file(const Settings& settings) {
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  return scheme ? std::max(settings.targets.size(), size_t(scheme->width())) : 0;
}

// Each target is asked by a thread, for which the C library sets a heap and a stack aside. Hardly any of it is ever used.
void look_at_addresses(Findings& found, const Settings& settings) {
  constexpr rlim_t of_program = 256ull << 20, of_target = 128ull << 20;
  rlimit limit = {};
  const rlim_t least = of_program + of_target * members_of_file(settings);
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= least) return;
  found.warn(
      fmt::format("a process may have {} of addresses, and may need {}: ulimit -v unlimited", human_bytes(limit.rlim_cur), human_bytes(least)));
}

void look_at_open_files(Findings& found, const Settings& settings) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  // An MPI's own, and for some protected files one on each target.
  const rlim_t enough = 256 + 16 * settings.targets.size();
  const size_t members = members_of_file(settings);
  const rlim_t least = members ? rlim_t(catalog::least_descriptors(members)) : 0;
  const std::string sentence = fmt::format("a process may have {} open files", limit.rlim_cur);
  const std::string mend = fmt::format("ulimit -n {}", std::max<rlim_t>(enough, 1024));
  if (limit.rlim_cur < least) found.fail(fmt::format("{}, and one that writes files of {} needs {}: {}", sentence, *settings.protect, least, mend));
  else if (limit.rlim_cur < enough) found.warn(fmt::format("{}, which is few: {}", sentence, mend));
  else found.ok(sentence);
}

void look_at_shared_memory(Findings& found) {
  constexpr uint64_t little = 64ull << 20;  // what Docker gives, and MPIs on one node find too small
  struct statfs fs = {};
  if (::statfs("/dev/shm", &fs) != 0 || ::access("/dev/shm", W_OK) != 0)
    return found.warn("/dev/shm cannot be used, which most MPIs need: mount it (mount -t tmpfs tmpfs /dev/shm)");
  const uint64_t free = fs.f_bavail * uint64_t(fs.f_bsize);
  const std::string sentence = fmt::format("/dev/shm has {} free", human_bytes(free));
  if (free > little || fs.f_blocks == 0) found.ok(sentence);
  else found.warn(sentence + ", which is little for an MPI: remount it larger (containers: --shm-size=1g)");
}

Findings look_at_limits(const Settings& settings) {
  Findings found("limit");
  look_at_open_files(found, settings);
  look_at_addresses(found, settings);
  look_at_shared_memory(found);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    found.warn(fmt::format("no file may grow beyond {}: ulimit -f unlimited", human_bytes(limit.rlim_cur)));
  // Networks that write to memory by themselves have it locked; without them the limit matters to nobody.
  if (::access("/sys/class/infiniband", F_OK) == 0 && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    found.warn(fmt::format("a process may lock {} of memory, and this node has InfiniBand: ulimit -l unlimited", human_bytes(limit.rlim_cur)));
  return found;
}

std::vector<std::string> words(const std::string& text, const char* separators) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

void look_at_preload(Findings& found) {
  for (const std::string& library : words(environment_variable("LD_PRELOAD"), ": ")) {
    if (library.empty()) continue;
    if (base_name(library).starts_with("libholdfast"))
      found.warn(fmt::format("LD_PRELOAD has {} already: unset it, for 'holdfast run' sets the right one", library));
    else if (library.find('/') != std::string::npos && ::access(library.c_str(), R_OK) != 0)
      found.warn(fmt::format("LD_PRELOAD has {}, which cannot be read: unset LD_PRELOAD or mend the path", library));
    else found.warn(fmt::format("LD_PRELOAD has {}: Holdfast's library goes before it; unset it if it catches the same calls", library));
  }
}

// A directory that has an MPI's library, and is not of the MPI whose mpirun comes first.
void look_at_library_path(Findings& found) {
  const std::string path = environment_variable("LD_LIBRARY_PATH");
  if (path.empty()) return;
  const auto launcher = find_on_path("mpirun");
  std::error_code error;
  for (const std::string& directory : words(path, ":;")) {
    if (directory.empty()) {
      found.warn("LD_LIBRARY_PATH has an empty part, which means the current directory: take the surplus ':' out");
      continue;
    }
    const auto whole = std::filesystem::weakly_canonical(directory, error).string();
    const auto prefix = launcher ? directory_of(directory_of(std::filesystem::weakly_canonical(*launcher, error).string())) : "";
    if (!launcher || whole.starts_with(prefix == "/" ? prefix : prefix + "/")) continue;
    for (const char* name : {"libmpi.so", "libmpi.so.40", "libmpi.so.12", "libmpich.so", "libmpich.so.12", "libmpi_abi.so.0"})
      if (::access((directory + "/" + name).c_str(), F_OK) == 0) {
        found.warn(fmt::format("LD_LIBRARY_PATH leads to {}/{}, but {} is of another MPI: load one MPI only", directory, name, *launcher));
        break;
      }
  }
}

Findings look_at_environment(const Result<Settings>& settings) {
  Findings found("environment");
  const Status status = settings ? settings->check() : settings.status();
  if (!status) found.fail(fmt::format("the settings are refused: {}", status.sentence()));
  for (const auto& [name, meant] : strange_variables())
    found.warn(fmt::format("{} means nothing to Holdfast: {}", name, meant.empty() ? "unset it" : "is " + meant + " meant?"));
  look_at_preload(found);
  look_at_library_path(found);
  if (found.well())
    found.ok(fmt::format("the settings are good; the scheme is {}, targets: {}", settings->protect.value_or("none"),
                         settings->targets.size() + settings->local.size()));
  return found;
}

void print_for_people(const Findings& found) {
  constexpr Colour colours[] = {Colour::good, Colour::warn, Colour::bad};
  for (const Finding& f : found.all())
    show("{}{} {}\n", coloured(level_names[size_t(f.level)], colours[size_t(f.level)]), f.level == Level::ok ? "  " : "", f.sentence);
  show("{} to mend, {} to know of\n", plural(found.count(Level::fail), "failure"), plural(found.count(Level::warn), "warning"));
}

void print_for_machines(const Findings& found) {
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& f : found.all()) all.push_back({{"level", level_names[size_t(f.level)]}, {"about", f.about}, {"sentence", f.sentence}});
  print_json({{"findings", all}, {"fails", found.count(Level::fail)}, {"warnings", found.count(Level::warn)}});
}

int doctor(const DoctorOptions& options) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a finding
  const auto loaded = options.settings.load();
  const Settings settings = loaded ? *loaded : Settings();
  Findings found = look_at_versions();
  found.add(look_at_mpis());
  found.add(look_at_places(options, settings));
  found.add(look_at_nodes(settings, options.hosts));
  if (loaded && loaded->check().ok()) found.add(look_at_protection(options, settings));
  found.add(look_at_limits(settings));
  found.add(look_at_environment(loaded));
  options.json ? print_for_machines(found) : print_for_people(found);
  return found.count(Level::fail) ? exit_degraded : exit_ok;
}

}  // namespace

void add_doctor(CLI::App& app, int& code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* sub = app.add_subcommand("doctor", "Look for what hinders Holdfast here, and say how to mend it");
  sub->add_option("DIR", options->directories, "Further directories to look at; the current one always is")->type_name("");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  options->settings.add(*sub, "targets", "Directories that are to be targets; NODE:DIR is asked for at that node's agent");
  options->settings.add(*sub, "local", "The directory that each node is to give");
  sub->add_option("--hosts", options->hosts, "The nodes that give it, where no resource manager says it")->type_name("LIST|FILE");
  for (const char* key : {"domains", "protect", "allow_shared_target", "log_directory"}) options->settings.add(*sub, key);
  options->settings.add_waiting(*sub);
  options->settings.add_config(*sub);
  sub->footer(
      "Example:\n  holdfast doctor --targets /mnt/a,/mnt/b /scratch/run\n  holdfast doctor --protect rs:4+2 --local '/tmp/hf-{node}' --hosts n[1-8]\n"
      "Exit status: 0 nothing fails, 1 something fails, 3 any other error.");
  sub->callback([options, &code] { code = doctor(*options); });
}

}  // namespace holdfast::cli
