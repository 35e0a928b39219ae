#include "cli/job/live_jobs.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "base/config.hpp"
#include "catalog/user_files.hpp"
#include "layout/manifest.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

namespace {

constexpr const char* job_note_begins = "job.";
constexpr size_t job_digits = 16;

std::string job_note(const std::string& job) { return agents_directory() + "/" + job_note_begins + job; }

enum class Life { ended, runs, unknown };

// One that was killed has left its note: whoever gets its lock takes it away.
Life life_of(const std::string& at) {
  const raw::Fd note(raw::openat(AT_FDCWD, at.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!note) return errno == ENOENT ? Life::ended : Life::unknown;
  if (raw::flock(note.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? Life::runs : Life::unknown;
  (void)raw::unlinkat(AT_FDCWD, at.c_str(), 0);
  return Life::ended;
}

bool is_note_at(const raw::Fd& note, const std::string& at) {
  struct stat held = {}, there = {};
  return raw::fstat(note.get(), &held) == 0 && raw::fstatat(AT_FDCWD, at.c_str(), &there, 0) == 0 && held.st_ino == there.st_ino;
}

}  // namespace

void LiveJob::begin() {
  const std::string job = layout::random_id().substr(0, job_digits);
  ::setenv(job_variable, job.c_str(), 1);
  (void)target::make_secret(agents_directory());  // the directory is nobody else's to read
  path_ = job_note(job);
  do {  // who looks at it before it is locked takes it for one that was left
    note_ = raw::Fd(raw::openat(AT_FDCWD, path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  } while (note_ && raw::flock(note_.get(), LOCK_EX) == 0 && !is_note_at(note_, path_));
}

LiveJob::~LiveJob() {
  if (note_) (void)raw::unlinkat(AT_FDCWD, path_.c_str(), 0);
}

OtherJobs other_jobs() {
  OtherJobs others;
  const auto names = catalog::list_directory(agents_directory());
  if (!names) return others;
  const std::string own = job_of_this_process();
  for (const std::string& name : *names) {
    const std::string job = name.starts_with(job_note_begins) ? name.substr(std::string(job_note_begins).size()) : "";
    if (job.size() != job_digits || job == own) continue;
    const Life life = life_of(agents_directory() + "/" + name);
    if (life == Life::runs) others.alive.insert(job);
    if (life == Life::unknown) others.unknown.insert(job);
  }
  return others;
}

}  // namespace holdfast::cli
