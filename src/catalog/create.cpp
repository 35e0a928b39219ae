// A new protected file: its layout, its directories on the members, its sidecar and what stands at its path.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/creation.hpp"
#include "catalog/entry.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/probe.hpp"
#include "catalog/stripe.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr uint64_t default_unit_bytes = 1 << 20;
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
  if (!settings.protects())
    return Status(Kind::invalid, "no protection scheme is set; choose one with --protect mirror:2 or --protect rs:4+2");
  auto scheme = layout::Scheme::parse(*settings.protect);
  if (!scheme) return scheme.status();
  g.scheme = *scheme;
  g.single_directory = settings.targets.empty();
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

// striping_factor and start_iodevice against the `available` members (or, in a single directory, none to check).
Status choose_members(layout::Geometry& g, const Settings& settings, int available) {
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
    return Status(Kind::invalid, fmt::format("start_iodevice is {} and the file has targets 0 to {}; choose one of these",
                                             start, g.members - 1));
  g.start = start;
  return g.check();
}

Status check_path(const std::string& full) {
  const std::string name = name_of(full);
  if (name.empty() || name.size() > longest_name)
    return Status(Kind::invalid, fmt::format("the name of {} has {} bytes and a protected file's may have {}; choose a "
                                             "shorter one",
                                             full, name.size(), longest_name),
                  ENAMETOOLONG);
  switch (kind_of(full)) {
    case PathKind::absent:
    case PathKind::empty: return {};
    case PathKind::plain:
      return Status(Kind::exists, fmt::format("{} exists, is not empty and is not protected; to protect it run: holdfast "
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

class Creator {
 public:
  Creator(std::string full, const Settings& settings, uint32_t mode)
      : full_(std::move(full)), settings_(settings), sidecar_(sidecar_of(full_)),
        scratch_(fmt::format("{}/.holdfast-new.{}", parent_of(full_) == "/" ? "" : parent_of(full_), layout::random_id())) {
    manifest().file_id = layout::random_id();
    manifest().path = full_;
    manifest().epoch = 1;
    manifest().mode = mode & 0777;
  }

  Result<Located> create() {
    HF_TRY(check_path(full_));
    // A file that the program made empty to write into may have been made private.
    if (auto empty = look(full_, true)) manifest().mode = empty->mode & 0777;
    auto geometry = geometry_from(settings_);
    if (!geometry) return geometry.status();
    manifest().geometry = *geometry;
    located_.single_directory_name = name_of(full_);
    HF_TRY(geometry->single_directory ? prepare_single() : prepare_targets());
    HF_TRY(commit_sidecar());
    const std::vector<Status> put = put_first_manifests(located_);
    for (size_t i = 0; i < put.size(); ++i)
      if (!put[i].ok()) lose(located_.members[i], put[i]);
    HF_TRY(check_enough());
    HF_TRY(publish());
    undo_.succeed();
    return std::move(located_);
  }

 private:
  layout::Manifest& manifest() { return located_.manifest; }
  const layout::Manifest& manifest() const { return located_.manifest; }

  // ---- target directories

  Status prepare_targets() {
    auto set = open_or_create_set(settings_.targets, settings_);
    if (!set) return set.status();
    HF_TRY(choose_members(manifest().geometry, settings_, int(set->members.size())));
    manifest().set_id = set->id;
    manifest().directory = file_directory_name(full_, manifest().file_id);
    set->members.resize(size_t(manifest().geometry.members));
    located_.members = std::move(set->members);
    for (const Member& member : located_.members)
      manifest().members.push_back({member.uuid, member.path, false, ""});
    open_with_mode();
    return make_directories();
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
    std::vector<std::pair<size_t, std::shared_ptr<target::Ticket>>> tickets;
    for (size_t i = 0; i < located_.members.size(); ++i) {
      const Member& member = located_.members[i];
      if (!member.usable()) continue;
      undo_.add([target = member.target, lane = member.lane, directory = manifest().directory] {
        (void)lane->run([target, directory] { return target->remove_directory(directory); });
      });
      const std::string copy = whole_copy_on(int(i));
      tickets.emplace_back(i, member.lane->submit([target = member.target, directory = manifest().directory, copy] {
        HF_TRY(target->make_directory(directory));
        return copy.empty() ? Status() : target->open(copy, target::OpenMode::create).status();
      }));
    }
    for (auto& [i, ticket] : tickets)
      if (Status status = ticket->wait(); !status.ok()) lose(located_.members[i], status);
    return check_enough();
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

  static void lose(Member& member, const Status& why) {
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
    return Status(Kind::lost, fmt::format("{} cannot be created with {}: {} of {} targets are lost: {}; mend them or replace "
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
    for (int i = 0; i < g.members; ++i) {
      manifest().members.push_back({layout::random_id(), parent, false, ""});
      Member member;
      member.index = i;
      member.uuid = manifest().members.back().uuid;
      member.path = parent;
      member.target = probe.target;
      member.lane = probe.lane;
      located_.members.push_back(std::move(member));
    }
    return {};
  }

  // striping_factor asks for more nodes than a row needs.
  int wanted_nodes() const {
    return std::max(int(settings_.striping_factor.value_or(0)), manifest().geometry.scheme.width());
  }

  // In the scratch sidecar, so that nothing shows before the layout is known to do.
  Status make_single_objects() {
    const layout::Geometry& g = manifest().geometry;
    const std::string data = scratch_ + "/data";
    HF_TRY(make_file(data, 0666));
    const StripeLayout stripes = request_stripes(data, g.unit_bytes, wanted_nodes());
    const int nodes = stripes.distinct_nodes();
    const bool placed = g.placement == layout::Placement::interleaved && stripes.unit_bytes == g.unit_bytes &&
                        nodes >= g.scheme.width();
    if (g.placement == layout::Placement::separate) HF_TRY(unlink_file(data));
    if (placed || g.scheme.m == 0 || settings_.allow_shared_target) return {};
    if (stripes.hashed)
      return Status(Kind::invalid,
                    fmt::format("the file system of {} places objects by a hash, so units of one row of {} may share a node; name "
                                "directories whose files lie in pools on different nodes with --targets DIR,..., or accept it "
                                "with --allow-shared-target",
                                full_, g.scheme.name()));
    if (nodes >= g.scheme.width() && g.placement == layout::Placement::separate)
      return Status(Kind::invalid,
                    fmt::format("the file system of {} stripes but cannot be told on which node a file starts, so {} with "
                                "separate placement may share a node; choose --placement interleaved, or accept it with "
                                "--allow-shared-target",
                                full_, g.scheme.name()));
    return Status(Kind::invalid,
                  fmt::format("{} needs {} distinct storage nodes and the file system of {} is known to give {}; name "
                              "directories on different storage with --targets DIR,..., or accept it with "
                              "--allow-shared-target",
                              g.scheme.name(), g.scheme.width(), full_, nodes));
  }

  // ---- both

  // Moving the finished sidecar to its place decides between processes that create the same file at once.
  Status commit_sidecar() {
    HF_TRY(make_directory(scratch_));
    undo_.add([scratch = scratch_] { (void)remove_flat_directory(scratch); });
    // Who finds the sidecar waits for this lock until everything is in its place (locate.cpp). Not all file systems have locks.
    if (auto lock = open_locked(scratch_ + "/lock")) lock_ = raw::Fd(*lock);
    if (manifest().geometry.single_directory) HF_TRY(make_single_objects());
    HF_TRY(replace_file(scratch_ + "/manifest", scratch_ + "/new", layout::encode(manifest()), 0666, false));
    Status moved = move(scratch_, sidecar_, true);
    if (moved.kind() == Kind::exists) moved = take_dead_sidecar();
    if (moved.kind() == Kind::exists) return Status(Kind::exists, full_ + " is a protected file already", EEXIST);
    HF_TRY(moved);
    undo_.add([sidecar = sidecar_] { (void)remove_flat_directory(sidecar); });
    return {};
  }

  // A sidecar without a manifest names no file: what is left of a removal that was cut short.
  Status take_dead_sidecar() {
    const Status there(Kind::exists, sidecar_ + " exists", EEXIST);
    if (look(sidecar_ + "/manifest", false).status().kind() != Kind::not_found) return there;
    HF_TRY(remove_flat_directory(sidecar_));
    return move(scratch_, sidecar_, true);
  }

  Status publish() {
    const bool was_absent = look_at_entry(full_).kind == EntryKind::absent;
    if (manifest().geometry.single_directory && manifest().geometry.placement == layout::Placement::separate) {
      HF_TRY(make_file(full_, manifest().mode));
      (void)request_stripes(full_, manifest().geometry.unit_bytes, wanted_nodes());
    }
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
  const std::string sidecar_;
  const std::string scratch_;
  Located located_;
  raw::Fd lock_;  // outlives what undo_ removes
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
      return target->put(name, std::as_bytes(std::span(text.data(), text.size())), false);
    }));
  }
  for (auto& [i, ticket] : tickets) results[i] = ticket->wait();
  return results;
}

Status finish_creation(Located& located) {
  for (const Member& member : located.members)
    if (member.usable() && !located.single())
      (void)member.lane->run([target = member.target, directory = located.manifest.directory] {
        return target->make_directory(directory);
      });
  (void)put_first_manifests(located);  // who cannot take it is lost, as at any open
  const std::string path = located.manifest.path;
  const bool plain = located.single() && located.manifest.geometry.placement == layout::Placement::separate;
  if (plain && look_at_entry(path).kind == EntryKind::absent) HF_TRY(make_file(path, located.manifest.mode));
  return located.path_keeper->publish(located.manifest, false);
}

Result<Located> create(const std::string& path, const Settings& settings, uint32_t mode) {
  std::string full = absolute_path(path);
  const Entry entry = look_at_entry(full);
  if (entry.kind == EntryKind::other_link && kind_of(full) != PathKind::protected_file) {
    // A link of the user's own to an empty or missing file: the file is made where it leads.
    const bool relative = entry.leads_to.front() != '/';
    return create(relative ? parent_of(full) + "/" + entry.leads_to : entry.leads_to, settings, mode);
  }
  return Creator(std::move(full), settings, mode).create();
}

}  // namespace holdfast::catalog
