// A new protected file: its layout, its directories on the members, its sidecar and what stands at its path.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/text_bytes.hpp"
#include "catalog/catalog.hpp"
#include "catalog/creation.hpp"
#include "catalog/descriptors.hpp"
#include "catalog/entry.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/pool.hpp"
#include "catalog/probe.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/single_directory.hpp"
#include "catalog/torn_creation.hpp"
#include "catalog/user_files.hpp"
#include "target/lane_lock.hpp"

namespace holdfast::catalog {

namespace {

constexpr uint64_t max_stripe_bytes = 1 << 30;  // what every file system that stripes takes
constexpr int max_stripes = 2000;               // of one file
constexpr size_t longest_name = 255 - sizeof("..holdfast") + 1;

// Undoes what was made, newest first, unless the whole succeeded.
class Undo {
 public:
  ~Undo() {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) (*step)();
  }
  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  void succeed() { steps_.clear(); }

 private:
  std::vector<std::function<void()>> steps_;
};

Result<layout::Geometry> geometry_from(const Settings& settings) {
  layout::Geometry g;
  if (!settings.protects()) return Status(Kind::invalid, "no protection scheme is set; choose one with --protect mirror:2 or --protect rs:4+2");
  auto scheme = layout::Scheme::parse(*settings.protect);
  if (!scheme) return scheme.status();
  g.scheme = *scheme;
  g.single_directory = settings.targets.empty() && settings.local.empty();
  g.placement = g.single_directory || g.scheme.k == 1 ? layout::Placement::separate : layout::Placement::interleaved;
  if (settings.placement) {
    auto placement = layout::parse_placement(*settings.placement);
    if (!placement) return placement.status();
    g.placement = *placement;
  }
  g.unit_bytes = settings.striping_unit && *settings.striping_unit > 0 ? *settings.striping_unit : default_unit_bytes;
  if (g.unit_bytes % layout::min_unit_bytes != 0 || g.unit_bytes > layout::max_unit_bytes)
    return Status(Kind::invalid, fmt::format("striping_unit is {} bytes and must be a multiple of {} up to {}; for example "
                                             "--striping-unit 1MiB",
                                             g.unit_bytes, layout::min_unit_bytes, layout::max_unit_bytes));
  g.block_bytes = layout::block_bytes_for(g.unit_bytes);
  g.members = g.scheme.width();
  return g;
}

// As many directories of a pool as a row needs, or striping_factor of them. More take part in one file's bandwidth, and no more may be lost.
int most_of_pool(const Settings& settings) {
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  const int wanted = std::max(settings.striping_factor.value_or(0), scheme ? scheme->width() : 1);
  return std::min({wanted, layout::max_pool_members, std::max(1, int(std::min<size_t>(settings.local.size(), layout::max_pool_members)))});
}

// However the file will be laid out.
size_t most_members(Settings settings) {
  if (!settings.local.empty()) return size_t(most_of_pool(settings));
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  const size_t width = scheme ? size_t(scheme->width()) : 1, available = settings.targets.size();
  settings.fit_layout_hints(int(available));
  const auto factor = size_t(std::max(settings.striping_factor.value_or(0), 0));
  if (available == 0) return width;
  return factor > 0 ? std::min(factor, available) : available;
}

// striping_factor and start_iodevice against the `available` members (or, in a single directory, none to check).
Status choose_members(layout::Geometry& g, Settings settings, int available) {
  settings.fit_layout_hints(g.single_directory ? 0 : available);
  const int width = g.scheme.width();
  const int factor = settings.striping_factor.value_or(0);
  if (factor > 0 && factor < width)
    return Status(Kind::invalid, fmt::format("striping_factor is {} and {} needs {} targets; raise it or choose a smaller "
                                             "scheme",
                                             factor, g.scheme.name(), width));
  if (!g.single_directory) g.members = factor > 0 ? std::min(factor, available) : available;
  const int start = settings.start_iodevice.value_or(-1);
  if (start < 0) return g.check();
  if (!g.single_directory && start >= g.members)
    return Status(Kind::invalid, fmt::format("start_iodevice is {} and the file has targets 0 to {}; choose one of these", start, g.members - 1));
  g.start = start;
  return g.check();
}

Status check_path(const std::string& full) {
  const std::string name = name_of(full);
  if (name.empty() || name.size() > longest_name)
    return Status(Kind::invalid,
                  fmt::format("the name of {} has {} bytes and a protected file's may have {}; choose a "
                              "shorter one",
                              full, name.size(), longest_name),
                  ENAMETOOLONG);
  switch (kind_of(full)) {
    case PathKind::absent:
    case PathKind::empty: return {};
    case PathKind::plain:
      return Status(Kind::exists,
                    fmt::format("{} exists, is not empty and is not protected; to protect it run: holdfast "
                                "import {}",
                                full, full),
                    EEXIST);
    case PathKind::protected_file: return Status(Kind::exists, full + " is a protected file already", EEXIST);
    case PathKind::other: break;
  }
  const Entry entry = look_at_entry(full);
  if (!entry.status.ok()) return entry.status;
  return Status(Kind::invalid, full + " is not a regular file; name another path", entry.state.directory() ? EISDIR : EINVAL);
}

// The data object, made beside the manifest with the layout that it is to have, becomes the plain file at the path. An empty file that is
// there already stays, unless it lies on other nodes.
Status publish_plain(const std::string& path, const layout::Manifest& manifest) {
  auto sidecar = Sidecar::open(sidecar_of(path));
  if (!sidecar) return sidecar.status();
  const std::string made = "data", name = name_of(path);
  const Status moved = sidecar->move_beside(made, name, true);
  if (moved.kind() == Kind::not_found) return make_file(path, manifest.mode);
  if (moved.kind() != Kind::exists) return moved;
  auto there = look(path, false);
  if (!manifest.members[0].nodes.empty() && there && there->regular() && there->size == 0) return sidecar->move_beside(made, name, false);
  return sidecar->remove_file(made);
}

class Creator {
 public:
  Creator(std::string full, const Settings& settings, uint32_t mode, bool to_write)
      : full_(std::move(full)), settings_(settings), to_write_(to_write), sidecar_(sidecar_of(full_)), scratch_(new_sidecar_beside(full_)) {
    manifest().file_id = layout::random_id();
    manifest().job = job_of_this_process();
    manifest().path = full_;
    manifest().epoch = 1;
    manifest().mode = mode & 0777;
  }

  Result<Located> create() {
    const Status path = check_path(full_);
    torn_ = path.kind() == Kind::exists && is_torn_creation(full_) && locate(full_, settings_).status().kind() == Kind::not_found;
    if (!torn_) HF_TRY(path);
    // A file that the program made empty to write into may have been made private.
    if (auto empty = look(full_, true)) manifest().mode = empty->mode & 0777;
    auto geometry = geometry_from(settings_);
    if (!geometry) return geometry.status();
    manifest().geometry = *geometry;
    located_.single_directory_name = name_of(full_);
    HF_TRY(geometry->single_directory ? prepare_single() : settings_.local.empty() ? prepare_targets() : prepare_pool());
    if (to_write_ && !geometry->single_directory && located_.opener.empty()) announce();
    HF_TRY(commit_sidecar());
    const std::vector<Status> put = put_first_manifests(located_);
    for (size_t i = 0; i < put.size(); ++i)
      if (!put[i].ok()) lose(located_.members[i], put[i]);
    HF_TRY(check_enough());
    if (!all_usable()) located_.opener.clear();  // a manifest has to say which are lost: the open writes it
    HF_TRY(publish());
    undo_.succeed();
    return std::move(located_);
  }

 private:
  layout::Manifest& manifest() { return located_.manifest; }
  const layout::Manifest& manifest() const { return located_.manifest; }

  // ---- target directories

  Status prepare_targets() {
    auto set = open_whole_set(settings_.targets, settings_, manifest().mode);
    const bool whole = set.ok();
    if (!whole) set = open_or_create_set(settings_.targets, settings_);
    if (!set) return set.status();
    HF_TRY(choose_members(manifest().geometry, settings_, int(set->members.size())));
    manifest().set_id = set->id;
    manifest().directory = file_directory_name(full_, manifest().file_id);
    set->members.resize(size_t(manifest().geometry.members));
    located_.members = std::move(set->members);
    for (const Member& member : located_.members) manifest().members.push_back({member.uuid, member.path, false, ""});
    if (!whole) open_with_mode();
    return make_directories();
  }

  // ---- directories of a pool: each file has others

  Status prepare_pool() {
    const int width = manifest().geometry.scheme.width();
    auto chosen = choose_from_pool(settings_, manifest().file_id, most_of_pool(settings_), width, manifest().mode);
    if (!chosen) return chosen.status();
    HF_TRY(choose_members(manifest().geometry, settings_, int(chosen->members.size())));
    manifest().pool = true;
    manifest().set_id = chosen->id;
    manifest().directory = file_directory_name(full_, manifest().file_id);
    located_.members = std::move(chosen->members);
    located_.members.resize(size_t(manifest().geometry.members));
    for (Member& member : located_.members) {
      manifest().members.push_back({member.uuid, member.path, false, ""});
      if (!member.usable()) member.uuid.clear();
    }
    HF_TRY(check_manifest_fits());
    return make_directories();
  }

  // With reasons of lost members, journals and writers, which come later.
  Status check_manifest_fits() const {
    const size_t bytes = layout::encode(manifest()).size();
    if (bytes <= layout::max_manifest_bytes / 2) return {};
    return Status(Kind::invalid,
                  fmt::format("the names of {} directories of the pool take {} bytes, more than a file can note; use fewer with --striping-factor, "
                              "or shorter paths with --local",
                              manifest().members.size(), bytes));
  }

  // The set was opened for any file; for this one, with the permissions that its objects are to have.
  void open_with_mode() {
    std::vector<std::string> paths;
    for (const Member& member : located_.members)
      if (member.usable()) paths.push_back(member.path);
    auto probes = probe_directories(paths, {.mode = manifest().mode}, settings_.deadline_ms);
    size_t next = 0;
    for (Member& member : located_.members) {
      if (!member.usable()) continue;
      Probe& probe = probes[next++];
      if (probe.marker && probe.marker->uuid() == member.uuid) member.target = std::move(probe.target);
      else lose(member, Status(Kind::lost, why_not_member(probe, manifest().set_id)));
    }
  }

  Status make_directories() {
    const bool with_opener = announces_at_once();
    std::vector<std::pair<size_t, target::AskedLock>> asked;
    std::vector<std::pair<size_t, std::shared_ptr<target::Ticket>>> tickets;
    for (size_t i = 0; i < located_.members.size(); ++i) {
      const Member& member = located_.members[i];
      if (!member.usable()) continue;
      undo_.add([target = member.target, lane = member.lane, directory = manifest().directory] {
        (void)lane->run([target, directory] { return target->remove_directory(directory); });
      });
      if (with_opener) {
        asked.emplace_back(i, make_with_opener(i));
        continue;
      }
      const std::string copy = whole_copy_on(int(i));
      tickets.emplace_back(i, member.lane->submit([target = member.target, directory = manifest().directory, copy] {
        HF_TRY(target->make_directory(directory));
        return copy.empty() ? Status() : target->open(copy, target::OpenMode::create).status();
      }));
    }
    for (auto& [i, one] : asked) {
      auto lock = one.wait();
      if (lock.ok()) located_.opener.push_back(std::move(*lock));
      else if (Status made = make_directory_alone(i, lock.status()); !made.ok()) lose(located_.members[i], made);
    }
    for (auto& [i, ticket] : tickets)
      if (Status status = ticket->wait(); !status.ok()) lose(located_.members[i], status);
    if (with_opener) name_opener();
    return check_enough();
  }

  // With the directory in one wait, where each costs one.
  bool announces_at_once() const {
    if (!to_write_ || !all_usable()) return false;
    for (int i = 0; i <= manifest().geometry.scheme.m; ++i)
      if (!whole_copy_on(i).empty()) return false;
    return std::any_of(located_.members.begin(), located_.members.end(), [](const Member& member) { return member.target->is_far(); });
  }

  // A target that makes it and gives no lock is not lost: the opener is announced elsewhere then.
  Status make_directory_alone(size_t i, const Status& without_lock) const {
    if (without_lock.kind() == Kind::timed_out) return without_lock;
    const Member& member = located_.members[i];
    return member.lane->run([target = member.target, directory = manifest().directory] { return target->make_directory(directory); });
  }

  target::AskedLock make_with_opener(size_t i) const {
    const Member& member = located_.members[i];
    return {member.lane,
            [target = member.target, directory = manifest().directory,
             name = located_.meta_name(int(i), first_opener)]() -> Result<std::unique_ptr<target::Lock>> {
              auto made = target->try_lock_with({name, target::Hold::shared, directory, "", 0});
              if (!made.ok()) return made.status();
              return std::move(made->lock);
            }};
  }

  bool all_usable() const {
    return std::all_of(located_.members.begin(), located_.members.end(), [](const Member& member) { return member.usable(); });
  }

  // Before the manifest names it. Where it cannot be said on the first M + 1 the open looks for others. Of agents, on all: engine/exclusion.hpp.
  void announce() {
    if (!all_usable()) return;
    std::vector<target::AskedLock> asked;
    const int holders = located_.locks_may_end() ? int(located_.members.size()) : manifest().geometry.scheme.m + 1;
    for (int i = 0; i < holders; ++i) {
      const Member& member = located_.members[size_t(i)];
      asked.emplace_back(member.lane, member.target, located_.meta_name(i, first_opener), target::Hold::shared);
    }
    for (auto& one : asked)
      if (auto lock = one.wait(); lock.ok()) located_.opener.push_back(std::move(*lock));
    name_opener();
  }

  void name_opener() {
    if (!all_usable() || int(located_.opener.size()) <= manifest().geometry.scheme.m) return located_.opener.clear();
    manifest().next_generation = 2;
    manifest().open_generations = {1};
    manifest().lone = 1;
  }

  // What a link at the user's path would lead to must be there from the start.
  std::string whole_copy_on(int index) const {
    const layout::Geometry& g = located_.manifest.geometry;
    if (g.scheme.k != 1 || g.placement != layout::Placement::separate) return "";
    for (int unit = 0; unit < g.scheme.width(); ++unit) {
      const layout::UnitPlace place = layout::place(g, 0, unit);
      if (place.member == index) return located_.data_name(place.object);
    }
    return "";
  }

  void lose(Member& member, const Status& why) {
    without_room_ += why.kind() == Kind::no_space;
    member.lost = Status(why.kind() == Kind::timed_out ? why.kind() : Kind::lost, why.sentence());
    member.target = nullptr;
    member.lane = nullptr;
    member.uuid.clear();
  }

  // A file may begin its life degraded, but not beyond what its code can bear.
  Status check_enough() const {
    int lost = 0;
    std::string reasons;
    for (const Member& member : located_.members)
      if (!member.usable()) {
        ++lost;
        reasons += fmt::format("{}{} ({})", reasons.empty() ? "" : "; ", member.path, member.lost.sentence());
      }
    const layout::Scheme& scheme = located_.manifest.geometry.scheme;
    if (lost <= scheme.m) return {};
    const Kind kind = lost - without_room_ <= scheme.m ? Kind::no_space : Kind::lost;
    return Status(kind, fmt::format("{} cannot be created with {}: {} of {} targets are lost: {}; mend them or replace "
                                    "them with: holdfast repair PATH --replace OLD=NEW",
                                    full_, scheme.name(), lost, located_.members.size(), reasons));
  }

  // ---- one directory

  Status prepare_single() {
    layout::Geometry& g = manifest().geometry;
    HF_TRY(choose_members(g, settings_, 0));
    const std::string parent = parent_of(full_);
    const Probe probe = probe_directories({parent}, {.marker = false, .mode = manifest().mode}, settings_.deadline_ms)[0];
    if (!probe.reachable()) return probe.status;
    for (int i = 0; i < g.members; ++i) manifest().members.push_back({layout::random_id(), parent, false, ""});
    directory_ = probe;
    return {};
  }

  // striping_factor asks for more nodes than a row needs: each unit's part of the rows is spread over as many.
  int nodes_per_unit() const {
    const layout::Geometry& g = manifest().geometry;
    const int wanted = int(settings_.striping_factor.value_or(0)) / g.scheme.width();
    const bool fits = g.row_bytes() <= max_stripe_bytes && wanted <= max_stripes / g.scheme.width();
    return fits ? std::max(wanted, 1) : 1;
  }

  // In the scratch sidecar, so that nothing shows before the layout is known to do.
  Status make_single_objects() {
    layout::Geometry& g = manifest().geometry;
    auto made = std::make_shared<PlacedObjects>();
    const int start = settings_.start_iodevice.value_or(-1) < 0 ? target::any_node : g.start;
    HF_TRY(directory_.lane->run([made, target = directory_.target, scratch = name_of(scratch_), g, nodes = nodes_per_unit(), start] {
      return place_objects(*target, scratch, g, nodes, start, *made);
    }));
    for (size_t i = 0; i < made->nodes.size(); ++i) manifest().members[i].nodes = made->nodes[i];
    if (!made->nodes.empty()) g.start = int(made->nodes[0].front());
    located_.members = members_in_directory(located_, directory_, settings_.deadline_ms);
    if (!made->nodes.empty() || g.scheme.m == 0 || settings_.allow_shared_target) return {};
    return placed_by_number(made->objects[0]) ? Status() : shared_nodes(*made);
  }

  // Neighbouring stripes are on different nodes, whichever these are: enough where all units lie side by side in one object.
  bool placed_by_number(const target::Stripes& stripes) const {
    const layout::Geometry& g = manifest().geometry;
    return g.placement == layout::Placement::interleaved && !stripes.hashed && stripes.nodes.empty() && stripes.unit_bytes == g.unit_bytes &&
           stripes.count >= g.scheme.width() && stripes.count % g.scheme.width() == 0;
  }

  Status shared_nodes(const PlacedObjects& made) const {
    const layout::Geometry& g = manifest().geometry;
    const target::Stripes& data = made.objects[0];
    if (data.hashed)
      return Status(
          Kind::invalid,
          fmt::format("the file system of {} places objects by a hash, so units of one row of {} may share a node; name directories in pools "
                      "on different nodes with --targets DIR,..., or accept it with --allow-shared-target",
                      full_, g.scheme.name()));
    if (!made.obedient)
      return Status(Kind::invalid,
                    fmt::format("the file system of {} does not use the storage nodes it is asked for, so units of one row of {} may share a node; "
                                "name directories on different storage with --targets DIR,..., or accept it with --allow-shared-target",
                                full_, g.scheme.name()));
    if (made.distinct_nodes >= g.scheme.width() && data.nodes.empty())
      return Status(
          Kind::invalid,
          fmt::format("the file system of {} stripes but takes no start node for a file, so units of {} with separate placement may share a "
                      "node; choose --placement interleaved, or accept it with --allow-shared-target",
                      full_, g.scheme.name()));
    if (made.distinct_nodes >= g.scheme.width())
      return Status(Kind::invalid,
                    fmt::format("the file system of {} stripes by {} bytes instead of {}, so units of one row of {} share a node; choose another "
                                "--striping-unit, or accept it with --allow-shared-target",
                                full_, data.unit_bytes, g.unit_bytes, g.scheme.name()));
    return Status(Kind::invalid,
                  fmt::format("{} needs {} distinct storage nodes and the file system of {} gives {}; name directories on different storage with "
                              "--targets DIR,..., or accept it with --allow-shared-target",
                              g.scheme.name(), g.scheme.width(), full_, made.distinct_nodes));
  }

  // ---- both

  // Moving the finished sidecar to its place decides between processes that create the same file at once.
  Status commit_sidecar() {
    HF_TRY(make_directory(scratch_));
    undo_.add([scratch = scratch_] { (void)Sidecar::remove(scratch); });
    auto sidecar = Sidecar::open(scratch_);
    if (!sidecar) return sidecar.status();
    // Who finds the sidecar waits for this lock until everything is in its place (locate.cpp). Not all file systems have locks.
    if (auto lock = sidecar->lock("lock")) lock_ = std::move(*lock);
    if (manifest().geometry.single_directory) HF_TRY(make_single_objects());
    HF_TRY(sidecar->put("manifest", layout::encode(manifest()), false));
    Status moved = move(scratch_, sidecar_, true);
    if (moved.kind() == Kind::exists) moved = take_dead_sidecar();
    if (moved.kind() == Kind::exists) return Status(Kind::exists, full_ + " is a protected file already", EEXIST);
    HF_TRY(moved);
    undo_.add([sidecar = sidecar_] { (void)Sidecar::remove(sidecar); });
    return {};
  }

  // What is left of a removal, or of a creation, that was cut short. Under its lock: others may take it at the same time.
  Status take_dead_sidecar() {
    auto there = Sidecar::open(sidecar_);
    if (there) {
      auto lock = there->lock("lock");
      if (lock.status().kind() == Kind::busy || (lock && !is_dead(*there))) return Status(Kind::exists, sidecar_ + " exists", EEXIST);
      HF_TRY(lock.status());
      HF_TRY(there->remove());
    } else if (there.status().kind() != Kind::not_found) {
      return there.status();
    }
    return move(scratch_, sidecar_, true);
  }

  Status publish() {
    if (torn_) HF_TRY(unlink_file(full_));
    const bool was_absent = look_at_entry(full_).kind == EntryKind::absent;
    if (manifest().geometry.single_directory && manifest().geometry.placement == layout::Placement::separate)
      HF_TRY(publish_plain(full_, manifest()));
    if (was_absent) undo_.add([path = full_] { (void)unlink_file(path); });
    KeeperPlace place;
    place.path = full_;
    place.deadline_ms = settings_.deadline_ms;
    for (const Member& member : located_.members) place.member_lost.push_back(!member.usable());
    KeeperPlace first = place;
    first.replace_foreign = true;  // the empty file that a program made to write into
    HF_TRY(make_path_keeper(std::move(first))->publish(manifest(), false));
    located_.path_keeper = make_path_keeper(std::move(place));
    return {};
  }

  const std::string full_;
  const Settings& settings_;
  const bool to_write_;
  const std::string sidecar_;
  const std::string scratch_;
  bool torn_ = false;  // what is there is left of a creation that lost power
  int without_room_ = 0;
  Located located_;
  Probe directory_;                     // of a single directory
  std::unique_ptr<target::Lock> lock_;  // outlives what undo_ removes
  Undo undo_;
};

}  // namespace

std::vector<Status> put_first_manifests(const Located& located) {
  const std::string text = layout::encode(located.manifest);
  std::vector<Status> results(located.members.size());
  std::vector<std::pair<size_t, std::shared_ptr<target::Ticket>>> tickets;
  for (size_t i = 0; i < located.members.size(); ++i) {
    const Member& member = located.members[i];
    if (!member.usable()) continue;
    tickets.emplace_back(i, member.lane->submit([target = member.target, name = located.meta_name(int(i), "manifest"), text] {
      return target->put(name, bytes_of_text(text), false);
    }));
  }
  for (auto& [i, ticket] : tickets) results[i] = ticket->wait();
  return results;
}

Status finish_creation(Located& located) {
  for (const Member& member : located.members)
    if (member.usable() && !located.single())
      (void)member.lane->run([target = member.target, directory = located.manifest.directory] { return target->make_directory(directory); });
  (void)put_first_manifests(located);  // who cannot take it is lost, as at any open
  const std::string path = located.manifest.path;
  const bool plain = located.single() && located.manifest.geometry.placement == layout::Placement::separate;
  if (plain && look_at_entry(path).kind == EntryKind::absent) HF_TRY(publish_plain(path, located.manifest));
  return located.path_keeper->publish(located.manifest, false);
}

Result<Located> create(const std::string& path, const Settings& settings, uint32_t mode, bool to_write) {
  std::string full = absolute_path(path);
  const Entry entry = look_at_entry(full);
  if (entry.kind == EntryKind::other_link && kind_of(full) != PathKind::protected_file) {
    // A link of the user's own to an empty or missing file: the file is made where it leads.
    const bool relative = entry.leads_to.front() != '/';
    return create(relative ? parent_of(full) + "/" + entry.leads_to : entry.leads_to, settings, mode, to_write);
  }
  Result<Descriptors> descriptors(Descriptors{});
  if (to_write) descriptors = keep_descriptors_to_write(full, most_members(settings));
  HF_TRY(to_write ? descriptors.status() : keep_descriptors(full, most_members(settings)));
  auto made = Creator(std::move(full), settings, mode, to_write).create();
  if (made) made->descriptors = std::move(*descriptors);
  return made;
}

}  // namespace holdfast::catalog
