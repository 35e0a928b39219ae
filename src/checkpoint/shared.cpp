#include "checkpoint/shared.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/environment.hpp"
#include "catalog/growing.hpp"
#include "catalog/lock_file.hpp"
#include "catalog/pool.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/ended.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/together.hpp"
#include "coding/xxh3.hpp"
#include "engine/protected_file.hpp"
#include "engine/write_once.hpp"
#include "exchange/exchange.hpp"
#include "target/lane_lock.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::chrono::milliseconds shortest_pause(1), longest_pause(20);
constexpr size_t most_record_bytes = layout::max_manifest_bytes + 8192;

uint64_t place_of(const std::string& file) { return coding::xxh3(file.data(), file.size(), 1); }

std::string record_of(const SharedFile& one) {
  const std::string begun_as = one.begun_as ? fmt::format(" {}", *one.begun_as) : "";
  return fmt::format("{}{}\n{}\n{}", one.ranks, begun_as, one.stem, layout::encode(one.manifest));
}

// The ranks, and where it began as a copy the generation.
bool decode_numbers(std::string_view line, SharedFile& into) {
  const auto number = [&line](auto& to) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), to);
    line.remove_prefix(size_t(end - line.data()));
    return error == std::errc();
  };
  if (!number(into.ranks) || into.ranks == 0) return false;
  if (line.empty()) return true;
  if (!line.starts_with(' ')) return false;
  line.remove_prefix(1);
  return number(into.begun_as.emplace()) && line.empty();
}

std::optional<SharedFile> decode_record(LocalName name, const Bytes& bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t first = text.find('\n'), second = first == std::string::npos ? first : text.find('\n', first + 1);
  if (second == std::string::npos) return {};
  SharedFile one;
  if (!decode_numbers(std::string_view(text).substr(0, first), one)) return {};
  auto manifest = layout::decode(std::as_bytes(std::span(text).subspan(second + 1)));
  if (!manifest) return {};
  one.stem = text.substr(first + 1, second - first - 1);
  one.name = std::move(name);
  one.manifest = std::move(*manifest);
  return one;
}

// In the lane of one node.
std::vector<std::string> names_at(target::Target& target, const std::string& directory, Status& worst) {
  auto names = target.list(directory);
  if (names) return std::move(*names);
  if (names.status().kind() != Kind::not_found) worst = names.status();
  return {};
}

void make_directories_of(target::Target& target, const std::string& below) {
  for (size_t slash = below.find('/'); slash != std::string::npos; slash = below.find('/', slash + 1))
    (void)target.make_directory(below.substr(0, slash));
  (void)target.make_directory(below);
  for (const char* const beside : {openers_directory, parts_directory, shared_directory, sealed_directory})
    (void)target.make_directory(fmt::format("{}/{}", below, beside));
}

// What one node has of the records.
struct RecordsOfNode {
  std::vector<SharedFile> files;
  std::vector<std::string> over;
};

// Of one version of one file: a record of it stands for nothing.
std::string name_when_over(const SharedFile& one) {
  return fmt::format("{}.{:016x}.{}", one.manifest.file_id, coding::xxh3(one.name.file.data(), one.name.file.size(), 0), one.name.number);
}

// In the lane of one node.
Status put_beside(target::Target& target, const std::string& directory, const std::string& name) {
  const auto put = [&] { return target.put(fmt::format("{}/{}", directory, name), {}, false); };
  const Status first = put();
  if (first.kind() != Kind::not_found) return first;
  (void)target.make_directory(directory);
  return put();
}

Status look_for_records(target::Target& target, const std::string& below, const std::string& file, RecordsOfNode& into) {
  Status worst;
  into.over = names_at(target, fmt::format("{}/{}", below, over_directory), worst);
  const auto sealed = names_at(target, fmt::format("{}/{}", below, sealed_directory), worst);
  for (const std::string& text : names_at(target, fmt::format("{}/{}", below, shared_directory), worst)) {
    auto name = decode_local_name(text);
    if (!name || (!file.empty() && name->file != file)) continue;
    const auto content = target.get(fmt::format("{}/{}/{}", below, shared_directory, text), most_record_bytes);
    auto one = content ? decode_record(std::move(*name), *content) : std::nullopt;
    if (!one) continue;
    one->is_sealed = std::count(sealed.begin(), sealed.end(), text) > 0;
    into.files.push_back(std::move(*one));
  }
  return worst;
}

// What one node says of who writes.
struct Said {
  std::vector<Part> parts;
  std::vector<std::string> openers, ranks;
  bool lost_power = false;
};

Status listen(target::Target& target, const std::string& below, Said& into) {
  Status worst;
  for (const std::string& text : names_at(target, fmt::format("{}/{}", below, parts_directory), worst))
    if (auto part = decode_part(text)) into.parts.push_back(std::move(*part));
  into.openers = names_at(target, fmt::format("{}/{}", below, openers_directory), worst);
  into.ranks = names_at(target, fmt::format("{}/{}", below, ranks_directory), worst);
  const auto beside = names_at(target, below, worst);
  into.lost_power = std::count(beside.begin(), beside.end(), started_anew) > 0;
  return worst;
}

// What all nodes together say of one file.
struct Heard {
  std::set<uint32_t> at_work, done;
  RanksThere there;  // on nodes that have forgotten nothing
  bool done_by_all = false;
  std::string open_on, silent;  // nodes

  void add(const Said& said, const std::string& node, const LocalName& name) {
    const std::string begins = opener_begins(name);
    for (const std::string& opener : said.openers)
      if (opener.starts_with(begins)) open_on = node;
    for (const Part& part : said.parts) {
      const bool is_meant = part.is_of(name) || (part.file.empty() && part.step == name.step);
      if (is_meant && part.rank) (part.is_done() ? done : at_work).insert(*part.rank);
      if (is_meant && !part.rank) done_by_all = true;
    }
    if (said.lost_power) silent = node;
    else
      for (const std::string& note : said.ranks) there.add(note);
  }
  // Whoever has come back after it was done is at work.
  bool is_done(uint32_t rank) const { return done.contains(rank) && !at_work.contains(rank); }
  bool has_heard_of(uint32_t rank) const { return done.contains(rank) || at_work.contains(rank); }
};

Status not_yet(const std::string& why) { return Status(Kind::busy, why, EBUSY); }

}  // namespace

Result<catalog::Located> make_shared_file(const layout::Version& version, const Run& run, uint32_t mode, const Settings& settings) {
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  if (!scheme) return scheme.status();
  // After M losses more than M are left, so that nobody has to ask which half of a network counts.
  Settings wide = settings;
  wide.striping_factor = std::max<int>(settings.striping_factor.value_or(0), std::min<int>(2 * scheme->m + 1, int(settings.local.size())));
  // The attempt's first node stands for all of them: orders of files of one place are compared where one node has written them.
  auto located = grow(version, run.nodes.front(), mode, wide);
  if (located) located->path_keeper.reset();
  return located;
}

catalog::Located locate_shared(const layout::Manifest& manifest, const Settings& settings) { return catalog::locate_version(manifest, settings); }

Status truncate_shared_file(const layout::Manifest& manifest, const Settings& settings) {
  const auto alone = exchange::make_solo();
  auto file = engine::ProtectedFile::open(locate_shared(manifest, settings), {.read = true, .write = true}, settings, *alone);
  if (!file) return file.status();
  const Status done = (*file)->set_size(0), closed = (*file)->close();
  return done ? closed : done;
}

SharedFiles::SharedFiles(const Run& run, const Settings& settings, catalog::TargetSet pool, int most_lost)
    : run_(run), settings_(settings), below_(directory_of_attempt(run.id, run.attempt)), pool_(std::move(pool)), most_lost_(most_lost) {}

Result<SharedFiles> SharedFiles::look(const Run& run, const Settings& settings) {
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  if (!scheme) return scheme.status();
  auto pool = catalog::look_at_pool(run.nodes, settings.deadline_ms);
  if (!pool) return Status(Kind::lost, pool.status().sentence());
  return SharedFiles(run, settings, std::move(*pool), scheme->m);
}

std::vector<const catalog::Member*> SharedFiles::in_order(const std::string& file) const {
  std::vector<const catalog::Member*> all;
  const size_t count = pool_.members.size(), first = count ? place_of(file) % count : 0;
  for (size_t i = 0; i < count; ++i)
    if (const catalog::Member& member = pool_.members[(first + i) % count]; member.usable()) all.push_back(&member);
  return all;
}

std::vector<const catalog::Member*> SharedFiles::keepers(const std::string& file) const {
  if (!holding_.empty()) return holding_;
  auto all = in_order(file);
  all.resize(std::min(all.size(), size_t(most_lost_) + 1));
  return all;
}

bool SharedFiles::is_keeper(const std::string& file, const std::string& node) const {
  const auto all = keepers(file);
  return !all.empty() && all.front()->path == node;
}

Status SharedFiles::take_turn(const std::string& file) {
  const auto until = catalog::environment().now() + std::chrono::milliseconds(settings_.lock_patience_ms);
  const std::string name = fmt::format("{}/turn.{:016x}", below_, place_of(file));
  for (auto pause = shortest_pause;; pause = std::min(2 * pause, longest_pause)) {
    Status busy, failure;
    for (const catalog::Member* const member : in_order(file)) {
      if (turn_.size() > size_t(most_lost_)) break;
      auto lock = target::AskedLock(member->lane, [target = member->target, name, below = below_] {
                    auto taken = target->try_lock(name);
                    if (taken || taken.status().kind() != Kind::not_found) return taken;
                    make_directories_of(*target, below);  // nobody has begun anything there
                    return target->try_lock(name);
                  }).wait();
      if (lock.status().kind() == Kind::busy) {
        busy = lock.status();
        break;
      }
      if (!lock) failure = lock.status();
      else turn_.push_back(std::move(*lock)), holding_.push_back(member);
    }
    if (busy.ok() && turn_.size() > size_t(most_lost_)) return {};
    turn_.clear(), holding_.clear();
    if (busy.ok())
      return Status(Kind::lost,
                    fmt::format("{}: too few nodes answer to say who else has it open{}", file, failure.ok() ? "" : ": " + failure.sentence()));
    if (catalog::environment().now() >= until)
      return Status(Kind::busy, fmt::format("{}: other processes have been opening it for too long: {}", file, busy.sentence()), EBUSY);
    catalog::environment().wait(pause);
  }
}

Result<std::vector<SharedFile>> SharedFiles::found_on(const std::vector<const catalog::Member*>& nodes, const std::string& file) const {
  std::vector<std::pair<std::shared_ptr<RecordsOfNode>, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member* const member : nodes) {
    auto found = std::make_shared<RecordsOfNode>();
    asked.emplace_back(found, member->lane->submit(
                                  [target = member->target, below = below_, file, found] { return look_for_records(*target, below, file, *found); }));
  }
  std::map<std::string, SharedFile> all;
  std::set<std::string> over;
  size_t answers = 0;
  Status failure;
  for (auto& [found, ticket] : asked) {
    if (const Status listed = ticket->wait(); !listed) {
      failure = listed;
      continue;
    }
    ++answers;
    over.insert(found->over.begin(), found->over.end());
    for (SharedFile& one : found->files) {
      const bool is_sealed = one.is_sealed;
      const auto begun_as = one.begun_as;
      const auto [at, first] = all.try_emplace(*encode(one.name), std::move(one));
      // A node that was away knows nothing of a first write since. Whatever one of them says has been written has been.
      if (!first) at->second.begun_as = begun_as && at->second.begun_as ? std::min(begun_as, at->second.begun_as) : std::nullopt;
      at->second.is_sealed |= is_sealed;
      at->second.copies += !first;
    }
  }
  if (answers == 0) return Status(Kind::lost, fmt::format("no node says which files are being written: {}", failure.sentence()));
  std::vector<SharedFile> files;
  for (auto& [text, one] : all)
    if (!over.contains(name_when_over(one))) files.push_back(std::move(one));
  std::sort(files.begin(), files.end(),
            [](const SharedFile& a, const SharedFile& b) { return std::tie(a.name.file, a.name.number) < std::tie(b.name.file, b.name.number); });
  const auto is_begun_anew = [&](const SharedFile& one) {
    return std::any_of(files.begin(), files.end(), [&](const SharedFile& other) {
      return other.manifest.file_id == one.manifest.file_id && other.name.file == one.name.file && other.name.number > one.name.number;
    });
  };
  std::vector<SharedFile> now;
  std::copy_if(files.begin(), files.end(), std::back_inserter(now), std::not_fn(is_begun_anew));
  for (size_t i = 0; i + 1 < now.size(); ++i) now[i].is_last = now[i].name.file != now[i + 1].name.file;
  return now;
}

// By a record that some keepers lack.
bool SharedFiles::was_sealed(const SharedFile& one) const {
  const auto alone = exchange::make_solo();
  const auto seen = engine::ProtectedFile::open(locate_shared(one.manifest, settings_), {}, settings_, *alone);
  return seen && (*seen)->located().manifest.is_final();
}

Result<std::vector<SharedFile>> SharedFiles::find(const std::string& file) const {
  const auto nodes = keepers(file);
  auto found = found_on(nodes, file);
  if (found) std::erase_if(*found, [&](const SharedFile& one) { return !one.is_sealed && one.copies < nodes.size() && was_sealed(one); });
  return found;
}
Result<std::vector<SharedFile>> SharedFiles::find_all() const { return found_on(in_order(""), ""); }

Status SharedFiles::put_on_keepers(const std::string& file, const std::string& name, const std::string& content) const {
  std::vector<std::shared_ptr<target::Ticket>> asked;
  for (const catalog::Member* const member : keepers(file))
    asked.push_back(member->lane->submit([target = member->target, below = below_, name, content] {
      const auto put = [&] { return target->put(name, std::as_bytes(std::span(content.data(), content.size())), false); };
      const Status first = put();
      if (first.kind() != Kind::not_found) return first;
      make_directories_of(*target, below);  // whoever has begun there has not made all of them yet
      return put();
    }));
  Status worst;
  for (const auto& ticket : asked)
    if (const Status put = ticket->wait(); !put) worst = put;
  return worst;
}

Status SharedFiles::put_record(const SharedFile& one) const {
  const auto text = encode(one.name);
  return text ? put_on_keepers(one.name.file, fmt::format("{}/{}/{}", below_, shared_directory, *text), record_of(one)) : text.status();
}

Status SharedFiles::add(const SharedFile& one) const {
  const Status added = put_record(one);
  if (!added) forget(one);
  return added;
}

// A node that does not answer, and may have the record, comes back. Others tell then that it is over, where it is so `for_good`.
void SharedFiles::forget_names(const SharedFile& one, bool for_good) const {
  const auto text = encode(one.name);
  if (!text) return;
  std::vector<std::shared_ptr<target::Ticket>> asked;
  for (const catalog::Member* const member : in_order(one.name.file))
    asked.push_back(member->lane->submit([target = member->target, below = below_, text = *text, name = one.name] {
      // The record first: without it nobody looks at the rest.
      for (const char* const directory : {shared_directory, sealed_directory, state_name(State::together), state_name(State::torn)})
        (void)target->remove(fmt::format("{}/{}/{}", below, directory, text));
      Status worst;
      for (const std::string& entry : names_at(*target, fmt::format("{}/{}", below, parts_directory), worst))
        if (const auto part = decode_part(entry); part && part->is_of(name))
          (void)target->remove(fmt::format("{}/{}/{}", below, parts_directory, entry));
      return worst;
    }));
  bool has_each = asked.size() == pool_.members.size();
  for (const auto& ticket : asked) has_each &= ticket->wait().ok();
  if (has_each || !for_good) return;
  asked.clear();
  for (const catalog::Member* const member : in_order(one.name.file))
    asked.push_back(member->lane->submit([target = member->target, directory = fmt::format("{}/{}", below_, over_directory),
                                          name = name_when_over(one)] { return put_beside(*target, directory, name); }));
  for (const auto& ticket : asked) (void)ticket->wait();
}

void SharedFiles::forget(const SharedFile& one) const {
  forget_names(one);
  catalog::remove_lock_file_of_growing(one.name.file, one.manifest.file_id);
}

namespace {

// Ranks that have opened it, and may have nothing to write this time, have to be heard of under its new name as well.
Status say_who_has_opened(target::Target& target, const std::string& below, const LocalName& of, const LocalName& also_of) {
  Status worst;
  const std::string parts = fmt::format("{}/{}", below, parts_directory);
  for (const std::string& text : names_at(target, parts, worst))
    if (const auto part = decode_part(text); part && part->is_of(of) && !part->has_written())
      HF_TRY(put_beside(target, parts, encode(part->for_name(also_of))));
  return worst;
}

}  // namespace

// The new record first: the higher number is the one that counts, also beside an old record on a node that keeps silent now.
Status SharedFiles::begin_anew(SharedFile& one, const LocalName& name, bool keeps) const {
  SharedFile anew = one;
  anew.name = name;
  if (const Status put = put_record(anew); !put) return forget_names(anew, false), put;
  std::vector<std::shared_ptr<target::Ticket>> asked;
  for (const catalog::Member* const member : in_order(one.name.file))
    asked.push_back(member->lane->submit(
        [target = member->target, below = below_, of = one.name, name] { return say_who_has_opened(*target, below, of, name); }));
  for (const auto& ticket : asked) (void)ticket->wait();
  forget_names(one);
  one = anew;
  if (!keeps) HF_TRY(truncate_shared_file(one.manifest, settings_));
  return is_no_copy(one);
}

Status SharedFiles::is_no_copy(SharedFile& one) const {
  one.begun_as.reset();
  return put_record(one);
}

Status SharedFiles::opened_and_not_written(SharedFile& one) const {
  const auto now = generation_of(locate_shared(one.manifest, settings_), settings_);
  if (!now) return now.status();
  one.begun_as = *now;
  return put_record(one);
}

// A manifest tells of each open to write before anything is written. So it holds for who was killed as well, and on nodes that are lost.
bool SharedFiles::is_untouched(const SharedFile& one) const {
  if (one.is_sealed || !one.begun_as) return false;
  const auto now = generation_of(locate_shared(one.manifest, settings_), settings_);
  return now && *now == *one.begun_as;
}

bool SharedFiles::is_only_looked_at(const SharedFile& one) const { return is_untouched(one) && !is_noted(one); }

bool SharedFiles::is_noted(const SharedFile& one, bool by_silent_ones) const {
  const auto text = encode(one.name);
  if (!text) return false;
  std::vector<std::shared_ptr<target::Ticket>> asked;  // Kind::busy: it is noted there
  for (const catalog::Member* const member : in_order(one.name.file))
    asked.push_back(member->lane->submit([target = member->target, notes = fmt::format("{}/{}", below_, state_name(State::together)), text = *text] {
      Status worst;
      const auto names = names_at(*target, notes, worst);
      return std::count(names.begin(), names.end(), text) > 0 ? not_yet("") : worst;
    }));
  bool is_noted = by_silent_ones && asked.size() < pool_.members.size();
  for (const auto& ticket : asked) {
    const Status said = ticket->wait();
    is_noted |= said.kind() == Kind::busy || (by_silent_ones && !said);
  }
  return is_noted;
}

// What ranks that cannot be heard of have left in it.
bool SharedFiles::has_content(const SharedFile& one) const {
  if (one.begun_as) return !is_untouched(one);
  const auto alone = exchange::make_solo();
  const auto file = engine::ProtectedFile::open(locate_shared(one.manifest, settings_), {}, settings_, *alone);
  const auto size = file ? (*file)->size() : Result<uint64_t>(file.status());
  return size && *size > 0;
}

SharedFiles::Written SharedFiles::who_has_written(const SharedFile& one, uint32_t rank) const {
  std::vector<std::tuple<std::string, std::shared_ptr<Said>, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member* const member : in_order(one.name.file)) {
    auto said = std::make_shared<Said>();
    asked.emplace_back(member->path, said,
                       member->lane->submit([target = member->target, below = below_, said] { return listen(*target, below, *said); }));
  }
  const auto has_written = [&](const Part& part) { return part.is_of(one.name) && part.has_written(); };
  const auto is_at_work = [&](const Part& part) { return part.is_of(one.name) && part.taking == Taking::writes && part.rank != rank; };
  Written written;
  bool all_heard = asked.size() == pool_.members.size();
  for (const auto& [node, said, ticket] : asked) {
    const bool is_heard = ticket->wait().ok();
    all_heard &= is_heard;
    if (!is_heard) continue;
    written.by_any |= std::any_of(said->parts.begin(), said->parts.end(), has_written);
    if (std::any_of(said->parts.begin(), said->parts.end(), is_at_work)) written.still_on = node;
  }
  written.by_any |= !all_heard && has_content(one);
  return written;
}

Status SharedFiles::is_complete(const SharedFile& one, bool ended) const {
  std::vector<std::tuple<std::string, std::shared_ptr<Said>, std::shared_ptr<target::Ticket>>> asked;
  Heard heard;
  for (const catalog::Member& member : pool_.members) {
    if (!member.usable()) heard.silent = member.path;
    if (!member.usable()) continue;
    auto said = std::make_shared<Said>();
    asked.emplace_back(member.path, said,
                       member.lane->submit([target = member.target, below = below_, said] { return listen(*target, below, *said); }));
  }
  for (auto& [node, said, ticket] : asked) {
    if (ticket->wait()) heard.add(*said, node, one.name);
    else heard.silent = node;
  }
  if (!heard.open_on.empty())
    return not_yet(ended ? fmt::format("a program on {} that had it open to write was killed, or gave up", node_of(heard.open_on))
                         : fmt::format("a program on {} has it open to write", node_of(heard.open_on)));
  for (uint32_t rank = 0; rank < one.ranks; ++rank) {
    // A rank stays on its node: who has heard of it has heard all that its processes have open.
    if (!heard.silent.empty() && !heard.has_heard_of(rank) && !heard.there.has(rank, one.ranks))
      return Status(Kind::lost,
                    fmt::format("node {} does not answer, or was started anew, and nobody knows whether a program there had it open to write",
                                node_of(heard.silent)));
    if (!one.is_last && !heard.has_heard_of(rank)) return not_yet(fmt::format("rank {} had not written it when it was truncated", rank));
    if (!(ended && one.is_last) && !heard.done_by_all && !heard.is_done(rank))
      return not_yet(fmt::format("rank {} has begun no other checkpoint", rank));
  }
  return {};
}

// Rows that wait in journals take their places first: whoever has written them is gone.
Status SharedFiles::make_version(const layout::Version& version, catalog::Located& located, int& lost) const {
  auto complete = engine::make_final(located, version, settings_);
  if (complete.status().kind() == Kind::busy) {
    const auto alone = exchange::make_solo();
    auto seen = engine::ProtectedFile::open(located, {}, settings_, *alone);
    if (!seen) return seen.status();
    if (!(*seen)->located().manifest.open_generations.empty()) return complete.status();  // of a process that nobody has told of
    auto file = engine::ProtectedFile::open(located, {.read = true, .write = true}, settings_, *alone);
    if (!file) return file.status();
    HF_TRY((*file)->close());
    complete = engine::make_final(located, version, settings_);
  }
  if (complete) lost = *complete;
  return complete.status();
}

Result<int> SharedFiles::seal_as(const SharedFile& one, const LocalName& name, const std::string& stem) const {
  const auto text = encode(one.name);
  if (!text) return text.status();
  // From here on whoever finds the record goes on with this.
  if (!one.is_sealed) HF_TRY(put_on_keepers(one.name.file, fmt::format("{}/{}/{}", below_, sealed_directory, *text), ""));
  catalog::Located located = locate_shared(one.manifest, settings_);
  layout::Version version = name.version_in(run_);
  version.stem = stem;
  int lost = 0;
  HF_TRY(make_version(version, located, lost));
  forget(one);
  catalog::release_growing(located);
  return lost;
}

void SharedFiles::forget_older_than(const SharedFile& one, const std::vector<SharedFile>& found) const {
  for (const SharedFile& other : found)
    if (other.name.number < one.name.number && !other.is_sealed && is_complete(other, false).kind() == Kind::busy) forget(other);
}

void SharedFiles::settle_older_than(const SharedFile& one, const std::vector<SharedFile>& found) const {
  for (const SharedFile& other : found) {
    if (other.name.number >= one.name.number) continue;
    if (other.is_sealed || is_complete(other, false)) (void)seal(other);
    else forget(other);
  }
}

namespace {

// What a node's ranks have said of one file they have said of the other.
Status say_again(target::Target& target, const std::string& below, const LocalName& of, const LocalName& also_of) {
  Status worst;
  const std::string parts = fmt::format("{}/{}", below, parts_directory), notes = fmt::format("{}/{}", below, state_name(State::together));
  for (const std::string& text : names_at(target, parts, worst))
    if (const auto part = decode_part(text); part && part->is_of(of)) HF_TRY(put_beside(target, parts, encode(part->for_name(also_of))));
  const auto before = encode(of), after = encode(also_of);
  for (const std::string& text : names_at(target, notes, worst))
    if (before && after && text == *before) HF_TRY(put_beside(target, notes, *after));
  return worst;
}

}  // namespace

Status SharedFiles::rename(const SharedFile& one, const LocalName& name, const std::string& stem, const SharedFiles& of_goal) const {
  std::vector<std::shared_ptr<target::Ticket>> asked;
  for (const catalog::Member* const member : in_order(one.name.file))
    asked.push_back(
        member->lane->submit([target = member->target, below = below_, of = one.name, name] { return say_again(*target, below, of, name); }));
  Status worst;
  for (const auto& ticket : asked)
    if (const Status said = ticket->wait(); !said) worst = said;
  HF_TRY(worst);
  SharedFile renamed = one;
  renamed.name = name;
  renamed.stem = stem;
  HF_TRY(of_goal.add(renamed));
  forget(one);
  return {};
}

namespace {

std::string seal_one(const Run& run, const Settings& settings, const std::string& file, uint32_t number, bool ended_well) {
  auto all = SharedFiles::look(run, settings);
  if (!all) return all.status().sentence();
  if (const Status turn = all->take_turn(file); !turn) return turn.sentence();
  const auto found = all->find(file);
  if (!found) return found.status().sentence();
  const auto one = std::find_if(found->begin(), found->end(), [&](const SharedFile& other) { return other.name.number == number; });
  if (one == found->end()) return "";
  if (all->is_untouched(*one)) return all->forget(*one), "";  // whoever had it open
  const Status complete = one->is_sealed ? Status() : all->is_complete(*one, ended_well);
  if (!complete && !one->is_last) return "";  // nobody misses it
  const auto lost = complete ? all->seal(*one) : Result<int>(complete);
  if (!lost && !ended_well && lost.status().kind() == Kind::busy) return "";  // as any file that a job had open when it ended
  if (!lost) return fmt::format("{} is not whole: {}", file, lost.status().sentence());
  all->settle_older_than(*one, *found);
  return *lost > 0 ? degraded(file, *lost, *lost >= one->manifest.geometry.scheme.m) : "";
}

}  // namespace

std::vector<std::string> seal_left(const Run& run, const Settings& settings, bool ended_well) {
  const auto all = SharedFiles::look(run, settings);
  const auto files = all ? all->find_all() : Result<std::vector<SharedFile>>(all.status());
  std::vector<std::string> remarks;
  if (!files) return remarks;  // which no node knows of
  for (const SharedFile& one : *files) {
    if (std::string remark = seal_one(run, settings, one.name.file, one.name.number, ended_well); !remark.empty())
      remarks.push_back(std::move(remark));
    catalog::remove_lock_file_of_growing(one.name.file, one.manifest.file_id);  // also of what is not whole
  }
  return remarks;
}

}  // namespace holdfast::checkpoint
