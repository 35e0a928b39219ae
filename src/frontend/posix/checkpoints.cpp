#include "frontend/posix/checkpoints.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "base/plural.hpp"
#include "catalog/environment.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/elsewhere.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/together.hpp"

namespace holdfast::frontend::posix {

using checkpoint::LocalFile;
using checkpoint::LocalName;

namespace {

// A bit each of the numbers under which this process writes checkpoints.
constexpr int watched_numbers = 1 << 16;
constexpr int most_turns = 100;               // of an open that other processes overtake
constexpr size_t most_handed_over = 1 << 20;  // bytes of a note
std::array<std::atomic<uint64_t>, watched_numbers / 64> written_numbers;

void mark(int fd, bool written) {
  if (fd < 0 || fd >= watched_numbers) return;
  const uint64_t bit = 1ull << (fd % 64);
  if (written) written_numbers[size_t(fd) / 64] |= bit;
  else written_numbers[size_t(fd) / 64] &= ~bit;
}

// Of a file of `step`, where the rank's last one was of another or of the same.
uint32_t turn_after(uint64_t last_step, uint32_t last_turn, uint64_t step) { return last_turn + (last_step != step); }

}  // namespace

struct Checkpoints::State {
  State(const Settings& how, checkpoint::Patterns which, checkpoint::Run of, uint32_t rank_here, uint32_t ranks_of_job, const std::string& node_here)
      : settings(how),
        patterns(std::move(which)),
        run(std::move(of)),
        rank(rank_here),
        ranks(ranks_of_job),
        node(node_here),
        files(parse_node_path(node_here).path, run.id, run.attempt),
        plain(run, node, settings) {}

  struct Written {
    LocalName name;
    pid_t process;  // whose descriptor it is: a forked child's copies go with it and say nothing
  };

  bool is_visible(const layout::Version& version, const std::set<std::string>& beside) const;
  // Its older versions have the same name, and other ranks write it: alone, or together, of which only those that were there are told.
  bool may_be_outdated(const File& file, const LocalFile& here) const {
    const bool is_own = patterns.have_rank(file.named.part) && file.named.rank == rank;
    const bool is_finished = here.state == checkpoint::State::restored || here.state == checkpoint::State::kept;
    if (is_of_all(file)) return is_finished;
    return here.state == checkpoint::State::restored && !is_own;
  }
  using Listed = checkpoint::LocalFiles::Listed;
  bool is_shared(const File& file) const { return patterns.are_shared(file.named.part) || together.contains(file.path); }
  bool is_of_all(const File& file) const { return is_shared(file) || !patterns.have_rank(file.named.part); }
  // A file of this rank alone, of which nothing was there when the attempt began: what there is of it was written on this node.
  bool is_all_here(const File& file) const {
    const bool is_of_before = run.from && !run.from->drained && (!patterns.have_step() || run.from->step == file.named.step);
    return !is_of_all(file) && file.named.rank == rank && !is_of_before;
  }
  uint32_t number_here(const layout::Version& version) const { return version.attempt == run.attempt ? version.number : 0; }
  using Found = std::vector<catalog::FoundVersion>;
  Result<Found> look_at_versions(const std::function<bool(const Found&)>& suffices);
  bool is_of_beginning(const File& file) const {
    return run.from && !run.from->drained && (!patterns.have_step() || run.from->step == file.named.step);
  }
  std::set<std::string> beside_beginning(const std::vector<catalog::FoundVersion>& found) const;
  Result<std::optional<catalog::FoundVersion>> find_in_pool(const File& file);
  Result<std::optional<layout::Manifest>> in_pool(const File& file);
  Status restore(const File& file, const layout::Manifest& manifest);
  Status restore_newest(const File& file, layout::Manifest manifest);
  Result<Sight> look_locked(const File& file);
  Result<Sight> look_to_write(const File& file, int flags, Listed& here);
  Result<catalog::Descriptor> open_seen(const File& file, Sight sight);
  Result<LocalName> begin(const File& file, int flags, mode_t mode, bool& joins);
  Result<LocalName> check_alone(const File& file, LocalName name);
  int open_written(const LocalName& name, int flags, bool joins);
  Result<LocalName> next_name(const File& file, bool written_anew, const Listed& here) const;
  Result<LocalName> next_name_in_pool(const File& file, bool written_anew);
  // Of a file that one rank writes by itself. Where others may have written it on the nodes these count as well.
  Result<LocalName> next_name_of(const File& file, bool written_anew, const Listed& here) {
    return is_of_all(file) ? next_name_in_pool(file, written_anew) : next_name(file, written_anew, here);
  }
  LocalName anew(LocalName name) const;
  uint32_t writers() const { return patterns.are_rolled() ? ranks : 0; }
  void begins(uint64_t step) const;
  Status roll(uint64_t step, const checkpoint::OfRank& own, const std::vector<LocalName>& listed) const;
  checkpoint::OfRank written_by_rank() const;
  Result<std::optional<LocalName>> last_seen(const File& file);
  Status hide(const File& file, const LocalName& name);
  Status close_file(const LocalName& name);
  Status copy_to(checkpoint::State to, const LocalName& name, const std::string& from, bool keep_existing = false) const;
  bool open_elsewhere(const LocalName& name) const;
  const std::string& who();
  bool is_own(const Written& one) const { return one.process == ::getpid(); }
  std::string hand_over_note() { return fmt::format("{}/handed.{}", files.directory(), who()); }
  void close_handed_over();

  const Settings settings;
  const checkpoint::Patterns patterns;
  const checkpoint::Run run;
  const uint32_t rank;     // of this process
  const uint32_t ranks;    // of the job
  const std::string node;  // its address
  const checkpoint::LocalFiles files;
  checkpoint::PlainFiles plain;
  pid_t who_began = -1;  // the process whose name in "openers" that is
  std::string who_is;
  std::mutex mutex;
  catalog::VersionList versions;
  std::map<int, Written> written;             // by number; below zero those whose numbers are being closed
  std::set<std::string> together;             // paths of files that ranks have written together
  std::vector<LocalName> completed_together;  // those of them that this process has begun
  std::set<uint64_t> steps_together;          // of those that another process has
};

Checkpoints::Checkpoints(std::unique_ptr<State> state) : state_(std::move(state)), at_close_(state_->settings, state_->files) {}
Checkpoints::~Checkpoints() = default;

// Not held by a thread that a forked child does not have.
static std::mutex* in_use = nullptr;

Checkpoints* Checkpoints::of_process(const Settings& settings) {
  static Checkpoints* const one = [&]() -> Checkpoints* {
    if (settings.checkpoint.empty()) return nullptr;
    auto run = checkpoint::decode_run(environment_variable(checkpoint::run_variable));
    auto patterns = checkpoint::Patterns::resolve(settings.checkpoint, settings.complete);
    if (!run || !patterns) return nullptr;
    const uint32_t rank = checkpoint::own_rank();
    const std::string node = checkpoint::own_node(*run, rank);
    if (node.empty()) return nullptr;
    auto of_rank = make(settings, std::move(*patterns), std::move(*run), {rank, checkpoint::ranks_of_environment(), node});
    in_use = &of_rank->state_->mutex;
    (void)::pthread_atfork([] { in_use->lock(); }, [] { in_use->unlock(); }, [] { in_use->unlock(); });
    return of_rank.release();  // files are closed until the process ends
  }();
  return one;
}

std::unique_ptr<Checkpoints> Checkpoints::make(const Settings& settings, checkpoint::Patterns patterns, checkpoint::Run run, const Rank& rank) {
  auto state = std::make_unique<State>(settings, std::move(patterns), std::move(run), rank.number, rank.of, rank.node);
  checkpoint::make_directories(state->run, state->patterns);
  return std::unique_ptr<Checkpoints>(new Checkpoints(std::move(state)));
}

std::optional<Checkpoints::File> Checkpoints::match(const std::string& path, bool follow) const {
  const checkpoint::Patterns& patterns = state_->patterns;
  const bool by_name = patterns.may_be(std::string_view(path).substr(path.rfind('/') + 1));
  if (!by_name && !(follow && catalog::read_link(path))) return {};
  std::string full = by_name ? catalog::absolute_path(path) : catalog::resolved_path(path);
  const auto named = patterns.match(full);
  if (!named) return {};
  return File{*named, std::move(full)};
}

// Of this attempt, or of the checkpoint that it began with.
bool Checkpoints::State::is_visible(const layout::Version& version, const std::set<std::string>& beside) const {
  const bool from = run.from && !run.from->drained && version.attempt == run.from->attempt && version.step == run.from->step;
  return version.run == run.id && !version.roll && ((from && !beside.contains(version.file)) || version.attempt == run.attempt);
}

// What this attempt began with was whole. While a version is made anew a look may miss both, and nodes may answer late: looks until that `suffices`.
Result<Checkpoints::State::Found> Checkpoints::State::look_at_versions(const std::function<bool(const Found&)>& suffices) {
  constexpr int most_looks = 5;
  for (int looks = 1;; ++looks) {
    auto found = versions.look(settings.local, settings.deadline_ms);
    if (!found || looks == most_looks || suffices(*found)) return found;
    if (checkpoint::has_all_of_beginning(*found, run) || checkpoint::is_past_beginning(*found, run)) return found;
  }
}

// What was written of that step and does not belong to it: by path, for what is made anew is there twice for a while.
std::set<std::string> Checkpoints::State::beside_beginning(const std::vector<catalog::FoundVersion>& found) const {
  std::set<std::string> paths;
  if (!patterns.are_rolled()) return paths;
  if (const auto begun = checkpoint::beginning_among(found, run))
    for (const auto& [place, file] : begun->beside) paths.insert(file.version.file);
  return paths;
}

// The newest version of this attempt, else the one that the attempt began with.
Result<std::optional<catalog::FoundVersion>> Checkpoints::State::find_in_pool(const File& file) {
  const auto is_there = [&](const Found& all) {
    return std::any_of(all.begin(), all.end(), [&](const catalog::FoundVersion& one) {
      return one.manifest.version->file == file.path && is_visible(*one.manifest.version, {}) && one.readable();
    });
  };
  auto found = look_at_versions([&](const Found& all) { return !is_of_beginning(file) || (is_there(all) && !patterns.are_rolled()); });
  if (!found) return found.status();
  const catalog::FoundVersion* best = nullptr;
  bool seen = false;
  const auto order = [](const catalog::FoundVersion& v) {
    return std::make_tuple(v.manifest.version->attempt, v.manifest.version->step, v.manifest.version->number);
  };
  const auto beside = beside_beginning(*found);
  for (const catalog::FoundVersion& one : *found) {
    const layout::Version& version = *one.manifest.version;
    if (version.file != file.path || !is_visible(version, beside)) continue;
    seen = true;
    if (one.readable() && (!best || order(*best) < order(one))) best = &one;
  }
  if (best) return std::optional(*best);
  if (seen) return Status(Kind::lost, fmt::format("{}: too many of the nodes that keep it are lost", file.path));
  // Not to be told from one that was never there: the program would begin from the start without a word.
  if (is_of_beginning(file) && !checkpoint::has_all_of_beginning(*found, run) && !checkpoint::is_past_beginning(*found, run))
    return Status(Kind::lost, fmt::format("{}: checkpoint {} was whole when this attempt began with it, and not all of it can be seen now", file.path,
                                          run.from->step));
  return std::optional<catalog::FoundVersion>();
}

Result<std::optional<layout::Manifest>> Checkpoints::State::in_pool(const File& file) {
  auto found = find_in_pool(file);
  if (!found) return found.status();
  return *found ? std::optional((*found)->manifest) : std::nullopt;
}

Status Checkpoints::State::restore(const File& file, const layout::Manifest& manifest) {
  HF_TRY(files.make());
  const layout::Version& version = *manifest.version;
  const uint64_t written = version.attempt == run.attempt ? version.written : 0;
  const LocalName name{version.step, version.rank, version.ranks, number_here(version), file.path, written, written ? version.turn : 0};
  const std::string there = files.path(checkpoint::State::restored, name);
  if (there.empty()) return checkpoint::encode(name).status();
  const std::string half = files.scratch();
  Status status = checkpoint::fetch(manifest, half, settings);
  if (!status && status.kind() != Kind::no_space) (void)files.note_unread(manifest.file_id, status.sentence());
  if (status) status = catalog::move(half, there);
  if (!status) (void)catalog::unlink_file(half);
  return status;
}

// It may have been made anew meanwhile, on other nodes; and that one too, by protectors of several attempts.
Status Checkpoints::State::restore_newest(const File& file, layout::Manifest manifest) {
  constexpr int most_versions = 8;
  for (int tried = 1;; ++tried) {
    Status restored = restore(file, manifest);
    if (restored || tried == most_versions) return restored;
    auto again = in_pool(file);
    if (!again || !*again || (*again)->file_id == manifest.file_id) return restored;
    manifest = std::move(**again);
  }
}

// What has no step in its name is of the checkpoint whose number is that of the times that it was written anew, on each rank by itself.
// Kind::invalid for the number of no rank, which no checkpoint would ever have a place for.
Result<LocalName> Checkpoints::State::next_name(const File& file, bool written_anew, const Listed& here) const {
  if (file.named.rank >= ranks)
    return Status(
        Kind::invalid,
        fmt::format("{}: by its launcher the job has {} {}, so files are numbered 0 to {} and no checkpoint would have this one; number them so, "
                    "or name each by a pattern without {{rank}}",
                    file.path, ranks, noun_for(ranks, "rank"), ranks - 1),
        EINVAL);
  const uint64_t counted = here.last_step(file.path).value_or(run.from ? run.from->step : 0) + written_anew;
  const uint64_t step = patterns.have_step() ? file.named.step : std::max<uint64_t>(counted, 1);
  const uint32_t place = patterns.place(file.named, ranks);
  LocalName name{step, place, patterns.files_of_all(ranks), here.last_number(file.path) + 1, file.path};
  if (writers()) name.writers = writers(), name.writer = rank;
  else if (patterns.have_rank(file.named.part) && file.named.rank != rank) name.writer = rank + 1;
  // An update keeps its place in the order: programs open files to write that they only read.
  const auto before = written_anew ? std::nullopt : here.newest(file.path);
  if (before && before->name.written) {
    name.written = before->name.written, name.turn = before->name.turn;
  } else {
    const auto last = here.last_of_rank(place, name.writer);
    name.written = here.last_written() + 1, name.turn = last ? turn_after(last->step, last->turn, step) : 1;
  }
  return name;
}

// All of it, or nothing.
Status Checkpoints::State::copy_to(checkpoint::State to, const LocalName& name, const std::string& from, bool keep_existing) const {
  const auto text = checkpoint::encode(name);
  if (!text) return text.status();
  const std::string half = files.scratch();
  Status status = checkpoint::copy_file(from, half);
  if (status) status = catalog::move(half, files.path(to, name), keep_existing);
  if (!status) (void)catalog::unlink_file(half);
  return status;
}

// Of an open that leaves nothing of what was there no other node is asked where that was written here: the program waits for no network.
Result<Checkpoints::Sight> Checkpoints::State::look_to_write(const File& file, int flags, Listed& here) {
  const bool is_anew = (flags & O_CREAT) && (flags & O_TRUNC) && !(flags & O_EXCL);
  here = files.listed();
  if (is_anew && is_all_here(file) && !here.newest(file.path))
    return Sight{plain.has(file.path) && !here.hidden_number(file.path) ? Sight::as_without : Sight::absent, ""};
  auto sight = look_locked(file);
  here = files.listed();
  return sight;
}

Result<Checkpoints::Sight> Checkpoints::State::look_locked(const File& file) {
  auto here = files.newest(file.path);
  if (here && !may_be_outdated(file, *here)) return Sight{Sight::local, files.path(here->state, here->name)};
  const auto hidden = here ? std::nullopt : files.hidden_number(file.path);
  if (hidden && !is_of_all(file)) return Sight{Sight::absent, ""};
  auto manifest = in_pool(file);
  // Removed by one of those who write it, and not written anew since by another.
  if (hidden && (!manifest || !*manifest || number_here(*(*manifest)->version) <= *hidden)) return Sight{Sight::absent, ""};
  const bool is_newest = here && (!manifest || !*manifest || number_here(*(*manifest)->version) <= here->name.number);
  if (is_newest) return Sight{Sight::local, files.path(here->state, here->name)};
  if (!manifest) return manifest.status();
  if (*manifest) {
    HF_TRY(restore_newest(file, **manifest));
    here = files.newest(file.path);
    if (here) return Sight{Sight::local, files.path(here->state, here->name)};
  }
  // What lies at the user's path is of before: not to be mixed with the checkpoint that this attempt has begun with, unless it is that.
  const auto shown = plain.shown();
  return shown ? Result<Sight>(Sight{shown->has(file.path) ? Sight::as_without : Sight::absent, ""}) : shown.status();
}

Result<Checkpoints::Sight> Checkpoints::look(const File& file) {
  std::lock_guard lock(state_->mutex);
  return state_->look_locked(file);
}

Result<std::optional<Checkpoints::Listing>> Checkpoints::list(const std::string& directory) {
  if (!state_->patterns.may_lie_in(directory)) return std::optional<Listing>();
  std::lock_guard lock(state_->mutex);
  auto shown = state_->plain.shown();
  if (!shown) return shown.status();
  Listing listing{directory, {}, {}, std::move(*shown)};
  const auto add = [&](const std::string& file, std::set<std::string>& into) {
    if (catalog::parent_of(file) == directory) into.insert(catalog::name_of(file));
  };
  const auto here = state_->files.see();
  for (const std::string& file : here.there) add(file, listing.names);
  for (const auto& [file, number] : here.removed) add(file, listing.removed);
  const auto found = state_->look_at_versions([](const State::Found&) { return false; });
  if (!found) return found.status();
  const auto beside = state_->beside_beginning(*found);
  for (const catalog::FoundVersion& one : *found)
    if (const layout::Version& version = *one.manifest.version; state_->is_visible(version, beside)) {
      const auto removed = here.removed.find(version.file);
      if (removed == here.removed.end() || state_->number_here(version) > removed->second) add(version.file, listing.names);
    }
  return std::optional(std::move(listing));
}

bool Checkpoints::hides(const Listing& listing, const std::string& name) const {
  const std::string path = fmt::format("{}/{}", listing.directory, name);
  if (!state_->patterns.match(path) || listing.names.count(name)) return false;
  return listing.removed.count(name) || !listing.plain.has(path);
}

// The name of the version that this open writes, whose file is in "writing" from then on.
// `joins`: others have it open, or had.
Result<LocalName> Checkpoints::State::begin(const File& file, int flags, mode_t mode, bool& joins) {
  Listed here;
  auto sight = look_to_write(file, flags, here);
  if (!sight) return sight.status();
  const bool there = sight->what == Sight::local || (sight->what == Sight::as_without && catalog::look(file.path, true).ok());
  if (there && (flags & O_CREAT) && (flags & O_EXCL)) return Status(Kind::exists, "", EEXIST);
  if (!there && !(flags & O_CREAT)) return Status(Kind::not_found, "", ENOENT);
  const auto now = here.newest(file.path);
  joins = now && now->state == checkpoint::State::writing;
  if (joins) return files.forget_dead(now->name), now->name;
  HF_TRY(files.make());
  const auto next = next_name_of(file, !there || (flags & O_TRUNC), here);
  if (!next) return next.status();
  const LocalName& name = *next;
  const std::string path = files.path(checkpoint::State::writing, name);
  if (path.empty()) return checkpoint::encode(name).status();
  if (!there || (flags & O_TRUNC)) begins(name.step);
  if (there && !(flags & O_TRUNC)) {
    // The last version stays until this one is whole: it begins as a copy.
    for (;;) {
      const std::string from = sight->what == Sight::local ? sight->path : file.path;
      const Status copied = copy_to(checkpoint::State::writing, name, from, true);
      if (copied.kind() != Kind::not_found) return copied ? Result<LocalName>(name) : copied;
      // It has gone on to its next state meanwhile.
      sight = look_locked(file);
      if (!sight) return sight.status();
      if (sight->what != Sight::local || sight->path == from) return copied;
    }
  }
  (void)catalog::make_with_parents(catalog::parent_of(file.path));
  const catalog::Descriptor made(files.make_for_program(path, mode));
  if (!made) return Status::from_errno(errno, path);
  const auto before = there ? catalog::look(sight->what == Sight::local ? sight->path : file.path, true) : Status(Kind::not_found, "");
  if (before) (void)catalog::environment().fchmod(made.get(), before->mode & 0777);  // it is the same file to the program
  return name;
}

int Checkpoints::open_to_write(const File& file, int flags, mode_t mode, Status& status) {
  const bool may_be_others = !state_->patterns.have_rank(file.named.part);
  if (may_be_others) status = checkpoint::wait_for_others(file.path, state_->node, state_->run, state_->settings);
  if (!status) return errno = status.to_errno(), -1;
  std::lock_guard lock(state_->mutex);
  for (int turn = 1;; ++turn) {
    bool joins = false;
    auto name = state_->begin(file, flags, flags & O_CREAT ? mode : 0600, joins);
    if (name && may_be_others && !joins) name = state_->check_alone(file, *name);
    const int fd = name ? state_->open_written(*name, flags, joins) : -1;
    if (fd >= 0) {
      state_->written[fd] = {std::move(*name), ::getpid()};
      mark(fd, true);
      return fd;
    }
    // Another process of this node has begun it in between, or has closed what was found open.
    const bool overtaken = name ? errno == ENOENT : name.status().kind() == Kind::exists && !(flags & O_EXCL);
    if (overtaken && turn < most_turns) continue;
    if (!name) errno = (status = name.status()).to_errno();
    return -1;
  }
}

// Two nodes that begin a file at the same time see each other, and both are refused.
Result<LocalName> Checkpoints::State::check_alone(const File& file, LocalName name) {
  const auto others = checkpoint::look_elsewhere(file.path, node, run, settings);
  if (others.writing.empty()) return name;
  if (!files.is_open_to_others(name, who())) (void)catalog::unlink_file(files.path(checkpoint::State::writing, name));
  return checkpoint::refuse_beside(others.writing, file.path);
}

// Who else closes it meanwhile leaves it to this process.
int Checkpoints::State::open_written(const LocalName& name, int flags, bool joins) {
  if (const Status noted = files.opened(name, who()); !noted) return errno = noted.to_errno(), -1;
  const int fd = checkpoint::open_for_program(files.path(checkpoint::State::writing, name), flags & ~(O_CREAT | O_EXCL), 0);
  if (fd >= 0 || open_elsewhere(name)) return fd;
  const int error = errno;
  if (joins) (void)close_file(name);
  else files.no_longer(name, who());
  return errno = error, -1;
}

const std::string& Checkpoints::State::who() {
  if (who_began != ::getpid()) who_began = ::getpid(), who_is = checkpoint::this_process();
  return who_is;
}

bool Checkpoints::is_written(int fd) {
  return fd >= 0 && fd < watched_numbers && (written_numbers[size_t(fd) / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1);
}

bool Checkpoints::State::open_elsewhere(const LocalName& name) const {
  for (const auto& [fd, other] : written)
    if (other.name == name && is_own(other)) return true;
  return false;
}

void Checkpoints::duplicated(int from, int to) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->written.find(from);
  if (found == state_->written.end() || from == to || !state_->is_own(found->second)) return;
  state_->written[to] = found->second;
  mark(to, true);
}

// It stays known all the while: an exit, or the close of a duplicate, may come in between.
int Checkpoints::closing(int fd) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->written.find(fd);
  if (found == state_->written.end() || !state_->is_own(found->second)) return 0;
  const int below_all = std::min(state_->written.begin()->first, 0) - 1;
  state_->written.emplace(below_all, std::move(found->second));
  state_->written.erase(found);
  mark(fd, false);
  return below_all;
}

std::string Checkpoints::closed(int fd, bool given_up) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->written.find(fd);
  // A forked child's copy says nothing; after vfork what is noted here is the parent's.
  if (found == state_->written.end() || !state_->is_own(found->second)) return "";
  const State::Written one = std::move(found->second);
  state_->written.erase(found);
  mark(fd, false);
  if (state_->open_elsewhere(one.name)) return "";
  // Who protects it waits until the kernel says that nobody has it open to write any more.
  if (given_up)
    (void)catalog::unlink_file(state_->files.path(checkpoint::State::writing, one.name)), state_->files.no_longer(one.name, state_->who());
  else (void)state_->close_file(one.name);
  return one.name.file;
}

// The last process that has it open says that it is complete.
Status Checkpoints::State::close_file(const LocalName& name) {
  files.no_longer(name, who());
  if (files.is_open_to_others(name, who())) return {};
  const Status moved = files.move(name, checkpoint::State::writing, checkpoint::State::closed);
  if (moved.kind() != Kind::not_found) return moved;
  // Another process may have truncated it: it is later in the order now, or of a later checkpoint.
  for (const LocalName& now : files.list(checkpoint::State::writing))
    if (now.file == name.file && now.number == name.number) return files.move(now, checkpoint::State::writing, checkpoint::State::closed);
  return moved;
}

// What began as an update, and is written anew after all.
LocalName Checkpoints::State::anew(LocalName name) const {
  const Listed here = files.listed();
  if (here.has_of(name.file, name.number, name.written)) {
    const auto last_of_rank = here.last_of_rank(name.rank, name.writer);
    name.written = here.last_written() + 1, name.turn = last_of_rank ? turn_after(last_of_rank->step, last_of_rank->turn, name.step) : 1;
  }
  if (patterns.have_step()) return name;
  const uint64_t begun_with = run.from ? run.from->step : 0;
  const uint64_t before = here.last_step(name.file, name.number).value_or(begun_with);
  if (before >= name.step) name.step = before + 1;
  return name;
}

void Checkpoints::truncated(int fd) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->written.find(fd);
  if (found == state_->written.end()) return;
  const LocalName name = found->second.name;
  const LocalName next = state_->anew(name);
  if (next == name) return;  // it is new as it is
  if (!catalog::move(state_->files.path(checkpoint::State::writing, name), state_->files.path(checkpoint::State::writing, next))) return;
  for (auto& [number, other] : state_->written)
    if (other.name == name) other.name = next;
  state_->begins(next.step);
}

// --- rolls

// With what it has written with others, of which this process alone knows.
checkpoint::OfRank Checkpoints::State::written_by_rank() const {
  checkpoint::OfRank own = checkpoint::of_rank(files, rank);
  for (const LocalName& name : completed_together) own.files[name.step].push_back(name);
  for (const uint64_t step : steps_together) (void)own.files[step];
  return own;
}

Status Checkpoints::State::roll(uint64_t step, const checkpoint::OfRank& own, const std::vector<LocalName>& listed) const {
  LocalName of;
  of.step = step;
  of.ranks = patterns.files_of_all(ranks);
  of.writers = writers(), of.writer = rank;
  return checkpoint::roll(files, own, of, listed);
}

// A file of that step is written anew: so this rank has opened all that it writes of other ones. What cannot be noted is at the next one, or never; then
// these are not whole.
void Checkpoints::State::begins(uint64_t step) const {
  if (!patterns.are_rolled() || patterns.have_completing()) return;
  const checkpoint::OfRank own = written_by_rank();
  for (const auto& [other, listed] : own.files)
    if (other != step) (void)roll(other, own, listed);
}

Status Checkpoints::complete(uint64_t step) {
  std::lock_guard lock(state_->mutex);
  if (!state_->patterns.are_rolled()) return {};  // its files say it by themselves
  checkpoint::OfRank own = state_->written_by_rank();
  return state_->roll(step, own, own.files[step]);
}

// A program that gives up in the middle of a file leaves half of it: that stays in "writing", and is torn when the attempt is over. Standard numbers
// are a shell's redirections: what its last command has ended with says nothing of them. What a thread is just closing (below zero) is complete.
void Checkpoints::closed_all(bool ended_well) {
  std::vector<int> numbers;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [fd, one] : state_->written) numbers.push_back(fd);
    state_->close_handed_over();
  }
  for (const int fd : numbers)
    if (ended_well || fd <= STDERR_FILENO) (void)closed(fd);
}

bool Checkpoints::writes_any() {
  return std::any_of(written_numbers.begin(), written_numbers.end(), [](const auto& bits) { return bits.load(std::memory_order_relaxed) != 0; });
}

void Checkpoints::handed_over(bool is_served) {
  std::lock_guard lock(state_->mutex);
  if (!is_served) state_->close_handed_over();  // of an image before this one
  std::set<std::string> names;
  for (const auto& [fd, one] : state_->written) {
    if (!state_->is_own(one)) continue;
    const auto text = checkpoint::encode(one.name);
    if (is_served && text) names.insert(*text);
    else (void)state_->close_file(one.name);
  }
  if (names.empty()) return;
  const std::string note = state_->hand_over_note();
  const auto before = catalog::read_beginning(note, most_handed_over);  // of an image before this one
  std::string all = before ? *before : "";
  for (const std::string& name : names) all += name + '\0';
  (void)catalog::replace_file(note, note + ".new", all, 0600, false);
}

void Checkpoints::not_handed_over() {
  std::lock_guard lock(state_->mutex);
  (void)catalog::unlink_file(state_->hand_over_note());
}

void Checkpoints::State::close_handed_over() {
  const std::string note = hand_over_note();
  const auto all = catalog::read_beginning(note, most_handed_over);
  if (!all) return;
  std::istringstream names(*all);
  for (std::string text; std::getline(names, text, '\0');)
    if (const auto name = checkpoint::decode_local_name(text)) (void)close_file(*name);
  (void)catalog::unlink_file(note);
}

bool Checkpoints::is_shared(const File& file) const {
  std::lock_guard lock(state_->mutex);
  return state_->is_shared(file);
}

void Checkpoints::seen_together(const File& file, bool anew) {
  std::lock_guard lock(state_->mutex);
  state_->together.insert(file.path);
  if (!anew) return;
  state_->begins(file.named.step);
  state_->steps_together.insert(file.named.step);
}

Result<std::optional<layout::Manifest>> Checkpoints::version_to_read(const File& file) {
  std::lock_guard lock(state_->mutex);
  const auto here = state_->files.newest(file.path);
  const bool may_be_older = here && state_->may_be_outdated(file, *here);
  if (state_->patterns.have_rank(file.named.part) || (here && !may_be_older)) return std::optional<layout::Manifest>();
  const auto hidden = here ? std::nullopt : state_->files.hidden_number(file.path);
  const auto found = state_->find_in_pool(file);
  if (!found) return found.status();
  const bool removed = *found && hidden && state_->number_here(*(*found)->manifest.version) <= *hidden;
  const bool usable = *found && !removed && (*found)->is_complete();  // else it is being made anew just now, and this one goes
  return usable ? std::optional((*found)->manifest) : std::nullopt;
}

// What ranks write together leaves nothing in the node's directory: its versions in the pool count with what is here.
Result<LocalName> Checkpoints::State::next_name_in_pool(const File& file, bool written_anew) {
  const Listed here = files.listed();
  auto next = next_name(file, written_anew, here);
  if (!next) return next;
  LocalName& name = *next;
  const auto found = versions.look(settings.local, settings.deadline_ms);
  if (!found) return found.status();
  uint64_t last_step = run.from ? run.from->step : 0, last_of_file = 0;
  const auto last_here = here.last_of_rank(name.rank, name.writer);
  uint64_t last_of_rank = last_here ? last_here->written : 0;
  uint32_t turn_of_file = 0;
  for (const catalog::FoundVersion& one : *found) {
    const layout::Version& version = *one.manifest.version;
    if (version.run != run.id || version.attempt != run.attempt) continue;
    name.written = std::max(name.written, version.written + 1);
    if (version.rank == name.rank && version.writer == name.writer && !version.roll && version.written > last_of_rank)
      last_of_rank = version.written, name.turn = turn_after(version.step, version.turn, name.step);
    if (version.file != file.path) continue;
    if (version.number >= name.number) name.number = version.number + 1, last_of_file = version.written, turn_of_file = version.turn;
    last_step = std::max(last_step, version.step);
  }
  if (!written_anew && last_of_file) name.written = last_of_file, name.turn = turn_of_file;  // as in next_name
  if (!patterns.have_step()) name.step = std::max({name.step, last_step + written_anew, uint64_t(1)});
  return next;
}

// What is to be seen of it, to be read.
Result<catalog::Descriptor> Checkpoints::State::open_seen(const File& file, Sight sight) {
  for (;;) {
    const std::string from = sight.what == Sight::local ? sight.path : file.path;
    catalog::Descriptor opened = catalog::open_to_read(from);
    if (opened) return opened;
    const Status failed = Status::from_errno(errno, from);
    if (failed.kind() != Kind::not_found) return failed;
    // It has gone on to its next state meanwhile.
    const auto again = look_locked(file);
    if (!again) return again.status();
    if (again->what != Sight::local || again->path == from) return failed;
    sight = *again;
  }
}

Result<Checkpoints::Together> Checkpoints::begin_together(const File& file, int flags, mode_t mode, const Settings& settings) {
  std::lock_guard lock(state_->mutex);
  State& state = *state_;
  auto sight = state.look_locked(file);
  if (!sight) return sight.status();
  const bool there = sight->what == Sight::local || (sight->what == Sight::as_without && catalog::look(file.path, true).ok());
  if (there && (flags & O_CREAT) && (flags & O_EXCL)) return Status(Kind::exists, "", EEXIST);
  if (!there && !(flags & O_CREAT)) return Status(Kind::not_found, "", ENOENT);
  if (const auto here = state.files.newest(file.path); here && here->state == checkpoint::State::writing)
    return Status(Kind::busy, file.path + ": a program has it open to write by itself; let it close the file before ranks open it together");
  HF_TRY(state.files.make());
  auto name = state.next_name_in_pool(file, (flags & O_CREAT) != 0);
  if (!name) return name.status();
  HF_TRY(checkpoint::encode(*name).status());
  if (!there || (flags & O_CREAT)) state.begins(name->step);
  (void)catalog::make_with_parents(catalog::parent_of(file.path));
  // Before there is anything that would have to be taken back.
  const auto last = there ? state.open_seen(file, *sight) : Result<catalog::Descriptor>(catalog::Descriptor());
  if (!last) return last.status();
  auto located = checkpoint::grow(name->version_in(state.run), state.node, mode, settings);
  if (!located) return located.status();
  Together growing{std::move(*located), std::move(*name), !there};
  Status begun = catalog::make_file(state.files.path(checkpoint::State::together, growing.name), 0600);
  if (begun && there) begun = checkpoint::begin_with(growing.located, last->get(), file.path, settings);
  if (!begun) {
    (void)catalog::unlink_file(state.files.path(checkpoint::State::together, growing.name));
    checkpoint::give_up(growing.located);
    return begun;
  }
  state.together.insert(file.path);
  return growing;
}

Result<int> Checkpoints::end_together(const Together& file, bool keep) {
  std::lock_guard lock(state_->mutex);
  State& state = *state_;
  const auto version = checkpoint::version_of(file.name, state.run, state.patterns, "");
  const Result<int> complete = keep ? checkpoint::complete(file.located, *version, state.settings) : Result<int>(0);
  if (!keep || !complete) checkpoint::give_up(file.located);
  else state.files.forget_hidden(file.name.file, file.name.number), state.completed_together.push_back(file.name);
  const std::string marker = state.files.path(checkpoint::State::together, file.name);
  if (complete) (void)catalog::unlink_file(marker);
  else (void)state.files.move(file.name, checkpoint::State::together, checkpoint::State::torn);
  return complete;
}

Status Checkpoints::remove(const File& file) {
  std::lock_guard lock(state_->mutex);
  auto last = state_->last_seen(file);
  if (!last) return last.status();
  if (!*last) return Status(Kind::not_found, "", ENOENT);
  (*last)->number = std::max((*last)->number, state_->files.last_number(file.path));  // what was dropped may come back with a node
  HF_TRY(state_->hide(file, **last));
  return state_->plain.has(file.path) ? catalog::unlink_file(file.path) : Status();  // in whose place the program has written this one
}

bool Checkpoints::shows_plain(const File& file) const {
  std::lock_guard lock(state_->mutex);
  return state_->plain.has(file.path);
}

// The newest of it here, or in the pool where that is newer. Nothing where the program does not see it.
Result<std::optional<LocalName>> Checkpoints::State::last_seen(const File& file) {
  const auto here = files.newest(file.path);
  std::optional<LocalName> last = here ? std::optional(here->name) : std::nullopt;
  const auto hidden = here ? std::nullopt : files.hidden_number(file.path);
  if ((here && !may_be_outdated(file, *here)) || (hidden && !is_of_all(file))) return last;
  const auto found = in_pool(file);
  if (!found) return here ? Result<std::optional<LocalName>>(last) : found.status();
  if (!*found || (hidden && number_here(*(*found)->version) <= *hidden)) return last;
  const layout::Version& version = *(*found)->version;
  if (!last || last->number < number_here(version)) last = LocalName{version.step, version.rank, version.ranks, number_here(version), file.path};
  return last;
}

// What ranks write together any of them may remove, for all nodes.
Status Checkpoints::State::hide(const File& file, const LocalName& name) {
  HF_TRY(files.hide(name));
  if (!is_of_all(file)) return {};
  const auto text = checkpoint::encode(name);
  const auto pool = catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (!pool || !text) return {};
  const std::string at = files.on_its_node(checkpoint::State::hidden, *text);
  for (const catalog::Member& member : pool->members)
    if (member.usable()) (void)member.lane->run([target = member.target, at] { return target->put(at, {}, false); });
  return {};
}

Status Checkpoints::take(const std::string& plain, const File& to) {
  std::lock_guard lock(state_->mutex);
  const auto state = catalog::look(plain, true);
  if (!state) return state.status();
  if (checkpoint::has_writers(plain))
    return Status(Kind::busy,
                  fmt::format("a program has {} open to write, and what it writes later on would be lost; close it before the rename", plain));
  HF_TRY(state_->files.make());
  const auto next = state_->next_name_of(to, true, state_->files.listed());
  if (!next) return next.status();
  state_->begins(next->step);
  return state_->copy_to(checkpoint::State::closed, *next, plain);
}

}  // namespace holdfast::frontend::posix
