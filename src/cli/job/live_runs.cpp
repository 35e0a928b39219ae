#include "cli/job/live_runs.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <set>
#include <sstream>

#include "catalog/user_files.hpp"
#include "checkpoint/pattern.hpp"

namespace holdfast::cli {

namespace {

constexpr const char *note_begins = "checkpoints.", *note_ends = ".lock";
constexpr size_t most_bytes = 4096;
// Who reads a note holds it for a moment.
constexpr int most_tries = 10, between_tries_ms = 20;

// Not ok, and not busy: nobody can.
Status hold(const raw::Fd& note) {
  for (int time = 0; time < most_tries; ++time) {
    if (raw::flock(note.get(), LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK) return Status::from_errno(errno, "flock");
    (void)::poll(nullptr, 0, between_tries_ms);
  }
  return Status(Kind::busy, "");
}

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

namespace {

// Each pattern as its files are named, whichever links lead there: the same ones of two jobs may stand beside others.
Result<std::set<std::string>> names_of_patterns(const Settings& settings) {
  const auto patterns = checkpoint::Patterns::resolve(settings.checkpoint, settings.complete);
  if (!patterns) return patterns.status();
  std::set<std::string> texts;
  for (const checkpoint::Pattern& one : patterns->all()) {
    const std::string& text = one.text();
    texts.insert(text.starts_with(checkpoint::shared_prefix) ? text.substr(checkpoint::shared_prefix.size()) : text);
  }
  return texts;
}

}  // namespace

// Where there are no locks nobody is refused.
Status LiveRun::begin(const Settings& settings) {
  const auto patterns = names_of_patterns(settings);
  if (!patterns) return patterns.status();
  HF_TRY(catalog::make_with_parents(agents_directory()));
  for (const std::string& pattern : *patterns) {
    const std::string at = fmt::format("{}/{}{:016x}{}", agents_directory(), note_begins, std::hash<std::string>()(pattern), note_ends);
    raw::Fd note(raw::openat(AT_FDCWD, at.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!note) continue;
    const Status held = hold(note);
    if (!held && held.kind() == Kind::busy)
      return Status(Kind::busy,
                    fmt::format("another job that lives writes the checkpoints '{}': wait for its end, or give this one another directory", pattern));
    if (held) notes_.push_back(std::move(note));
  }
  return say(""), Status();
}

// Who reads it meanwhile finds a first line, this one or the one before: never nothing in between.
void LiveRun::say(const std::string& text) const {
  for (const raw::Fd& note : notes_)
    if (raw::pwrite(note.get(), text.data(), text.size(), 0) == ssize_t(text.size())) (void)raw::ftruncate(note.get(), off_t(text.size()));
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
