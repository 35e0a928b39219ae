#include "checkpoint/protector.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/elsewhere.hpp"
#include "checkpoint/leftovers.hpp"
#include "checkpoint/moved.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/said_once.hpp"
#include "checkpoint/shared.hpp"
#include "layout/pack.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr uint64_t most_rolled_bytes = 64 << 20;
constexpr unsigned most_incomplete_looks = 8;

// What one pack has room for: of files that are all smaller than `below`.
class PackInTheMaking {
 public:
  explicit PackInTheMaking(uint64_t below) : most_(std::min<size_t>(most_packed_files, size_t(std::max<uint64_t>(most_packed_bytes / below, 2)))) {}
  bool takes(const layout::Version& version) const { return files_.size() < most_ && index_bytes_ + index_bytes_of(version) <= most_index_bytes; }
  void add(ToPack file) {
    index_bytes_ += index_bytes_of(file.version);
    files_.push_back(std::move(file));
  }
  const std::vector<ToPack>& files() const { return files_; }

 private:
  const size_t most_;
  uint64_t index_bytes_ = 0;
  std::vector<ToPack> files_;
};

}  // namespace

struct Protector::Hands {
  std::mutex mutex;  // over a change of a file's state and of what follows
  std::vector<LocalName> files;
  bool renews = false;
  std::atomic<int> failed{0};
  std::set<std::pair<uint64_t, std::string>> said;  // by step and cause
  catalog::VersionList seen_beside;                 // by the second thread

  bool has(const LocalName& name) const { return std::count(files.begin(), files.end(), name) > 0; }
};

Protector::Protector(Settings settings, Run run, const std::string& own, std::function<void(const std::string&)> say)
    : settings_(std::move(settings)),
      run_(std::move(run)),
      own_(own),
      say_(std::move(say)),
      files_(parse_node_path(own).path, run_.id, run_.attempt),
      hands_(std::make_shared<Hands>()) {
  auto patterns = Patterns::parse(settings_.checkpoint, settings_.complete);
  const auto is_shared = [](const Pattern& one) { return one.is_shared(); };
  has_shared_ = patterns && std::any_of(patterns->all().begin(), patterns->all().end(), is_shared);
  is_rolled_ = patterns && patterns->are_rolled();
  if (is_rolled_ || (patterns && settings_.pack_below_bytes > 0)) patterns = Patterns::resolve(settings_.checkpoint, settings_.complete);
  if (patterns) patterns_ = std::move(*patterns);
  is_rolled_ = patterns_ && is_rolled_;
}

Status Protector::begin() {
  const auto anew = files_.was_started_anew();
  if (!anew) return anew.status();
  if (*anew) HF_TRY(fail_all_of_before());
  return files_.make_all();
}

// Of before its node was started anew. The node is noted as up last: who comes after one that dies here begins anew with what is left.
Status Protector::fail_all_of_before() {
  if (is_rolled_ || has_shared_) HF_TRY(catalog::make_file(fmt::format("{}/{}", files_.directory(), started_anew), 0600));
  for (const State state : {State::closed, State::protecting})
    for (const LocalName& name : files_.list(state)) {
      if (state == State::closed && untouched_.settle(name, state, true) == Untouched::Found::gone) continue;
      say_why(name, Status(Kind::io, why_begun_anew));
      const Status failed = files_.move(name, state, State::failed);
      if (!failed && failed.kind() != Kind::not_found) return failed;
    }
  HF_TRY(forget_copies_of_before());
  return files_.note_boot();
}

// Nobody has synced them: versions are on the disks, and their copies may be there in part only. What is opened comes from the nodes then.
Status Protector::forget_copies_of_before() const {
  for (const State state : {State::kept, State::twin, State::restored})
    for (const LocalName& name : files_.list(state)) {
      const Status gone = state == State::restored ? catalog::unlink_file(files_.path(state, name)) : files_.evict(name, state);
      if (!gone && gone.kind() != Kind::not_found) return gone;
    }
  return {};
}

bool Protector::work() {
  protect_all();
  if (has_shared_) seal_shared();
  return renew_next();
}

bool Protector::finish_closed() {
  const bool knows = take_twins();
  protect_all();
  const std::lock_guard lock(hands_->mutex);  // nobody takes one from the list meanwhile; and what is in hands may add one to it
  return knows && hands_->files.empty() && files_.list(State::closed).empty();
}

bool Protector::is_second_at_work() const {
  const std::lock_guard lock(hands_->mutex);
  return !hands_->files.empty();
}

// Of a redundant job: where the copy that counts was lost with its node before it was protected, this one takes its place. Of several nodes that have one
// the first does. False where it is not known yet.
bool Protector::take_twins() {
  bool knows = true;
  const auto place = [&](const std::string& node) { return std::find(run_.nodes.begin(), run_.nodes.end(), node) - run_.nodes.begin(); };
  for (const LocalName& name : files_.list(State::twin)) {
    const auto is_it = [&](const FoundElsewhere& one) { return one.file.name.number == name.number; };
    // Before the versions: it is one of these then, or on its way.
    auto others = files_elsewhere(name.file, {State::twin, State::closed, State::protecting}, own_, run_, settings_);
    std::erase_if(others,
                  [&](const FoundElsewhere& one) { return !is_it(one) || (one.file.state == State::twin && place(one.address) > place(own_)); });
    const auto found = versions_.look(run_.nodes, settings_.deadline_ms);
    const bool is_there = !found || std::any_of(found->begin(), found->end(), [&](const catalog::FoundVersion& one) {
      const layout::Version& version = *one.manifest.version;
      return version.run == run_.id && version.attempt == run_.attempt && version.file == name.file && version.number >= name.number;
    });
    if (is_there) continue;
    if (others.empty()) (void)files_.move(name, State::twin, State::closed);
    knows &= others.empty();
  }
  return knows;
}

bool Protector::end() {
  for (const LocalName& name : files_.list(State::closed))
    if (untouched_.settle(name, State::closed, true) != Untouched::Found::gone)
      fail(name, Status(Kind::busy, "a program still has it open to write"));
  for (const LocalName& name : files_.list(State::writing))
    if (untouched_.settle(name, State::writing, true) != Untouched::Found::gone && !has_writers(files_.path(State::writing, name)))
      (void)files_.move(name, State::writing, State::torn);
  for (const LocalName& name : files_.list(State::together)) (void)files_.move(name, State::together, State::torn);
  files_.forget_teams();
  return hands_->failed == 0;
}

// First what one that was killed had in hands. No file goes back to a state of before: who looks for it lists them in their order, and would miss it.
void Protector::protect_all() {
  protect_taken(left_in_hands(), versions_);
  std::vector<LocalName> small, large;
  for (const LocalName& name : files_.list(State::closed)) (is_small(State::closed, name) ? small : large).push_back(name);
  const bool is_any_beside = is_second_at_work();  // before any of these are in hands, too
  std::erase_if(small, [&](const LocalName& name) { return must_wait(name, is_any_beside) || !take(name); });
  protect_taken(small, versions_);
  for (const LocalName& name : large)
    if (!must_wait(name, is_second_at_work()) && take(name)) protect_taken({name}, versions_);
}

// What processes of several nodes have written is a version when all ranks are done with it. One of those who keep its record sees to that; where that one
// is lost, the others do, which look less often. What the ranks of this node say costs nothing, and is asked first; all nodes are asked less and less often
// while nothing comes of it.
void Protector::seal_shared() {
  constexpr unsigned turns_of_others = 4, most_looks_between = 8;
  if (++looks_ < sealing_look_) return;
  const auto records = catalog::list_directory(fmt::format("{}/{}", files_.directory(), shared_directory));
  if (!records || records->empty()) return void(looks_between_ = 1);
  const Parts parts(files_);
  std::vector<LocalName> meant;
  for (const std::string& text : *records)
    if (auto name = decode_local_name(text); name && !parts.any_at_work(*name)) meant.push_back(std::move(*name));
  if (meant.empty()) return void(looks_between_ = 1);
  const auto nodes = SharedFiles::look(run_, settings_);
  const bool for_others = ++turns_ % turns_of_others == 0;
  bool any_sealed = false;
  for (const LocalName& name : meant)
    if (nodes && (nodes->is_keeper(name.file, own_) || for_others)) any_sealed |= seal_if_complete(name);
  looks_between_ = any_sealed ? 1 : std::min(2 * looks_between_, most_looks_between);
  sealing_look_ = looks_ + looks_between_;
}

// It is looked at before it is waited for: who opens it has the turn then.
bool Protector::seal_if_complete(const LocalName& name) {
  auto nodes = SharedFiles::look(run_, settings_);
  const auto is_it = [&](const SharedFile& one) { return one.name.number == name.number; };
  Result<std::vector<SharedFile>> found(Status(Kind::not_found, ""));
  const auto find = [&]() -> std::optional<SharedFile> {
    found = nodes->find(name.file);
    const auto one = found ? std::find_if(found->begin(), found->end(), is_it) : decltype(found->begin())();
    return found && one != found->end() ? std::optional(*one) : std::nullopt;
  };
  auto one = nodes ? find() : std::nullopt;
  if (!one || (!one->is_sealed && !nodes->is_complete(*one, false)) || !nodes->take_turn(name.file)) return false;
  one = find();
  if (!one || (!one->is_sealed && !nodes->is_complete(*one, false))) return false;
  if (nodes->is_untouched(*one)) return nodes->forget(*one), true;  // a child may read it still: its units go with the attempt
  const auto lost = nodes->seal(*one);
  if (lost) say_degraded(name, *lost), nodes->settle_older_than(*one, *found);
  if (!lost && unsealed_.insert(name.file).second) say_(fmt::format("{} is not protected yet: {}", name.file, lost.status().sentence()));
  return lost.ok();
}

// What the checkpoint that this attempt began with has lost with its nodes. Each node makes its share of the files anew, one at a time, and what the
// program writes comes first. What cannot be made anew now is left to the next attempt.
bool Protector::renew_next() {
  if (!run_.from || run_.from->drained || renewed_ || !files_.list(State::closed).empty()) return false;
  if (looks_to_leave_out_ > 0) {
    --looks_to_leave_out_;
    return false;
  }
  const auto found = versions_.look(run_.nodes, settings_.deadline_ms);
  const catalog::FoundVersion* const next = found ? next_to_renew(*found) : nullptr;
  if (!next) {
    // Where nodes answer late it is looked for again, less and less often.
    renewed_ = (found && has_seen_all(*found)) || ++incomplete_looks_ > most_incomplete_looks;
    looks_to_leave_out_ = 1u << incomplete_looks_;
    return false;
  }
  asked_.insert(layout::stored(next->manifest).file_id);
  const auto renews = [&](bool now) {
    std::lock_guard lock(hands_->mutex);
    hands_->renews = now;
  };
  renews(true);
  const Status done = renew(next->manifest, run_.nodes, settings_);
  renews(false);
  if (!done) say_(fmt::format("what was lost of {} is not made anew: {}", next->manifest.path, done.sentence()));
  return true;
}

// All files of what the attempt has begun with could be read; or a later checkpoint is whole, and it may have been dropped.
bool Protector::has_seen_all(const std::vector<catalog::FoundVersion>& found) const {
  auto meant = found;
  leave_out_later(meant, run_);
  auto all = checkpoints_of(protected_of(meant));
  unmark_beginning(all, run_);
  for (const Checkpoint& one : all) {
    if (one.run != run_.id || !one.whole()) continue;
    const auto is_older = [&](const auto& file) { return is_older_than(file.second.version, *run_.from); };
    const bool is_of_step = one.attempt == run_.from->attempt && one.step == run_.from->step;
    const bool is_from = is_of_step && std::none_of(one.files.begin(), one.files.end(), is_older);
    if (one.attempt == run_.attempt || is_from) return true;
  }
  return false;
}

const catalog::FoundVersion* Protector::next_to_renew(const std::vector<catalog::FoundVersion>& found) const {
  for (const catalog::FoundVersion& one : found) {
    const layout::Manifest& stored = layout::stored(one.manifest);
    const layout::Version& version = *stored.version;
    // A pack may begin with an older file, and have others that belong to it.
    const bool is_meant = is_of(version, run_.id, *run_.from) && !is_older_than(*one.manifest.version, *run_.from) &&
                          !is_later_than(*one.manifest.version, one.manifest.file_id, *run_.from);
    const bool ours = is_meant && version.attempt != run_.attempt && run_.nodes[(version.rank + version.writer) % run_.nodes.size()] == own_;
    const bool possible = one.readable() && run_.nodes.size() >= size_t(one.manifest.geometry.scheme.width());
    if (ours && possible && !one.is_complete() && !asked_.count(stored.file_id)) return &one;
  }
  return nullptr;
}

// Of a protector that was killed: the other thread has none of these.
std::vector<LocalName> Protector::left_in_hands() const {
  std::lock_guard lock(hands_->mutex);
  std::vector<LocalName> left = files_.list(State::protecting);
  std::erase_if(left, [&](const LocalName& name) { return hands_->has(name); });
  hands_->files.insert(hands_->files.end(), left.begin(), left.end());
  return left;
}

// Somebody writes it still; or it has another name, under which the other thread is coding it.
bool Protector::must_wait(const LocalName& name, bool is_other_at_work) const {
  const std::string path = files_.path(State::closed, name);
  if (has_writers(path)) return true;
  const auto other = is_other_at_work ? other_name(files_, path) : std::nullopt;
  return other && other->state == State::protecting;
}

// Not what was written anew meanwhile, or has gone with its node, or what the other thread has taken; nor a copy to which nobody has written.
bool Protector::take(const LocalName& name) {
  if (untouched_.settle(name, State::closed) == Untouched::Found::gone) return false;
  std::lock_guard lock(hands_->mutex);
  const bool taken = files_.move(name, State::closed, State::protecting).ok();
  if (taken) hands_->files.push_back(name);
  return taken;
}

bool Protector::protect_newer() {
  const std::vector<LocalName> names = take_newer();
  if (!names.empty()) protect_taken(names, hands_->seen_beside);
  return !names.empty();
}

// The newest of them, and where that is small all small ones of its step. While something is made anew that is all that is closed.
std::vector<LocalName> Protector::take_newer() {
  std::vector<LocalName> in_hands;
  {
    std::lock_guard lock(hands_->mutex);
    if (hands_->files.empty() && !hands_->renews) return {};
    in_hands = hands_->files;
  }
  std::vector<LocalName> newer = files_.list(State::closed);
  std::erase_if(newer, [&](const LocalName& name) {
    const auto is_older = [&](const LocalName& other) { return other.step != name.step && other.written < name.written; };
    return !std::all_of(in_hands.begin(), in_hands.end(), is_older) || must_wait(name, true);
  });
  const auto newest = std::max_element(newer.begin(), newer.end(), [](const LocalName& a, const LocalName& b) { return a.written < b.written; });
  if (newest == newer.end()) return {};
  const LocalName first = *newest;
  const bool is_alone = !is_small(State::closed, first);
  std::erase_if(newer, [&](const LocalName& name) {
    const bool goes_along = name == first || (!is_alone && name.step == first.step && is_small(State::closed, name));
    return !goes_along || !take(name);
  });
  return newer;
}

// Small ones of one step share a protected file: one commit for all of them.
void Protector::protect_taken(const std::vector<LocalName>& names, catalog::VersionList& versions) {
  std::map<uint64_t, std::vector<Taken>> small;  // by step
  // One that a newer one of the same file replaces is dropped alone, and soon.
  const auto is_replaced = [&](const LocalName& name) {
    return std::any_of(names.begin(), names.end(), [&](const LocalName& other) { return other.file == name.file && other.number > name.number; });
  };
  for (const LocalName& name : names) {
    if (const std::string why = files_.why(name); !why.empty()) {  // who closed it has said so
      let_go(name, Status(Kind::invalid, why));
      continue;
    }
    if (const Status alone = check_not_overtaken(name, versions); !alone) {
      let_go(name, alone);
      continue;
    }
    auto version = version_now(name);
    if (!version) let_go(name, version.status());
    else if (is_small(State::protecting, name) && !is_replaced(name)) small[name.step].push_back({name, std::move(*version)});
    else protect_alone({name, std::move(*version)}, versions);
  }
  for (auto& [step, files] : small) protect_small(std::move(files), versions);
}

// While nothing was written to a copy nobody elsewhere has minded it.
Status Protector::check_not_overtaken(const LocalName& name, catalog::VersionList& versions) const {
  if (!untouched_.has(name)) return {};
  Status alone = checkpoint::check_not_overtaken(name, own_, run_, settings_, versions);
  untouched_.forget(name);
  return alone;
}

// A file without a {rank} is one of its step, and may be opened by ranks of several nodes together.
bool Protector::is_small(State state, const LocalName& name) const {
  const auto named = patterns_ && name.kind == LocalName::of_user ? patterns_->match(name.file) : std::nullopt;
  if (name.kind == LocalName::of_user && (!named || !patterns_->have_rank(named->part))) return false;
  const auto found = settings_.pack_below_bytes > 0 ? catalog::look(files_.path(state, name), false) : Status(Kind::unsupported, "");
  return found && found->size < settings_.pack_below_bytes;
}

// Of one step: one commit for as many as a pack has room for, and then the rest. Where there is only one, or the pack cannot be written, each has a
// protected file of its own, and says for itself why it cannot be protected.
void Protector::protect_small(std::vector<Taken> files, catalog::VersionList& versions) {
  for (size_t first = 0; first < files.size();) {
    PackInTheMaking pack(settings_.pack_below_bytes);
    const size_t begin = first;
    while (first < files.size() && pack.takes(files[first].version)) {
      pack.add({files[first].version, files_.path(State::protecting, files[first].name)});
      ++first;
    }
    const std::span<const Taken> in_it = std::span(files).subspan(begin, std::max<size_t>(first - begin, 1));
    first = begin + in_it.size();
    const auto now = in_it.size() > 1 ? protect_together(pack.files(), own_, settings_) : Result<ProtectedNow>(Status(Kind::unsupported, ""));
    if (now) are_protected(in_it, *now, versions);
    else std::for_each(in_it.begin(), in_it.end(), [&](const Taken& file) { protect_alone(file, versions); });
  }
}

void Protector::protect_alone(const Taken& file, catalog::VersionList& versions) {
  const auto now = file.version.roll ? protect_roll(file.version, own_, settings_) : protect_file(file, versions);
  if (now) return are_protected({&file, 1}, *now, versions);
  if (was_dropped(file.name, versions)) return forget(file.name);
  let_go(file.name, now.status());
}

// While it is written: the other thread may have protected a newer checkpoint, and an older one goes as soon as a manifest of it is seen. Its units go first.
bool Protector::was_dropped(const LocalName& name, catalog::VersionList& versions) const {
  constexpr std::chrono::milliseconds look_again(10), longest(500);
  if (is_noted_as_dropped(name)) return true;
  if (!is_newer_whole(name, versions)) return false;
  for (const auto until = catalog::environment().now() + longest; catalog::environment().now() < until;) {
    if (is_noted_as_dropped(name)) return true;
    catalog::environment().wait(look_again);
  }
  return is_noted_as_dropped(name);
}

bool Protector::is_noted_as_dropped(const LocalName& name) const { return catalog::look(files_.path(State::dropped, name), false).ok(); }

bool Protector::is_newer_whole(const LocalName& name, catalog::VersionList& versions) const {
  const auto found = versions.look(run_.nodes, settings_.deadline_ms);
  if (!found) return false;
  const auto all = checkpoints_of(protected_of(*found));
  const Checkpoint* const newest = newest_whole(all, run_.id);
  const Age age{run_.attempt, name.step, name.written, catalog::digits_of_node(own_)};
  return newest && !newest->are_singles && is_before(age, newest->age_beside(name.rank, name.writer));
}

void Protector::forget(const LocalName& name) {
  std::lock_guard lock(hands_->mutex);
  (void)catalog::unlink_file(files_.path(State::protecting, name));
  std::erase(hands_->files, name);
}

// What was renamed is not coded twice.
Result<ProtectedNow> Protector::protect_file(const Taken& file, catalog::VersionList& versions) const {
  const std::string path = files_.path(State::protecting, file.name);
  return protect(path, file.version, own_, settings_, [&]() -> Result<ProtectedNow> {
    const auto other = other_name(files_, path);
    if (!other || other->state == State::protecting) return Status(Kind::not_found, path);
    const auto found = versions.look(run_.nodes, settings_.deadline_ms);
    return found ? protect_moved(path, file.version, *other, own_, run_, *found, settings_) : found.status();
  });
}

void Protector::are_protected(std::span<const Taken> files, const ProtectedNow& now, catalog::VersionList& versions) {
  say_degraded(files.front().name, now.lost_members);
  leave_room_after(files.front().name, versions);
  std::lock_guard lock(hands_->mutex);
  for (const auto& [name, version] : files)
    if (is_noted_as_dropped(name)) (void)catalog::unlink_file(files_.path(State::protecting, name));
    else (void)files_.move(name, State::protecting, State::kept);
  files_.forget_dropped();
  for (const auto& [name, version] : files) std::erase(hands_->files, name);
}

void Protector::let_go(const LocalName& name, const Status& why) {
  say_why(name, why);
  std::lock_guard lock(hands_->mutex);
  (void)files_.move(name, State::protecting, State::failed);
  std::erase(hands_->files, name);
}

// For the next checkpoint of this node, and what its group sends here of theirs: before a program finds the disk full, for nobody hears of its writes. In a
// redundant job teams look for their copies.
void Protector::leave_room_after(const LocalName& name, catalog::VersionList& versions) {
  const auto scheme = layout::Scheme::parse(settings_.protect.value_or(""));
  if (!scheme || run_.teams > 1) return;
  const uint64_t copies = 1 + divide_up(uint64_t(scheme->width()), uint64_t(scheme->k));
  const uint64_t wanted = copies * bytes_here(files_, name);
  if (has_room(files_, wanted)) return;
  if (const auto found = versions.look(run_.nodes, settings_.deadline_ms)) make_room(files_, run_, wanted, *found);
}

Result<layout::Version> Protector::version_now(const LocalName& name) const {
  if (!is_rolled_) return name.version_in(run_);
  HF_TRY(complete(name));
  const bool is_roll = name.kind != LocalName::of_user;
  const auto content = is_roll ? catalog::read_small(files_.path(State::protecting, name), most_rolled_bytes) : Result<std::string>("");
  return content ? version_of(name, run_, *patterns_, *content) : content.status();
}

// It may be the last file of its checkpoint.
Status Protector::complete(const LocalName& name) const {
  const auto named = name.kind == LocalName::of_user ? patterns_->match(name.file) : std::nullopt;
  if (!named || !patterns_->completes(*named)) return {};
  const bool of_all = !patterns_->have_rank(named->part);
  if (has_shared_) HF_TRY(complete_shared(name, of_all ? std::nullopt : std::optional(name.writer)));
  return roll_completed(files_, name, of_all, run_, settings_);
}

// What is begun later does not belong to the checkpoint.
Status Protector::complete_shared(const LocalName& name, std::optional<uint32_t> rank) const {
  const auto nodes = SharedFiles::look(run_, settings_);
  const auto found = nodes ? nodes->find_all() : Result<std::vector<SharedFile>>(nodes.status());
  if (!found) return found.status();
  for (const SharedFile& one : *found)
    if (one.name.step == name.step) HF_TRY(Parts(files_).completed(one.name, rank));
  return {};
}

void Protector::fail(const LocalName& name, const Status& status) {
  say_why(name, status);
  (void)files_.move(name, State::closed, State::failed);
}

void Protector::say_why(const LocalName& name, const Status& status) {
  ++hands_->failed;
  (void)files_.say_why(name, status.sentence());
  const std::string cause = status.sentence().substr(0, status.sentence().find(';'));
  const bool is_of_all = status.kind() == Kind::lost && name.ranks > 1 && cause.find(name.file) == std::string::npos;  // too few nodes are left
  if (is_of_all && !is_new(name.step, cause)) return;
  say_(fmt::format("{} is not protected: {}{}", name.file, status.sentence(),
                   is_of_all ? fmt::format(" (said once for checkpoint {})", name.step) : ""));
}

// Each file of each checkpoint is so until the job ends: one line for as many as are lost.
void Protector::say_degraded(const LocalName& name, int lost) {
  if (lost == 0 || !is_new(0, fmt::format("{} lost", lost))) return;
  const auto scheme = layout::Scheme::parse(settings_.protect.value_or(""));
  say_(degraded(name.file, lost, scheme && lost >= scheme->m) + ", and so may be those of other files (said once)");
}

bool Protector::is_new(uint64_t step, const std::string& cause) {
  {
    const std::lock_guard lock(hands_->mutex);
    if (!hands_->said.emplace(step, cause).second) return false;
  }
  return is_first_to_say(step, cause, own_, run_, settings_);
}

}  // namespace holdfast::checkpoint
