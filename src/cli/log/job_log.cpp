#include "cli/log/job_log.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/raw_syscalls.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "cli/command.hpp"
#include "cli/job/program.hpp"
#include "cli/output.hpp"
#include "profile/reduce.hpp"

namespace holdfast::cli {

namespace {

namespace pr = profile;

constexpr uint64_t most_log_bytes = 4ull << 30;

class Fd {
 public:
  Fd(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool read_fully(int fd, uint64_t offset, ByteSpan into) {
  for (size_t done = 0; done < into.size();) {
    const ssize_t got = ::pread(fd, into.data() + done, into.size() - done, off_t(offset + done));
    if (got <= 0) return false;
    done += size_t(got);
  }
  return true;
}

Result<Bytes> read_file(const std::string& path) {
  const Fd file(path, O_RDONLY);
  struct stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0) return Status::from_errno(errno, path);
  if (!S_ISREG(found.st_mode)) return Status(Kind::invalid, path + " is not a file");
  if (uint64_t(found.st_size) > most_log_bytes) return Status(Kind::invalid, path + " is too large for a log");
  Bytes bytes(size_t(found.st_size));
  if (!read_fully(file.get(), 0, bytes)) return Status(Kind::io, path + ": it changed while it was read");
  return bytes;
}

std::vector<std::string> pieces_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(directory.c_str());
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir))
    if (std::string_view(entry->d_name).ends_with(pr::piece_suffix)) names.push_back(directory + "/" + entry->d_name);
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

pr::Log reduce_directory(const std::string& directory, pr::Job job) {
  std::vector<pr::LeftPiece> pieces;
  for (const std::string& name : pieces_in(directory)) {
    const Fd file(name, O_RDONLY);
    auto piece = file.get() < 0 ? std::nullopt : pr::read_piece([&](uint64_t offset, ByteSpan into) { return read_fully(file.get(), offset, into); });
    if (piece) pieces.push_back(std::move(*piece));
    else ++job.damaged_pieces;
  }
  return pr::reduce(std::move(job), pieces);
}

Result<pr::Job> facts_in(const std::string& directory) {
  auto bytes = read_file(directory + "/" + pr::job_facts_name);
  if (!bytes) return bytes.status();
  return pr::decode_job(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
}

uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
}

}  // namespace

Status write_text(const std::string& path, const std::string& content) {
  const Fd file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.get() < 0) return Status::from_errno(errno, path);
  for (size_t done = 0; done < content.size();) {
    const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
    if (written <= 0) return Status::from_errno(written < 0 ? errno : EIO, path);
    done += size_t(written);
  }
  return Status();
}

Result<profile::Log> read_job_log(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return Status::from_errno(errno, path);
  if (S_ISDIR(found.st_mode)) {
    if (pieces_in(path).empty())
      return Status(Kind::invalid, path + ": in this directory no job has left anything; give a log, or the directory NAME.pieces of a killed job");
    auto facts = facts_in(path);
    pr::Job job = facts ? *facts : pr::Job();  // preloaded by hand, there are none
    job.complete = false;
    return reduce_directory(path, std::move(job));
  }
  auto bytes = read_file(path);
  if (!bytes) return bytes.status();
  auto log = pr::decode(*bytes);
  if (!log) return Status(log.status().kind(), path + ": " + log.status().sentence());
  return log;
}

Result<JobLog> JobLog::begin(const std::string& file, const Settings& settings, const std::vector<std::string>& command) {
  JobLog log;
  log.job_.start_ns = now_ns();
  log.job_.command = command;
  log.job_.scheme = settings.protects() ? *settings.protect : "";
  log.job_.holdfast = HOLDFAST_VERSION;
  log.stamp_ = fmt::format("{}-{}", local_time(log.job_.start_ns, "%Y%m%d-%H%M%S"), ::getpid());
  log.directory_ = path_from_here(settings.log_directory);  // nothing: the working directory
  if (!file.empty()) {
    log.file_ = path_from_here(file);
    log.directory_ = directory_of(log.file_);
    struct stat there {};
    if (::stat(log.file_.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) return Status(Kind::invalid, log.file_ + " is a directory; name a file");
  } else {
    ::mkdir(log.directory_.c_str(), 0777);  // as other logs of the job do
  }
  log.pieces_ = log.file_.empty() ? fmt::format("{}/holdfast-{}{}", log.directory_, log.stamp_, pr::pieces_suffix) : log.file_ + pr::pieces_suffix;
  HF_TRY(log.take_pieces());
  if (Status written = write_text(log.pieces_ + "/" + pr::job_facts_name, pr::encode_job(log.job_)); !written) return written;
  return log;
}

// A job that runs keeps its facts locked: who finds them so would remove its pieces, and mix them with his own.
Status JobLog::take_pieces() {
  const std::string facts = pieces_ + "/" + pr::job_facts_name;
  while (true) {
    if (::mkdir(pieces_.c_str(), 0777) != 0 && errno != EEXIST) return Status::from_errno(errno, pieces_);
    held_.reset(raw::openat(AT_FDCWD, facts.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!held_ && errno == ENOENT) continue;  // another job has ended meanwhile, and taken the directory along
    if (!held_) return Status::from_errno(errno, facts);
    if (raw::flock(held_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return Status(Kind::busy, file_ + ": another job that runs writes this log");
    struct stat held {
    }, named{};
    if (::fstat(held_.get(), &held) == 0 && ::stat(facts.c_str(), &named) == 0 && held.st_ino == named.st_ino) break;
  }
  const std::vector<std::string> left = pieces_in(pieces_);  // would be counted in
  if (!left.empty()) say("holdfast: {}: what a killed job has left here makes way for this job's\n", pieces_);
  for (const std::string& old : left) ::unlink(old.c_str());
  return Status();
}

std::string JobLog::log_name(const std::string& program) const {
  if (!file_.empty()) return file_;
  const std::string& from = program.empty() ? job_.command[0] : program;
  return fmt::format("{}/{}-{}{}", directory_, base_name(from), stamp_, pr::log_suffix);
}

Result<std::string> JobLog::finish(int exit_code) {
  job_.duration_ns = now_ns() - job_.start_ns;
  job_.exit_code = exit_code;
  const pr::Log log = reduce_directory(pieces_, job_);
  const std::string name = log_name(log.job.program), unfinished = name + ".unfinished";
  Status written = write_text(unfinished, pr::encode(log));
  if (written.ok() && ::rename(unfinished.c_str(), name.c_str()) != 0) written = Status::from_errno(errno, name);
  if (!written) {
    ::unlink(unfinished.c_str());
    return Status(written.kind(), fmt::format("the job's log cannot be written: {}; what its processes have counted is kept: holdfast report {}",
                                              written.sentence(), shell_word(pieces_)));
  }
  discard();
  return name;
}

void JobLog::discard() {
  for (const std::string& piece : pieces_in(pieces_)) ::unlink(piece.c_str());
  ::unlink((pieces_ + "/" + pr::job_facts_name).c_str());
  ::rmdir(pieces_.c_str());
}

}  // namespace holdfast::cli
