#include "cli/job/program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/config.hpp"
#include "catalog/user_files.hpp"

extern char** environ;

namespace holdfast::cli {

namespace {

bool is_executable(const std::string& path) {
  struct stat st = {};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  bool read(void* into, size_t bytes, uint64_t offset) const { return fd_ >= 0 && ::pread(fd_, into, bytes, off_t(offset)) == ssize_t(bytes); }
  std::string head(size_t bytes) const {
    std::string text(bytes, '\0');
    const ssize_t got = fd_ < 0 ? -1 : ::pread(fd_, text.data(), bytes, 0);
    text.resize(got > 0 ? size_t(got) : 0);
    return text;
  }

 private:
  int fd_;
};

// Reads until the end, or until `deadline` has passed.
bool drain(int fd, std::string& out, std::chrono::steady_clock::time_point deadline) {
  char buffer[4096];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting = {fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, int(left.count())) <= 0) return false;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return got == 0;
    out.append(buffer, size_t(got));
  }
}

}  // namespace

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

std::string installed_beside(const std::string& name) {
  const auto self = catalog::read_link("/proc/self/exe");
  return directory_of(self ? *self : "") + "/../libexec/holdfast/" + name;
}

Status is_installed(const std::string& name, const std::string& else_what) {
  const std::string program = installed_beside(name);
  if (is_executable(program)) return {};
  return Status(Kind::not_found, fmt::format("{}: {} is not there or cannot be run; install Holdfast anew", else_what, program), ENOENT);
}

std::optional<std::string> find_on_path(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) return is_executable(name) ? std::optional(name) : std::nullopt;
  std::istringstream path(environment_variable("PATH"));
  for (std::string directory; std::getline(path, directory, ':');) {
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (is_executable(candidate)) return candidate;
  }
  return std::nullopt;
}

std::optional<std::string> interpreter_of(const std::string& executable) {
  const File file(executable);
  Elf64_Ehdr header;
  if (!file.read(&header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file.read(&segment, sizeof segment, header.e_phoff + uint64_t(i) * sizeof segment)) return std::nullopt;
    if (segment.p_type != PT_INTERP || segment.p_filesz < 2 || segment.p_filesz > 4096) continue;
    std::string name(segment.p_filesz - 1, '\0');
    return file.read(name.data(), name.size(), segment.p_offset) ? std::optional(name) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> script_interpreter(const std::string& path) {
  const std::string head = File(path).head(512);
  if (!head.starts_with("#!")) return std::nullopt;
  std::istringstream line(head.substr(2, head.find('\n') - 2));
  std::string program, argument;
  line >> program >> argument;
  if (base_name(program) != "env") return find_on_path(program);
  if (argument == "-S") line >> argument;
  return find_on_path(argument);
}

std::map<std::string, std::string> loaded_libraries(const std::string& executable) {
  // A shared library has no dynamic linker of its own; this program's serves it.
  auto linker = interpreter_of(executable);
  if (!linker) linker = interpreter_of("/proc/self/exe");
  std::map<std::string, std::string> libraries;
  auto text = linker ? output_of({*linker, "--list", executable}) : std::nullopt;
  if (!text) return libraries;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, file;
    if (words >> name >> arrow >> file && arrow == "=>" && file.starts_with('/')) libraries[name] = file;
  }
  return libraries;
}

std::map<std::string, std::string> environment_of(pid_t process) {
  std::map<std::string, std::string> variables;
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  for (std::string one; std::getline(file, one, '\0');)
    if (const size_t equals = one.find('='); equals != std::string::npos) variables.emplace(one.substr(0, equals), one.substr(equals + 1));
  return variables;
}

std::optional<std::string> output_of(const std::vector<std::string>& command, std::chrono::seconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out;
  const bool whole = !failed && drain(ends[0], out, std::chrono::steady_clock::now() + patience);
  ::close(ends[0]);
  if (failed) return std::nullopt;
  if (!whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole || !WIFEXITED(status)) return std::nullopt;
  return out;
}

}  // namespace holdfast::cli
