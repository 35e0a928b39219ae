// Checkpoints of a redundant job. Each replica writes a copy of its own on its node's disk, natively, which nobody else sees. At the close all say what
// they have written; where it is the same the leader's copy is the one that counts, and is protected. What the others have is a cache on other nodes, and
// goes on the same one. A leader that dies before leaves nothing: the next one's copy counts. docs/decisions/0054
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>

#include <fmt/format.h>

#include "catalog/environment.hpp"
#include "checkpoint/elsewhere.hpp"
#include "checkpoint/protect.hpp"
#include "file/coordinated/names.hpp"
#include "frontend/posix/checkpoints_state.hpp"
#include "redundant/frame.hpp"

namespace holdfast::frontend::posix {

using file::Call;
using file::OfCopies;
using file::Outcome;

namespace {

constexpr std::chrono::milliseconds between_twin_looks(20);
constexpr int bits_of_what = 8;

// A node and a name, as the leader tells them: neither has a line's end. A name may be empty.
Bytes told(const std::string& node, const std::string& name) { return redundant::bytes_of(node + "\n" + name); }
std::pair<std::string, std::string> told_by(ByteView payload) {
  const std::string text(redundant::text_of(payload));
  const size_t end = std::min(text.find('\n'), text.size());
  return {text.substr(0, end), end < text.size() ? text.substr(end + 1) : ""};
}

// Of what is seen; of what the attempt began with it is 0.
std::optional<uint32_t> number_of(const Result<Checkpoints::Sight>& sight) {
  if (sight && sight->described) return sight->described;
  const auto name = sight && sight->what == Checkpoints::Sight::local ? checkpoint::decode_local_name(catalog::name_of(sight->path)) : std::nullopt;
  return name ? std::optional(name->number) : std::nullopt;
}

std::string said_of(const char* which, const Result<checkpoint::Content>& content) {
  return content ? fmt::format("its content when it was {}, {} bytes", which, content->bytes) : fmt::format("its content when it was {}", which);
}

OfCopies claim_of_content(Call call, const char* which, const Result<checkpoint::Content>& content) {
  return {.call = call, .bytes = content ? content->bytes : ~uint64_t(0), .sum = content ? content->sum : 0, .what = said_of(which, content)};
}

}  // namespace

Status Checkpoints::State::check_replica(const std::string& path) const {
  if (run.teams < 2 || replica()) return {};
  return Status(Kind::unsupported,
                path +
                    ": with --replicas only a rank writes, renames and removes checkpoints, and only after MPI_Init; a program that a rank "
                    "starts cannot; let the rank do it",
                EOPNOTSUPP);
}

// Where this replica has what was to be seen then: it has written that itself, or the attempt began with it. The program may have removed it since.
std::string Checkpoints::State::path_then(const File& file, uint32_t number) {
  std::lock_guard lock(mutex);
  std::string past = files.past(file.path, number);
  if (!past.empty() || number != 0 || !run.from || run.from->drained) return past;
  const auto found = versions.look(settings.local, settings.deadline_ms);
  if (!found) return "";
  const auto is_then = [&](const layout::Version& version) { return version.attempt == run.from->attempt && version.step == run.from->step; };
  const catalog::FoundVersion* const one = last_of(*found, file, is_then);
  if (!one) return "";
  const layout::Version& version = *one->manifest.version;
  std::string path = files.path(checkpoint::State::restored, {version.step, version.rank, version.ranks, 0, file.path});
  return catalog::look(path, false) || restore(file, one->manifest) ? path : "";
}

// Of those that are meant: of two of one number the one that can be read.
const catalog::FoundVersion* Checkpoints::State::last_of(const Found& found, const File& file,
                                                         const std::function<bool(const layout::Version&)>& is_meant) const {
  const catalog::FoundVersion* last = nullptr;
  for (const catalog::FoundVersion& one : found) {
    const layout::Version& version = *one.manifest.version;
    if (version.run != run.id || version.roll || version.file != file.path || !is_meant(version)) continue;
    if (run.from && (checkpoint::is_older_than(version, *run.from) || checkpoint::is_later_than(version, one.manifest.file_id, *run.from))) continue;
    const auto order = [](const catalog::FoundVersion& it) { return std::pair(it.manifest.version->number, it.readable()); };
    if (!last || order(*last) < order(one)) last = &one;
  }
  return last;
}

// A copy of the team's own: those who go on may drop the version, and write the file anew.
Result<Checkpoints::Sight> Checkpoints::State::look_at_resumed(const File& file) {
  std::lock_guard lock(mutex);
  HF_TRY(files.make());
  const auto found = versions.look(settings.local, settings.deadline_ms);
  if (!found) return found.status();
  const catalog::FoundVersion* const one = last_of(*found, file, [this](const layout::Version& version) { return is_resumed(version); });
  if (!one) return Sight{Sight::absent, ""};
  const layout::Version& version = *one->manifest.version;
  file::resumes_from(*replica(), file.path, version.attempt != run.attempt);
  std::string there = files.past(file.path, version.number);
  if (!there.empty()) return Sight{Sight::local, std::move(there)};
  const std::string half = files.scratch();
  Status fetched = checkpoint::fetch(one->manifest, half, settings);
  if (fetched) fetched = files.keep_past(half, checkpoint::name_of(version));
  if (fetched) return Sight{Sight::local, files.past(file.path, version.number)};
  (void)catalog::unlink_file(half);
  return fetched;
}

Result<Checkpoints::Sight> Checkpoints::look_as_one(const File& file, bool fetches) {
  redundant::Replica* const replica = state_->replica();
  if (state_->resumes_now()) return state_->look_at_resumed(file);
  auto own = look_alone(file, fetches);
  if (!replica) return own;
  const OfCopies claim{.call = Call::look, .what = "a look for it"};
  const Outcome outcome = file::once_of_copies(*replica, file.path, claim, [&](bool) {
    if (!own) return Outcome{own.status()};
    return Outcome{.value = uint64_t(own->what) | uint64_t(number_of(own).value_or(0)) << bits_of_what};
  });
  HF_TRY(outcome.status);
  const auto what = Sight::What(outcome.value & ((1u << bits_of_what) - 1));
  if (what != Sight::local) return Sight{what, ""};
  const auto number = uint32_t(outcome.value >> bits_of_what);
  const bool was_then = file::was_long_ago(*replica, file.path);
  if (const std::string path = was_then ? state_->path_then(file, number) : ""; !path.empty()) return Sight{Sight::local, path};
  const auto until = catalog::environment().now() + std::chrono::milliseconds(state_->settings.lock_patience_ms);
  // Another rank may have written it anew since the leader has looked.
  for (auto mine = number_of(own); !mine || *mine < number || was_then; mine = number_of(own)) {
    if (mine == number) break;
    if (was_then) replica->cannot_catch_up(file.path + " is not there any more as it was read then");
    if (catalog::environment().now() >= until) return Status(Kind::lost, file.path + ": another replica sees it, and this one does not", EIO);
    catalog::environment().wait(between_twin_looks);
    own = look_alone(file, fetches);
  }
  return own;
}

int Checkpoints::open_to_write(const File& file, int flags, mode_t mode, Status& status) {
  status = state_->check_replica(file.path);
  if (!status) return errno = status.to_errno(), -1;
  redundant::Replica* const replica = state_->replica();
  if (!replica) return open_alone(file, flags, mode, status);
  int own = -1;
  bool acted = false;
  const OfCopies claim{.call = Call::open, .at = uint64_t(flags), .what = "its open"};
  const Outcome outcome = file::once_of_copies(*replica, file.path, claim, [&](bool) {
    acted = true;
    own = open_alone(file, flags, mode, status);
    return Outcome{.status = own < 0 ? status : Status(), .value = own < 0 ? uint64_t(errno) : 0};
  });
  if (!acted) status = outcome.status;
  if (!outcome.status.ok() || outcome.value != 0) return errno = outcome.status.ok() ? int(outcome.value) : outcome.status.to_errno(), -1;
  if (acted) return own;
  // What the leader has made there is not to be seen yet; what another replica has written so long ago may be.
  const int flags_now = flags & O_EXCL ? (flags & ~O_EXCL) | O_TRUNC : flags;
  const auto until = catalog::environment().now() + std::chrono::milliseconds(state_->settings.lock_patience_ms);
  while ((own = open_alone(file, flags_now, mode, status)) < 0 && status.kind() == Kind::busy && catalog::environment().now() < until) {
    catalog::environment().wait(between_twin_looks);  // another rank of this team is about to close it, as that of the leader's has
    status = Status();
  }
  const int error = errno;
  if (own < 0 && status.ok()) status = Status::from_errno(error, file.path + ": another replica has opened it, and this one cannot");
  return errno = error, own;
}

// By a leader that was lost meanwhile: what it has closed counts.
std::optional<Checkpoints::State::Counted> Checkpoints::State::counted_before(const LocalName& own) {
  using checkpoint::State;
  const std::vector<State> states{State::closed, State::protecting, State::kept};
  for (const State state : states)
    for (LocalName& name : files.list(state))
      if (name.file == own.file && name.number >= own.number) return Counted{node, std::move(name)};
  for (const checkpoint::FoundElsewhere& one : checkpoint::files_elsewhere(own.file, states, node, run, settings))
    if (one.file.name.number >= own.number) return Counted{one.address, one.file.name};
  const auto found = versions.look(settings.local, settings.deadline_ms);
  if (!found) return {};
  for (const catalog::FoundVersion& one : *found) {
    const layout::Version& version = *one.manifest.version;
    if (version.run == run.id && version.attempt == run.attempt && version.file == own.file && version.number >= own.number)
      return Counted{"", checkpoint::name_of(version)};
  }
  return {};
}

// In the leader: the copy that it has at this path.
Result<Checkpoints::State::Counted> Checkpoints::State::count(const std::string& copy, const LocalName& own, bool again) {
  if (again)
    if (auto before = counted_before(own)) return stand_back(copy, *before, false), std::move(*before);
  HF_TRY(catalog::move(copy, files.path(checkpoint::State::closed, own)));
  return Counted{node, own};
}

// In all others. What they have is remembered by the leader's name: each has numbered it alone.
void Checkpoints::State::stand_back(const std::string& copy, const Counted& counted, bool was_long_ago) {
  const bool is_elsewhere = counted.node != node && !counted.name.file.empty();
  const auto keep = [&] { return catalog::move(copy, files.path(checkpoint::State::twin, counted.name)); };
  if (is_elsewhere && !was_long_ago && files.put_into(checkpoint::State::twin, keep)) return;
  // Its number is not given again here, where there is no copy.
  if (is_elsewhere) (void)catalog::make_file(files.path(checkpoint::State::dropped, counted.name), 0600);
  if (!was_long_ago || !files.keep_past(copy, counted.name)) (void)catalog::unlink_file(copy);
}

Status Checkpoints::close_as_one(redundant::Replica& replica, const LocalName& own) {
  State& state = *state_;
  const std::string copy = state.files.path(checkpoint::State::writing, own);
  {
    std::lock_guard lock(state.mutex);
    state.files.no_longer(own, state.who());
    if (state.second.erase(own.file)) (void)state.refuse_second(own, state.files.listed());
  }
  return make_count(replica, Call::close, "closed", copy, own, [] { return Status(); });
}

Status Checkpoints::make_count(redundant::Replica& replica, Call call, const char* which, const std::string& copy, const LocalName& own,
                               const std::function<Status()>& check) {
  State& state = *state_;
  bool acted = false;
  // What is renamed was compared while it was written.
  const OfCopies claim =
      call == Call::rename ? OfCopies{.call = call, .what = "a rename to it"} : claim_of_content(call, which, checkpoint::content_of(copy));
  const Outcome outcome = file::once_of_copies(replica, own.file, claim, [&](bool again) {
    acted = true;
    std::lock_guard lock(state.mutex);
    Status sound = check();
    if (!sound && again && state.counted_before(own)) sound = Status();
    const auto counted = sound ? state.count(copy, own, again) : sound;
    if (!counted) return Outcome{counted.status()};
    const auto text = checkpoint::encode(counted->name);
    return Outcome{.status = text.status(), .payload = told(counted->node, text ? *text : "")};
  });
  if (acted && !outcome.status.ok()) (void)catalog::unlink_file(copy);
  if (acted) return outcome.status;
  const auto [node, text] = told_by(outcome.payload);
  const auto name = checkpoint::decode_local_name(text);
  std::lock_guard lock(state.mutex);
  if (const std::string why = state.files.why(own); name && !why.empty()) (void)state.files.say_why(*name, why);
  state.stand_back(copy, {outcome.status.ok() ? node : state.node, name ? *name : LocalName()}, file::was_long_ago(replica, own.file));
  return outcome.status;
}

Status Checkpoints::remove(const File& file) {
  HF_TRY(state_->check_replica(file.path));
  redundant::Replica* const replica = state_->replica();
  std::optional<LocalName> removed;
  if (!replica) return remove_alone(file, removed);
  const auto seen = look_alone(file);
  const bool was_there = seen && seen->what != Sight::absent;
  bool acted = false;
  const Outcome outcome = file::once_of_copies(*replica, file.path, {.call = Call::unlink, .what = "its removal"}, [&](bool again) {
    acted = true;
    Status status = remove_alone(file, removed);
    if (again && was_there && status.kind() == Kind::not_found) status = Status();
    const auto text = removed ? checkpoint::encode(*removed) : Result<std::string>("");
    return Outcome{.status = status, .payload = told(state_->node, text ? *text : "")};
  });
  if (acted || !outcome.status.ok()) return outcome.status;
  const auto [node, text] = told_by(outcome.payload);
  const auto name = checkpoint::decode_local_name(text);
  std::lock_guard lock(state_->mutex);
  if (name && node != state_->node) (void)state_->files.hide(*name);
  return {};
}

// Replicas list it at different times, and what is taken goes from there.
std::vector<Checkpoints::File> Checkpoints::files_of_directory(const std::string& directory, std::vector<std::string> found) const {
  std::vector<File> files;
  const auto add = [&](std::string path) { files.push_back({state_->patterns.match(path).value_or(checkpoint::Named()), std::move(path)}); };
  redundant::Replica* const replica = state_->replica();
  if (!replica) {
    std::for_each(found.begin(), found.end(), add);
    return files;
  }
  const OfCopies claim{.call = Call::look, .what = "a look for the files in it"};
  const Outcome outcome = file::once_of_copies(*replica, directory, claim, [&](bool) {
    std::string names;
    for (const std::string& name : found) names += name + '\0';
    return Outcome{.payload = redundant::bytes_of(names)};
  });
  std::istringstream names{std::string(redundant::text_of(outcome.payload))};
  for (std::string name; std::getline(names, name, '\0');) add(name);
  return files;
}

// What goes on to its next state meanwhile is looked for anew: the path that was copied at last.
Result<std::string> Checkpoints::copy_to_take(std::string from, const std::string& half) {
  const std::string source = state_->file_of(from);
  for (;;) {
    const Status copied = checkpoint::copy_file(from, half);
    if (copied) return from;
    (void)catalog::unlink_file(half);
    const auto file = copied.kind() == Kind::not_found && !source.empty() ? match(source) : std::nullopt;
    const auto now = file ? look_alone(*file) : Result<Sight>(copied);
    if (!now || now->path.empty() || now->path == from) return copied;
    from = now->path;
  }
}

// Each has a copy before the leader may count, for the plain file goes then. Who can have none meets the others all the same. As the leader it refuses
// the file for all; else it goes on without, for what counts is the leader's.
Status Checkpoints::take(const std::string& plain, const File& to) {
  HF_TRY(state_->check_replica(to.path));
  redundant::Replica* const replica = state_->replica();
  if (!replica) return take_alone(plain, to);
  State& state = *state_;
  const Status made = state.patterns.match(to.path) ? state.files.make() : Status(Kind::invalid, to.path + ": links lead elsewhere on this node");
  const std::string half = state.files.scratch();
  const auto copied = made ? copy_to_take(plain, half) : made;
  LocalName own;
  own.file = to.path, own.number = UINT32_MAX;
  Status sound = copied.status();
  if (made) {
    std::lock_guard lock(state.mutex);
    const State::Listed here = state.files.listed();
    const auto next = state.next_name_of(to, true, here);
    if (!next) sound = next.status();
    else own = *next;
    if (next) state.count_closes_of(plain, own);
    if (next && copied) (void)state.refuse_second(own, here, state.file_of(plain));
  }
  return make_count(*replica, Call::rename, "renamed", half, own, [&] {
    if (!sound) return sound;
    return checkpoint::has_writers(*copied) ? State::still_written(*copied) : Status();
  });
}

}  // namespace holdfast::frontend::posix
