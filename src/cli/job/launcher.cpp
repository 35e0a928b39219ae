#include "cli/job/launcher.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "base/config.hpp"
#include "base/launcher_names.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

constexpr char library_prefix[] = "libholdfast-";
constexpr char all_calls_prefix[] = "libholdfast_all-";

std::string real_path(const std::string& path) {
  char whole[PATH_MAX];
  return ::realpath(path.c_str(), whole) ? whole : path;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(directory.c_str());
  if (!dir) return names;
  while (dirent* entry = ::readdir(dir)) names.emplace_back(entry->d_name);
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

// MPI_Get_library_version may be called before MPI_Init. In a child: the library is a stranger's and starts
// threads.
std::optional<Mpi> mpi_of_library(const std::string& library) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    char text[8192] = "";
    int length = 0;
    void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
    auto version = handle ? reinterpret_cast<int (*)(char*, int*)>(::dlsym(handle, "MPI_Get_library_version")) : nullptr;
    if (version && version(text, &length) == 0 && length > 0) (void)!::write(ends[1], text, size_t(length));
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; child > 0 && (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(got));
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return mpi_of_version_text(text);
}

// Libraries by which the known MPIs go, the standard ABI's first: a program linked with that needs its own
// library, whichever MPI serves it.
std::optional<Mpi> mpi_of_loaded(const std::string& program) {
  static const char* const names[] = {"libmpi_abi.so", "libmpich.so", "libmpi.so"};
  const auto libraries = loaded_libraries(program);
  for (const char* name : names)
    for (const auto& [soname, file] : libraries) {
      if (!soname.starts_with(name)) continue;
      auto mpi = mpi_of_library(file);
      if (!mpi) continue;
      if (std::string_view(name) == "libmpi_abi.so") mpi->name = "mpiabi";
      mpi->found_by = fmt::format("{} of {}", file, program);
      return mpi;
    }
  return std::nullopt;
}

// A Python loads MPI with mpi4py, long after it has started: mpi4py's extension says which. A wheel brings
// one for each MPI; the one whose library lies in the environment's own lib directory is the one that it will
// take.
std::optional<Mpi> mpi_of_python(const std::string& python) {
  auto place = output_of({python, "-c",
                          "import importlib.util as u; s = u.find_spec('mpi4py');"
                          "print(s.submodule_search_locations[0] if s else '')"});
  if (!place || place->size() < 2) return std::nullopt;
  place->pop_back();
  const std::string own = directory_of(directory_of(python)) + "/lib";
  for (const char* name : {"libmpi.so.40", "libmpi.so.12"})
    if (::access((own + "/" + name).c_str(), R_OK) == 0)
      if (auto mpi = mpi_of_library(own + "/" + name)) {
        mpi->found_by = fmt::format("{}/{} beside {}", own, name, python);
        return mpi;
      }
  for (const std::string& name : names_in(*place))
    if (name.starts_with("MPI.") && name.ends_with(".so"))
      if (auto mpi = mpi_of_loaded(*place + "/" + name)) return mpi;
  return std::nullopt;
}

std::optional<Mpi> mpi_of_program(const std::string& program) {
  if (base_name(program).starts_with("python")) return mpi_of_python(program);
  if (interpreter_of(program)) return mpi_of_loaded(program);
  auto interpreter = script_interpreter(program);
  if (interpreter && base_name(*interpreter).starts_with("python")) return mpi_of_python(*interpreter);
  return std::nullopt;
}

std::optional<Mpi> mpi_of_launcher(const std::string& launcher) {
  auto path = find_on_path(launcher);
  if (!path || !(is_mpi_launcher(base_name(*path)) || is_mpi_launcher(base_name(real_path(*path))))) return std::nullopt;
  auto text = output_of({*path, "--version"});
  auto mpi = text ? mpi_of_version_text(*text) : std::nullopt;
  if (!mpi) return std::nullopt;
  mpi->found_by = launcher + " --version";
  mpi->launcher = true;
  return mpi;
}

bool uses_standard_abi(const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i)
    if (auto program = find_on_path(command[i]); program && interpreter_of(*program)) {
      for (const auto& [soname, file] : loaded_libraries(*program))
        if (soname.starts_with("libmpi_abi.so")) return true;
      return false;  // what comes after the program are its arguments
    }
  return false;
}

std::vector<std::string> library_directories() {
  const std::string bin = directory_of(real_path("/proc/self/exe"));
  return {bin + "/../lib", bin + "/../lib/holdfast"};
}

}  // namespace

std::optional<Mpi> mpi_of_version_text(const std::string& text) {
  static const struct {
    const char *pattern, *name;
  } known[] = {
      {R"(Open MPI[) v]*([0-9]+)([.0-9a-z]*))", "openmpi"},  // "mpirun (Open MPI) 4.1.4", "Open MPI v5.0.11, package ..."
      {R"(OpenRTE\) ([0-9]+)([.0-9a-z]*))", "openmpi"},      // Debian: "mpirun.openmpi (OpenRTE) 4.1.4"
      {R"(Intel\(R\) MPI[^0-9]*([0-9]+)([.0-9]*))", "intelmpi"}, {R"(MVAPICH[^0-9]*([0-9]+)([.0-9a-z]*))", "mvapich"},
      {R"(MPICH Version:\s*([0-9]+)([.0-9a-z]*))", "mpich"},     {R"(HYDRA build details:\s*Version:\s*([0-9]+)([.0-9a-z]*))", "mpich"},
  };
  for (const auto& k : known) {
    std::smatch match;
    if (!std::regex_search(text, match, std::regex(k.pattern))) continue;
    Mpi mpi;
    mpi.name = k.name + match[1].str();
    mpi.version = match[1].str() + match[2].str();
    return mpi;
  }
  return std::nullopt;
}

Mpi detect_mpi(const std::vector<std::string>& command) {
  if (auto mpi = mpi_of_launcher(command[0])) {
    if (mpi->name.starts_with("mpich") && std::atoi(mpi->name.c_str() + 5) >= 5 && uses_standard_abi(command)) mpi->name = "mpiabi";
    return *mpi;
  }
  // srun, env, numactl and the like come before the program: the first word that is one linked with MPI
  // decides.
  for (const std::string& word : command)
    if (auto program = find_on_path(word))
      if (auto mpi = mpi_of_program(*program)) return *mpi;
  Mpi none;
  none.name = "posix";
  return none;
}

namespace {

bool begins_with_one_of(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return name.starts_with(word); });
}
bool is_one_of(const std::string& name, std::initializer_list<std::string_view> words) { return std::count(words.begin(), words.end(), name) > 0; }

// What comes before a program in its command.
bool starts_another(const std::string& name) {
  return begins_with_one_of(name, {"mpirun", "mpiexec"}) ||
         is_one_of(name, {"srun", "orterun", "prterun", "prun", "jsrun", "aprun", "env", "nice", "numactl", "taskset", "time"});
}
bool reads_a_script(const std::string& name) {
  return begins_with_one_of(name, {"python", "perl", "ruby"}) || is_one_of(name, {"sh", "bash", "dash", "ksh", "zsh", "julia", "Rscript"});
}

}  // namespace

std::string program_of(const std::vector<std::string>& command) {
  const auto is_word = [](const std::string& word) { return !word.starts_with('-'); };
  const auto is_program = [&](const std::string& word) { return is_word(word) && find_on_path(word); };
  auto program = command.begin();
  while (program != command.end() && starts_another(base_name(*program))) program = std::find_if(program + 1, command.end(), is_program);
  if (program == command.end()) return base_name(command.front());
  const auto script = reads_a_script(base_name(*program)) ? std::find_if(program + 1, command.end(), is_word) : command.end();
  return base_name(script != command.end() && ::access(script->c_str(), R_OK) == 0 ? *script : *program);
}

namespace {

std::string family_of(const std::string& name) { return name.substr(0, name.find_first_of("0123456789")); }

// Where there is no library for just this version. Major versions of one implementation (MPICH 3 to 5, Open MPI 3 to 5)
// share their binary interface. Calls that only the newer one has are the MPI's own then.
std::optional<std::string> built_for_a_sibling(const std::string& wanted, const std::vector<std::string>& built) {
  std::optional<std::string> best;
  for (const std::string& name : built)
    if (family_of(name) == family_of(wanted) && (!best || *best < name)) best = name;
  return best;
}

}  // namespace

std::vector<std::string> built_libraries() {
  std::vector<std::string> built;
  for (const std::string& directory : library_directories())
    for (const std::string& name : names_in(directory)) {
      if (!name.starts_with(library_prefix) || !name.ends_with(".so")) continue;
      built.push_back(name.substr(sizeof library_prefix - 1, name.size() - (sizeof library_prefix - 1) - 3));
    }
  return built;
}

std::vector<Launcher> launchers_on_path() {
  std::vector<Launcher> launchers;
  std::set<std::string> seen;
  std::istringstream path(environment_variable("PATH"));
  for (std::string directory; std::getline(path, directory, ':');)
    for (const std::string& word : names_in(directory.empty() ? "." : directory)) {
      const auto file = is_mpi_launcher(word) && seen.insert(word).second ? find_on_path(word) : std::nullopt;
      if (!file) continue;
      auto same = std::find_if(launchers.begin(), launchers.end(), [&](const Launcher& l) { return real_path(l.file) == real_path(*file); });
      if (same == launchers.end()) same = launchers.insert(same, {*file, {}});
      same->words.push_back(word);
    }
  return launchers;
}

Result<std::string> find_library(const Mpi& mpi, const std::string& asked) {
  if (asked.find('/') != std::string::npos) {
    if (::access(asked.c_str(), R_OK) == 0) return real_path(asked);
    return Status(Kind::not_found, fmt::format("the library {} cannot be read: name one that exists with --library", asked));
  }
  const std::string wanted = asked.empty() ? mpi.name : asked;
  for (const std::string& directory : library_directories())
    if (const std::string file = directory + "/" + library_prefix + wanted + ".so"; ::access(file.c_str(), F_OK) == 0) return real_path(file);
  const std::vector<std::string> built = built_libraries();
  if (asked.empty())
    if (auto sibling = built_for_a_sibling(wanted, built)) return find_library(mpi, *sibling);
  const std::string found = asked.empty() && wanted != "posix"
                                ? fmt::format("this is {} {} (by {}) and no library is built for it", wanted, mpi.version, mpi.found_by)
                                : fmt::format("there is no library for {}", wanted);
  return Status(Kind::not_found, fmt::format("{}: built are {}; build for its mpicc with cmake "
                                             "-DHOLDFAST_MPICC=/path/of/mpicc, or name one with --library",
                                             found, built.empty() ? "none" : fmt::format("{}", fmt::join(built, ", "))));
}

Result<std::string> with_all_calls(const std::string& library) {
  const std::string name = base_name(library);
  if (!name.starts_with(library_prefix) || name == std::string(library_prefix) + "posix.so") return library;
  const std::string all = directory_of(library) + "/" + all_calls_prefix + name.substr(sizeof library_prefix - 1);
  if (::access(all.c_str(), R_OK) == 0) return all;
  return Status(Kind::not_found, fmt::format("{} cannot be read, and --profile-mpi needs it: install Holdfast again with 'make install'", all));
}

void OwnWords::pass(const std::string& word) {
  if (word == ":") own_ = true;
  else if (own_ && !word.starts_with('-') && find_on_path(word)) own_ = false;
}

}  // namespace holdfast::cli
