#include "catalog/pool.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/node_path.hpp"
#include "catalog/domains.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "coding/xxh3.hpp"
#include "target/lane_lock.hpp"

namespace holdfast::catalog {

namespace {

constexpr size_t probed_at_once = 64;  // lanes are kept for no more
constexpr auto lock_patience = std::chrono::seconds(10);
constexpr auto passed_over_for = std::chrono::seconds(60);

size_t count_nodes(const std::vector<std::string>& directories) {
  std::set<std::string> nodes;
  for (const std::string& directory : directories) nodes.insert(node_of(directory));
  return nodes.size();
}

// ---- which nodes a file is on

// A node that has just not answered is asked last for a while: each new file would wait for it until its deadline.
class LatelyLost {
 public:
  void add(const std::string& address) {
    std::lock_guard guard(mutex_);
    until_[address] = environment().now() + passed_over_for;
  }
  bool has(const std::string& address) {
    std::lock_guard guard(mutex_);
    const auto found = until_.find(address);
    return found != until_.end() && environment().now() < found->second;
  }
  static LatelyLost& of_this_process() {
    static auto* const all = new LatelyLost;  // files are made until the process ends
    return *all;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::chrono::steady_clock::time_point> until_;
};

// Nodes in the order of a hash of the file's own, one after another from where least of the file lies already: racks first, then power.
class Draw {
 public:
  static Result<Draw> from(const std::vector<std::string>& directories, const std::string& domains_file, const std::string& file_id) {
    Draw draw;
    std::map<std::string, Domain> domains;
    if (!domains_file.empty()) {
      auto read = read_domains(domains_file);
      if (!read) return read.status();
      domains = std::move(*read);
    }
    std::map<std::string, std::vector<std::string>> by_node;
    for (const std::string& directory : directories) by_node[node_of(directory)].push_back(absolute_target(directory));
    const uint64_t key = layout::file_key(file_id);
    for (auto& [name, addresses] : by_node) {
      const uint64_t hash = coding::xxh3(name.data(), name.size(), key);
      const std::string& address = addresses[hash % addresses.size()];  // a node gives a file one directory only
      Node node{address, {}, hash, 0, LatelyLost::of_this_process().has(address), false};
      if (!domains_file.empty()) {
        const auto domain = domains.find(name);
        if (domain == domains.end())
          return Status(Kind::invalid, fmt::format("{} does not say where node {} is; add a line: {} RACK POWER", domains_file, name, name));
        node.domain = domain->second;
        node.rack_hash = coding::xxh3(node.domain.rack.data(), node.domain.rack.size(), key);
      }
      draw.nodes_.push_back(std::move(node));
    }
    return draw;
  }

  void count(const std::string& node) {
    for (Node& other : nodes_)
      if (node_of(other.address) == node) take(other);
  }
  std::optional<std::string> next() {
    Node* best = nullptr;
    for (Node& node : nodes_)
      if (!node.drawn && (!best || cost(node) < cost(*best))) best = &node;
    if (!best) return {};
    take(*best);
    return best->address;
  }
  // It cannot be used, and is not drawn again.
  void drop(const std::string& address) {
    for (Node& node : nodes_)
      if (node.address == address) --racks_[node.domain.rack], --powers_[node.domain.power];
  }
  const std::string& rack_of(const std::string& address) const {
    return std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.address == address; })->domain.rack;
  }
  int most_in_a_rack() const {
    int most = 0;
    for (const auto& [rack, units] : racks_) most = std::max(most, units);
    return most;
  }

 private:
  struct Node {
    std::string address;
    Domain domain;
    uint64_t hash, rack_hash;
    bool lately_lost, drawn;
  };
  // Racks take turns, always in the same order: neighbours among the members are then in different ones.
  std::tuple<bool, int, int, uint64_t, uint64_t> cost(const Node& node) {
    return {node.lately_lost, racks_[node.domain.rack], powers_[node.domain.power], node.rack_hash, node.hash};
  }
  void take(Node& node) {
    if (node.drawn) return;
    node.drawn = true;
    ++racks_[node.domain.rack], ++powers_[node.domain.power];
  }

  std::vector<Node> nodes_;
  std::map<std::string, int> racks_, powers_;
};

// Rows go round the members, so each `width` neighbours of `racks` are a row's.
int most_of_a_row_in_a_rack(const std::vector<std::string>& racks, size_t width) {
  int most = 0;
  for (size_t first = 0; first < racks.size(); ++first) {
    std::map<std::string, int> counts;
    for (size_t i = 0; i < width; ++i) most = std::max(most, ++counts[racks[(first + i) % racks.size()]]);
  }
  return most;
}

// Of members that were drawn so many that no row has more in a rack than the first ones alone would have.
size_t members_for_racks(std::vector<std::string> racks, size_t width) {
  const int least = most_of_a_row_in_a_rack({racks.begin(), racks.begin() + std::ptrdiff_t(width)}, width);
  while (racks.size() > width && most_of_a_row_in_a_rack(racks, width) > least) racks.pop_back();
  return racks.size();
}

// ---- what is found in a directory

std::string largest_that_fits(const layout::Scheme& scheme, size_t nodes) {
  if (nodes < 2) return "none, for one node alone bears no loss";
  const int k = int(nodes) - scheme.m;
  return scheme.k == 1 || k < 2 ? fmt::format("mirror:{}", std::min<size_t>(nodes, size_t(scheme.m) + 1)) : fmt::format("rs:{}+{}", k, scheme.m);
}

Status too_few(const layout::Scheme& scheme, size_t nodes, const std::string& reasons) {
  return Status(Kind::invalid, fmt::format("{} needs {} nodes and there {} {}{}; the largest scheme that fits is {}; name more nodes, or give the "
                                           "scheme with --protect",
                                           scheme.name(), scheme.width(), nodes == 1 ? "is" : "are", nodes,
                                           reasons.empty() ? "" : fmt::format(" ({})", reasons), largest_that_fits(scheme, nodes)));
}

Status another_nodes(const std::string& address, const std::string& node) {
  const std::string pattern = parse_node_path(address).path + "-{node}";
  return Status(Kind::invalid,
                fmt::format("{} is the directory of {} by its marker: do the nodes share it? Give each node one of its own: --local '{}'", address,
                            node.empty() ? "a machine without an agent" : "node " + node, pattern));
}

// Why a directory that answers cannot be of a pool.
Status check_can_join(const Probe& probe) {
  if (probe.pool) {
    const std::string node = parse_node_path(probe.path).node;
    return probe.pool->node == node ? Status() : another_nodes(probe.path, probe.pool->node);
  }
  if (probe.marker)
    return Status(Kind::invalid, fmt::format("{} belongs to target set {}; name the set with --targets, or give an empty directory with --local",
                                             probe.path, probe.marker->set_id));
  if (probe.has_marker) return Status(probe.marker_status.kind(), fmt::format("{}: {}", probe.path, probe.marker_status.sentence()));
  if (!probe.empty) return Status(Kind::invalid, fmt::format("{} is not empty and is not a target; give an empty directory", probe.path));
  return {};
}

Result<std::unique_ptr<target::Lock>> lock_directory(const Probe& probe) {
  const auto give_up = environment().now() + lock_patience;
  while (true) {
    auto lock = target::lock_in_lane(probe.lane, probe.target, set_lock_name);
    if (lock.ok() || lock.status().kind() != Kind::busy || environment().now() > give_up) return lock;
    environment().wait(std::chrono::milliseconds(20));
  }
}

// Under the directory's lock: two jobs that begin at once give it one identity.
Status join(Probe& probe, const std::string& pool_id, uint64_t deadline_ms) {
  const auto lock = lock_directory(probe);
  if (!lock) return lock.status();
  probe = std::move(probe_directories({probe.path}, {}, deadline_ms)[0]);
  if (!probe.reachable()) return probe.status;
  HF_TRY(check_can_join(probe));
  if (probe.pool) return {};
  const PoolMarker marker{pool_id, layout::random_id(), parse_node_path(probe.path).node};
  HF_TRY(probe.lane->run(
      [target = probe.target, text = encode(marker)] { return target->put(marker_name, std::as_bytes(std::span(text.data(), text.size())), true); }));
  probe.pool = marker;
  probe.has_marker = true;
  return {};
}

Member member_of(const Probe& probe, int index) {
  Member member;
  member.index = index;
  member.uuid = probe.uuid();
  member.path = probe.path;
  member.target = probe.target;
  member.lane = probe.lane;
  return member;
}

// ---- a pool as it is named for a job

class Opening {
 public:
  explicit Opening(const Settings& settings) : settings_(settings) {}

  Result<PoolLook> run() {
    HF_TRY(look_at_all());
    HF_TRY(check_enough());
    if (pool_id_.empty()) pool_id_ = layout::random_id();
    for (const std::string& path : unmarked_) HF_TRY(join_one(path));  // markers stay: another job may have put files there by now
    HF_TRY(check_racks());
    return look_;
  }

 private:
  Status look_at_all() {
    for (size_t i = 0; i < settings_.local.size(); i += probed_at_once) {
      std::vector<std::string> some;
      for (size_t j = i; j < std::min(i + probed_at_once, settings_.local.size()); ++j) some.push_back(absolute_target(settings_.local[j]));
      for (const Probe& probe : probe_directories(some, {}, settings_.deadline_ms)) HF_TRY(look_at(probe));
    }
    return {};
  }

  Status look_at(const Probe& probe) {
    if (!probe.reachable()) {
      look_.remarks.push_back(fmt::format("{} is left out: {}", probe.path, probe.status.sentence()));
      return {};
    }
    HF_TRY(check_can_join(probe));
    usable_.push_back(probe.path);
    if (!probe.pool) unmarked_.push_back(probe.path);
    else HF_TRY(check_one(probe));
    return {};
  }

  // A marker that was copied, or one directory by two ways.
  Status check_one(const Probe& probe) {
    const auto [other, fresh] = by_uuid_.emplace(probe.uuid(), probe.path);
    if (!fresh)
      return Status(Kind::invalid,
                    fmt::format("{} and {} are the same directory, or have one marker; give each node one of its own", other->second, probe.path));
    if (pool_id_.empty()) pool_id_ = probe.pool->pool_id;
    return {};
  }

  Status join_one(const std::string& path) {
    Probe probe = std::move(probe_directories({path}, {}, settings_.deadline_ms)[0]);
    if (!probe.reachable()) return probe.status;
    HF_TRY(join(probe, pool_id_, settings_.deadline_ms));
    return check_one(probe);
  }

  Status check_enough() {
    look_.usable_nodes = count_nodes(usable_);
    if (!settings_.protects()) return {};
    auto scheme = layout::Scheme::parse(*settings_.protect);
    if (!scheme) return scheme.status();
    scheme_ = *scheme;
    if (int(look_.usable_nodes) >= scheme->width()) return {};
    std::string reasons;
    for (const std::string& remark : look_.remarks) reasons += (reasons.empty() ? "" : "; ") + remark;
    return too_few(*scheme, look_.usable_nodes, reasons);
  }

  Status check_racks() {
    if (settings_.domains.empty() || !scheme_) return {};
    auto draw = Draw::from(usable_, settings_.domains, "");
    if (!draw) return draw.status();
    for (int unit = 0; unit < scheme_->width(); ++unit) (void)draw->next();
    if (draw->most_in_a_rack() > scheme_->m)
      look_.remarks.push_back(
          fmt::format("{} does not bear the loss of a rack: {} of a row's {} units are in one, whatever the choice; more racks or "
                      "a scheme with more redundancy would",
                      scheme_->name(), draw->most_in_a_rack(), scheme_->width()));
    return {};
  }

  const Settings& settings_;
  PoolLook look_;
  std::string pool_id_;
  std::optional<layout::Scheme> scheme_;
  std::vector<std::string> usable_, unmarked_;
  std::map<std::string, std::string> by_uuid_;
};

// Another member's directory, or of its node: one loss would take two units of a row.
Status check_takes_place(const Probe& fresh, const Located& file, int index) {
  for (const layout::ManifestMember& member : file.manifest.members) {
    if (&member == &file.manifest.members[size_t(index)]) continue;
    if (member.uuid == fresh.uuid() || node_of(member.path) == node_of(fresh.path))
      return Status(Kind::invalid, fmt::format("replacement {} is of the node of {}, which keeps another part of {}; give another node's", fresh.path,
                                               member.path, file.manifest.path));
  }
  return {};
}

}  // namespace

namespace {

// Of a directory that cannot be reached nobody knows the identity. It gets one that nobody has: the member is lost until a repair replaces it.
Member lost_member(const std::string& path, const Status& why) {
  Member member;
  member.uuid = layout::random_id();
  member.path = path;
  member.lost = Status(why.kind() == Kind::timed_out ? why.kind() : Kind::lost, why.sentence());
  return member;
}

}  // namespace

Result<PoolLook> open_pool(const Settings& settings) { return Opening(settings).run(); }

Result<TargetSet> choose_from_pool(const Settings& settings, const std::string& file_id, int want, int least, uint32_t mode) {
  auto draw = Draw::from(settings.local, settings.domains, file_id);
  if (!draw) return draw.status();
  TargetSet chosen;
  chosen.pool = true;
  std::vector<Member>& members = chosen.members;
  std::set<std::string> uuids;
  std::string reasons;
  std::vector<Member> lost;
  while (int(members.size()) < want) {
    std::vector<std::string> paths;
    for (auto path = std::optional<std::string>(""); path && int(members.size() + paths.size()) < want;)
      if ((path = draw->next())) paths.push_back(*path);
    if (paths.empty()) break;
    for (const Probe& probe : probe_directories(paths, {.mode = mode}, settings.deadline_ms)) {
      Status usable = probe.reachable() ? check_can_join(probe) : probe.status;
      if (usable && !probe.pool) usable = Status(Kind::lost, why_not_member(probe, ""));
      if (usable && !uuids.insert(probe.uuid()).second) usable = Status(Kind::invalid, probe.path + " has the marker of another one");
      if (usable) {
        if (chosen.id.empty()) chosen.id = probe.pool->pool_id;
        members.push_back(member_of(probe, int(members.size())));
        continue;
      }
      draw->drop(probe.path);
      LatelyLost::of_this_process().add(probe.path);
      if (usable.kind() != Kind::invalid) lost.push_back(lost_member(probe.path, usable));
      reasons += (reasons.empty() ? "" : "; ") + usable.sentence();
    }
  }
  if (int(members.size()) >= least) {
    std::vector<std::string> racks;
    for (const Member& member : members) racks.push_back(draw->rack_of(member.path));
    if (!settings.domains.empty()) members.resize(members_for_racks(std::move(racks), size_t(least)));
    return chosen;
  }
  auto scheme = layout::Scheme::parse(*settings.protect);
  if (!scheme) return scheme.status();
  // A job has lost nodes meanwhile: a file may begin its life without them, as far as its code bears that.
  for (Member& member : lost)
    if (!members.empty() && int(members.size()) < least && least - scheme->m <= int(uuids.size())) {
      member.index = int(members.size());
      members.push_back(std::move(member));
    }
  if (int(members.size()) == least) return chosen;
  const Status few = too_few(*scheme, uuids.size(), reasons);
  return Status(few.kind(), few.sentence(), EIO);  // the nodes' fault, not that of the program's call
}

TargetSet pool_of(const std::vector<Probe>& probes) {
  TargetSet set;
  set.pool = true;
  for (const Probe& probe : probes) {
    if (probe.pool && set.id.empty()) set.id = probe.pool->pool_id;
    Member member = member_of(probe, int(set.members.size()));
    if (!probe.pool) {
      member.target = nullptr;
      member.lost = Status(Kind::lost, why_not_member(probe, ""));
    }
    set.members.push_back(std::move(member));
  }
  return set;
}

Result<TargetSet> look_at_pool(const std::vector<std::string>& directories, uint64_t deadline_ms) {
  std::vector<std::string> paths;
  for (const std::string& directory : directories) paths.push_back(absolute_target(directory));
  TargetSet set = pool_of(probe_directories(paths, {}, deadline_ms));
  if (!set.id.empty()) return set;
  return Status(Kind::not_found, fmt::format("{}: no directory of a pool that can be reached", fmt::join(directories, ", ")));
}

Result<Member> prepare_pool_member(const Located& file, int index, const std::string& new_path, const Settings& settings) {
  Probe fresh = std::move(probe_directories({absolute_target(new_path)}, {.mode = file.manifest.mode}, settings.deadline_ms)[0]);
  if (!fresh.reachable())
    return Status(fresh.status.kind(),
                  fmt::format("replacement {} cannot be used: {}; make the directory or name another", fresh.path, fresh.status.sentence()));
  HF_TRY(check_can_join(fresh));
  HF_TRY(check_takes_place(fresh, file, index));
  if (!fresh.pool) {
    HF_TRY(join(fresh, file.manifest.set_id, settings.deadline_ms));
    fresh = std::move(probe_directories({fresh.path}, {.mode = file.manifest.mode}, settings.deadline_ms)[0]);
    if (!fresh.reachable() || !fresh.pool) return Status(Kind::lost, why_not_member(fresh, ""));
  }
  return member_of(fresh, index);
}

Result<std::vector<std::pair<int, std::string>>> choose_live(const Located& file, const std::vector<std::string>& candidates,
                                                             const Settings& settings) {
  std::vector<std::pair<int, std::string>> chosen;
  std::vector<int> lost;
  for (const Member& member : file.members)
    if (!member.usable()) lost.push_back(member.index);
  if (lost.empty()) return chosen;
  std::set<std::string> taken;
  for (const layout::ManifestMember& member : file.manifest.members) taken.insert(node_of(member.path));
  std::vector<std::string> free;
  for (const std::string& candidate : candidates)
    if (!taken.count(node_of(candidate))) free.push_back(candidate);
  std::vector<std::string> all = free;
  for (const Member& member : file.members)
    if (member.usable()) all.push_back(member.path);
  auto draw = Draw::from(settings.domains.empty() ? free : all, settings.domains, file.manifest.file_id);
  if (!draw) return draw.status();
  for (const Member& member : file.members)
    if (member.usable()) draw->count(node_of(member.path));
  for (size_t next = 0; next < lost.size();) {
    const auto path = draw->next();
    if (!path) break;
    const Probe probe = std::move(probe_directories({*path}, {}, settings.deadline_ms)[0]);
    if (probe.reachable() && probe.pool && check_can_join(probe)) chosen.emplace_back(lost[next++], *path);
    else draw->drop(*path);
  }
  if (chosen.size() == lost.size()) return chosen;
  return Status(Kind::not_found,
                fmt::format("{} has {} lost members and {} live nodes are known that keep no part of it; start agents on more nodes, or "
                            "name directories with --replace OLD=NEW",
                            file.manifest.path, lost.size(), chosen.size()));
}

}  // namespace holdfast::catalog
