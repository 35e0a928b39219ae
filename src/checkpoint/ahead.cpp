#include "checkpoint/ahead.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/ended.hpp"
#include "checkpoint/leftovers.hpp"
#include "checkpoint/protect.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::chrono::milliseconds look_again(2);

// Says who fetches it. It goes with what was never finished.
std::string note_of(const LocalFiles& files, const std::string& file_id) {
  return fmt::format("{}/{}ahead.{}", files.directory(), scratch_begins, file_id);
}

// Beside the attempts, for the later ones.
std::string opened_note(const LocalFiles& files, uint32_t part) { return fmt::format("{}/opened.{}", catalog::parent_of(files.directory()), part); }

}  // namespace

void note_opened(const LocalFiles& files, uint32_t part) {
  (void)catalog::environment().symlinkat("here", AT_FDCWD, opened_note(files, part).c_str());
}

std::string described(const LocalFiles& files, const std::string& file_id) {
  return fmt::format("{}/{}{}", files.directory(), described_begins, file_id);
}

Status make_hollow(const LocalFiles& files, const std::string& at, uint64_t bytes, uint32_t mode) {
  const std::string half = files.scratch();
  const catalog::Descriptor made(open_for_program(half, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) return Status::from_errno(errno, half);
  const std::byte zero{};
  Status status = bytes > 0 ? catalog::write_at(made.get(), half, bytes - 1, {&zero, 1}) : Status();
  (void)catalog::environment().fchmod(made.get(), mode & 0777);
  if (status) status = catalog::move(half, at);
  if (!status) (void)catalog::unlink_file(half);
  return status;
}

Ahead::Ahead(Settings settings, Run run, const std::string& own)
    : settings_(std::move(settings)), run_(std::move(run)), own_(own), files_(parse_node_path(own).path, run_.id, run_.attempt) {}

// Once: what an attempt has begun with does not change.
bool Ahead::find() {
  const auto patterns = Patterns::resolve(settings_.checkpoint, settings_.complete);
  const auto found = catalog::VersionList().look(run_.nodes, settings_.deadline_ms);
  const auto begun = found ? beginning_among(*found, run_) : std::nullopt;
  if (!patterns || !begun || !files_.make()) return false;
  left_.emplace();
  for (layout::Manifest& manifest : manifests_of(*begun, *found)) {
    const auto named = patterns->match(manifest.version->file);
    OneFile one{std::move(manifest), {}, false};
    if (named && patterns->have_rank(named->part)) one.rank = named->rank;
    one.is_of_node = one.manifest.file_id.ends_with(catalog::digits_of_node(own_)) ||
                     (named && !patterns->have_rank(named->part) && catalog::look(opened_note(files_, named->part), false));
    left_->push_back(std::move(one));
  }
  return true;
}

bool Ahead::is_wanted(const OneFile& file, const std::set<uint32_t>& ranks) const {
  return file.is_of_node || (file.rank && ranks.contains(*file.rank));
}

bool Ahead::work() {
  if (!left_ && !find()) return false;
  const std::set<uint32_t> ranks = ranks_begun(files_);
  const auto later = std::stable_partition(left_->begin(), left_->end(), [&](const OneFile& one) { return is_wanted(one, ranks); });
  for (auto one = left_->begin(); one != later; ++one) fetch_if_missing(one->manifest);
  left_->erase(left_->begin(), later);
  return !left_->empty();
}

// A rank that opens it meanwhile waits; one that has fetched it already keeps what it has. What cannot be fetched is that rank's to say.
void Ahead::fetch_if_missing(const layout::Manifest& manifest) const {
  const layout::Version& version = *manifest.version;
  const LocalFiles::Listed here = files_.listed();
  const bool is_known = here.newest(version.file) || here.hidden_number(version.file) || here.evicted_number(version.file);
  if (is_known || !has_room(files_, manifest.size)) return;
  const std::string there = files_.path(State::restored, {version.step, version.rank, version.ranks, 0, version.file});
  const std::string note = note_of(files_, manifest.file_id), at = described(files_, manifest.file_id);
  if (catalog::environment().symlinkat(this_process().c_str(), AT_FDCWD, note.c_str()) != 0) return;
  Status status = catalog::look(at, false) ? Status() : make_hollow(files_, at, manifest.size, manifest.mode);
  if (status) status = fetch(manifest, at, settings_, {}, true);
  if (status) status = files_.put_into(State::restored, [&] { return catalog::move(at, there, true); });
  if (!status) (void)catalog::unlink_file(at);
  (void)catalog::unlink_file(note);
}

void wait_for_ahead(const LocalFiles& files, const std::string& file_id, uint64_t patience_ms) {
  const std::string note = note_of(files, file_id);
  const auto until = catalog::environment().now() + std::chrono::milliseconds(patience_ms);
  for (auto who = catalog::read_link(note); who && is_running(*who) && catalog::environment().now() < until; who = catalog::read_link(note))
    catalog::environment().wait(look_again);
}

}  // namespace holdfast::checkpoint
