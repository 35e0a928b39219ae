#include "frontend/mpi/job_log.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "base/raw_syscalls.hpp"
#include "frontend/mpi/errors.hpp"

namespace holdfast::frontend {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\u{:04x}", c);
    else out += c;
  }
  return out + "\"";
}

bool append_line(const std::string& name, const std::string& line) {
  const raw::Fd file(raw::openat(AT_FDCWD, name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  return file && raw::pwrite(file.get(), line.data(), line.size(), 0) == static_cast<ssize_t>(line.size());  // appends, see O_APPEND
}

}  // namespace

void log_shared_pointer(const std::string& path, int ranks, const ProfileSettings& settings, const SharedAccess& access) {
  if (settings.log_directory.empty()) return;
  std::string line =
      fmt::format("{{\"file\":{},\"ranks\":{},\"asked\":{},\"served\":{}", quoted(path), ranks, quoted(access.asked), quoted(access.serving()));
  if (!access.takeover.empty()) line += ",\"because\":" + quoted(access.takeover);
  if (access.records && !access.records->remark().empty()) line += ",\"remark\":" + quoted(access.records->remark());
  line += "}\n";
  raw::mkdirat(AT_FDCWD, settings.log_directory.c_str(), 0777);
  const std::string name = settings.log_directory + "/shared-pointers.jsonl";
  static std::atomic<bool> said{false};
  if (!append_line(name, line) && !said.exchange(true))
    say(name + ": cannot be written (" + std::strerror(errno) + "); choose another log directory");
}

}  // namespace holdfast::frontend
