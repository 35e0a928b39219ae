#include "frontend/posix/checkpoints.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <sstream>

#include "base/host_name.hpp"
#include "base/plural.hpp"
#include "catalog/environment.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/elsewhere.hpp"
#include "frontend/posix/checkpoints_state.hpp"

namespace holdfast::frontend::posix {

namespace {

// A bit each of the numbers under which this process writes checkpoints.
constexpr int watched_numbers = 1 << 16;
constexpr int most_turns = 100;               // of an open that other processes overtake
constexpr int turns_without_precedence = 8;   // after so many it looks while none of them may
constexpr size_t most_handed_over = 1 << 20;  // bytes of a note
std::array<std::atomic<uint64_t>, watched_numbers / 64> written_numbers;

void mark(int fd, bool written) {
  if (fd < 0 || fd >= watched_numbers) return;
  const uint64_t bit = 1ull << (fd % 64);
  if (written) written_numbers[size_t(fd) / 64] |= bit;
  else written_numbers[size_t(fd) / 64] &= ~bit;
}

}  // namespace

Checkpoints::Checkpoints(std::unique_ptr<State> state) : state_(std::move(state)), at_close_(state_->settings, state_->files) {}
Checkpoints::~Checkpoints() = default;

// Not held by a thread that a forked child does not have.
static std::mutex* in_use = nullptr;

namespace {

// Of a process that is on none of the job's nodes.
struct OnNoNode {
  checkpoint::Patterns patterns;
  std::string nodes;
  std::atomic<bool> is_said{false};
};
std::atomic<OnNoNode*> on_no_node{nullptr};

std::string names_of_nodes(const checkpoint::Run& run) {
  constexpr size_t most_named = 4;
  std::string names;
  for (size_t i = 0; i < std::min(run.nodes.size(), most_named); ++i) names += (i ? ", " : "") + parse_node_path(run.nodes[i]).node;
  return run.nodes.size() > most_named ? names + ", ..." : names;
}

}  // namespace

bool Checkpoints::is_on_no_node() { return on_no_node.load(std::memory_order_acquire); }

std::string Checkpoints::why_none(const std::string& path) {
  OnNoNode* const here = on_no_node.load(std::memory_order_acquire);
  if (!here || here->is_said || !here->patterns.may_be(std::string_view(path).substr(path.rfind('/') + 1))) return "";
  const std::string full = catalog::absolute_path(path);
  const auto named = here->patterns.match(full);
  // Where each rank has a file the first one of this host tells it.
  if (!named || (here->patterns.have_rank(named->part) && checkpoint::is_another_first_here()) || here->is_said.exchange(true)) return "";
  return fmt::format(
      "{}: it is no checkpoint, for {} is none of the job's nodes ({}): it stays plain, is not protected, and is not found at a restart; "
      "name {} in --hosts, or start the ranks on those nodes",
      full, host_name(), here->nodes, host_name());
}

Checkpoints* Checkpoints::of_process(const Settings& settings) {
  static Checkpoints* const one = [&]() -> Checkpoints* {
    if (settings.checkpoint.empty()) return nullptr;
    auto run = checkpoint::decode_run(environment_variable(checkpoint::run_variable));
    auto patterns = checkpoint::Patterns::resolve(settings.checkpoint, settings.complete);
    if (!run || !patterns) return nullptr;
    const uint32_t rank = checkpoint::own_rank();
    const std::string node = checkpoint::own_node(*run, rank);
    if (node.empty()) {
      on_no_node = new OnNoNode{std::move(*patterns), names_of_nodes(*run)};
      return nullptr;
    }
    // A program that is started when all has come to its paths finds it there, and what others have written since.
    if (run->teams == 1 && checkpoint::is_all_plain(*run, node)) return nullptr;
    const int team = checkpoint::own_team(*run);
    auto of_rank = make(settings, std::move(*patterns), std::move(*run),
                        {rank, checkpoint::ranks_of_environment(), node, team, nullptr, checkpoint::resumed_by_own_team()});
    if (of_rank->state_->run.teams == 1) of_rank->state_->rank_note.begins();
    in_use = &of_rank->state_->mutex;
    (void)::pthread_atfork([] { in_use->lock(); }, [] { in_use->unlock(); }, [] { in_use->unlock(); });
    return of_rank.release();  // files are closed until the process ends
  }();
  return one;
}

std::unique_ptr<Checkpoints> Checkpoints::make(const Settings& settings, checkpoint::Patterns patterns, checkpoint::Run run, const Rank& rank) {
  auto state = std::make_unique<State>(settings, std::move(patterns), std::move(run), rank);
  checkpoint::make_directories(state->run, state->patterns);
  return std::unique_ptr<Checkpoints>(new Checkpoints(std::move(state)));
}

// catalog::absolute_path() again, without its look where the directory is that of the call before.
std::string Checkpoints::State::path_by_last_directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  const bool has_parent = slash != std::string::npos && slash > 0 && !name.empty() && name != "." && name != "..";
  const std::unique_lock lock(directory_mutex, std::try_to_lock);  // a forked child may find it locked for ever
  if (!has_parent || !lock) return catalog::absolute_path(path);
  const std::string said = path.substr(0, slash);
  if (directory.is_still(said)) return directory.path + "/" + name;
  std::string full = catalog::absolute_path(path);
  const auto now = catalog::look(said, true);
  directory = now ? Directory{said, catalog::parent_of(full), now->device, now->inode} : Directory();
  return full;
}

bool Checkpoints::State::Directory::is_still(const std::string& by_program) const {
  const auto is_at = [this](const std::string& place, bool follow_links) {
    const auto now = catalog::look(place, follow_links);
    return now && now->device == device && now->inode == inode;
  };
  return said == by_program && (said == path || is_at(said, true)) && is_at(path, false);
}

std::optional<Checkpoints::File> Checkpoints::match(const std::string& path, bool follow) const {
  const checkpoint::Patterns& patterns = state_->patterns;
  const bool by_name = patterns.may_be(std::string_view(path).substr(path.rfind('/') + 1));
  if (!by_name && !(follow && catalog::read_link(path))) return {};
  std::string full = by_name ? state_->path_by_last_directory(path) : catalog::resolved_path(path);
  const auto named = patterns.match(full);
  if (!named) return {};
  // A link may have a name that a wildcard means, as ck/latest. Where it leads to none it is this one's place.
  if (follow && patterns.all()[named->part].is_open() && catalog::read_link(full)) {
    std::string leads_to = catalog::resolved_path(full);
    if (const auto other = patterns.match(leads_to)) return File{*other, std::move(leads_to)};
  }
  return File{*named, std::move(full)};
}

bool Checkpoints::is_link_to_one(const std::string& path) const {
  const auto led = state_->replica() ? std::nullopt : match(path, true);
  const auto own = match(path);
  return led && (!own || own->path != led->path);
}

bool Checkpoints::may_be_link(const File& file) const { return state_->patterns.all()[file.named.part].is_open(); }

// What has no step in its name is of the checkpoint whose number is that of the times that it was written anew, on each rank by itself.
// Kind::invalid for the number of no rank, which no checkpoint would ever have a place for.
Result<LocalName> Checkpoints::State::next_name(const File& file, bool written_anew, const Listed& here) const {
  if (file.named.rank >= ranks)
    return Status(Kind::invalid,
                  fmt::format("{}: the launcher gives the job {} {}, so only files numbered 0 to {} belong to a checkpoint; number them so, or use a "
                              "pattern without {{rank}}",
                              file.path, ranks, noun_for(ranks, "rank"), ranks - 1),
                  EINVAL);
  const uint64_t counted = here.last_step(file.path).value_or(run.from ? run.from->step : 0) + written_anew;
  const uint64_t step = patterns.have_step() || patterns.are_single() ? file.named.step : std::max<uint64_t>(counted, 1);
  const uint32_t place = patterns.place(file.named, ranks);
  LocalName name{step, place, patterns.files_of_all(ranks), here.last_number(file.path) + 1, file.path};
  if (writers()) name.writers = writers(), name.writer = rank;
  else if (patterns.have_rank(file.named.part) && file.named.rank != rank) name.writer = rank + 1;
  // An update keeps its place in the order: programs open files to write that they only read.
  const auto before = written_anew ? std::nullopt : here.newest(file.path);
  if (before && before->name.written) {
    name.written = before->name.written, name.turn = before->name.turn;
    name.times = before->name.times ? before->name.times + 1 : 0, name.fewest = before->name.fewest;
  } else {
    const auto last = here.last_of_rank(place, name.writer);
    name.written = here.last_written() + 1, name.turn = last ? turn_after(last->step, last->turn, step) : 1;
    // How often what another attempt has left was closed is not known here.
    if (written_anew) name.times = last && last->step == step ? last->times + 1 : 1;
    if (last) name.fewest = checkpoint::fewest_after(*last, step);
  }
  return name;
}

// The program waits for no network where what is seen here says all.
Result<Checkpoints::Sight> Checkpoints::State::look_to_write(const File& file, int flags, Listed& here) {
  here = files.listed();
  if (decides_here(file, flags)) {
    if (const auto newest = here.newest(file.path)) return Sight{Sight::local, files.path(newest->state, newest->name)};
    return Sight{plain.has(file.path) && !here.hidden_number(file.path) ? Sight::as_without : Sight::absent, ""};
  }
  for (int turn = 1;; ++turn) {
    auto sight = look_locked(file);
    here = files.listed();
    // Of what is lost for good nothing is needed where it is truncated.
    const bool is_lost = patterns.are_single() && sight.status().kind() == Kind::lost && versions.silent().empty();
    if (is_lost && (flags & O_TRUNC)) return Sight{Sight::local, ""};
    if (!sight || turn == most_turns) return sight;
    const auto seen = sight->what == Sight::local ? checkpoint::decode_local_name(catalog::name_of(sight->path)) : std::nullopt;
    const auto newest = here.newest(file.path);
    if (seen == (newest ? std::optional(newest->name) : std::nullopt)) return sight;  // else another one has closed it in between
  }
}

Result<Checkpoints::State::Beginning> Checkpoints::State::see(const File& file, int flags) {
  Listed here;
  auto begun = see_in(here, file, flags);
  if (begun && before_in_its_place(begun->name, here)) second.insert(begun->name.file);
  return begun;
}

Result<Checkpoints::State::Beginning> Checkpoints::State::see_in(Listed& here, const File& file, int flags) {
  auto sight = look_to_write(file, flags, here);
  if (!sight) return sight.status();
  if (sight->what == Sight::as_without) HF_TRY(refuse_renamed_open(file, here));
  const bool there = sight->what == Sight::local || (sight->what == Sight::as_without && catalog::look(file.path, true).ok());
  if (there && (flags & O_CREAT) && (flags & O_EXCL)) return Status(Kind::exists, "", EEXIST);
  if (!there && !(flags & O_CREAT)) return Status(Kind::not_found, "", ENOENT);
  // Of a rank that this job has not: what there is can be read. Programs that open files to write which they only read, as Fortran's do, open it to read
  // after this error.
  if (there && !(flags & O_TRUNC) && file.named.rank >= ranks) return Status(Kind::read_only, "", EROFS);
  const auto now = here.newest(file.path);
  const bool joins = now && now->state == checkpoint::State::writing;
  if (joins) files.forget_dead(now->name);
  if (joins && run.teams > 1 && files.is_open_to_others(now->name, who()))
    return Status(Kind::busy,
                  file.path +
                      ": another rank has it open to write, and with --replicas one writes it after the other: let each rank write a file of its own",
                  EBUSY);
  if (joins && !may_write_nothing(flags)) untouched.claim(now->name);
  if (joins) return Beginning{.name = now->name, .joins = true, .newest = now->name};
  HF_TRY(files.make());
  auto next = next_name_of(file, !there || (flags & O_TRUNC), here);
  if (!next) return next.status();
  HF_TRY(checkpoint::encode(*next).status());
  Beginning begun{.name = std::move(*next), .newest = now ? std::optional(now->name) : std::nullopt};
  begun.is_noted = here.is_noted(begun.name);
  if (!there || (flags & O_TRUNC)) begins(begun.name.step);
  if (there && !(flags & O_TRUNC)) {
    begun.may_stay_so = may_write_nothing(flags);
    HF_TRY(copy_last(begun, file, std::move(*sight)));
  } else if (there) {
    const auto before = catalog::look(sight->what == Sight::local ? sight->path : file.path, true);
    if (before) begun.mode = before->mode & 0777;
  }
  return begun;
}

// The last version stays until this one is whole: it begins as a copy.
Status Checkpoints::State::copy_last(Beginning& begun, const File& file, Sight sight) {
  begun.half = files.scratch();
  for (;;) {
    const std::string from = sight.what == Sight::local ? sight.path : file.path;
    const Status copied = checkpoint::copy_file(from, begun.half, begun.may_stay_so ? &begun.content : nullptr);
    if (copied) begun.copied_from = from;
    if (copied) return copied;
    (void)catalog::unlink_file(begun.half);
    if (copied.kind() != Kind::not_found) return copied;
    // It has gone on to its next state meanwhile.
    auto again = look_locked(file);
    if (!again) return again.status();
    if (again->what != Sight::local || again->path == from) return copied;
    sight = std::move(*again);
  }
}

// By another process of this node, which has begun the same version meanwhile, has closed what was found open, or has written on.
bool Checkpoints::State::is_overtaken(Beginning& begun) const {
  const Listed now = files.listed();
  const auto newest = now.newest(begun.name.file);
  if (!begun.joins)
    return (newest ? std::optional(newest->name) : std::nullopt) != begun.newest || now.last_number(begun.name.file) >= begun.name.number;
  if (!newest || newest->state != checkpoint::State::writing || newest->name.number != begun.name.number) return true;
  begun.name = newest->name;  // which may have been truncated, and is of a later step then
  return false;
}

Status Checkpoints::State::put_in_place(const Beginning& begun, mode_t mode) {
  const std::string path = files.path(checkpoint::State::writing, begun.name);
  if (begun.joins) return {};
  // Of one of that number that a process was about to drop when it was killed, or has dropped.
  if (begun.is_noted) untouched.forget(begun.name), files.forget_why(begun.name);
  unsaid.erase({begun.name.file, begun.name.number});
  HF_TRY(take_reason(begun.copied_from, begun.name));
  if (begun.may_stay_so) HF_TRY(untouched.begins(begun.name, begun.half, begun.content));
  if (!begun.half.empty()) return catalog::move(begun.half, path, true);
  (void)catalog::make_with_parents(catalog::parent_of(begun.name.file));
  catalog::Descriptor made(files.make_for_program(path, mode));
  if (!made && errno == EMFILE) {
    files.let_go_of_turns();
    made = catalog::Descriptor(files.make_for_program(path, mode));
  }
  if (!made) return Status::from_errno(errno, path);
  if (begun.mode) (void)catalog::environment().fchmod(made.get(), *begun.mode);
  return {};
}

// The name of the version that this open writes, whose file is in "writing" from then on. Nothing where another process has come in between.
Result<std::optional<Checkpoints::State::Beginning>> Checkpoints::State::begin(const File& file, int flags, mode_t mode, bool has_precedence) {
  auto turn = has_precedence || decides_here(file, flags) ? files.take_turn(file.path, patience()) : Result<Turn>(Turn());
  if (!turn) return turn.status();
  const bool is_alone = bool(*turn);
  auto begun = see(file, flags);
  if (!begun) return begun.status();
  if (!is_alone) begun->is_noted = true, turn = files.take_turn(file.path, patience());
  Status status = turn.status();
  bool overtaken = status && !is_alone && is_overtaken(*begun);
  if (status && !overtaken) status = put_in_place(*begun, mode);
  overtaken |= status.kind() == Kind::exists && !(flags & O_EXCL);  // where there are no turns
  if (status && !overtaken && (begun->joins || !may_be_others(file))) status = files.opened(begun->name, who());
  if ((!status || overtaken) && !begun->half.empty()) (void)catalog::unlink_file(begun->half);
  if (overtaken) return std::optional<Beginning>();
  return status ? Result<std::optional<Beginning>>(std::move(*begun)) : status;
}

int Checkpoints::open_alone(const File& file, int flags, mode_t mode, Status& status) {
  const bool may_be_others = state_->may_be_others(file);
  if (may_be_others) status = state_->wait_to_write(file);
  else if (!state_->decides_here(file, flags)) status = state_->wait_to_see(file);
  if (!status) return errno = status.to_errno(), -1;
  std::lock_guard lock(state_->mutex);
  for (int turn = 1;; ++turn) {
    auto begun = state_->begin(file, flags, flags & O_CREAT ? mode : 0600, turn > turns_without_precedence);
    if (begun && !*begun && turn < most_turns) continue;
    if (begun && !*begun) begun = Status(Kind::busy, file.path + ": other processes open and close it all the time", EBUSY);
    if (!begun) return status = begun.status(), errno = status.to_errno(), -1;
    const LocalName& name = (*begun)->name;
    const bool joins = (*begun)->joins, takes_part = may_be_others && !joins;
    if (takes_part) status = state_->check_alone(file, name);
    if (takes_part && status) status = state_->take_part_in(name);
    if (takes_part && status.kind() == Kind::not_found && turn < most_turns) {
      status = Status();
      continue;  // another process has joined it meanwhile, and has closed it
    }
    if (!status) return errno = status.to_errno(), -1;
    const int fd = state_->open_written(name, flags, joins);
    if (fd < 0 && errno == ENOENT && turn < most_turns) continue;  // another process has truncated it since: it is of a later step
    if (fd < 0) return fd;
    if (joins && (flags & O_TRUNC)) state_->forget_failed(name);  // which another process may have noted
    state_->is_written_by(fd, name, joins || (*begun)->may_stay_so);
    return fd;
  }
}

// Two nodes that begin a file at the same time see each other, and both are refused.
Status Checkpoints::State::check_alone(const File& file, const LocalName& name) {
  const auto others = checkpoint::look_elsewhere(file.path, node, run, settings);
  if (others.writing.empty()) return {};
  // Who has joined it meanwhile has it open, or has closed it: then it lies here no more.
  const auto turn = files.take_turn(name.file, patience());
  if (!files.is_open_to_others(name, who())) (void)catalog::unlink_file(files.path(checkpoint::State::writing, name)), untouched.forget(name);
  return checkpoint::refuse_beside(others.writing, file.path);
}

// From here on whoever else closes it leaves it to this process. Kind::not_found where another one has closed it already.
Status Checkpoints::State::take_part_in(const LocalName& name) {
  const auto turn = files.take_turn(name.file, patience());
  HF_TRY(turn.status());
  HF_TRY(catalog::look(files.path(checkpoint::State::writing, name), false).status());
  return files.opened(name, who());
}

int Checkpoints::State::open_written(const LocalName& name, int flags, bool joins) {
  const int fd = checkpoint::open_for_program(files.path(checkpoint::State::writing, name), flags & ~(O_CREAT | O_EXCL), 0);
  if (fd >= 0 || open_elsewhere(name)) return fd;
  const int error = errno;
  if (joins) (void)close_file(name);
  else files.no_longer(name, who());
  return errno = error, -1;
}

const std::string& Checkpoints::State::who() {
  if (!given_process.empty()) return given_process;
  if (who_began != ::getpid()) who_began = ::getpid(), who_is = checkpoint::this_process();
  return who_is;
}

bool Checkpoints::is_written(int fd) {
  return fd >= 0 && fd < watched_numbers && (written_numbers[size_t(fd) / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1);
}

void Checkpoints::State::is_written_by(int fd, const LocalName& name, bool may_be_copy) {
  written[fd] = {name, ::getpid(), may_be_copy};
  mark(fd, true);
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

std::string Checkpoints::closed(int fd, bool given_up, Status* late) {
  std::unique_lock lock(state_->mutex);
  const auto found = state_->written.find(fd);
  // A forked child's copy says nothing; after vfork what is noted here is the parent's.
  if (found == state_->written.end() || !state_->is_own(found->second)) return "";
  const State::Written one = std::move(found->second);
  state_->written.erase(found);
  mark(fd, false);
  if (state_->open_elsewhere(one.name)) return "";
  if (state_->is_renamed_open(one)) {
    const Status taken = state_->take_closed(one.name);
    if (late) *late = taken;
    return one.name.file;
  }
  // Who protects it waits until the kernel says that nobody has it open to write any more.
  if (given_up && state_->has_failed_writes) state_->forget_failed(one.name);  // its number may be given again
  if (given_up)
    (void)catalog::unlink_file(state_->files.path(checkpoint::State::writing, one.name)), state_->untouched.forget(one.name),
        state_->files.no_longer(one.name, state_->who());
  else if (redundant::Replica* const replica = state_->replica()) lock.unlock(), (void)close_as_one(*replica, one.name);
  else (void)state_->close_file(one.name, one.may_be_copy);
  return one.name.file;
}

// The last process that has it open says that it is complete.
Status Checkpoints::State::close_file(const LocalName& name, bool may_be_copy) {
  const auto turn = files.take_turn(name.file, patience());  // without one it is closed all the same
  files.no_longer(name, who());
  if (files.is_open_to_others(name, who())) return {};
  if (may_be_copy && untouched.settle(name, checkpoint::State::writing) == checkpoint::Untouched::Found::gone) {
    if (has_failed_writes) forget_failed(name);
    return {};
  }
  const Status moved = move_to_closed(name);
  if (moved.kind() != Kind::not_found) return moved;
  // Another process may have truncated it: it is later in the order now, or of a later checkpoint.
  const LocalName now = name_now(name);
  return now == name ? moved : move_to_closed(now);
}

// What was in its place may have been removed since it was begun.
Status Checkpoints::State::move_to_closed(const LocalName& name) {
  if (second.contains(name.file)) HF_TRY(refuse_second(name, files.listed()));
  HF_TRY(say_failed(name));
  HF_TRY(tell_of_number(name));
  const Status moved = files.move(name, checkpoint::State::writing, checkpoint::State::closed);
  if (moved) second.erase(name.file);
  return moved;
}

// A rank numbers its files by what its own node shows. That it does not give the number of this one once more is said there; which node it is on nobody knows.
Status Checkpoints::State::tell_of_number(const LocalName& name) {
  if (!checkpoint::is_of_another_rank(name) || run.teams > 1) return {};
  LocalName note = name;
  note.written = note.turn = note.times = note.fewest = 0;
  const auto text = checkpoint::encode(note);
  return text ? put_on_all(checkpoint::State::dropped, *text) : text.status();
}

// Those of patterns with wildcards have no places: their names tell them apart.
std::optional<LocalName> Checkpoints::State::before_in_its_place(const LocalName& name, const Listed& here, const std::string& except) const {
  auto other = here.before_in_its_place(name, except);
  return other && patterns.stem(name.file).empty() ? other : std::nullopt;
}

Status Checkpoints::State::refuse_second(const LocalName& name, const Listed& here, const std::string& except) const {
  const auto other = before_in_its_place(name, here, except);
  return other ? files.say_why(name, why_second(name.step, other->file)) : Status();
}

std::string Checkpoints::State::why_second(uint64_t step, const std::string& before) {
  return fmt::format(
      "checkpoint {} has {} in its place, and a checkpoint has one file of each step and rank; let the program write these numbers with the same "
      "digits each time, or remove the one before it writes the other",
      step, before);
}

// The user's file of which that is the local one; empty of any other.
std::string Checkpoints::State::file_of(const std::string& local_path) const {
  const auto name = local_path.starts_with(files.directory() + "/") ? checkpoint::decode_local_name(catalog::name_of(local_path)) : std::nullopt;
  return name ? name->file : "";
}

std::string Checkpoints::path_of(const std::string& local_path) const { return state_->file_of(local_path); }

// What began as an update, and is written anew after all.
LocalName Checkpoints::State::anew(LocalName name, const Listed& here) const {
  const auto [step, turn] = std::pair(name.step, name.turn);
  const uint64_t begun_with = run.from ? run.from->step : 0;
  const bool is_counted = !patterns.have_step() && !patterns.are_single();
  if (const uint64_t before = is_counted ? here.last_step(name.file, name.number).value_or(begun_with) : 0; is_counted && before >= name.step)
    name.step = before + 1;
  if (here.has_of(name.file, name.number, name.written)) {
    auto last = here.last_of_rank(name.rank, name.writer);
    if (last && last->file == name.file && last->number == name.number && last->times) --last->times;  // this one, which is not closed yet
    name.written = here.last_written() + 1, name.turn = last ? turn_after(last->step, last->turn, name.step) : 1;
    if (last) name.fewest = checkpoint::fewest_after(*last, name.step);
  }
  if (name.step != step || name.turn != turn) name.times = 1;
  return name;
}

void Checkpoints::truncated(int fd, int64_t length) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->written.find(fd);
  if (found == state_->written.end()) return;
  const LocalName name = found->second.name;
  state_->untouched.claim(name);
  if (length == 0) state_->forget_failed(name);
  const State::Listed here = state_->files.listed();
  LocalName next = state_->anew(name, here);
  if (length > 0) next.times = name.times;  // its content goes on
  else if (next.times == 0) next.times = 1;
  if (next == name) return;  // it is new as it is
  state_->rename_reason(name, next);
  if (!catalog::move(state_->files.path(checkpoint::State::writing, name), state_->files.path(checkpoint::State::writing, next)))
    return state_->rename_reason(next, name);
  for (auto& [number, other] : state_->written)
    if (other.name == name) other.name = next;
  if (state_->before_in_its_place(next, here)) state_->second.insert(next.file);
  state_->begins(next.step);
}

// --- rolls

// With what it has written together with others. By MPI: of that this process alone knows. Or each by an open of its own: of that there is word.
checkpoint::OfRank Checkpoints::State::written_by_rank() const {
  checkpoint::OfRank own = checkpoint::of_rank(files, rank);
  for (const LocalName& name : completed_together) own.files[name.step].push_back(name);
  for (const uint64_t step : steps_together) (void)own.files[step];
  if (!any_shared()) return own;
  for (const LocalName& name : files.list(checkpoint::State::together)) {
    if (!parts.has_taken(name, rank)) continue;
    std::vector<LocalName>& listed = own.files[name.step];
    if (std::count(listed.begin(), listed.end(), name) == 0) listed.push_back(name);
  }
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
  if (patterns.have_completing()) return;
  if (patterns.are_rolled()) {
    const checkpoint::OfRank own = written_by_rank();
    for (const auto& [other, listed] : own.files)
      if (other != step) (void)roll(other, own, listed);
  }
  if (any_shared()) parts.begins(step, rank);  // what it has written with others may become a version from here on
}

Status Checkpoints::complete(uint64_t step) {
  std::lock_guard lock(state_->mutex);
  if (state_->patterns.are_rolled()) {  // else its files say it by themselves
    checkpoint::OfRank own = state_->written_by_rank();
    HF_TRY(state_->roll(step, own, own.files[step]));
  }
  if (!state_->any_shared()) return {};
  HF_TRY(state_->files.make());
  return state_->parts.complete(step, state_->rank);
}

// A program that gives up in the middle of a file leaves half of it. That stays in "writing", and is torn when the attempt is over. Standard numbers
// are a shell's redirections: what its last command has ended with says nothing of them. What a thread is just closing (below zero) is complete.
std::map<std::string, Status> Checkpoints::closed_all(bool ended_well) {
  std::vector<int> numbers, renamed_open;
  std::map<std::string, Status> late;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [fd, one] : state_->written) numbers.push_back(fd);
    for (const auto& [fd, one] : state_->written)
      if (ended_well && fd > STDERR_FILENO && state_->is_renamed_open(one)) renamed_open.push_back(fd);
    state_->close_handed_over();
    state_->rank_note.ends();
  }
  if (!ended_well && state_->run.teams > 1) return late;            // it may have ended so by itself, and its twins go on
  for (const int fd : renamed_open) (void)catalog::Descriptor(fd);  // all is written, and what is open is not taken
  for (const int fd : numbers) {
    Status why;
    const std::string path = ended_well || fd <= STDERR_FILENO ? closed(fd, false, &why) : "";
    if (!why) late.emplace(path, std::move(why));
  }
  return late;
}

bool Checkpoints::writes_any() {
  return shared_opens.load(std::memory_order_relaxed) > 0 ||
         std::any_of(written_numbers.begin(), written_numbers.end(), [](const auto& bits) { return bits.load(std::memory_order_relaxed) != 0; });
}

void Checkpoints::handed_over(bool is_served) {
  if (state_->run.teams > 1) return;  // a replica that becomes another program is lost
  std::lock_guard lock(state_->mutex);
  if (!is_served) state_->close_handed_over();  // of an image before this one
  if (!is_served) state_->rank_note.ends();     // as far as anybody will tell
  std::set<std::string> names;
  for (const auto& [fd, one] : state_->written) {
    if (!state_->is_own(one)) continue;
    const auto text = checkpoint::encode(one.name);
    if (is_served && text) names.insert(*text);
    else (void)state_->close_file(one.name);
  }
  for (const auto& [id, one] : state_->open_shared) {
    if (one.process != ::getpid() || one.times == 0 || one.failed) continue;
    if (is_served) names.insert(*checkpoint::encode(one.name));
    else state_->files.no_longer(one.name, state_->who());
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
  state_->rank_note.goes_on();
}

std::vector<LocalName> Checkpoints::State::names_handed_over() {
  std::vector<LocalName> all;
  const auto note = catalog::read_beginning(hand_over_note(), most_handed_over);
  std::istringstream names(note ? *note : "");
  for (std::string text; std::getline(names, text, '\0');)
    if (auto name = checkpoint::decode_local_name(text)) all.push_back(std::move(*name));
  return all;
}

void Checkpoints::State::close_handed_over() {
  for (const LocalName& name : names_handed_over()) second.insert(name.file), (void)close_file(name);
  (void)catalog::unlink_file(hand_over_note());
}

Status Checkpoints::State::still_written(const std::string& plain) {
  return Status(Kind::busy,
                fmt::format("a program has {} open to write, and what it writes later on would be lost; close it before the rename", plain));
}

// Another checkpoint's file gets a second name, by which its protector knows it again. Nobody writes to it any more: who opens it to write gets a copy.
Status Checkpoints::State::link_to_closed(const LocalName& name, const std::string& from) const {
  using checkpoint::State;
  const std::string state = catalog::name_of(catalog::parent_of(from));
  const auto is_in = [&](State one) { return state == checkpoint::state_name(one); };
  if (file_of(from).empty() || !(is_in(State::closed) || is_in(State::protecting) || is_in(State::kept) || is_in(State::restored)))
    return Status(Kind::unsupported, from + " is none that is closed");
  const std::string to = files.path(State::closed, name);
  return to.empty() ? checkpoint::encode(name).status() : checkpoint::link_file(from, to);
}

// What another node has closed comes before what this one does with the name. It has a number when it is protected. What takes too long is not waited for.
void Checkpoints::State::wait_for_coming(const File& file) {
  if (may_be_others(file) && !patterns.are_shared(file.named.part) && run.teams == 1) (void)await_protection(file, 0);
}

Status Checkpoints::take_alone(const std::string& plain, const File& to) {
  state_->wait_for_coming(to);
  std::lock_guard lock(state_->mutex);
  return grows(to) ? state_->take_over_shared(plain, to) : state_->take_here(plain, to);
}

Status Checkpoints::State::take_here(const std::string& plain, const File& to) {
  const auto state = catalog::look(plain, true);
  if (!state) return state.status();
  if (checkpoint::has_writers(plain)) return still_written(plain);
  HF_TRY(files.make());
  if (!file_of(plain).empty()) {  // what is no checkpoint's cannot be linked, and need not have its turn for that
    const Status linked = take_in_place(plain, to, "");
    if (linked.kind() != Kind::unsupported) return linked;
  }
  const std::string half = files.scratch();  // before the turn: others wait for that
  Status status = checkpoint::copy_file(plain, half);
  if (status) status = take_in_place(plain, to, half);
  if (!status) (void)catalog::unlink_file(half);
  return status;
}

// A version never changes. What this attempt has not written here keeps the permissions that it has on the nodes.
void Checkpoints::mode_changed(const File& file) {
  using checkpoint::State;
  if (state_->run.teams > 1 || is_shared(file)) return;
  std::lock_guard lock(state_->mutex);
  const auto turn = state_->files.take_turn(file.path, state_->patience());
  const auto newest = turn ? state_->files.newest(file.path) : std::nullopt;
  if (!newest || !(newest->state == State::closed || newest->state == State::protecting || newest->state == State::kept)) return;
  const std::string newest_path = state_->files.path(newest->state, newest->name);
  // Another node may have written it since: then this copy is not the newest, and must not become it.
  if (!state_->is_of_all(file) && !state_->is_told_here(file)) return;
  const auto seen = state_->may_be_outdated(file, *newest) ? state_->look_for_file(file, false) : Result<Sight>(Sight{Sight::local, newest_path});
  if (!seen || seen->path != newest_path) return;
  if (state_->is_of_all(file)) {
    const auto others = checkpoint::look_elsewhere(file.path, state_->node, state_->run, state_->settings);
    if (!others.writing.empty() || others.is_coming) return;
  }
  LocalName next = newest->name;
  next.number = state_->files.last_number(file.path) + 1;
  const std::string why = state_->files.why(newest->name);
  if (!why.empty() && !state_->files.say_why(next, why)) return;  // it is the same content
  (void)state_->link_to_closed(next, newest_path);
}

Status Checkpoints::copy_out(const File& file, const std::string& from, const std::string& to) const {
  if (checkpoint::has_writers(from)) return State::still_written(file.path);
  return checkpoint::copy_file(from, to);
}

// A checkpoint's file that gets another name was closed as often as it was: how often that was is not known of what another attempt has left.
void Checkpoints::State::count_closes_of(const std::string& plain, LocalName& name) const {
  const auto from = file_of(plain).empty() ? std::nullopt : checkpoint::decode_local_name(catalog::name_of(plain));
  if (!from && !patterns.match(plain)) return;
  name.times = from && from->times ? std::max(name.times, from->times) : 0;
}

// `half`: a copy. Empty: Kind::unsupported where there must be one.
Status Checkpoints::State::take_in_place(const std::string& plain, const File& to, const std::string& half) {
  const auto turn = files.take_turn(to.path, patience());
  HF_TRY(turn.status());
  const Listed here = files.listed();
  auto next = next_name_of(to, true, here);
  if (!next) return next.status();
  count_closes_of(plain, *next);
  HF_TRY(refuse_second(*next, here, file_of(plain)));
  HF_TRY(take_reason(plain, *next));
  begins(next->step);
  HF_TRY(tell_of_number(*next));
  const Status linked = half.empty() ? link_to_closed(*next, plain) : Status();
  if (half.empty()) return linked ? linked : Status(Kind::unsupported, linked.sentence());
  const std::string there = files.path(checkpoint::State::closed, *next);
  return there.empty() ? checkpoint::encode(*next).status() : catalog::move(half, there);
}

}  // namespace holdfast::frontend::posix
