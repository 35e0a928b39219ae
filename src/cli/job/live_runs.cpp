#include "cli/job/live_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/file.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <sstream>

#include "catalog/user_files.hpp"

namespace holdfast::cli {

namespace {

constexpr const char *note_begins = "checkpoints.", *note_ends = ".lock";
constexpr size_t most_bytes = 4096;
// Who reads a note holds it for a moment.
constexpr int most_tries = 10, between_tries_ms = 20;

std::optional<Begun> decode_begun(const std::string& text) {
  Begun begun;
  std::istringstream words(text);
  std::string attempt;
  if (!(words >> begun.run >> attempt >> begun.step)) return {};
  const auto which = layout::parse_attempt(attempt);
  if (!which) return {};
  begun.attempt = *which;
  if (words >> attempt)
    if (const auto now = layout::parse_attempt(attempt)) begun.now = *now;
  return begun;
}

}  // namespace

Status LiveRun::begin(const Settings& settings) {
  const std::string patterns = fmt::format("{}", fmt::join(settings.checkpoint, ":"));
  const std::string at = fmt::format("{}/{}{:016x}{}", agents_directory(), note_begins, std::hash<std::string>()(patterns), note_ends);
  HF_TRY(catalog::make_with_parents(agents_directory()));
  note_ = raw::Fd(raw::openat(AT_FDCWD, at.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!note_) return {};  // where there are no locks nobody is refused
  for (int time = 0; time < most_tries; ++time) {
    if (raw::flock(note_.get(), LOCK_EX | LOCK_NB) == 0) return say(""), Status();
    if (errno != EWOULDBLOCK) return {};
    (void)::poll(nullptr, 0, between_tries_ms);
  }
  return Status(Kind::busy, fmt::format("another job that lives writes the checkpoints '{}': wait for its end, or give this one another directory",
                                        fmt::join(settings.checkpoint, "' and '")));
}

// Who reads it meanwhile finds a first line, this one or the one before: never nothing in between.
void LiveRun::say(const std::string& text) const {
  if (!note_ || raw::pwrite(note_.get(), text.data(), text.size(), 0) != ssize_t(text.size())) return;
  (void)raw::ftruncate(note_.get(), off_t(text.size()));
}

void LiveRun::chooses(const std::string& run) const { say(fmt::format("{} 0 0\n", run)); }

void LiveRun::began(const checkpoint::Run& run) const {
  const bool needs_versions = run.from && !run.from->drained;
  const auto from = needs_versions ? *run.from : checkpoint::Run::From{0, 0};
  say(fmt::format("{} {} {} {}\n", run.id, from.attempt.number ? text_of(from.attempt) : "0", from.step, text_of(run.attempt)));
}

std::vector<Begun> live_runs() {
  std::vector<Begun> all;
  const auto names = catalog::list_directory(agents_directory());
  if (!names) return all;
  for (const std::string& name : *names) {
    if (!name.starts_with(note_begins) || !name.ends_with(note_ends)) continue;
    const std::string at = agents_directory() + "/" + name;
    const raw::Fd note(raw::openat(AT_FDCWD, at.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!note || raw::flock(note.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) continue;  // of a run that has ended
    const auto text = catalog::read_beginning(at, most_bytes);
    if (const auto begun = text ? decode_begun(*text) : std::nullopt) all.push_back(*begun);
  }
  return all;
}

}  // namespace holdfast::cli
