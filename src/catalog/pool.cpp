#include "catalog/pool.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/node_path.hpp"
#include "base/plural.hpp"
#include "base/text_bytes.hpp"
#include "catalog/domains.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "coding/xxh3.hpp"
#include "target/address.hpp"

namespace holdfast::catalog {

namespace {

constexpr size_t probed_at_once = 64;  // lanes are kept for no more
constexpr auto passed_over_for = std::chrono::seconds(60);

// ---- which nodes a file is on

// A node that has just not answered is asked last for a while: each new file would wait for it until its deadline.
class LatelyLost {
 public:
  void add(const std::string& address) {
    std::lock_guard guard(mutex_);
    forget_other_environment();
    until_[address] = environment().now() + passed_over_for;
  }
  bool has(const std::string& address) {
    std::lock_guard guard(mutex_);
    forget_other_environment();
    const auto found = until_.find(address);
    return found != until_.end() && environment().now() < found->second;
  }
  static LatelyLost& of_this_process() {
    static auto* const all = new LatelyLost;  // files are made until the process ends
    return *all;
  }

 private:
  void forget_other_environment() {
    if (std::exchange(environment_, environment_number()) != environment_number()) until_.clear();
  }

  std::mutex mutex_;
  uint64_t environment_ = 0;
  std::map<std::string, std::chrono::steady_clock::time_point> until_;
};

// The racks of a file's members in their order. Rows go round them, so each `width` neighbours are a row's.
struct Ring {
  std::vector<std::string> racks;
  size_t width = 1;

  // Of all rows: the most units in one rack, and the sum of the rows' most.
  std::pair<int, int> crowding() const {
    std::pair<int, int> all;
    for (size_t first = 0; first < racks.size(); ++first) {
      std::map<std::string, int> counts;
      int most = 0;
      for (size_t i = 0; i < width; ++i) most = std::max(most, ++counts[racks[(first + i) % racks.size()]]);
      all = {std::max(all.first, most), all.second + most};
    }
    return all;
  }
  std::pair<int, int> crowding_with(size_t place, const std::string& rack) const {
    Ring other = *this;
    other.racks[place] = rack;
    return other.crowding();
  }
};

// Nodes in the order of a hash of the file's own, one after another from where least of the file lies already: racks first, then power. A node gives
// a file one directory only; where that one cannot be used, its next one.
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
      std::rotate(addresses.begin(), addresses.begin() + std::ptrdiff_t(hash % addresses.size()), addresses.end());
      Node node{addresses, {}, hash, 0, LatelyLost::of_this_process().has(addresses.front()), false};
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

  std::optional<std::string> next() {
    return take_least([](const Node&) { return 0; });
  }
  // For that place among the members: first from where the racks of no row get fuller.
  std::optional<std::string> next_for(const Ring& ring, size_t place) {
    return take_least([&](const Node& node) { return ring.crowding_with(place, node.domain.rack); });
  }
  // It cannot be used. True: its node has another directory, which is drawn like any other node's.
  bool drop(const std::string& address) {
    Node& node = *find(address);
    --racks_[node.domain.rack], --powers_[node.domain.power];
    if (node.addresses.size() == 1 || target::is_unreached(address)) return false;
    node.addresses.erase(node.addresses.begin());
    node.drawn = false;
    node.lately_lost = LatelyLost::of_this_process().has(node.address());
    return true;
  }
  const std::string& rack_of(const std::string& address) { return find(address)->domain.rack; }
  int most_in_a_rack() const {
    int most = 0;
    for (const auto& [rack, units] : racks_) most = std::max(most, units);
    return most;
  }

 private:
  struct Node {
    std::vector<std::string> addresses;  // the first is the one to draw
    Domain domain;
    uint64_t hash, rack_hash;
    bool lately_lost, drawn;

    const std::string& address() const { return addresses.front(); }
  };
  // Racks take turns, always in the same order: neighbours among the members are then in different ones.
  std::tuple<bool, int, int, uint64_t, uint64_t> cost(const Node& node) {
    return {node.lately_lost, racks_[node.domain.rack], powers_[node.domain.power], node.rack_hash, node.hash};
  }
  template <typename Before>
  std::optional<std::string> take_least(Before before) {
    const auto order = [&](const Node& node) { return std::pair(before(node), cost(node)); };
    Node* best = nullptr;
    for (Node& node : nodes_)
      if (!node.drawn && (!best || order(node) < order(*best))) best = &node;
    if (!best) return {};
    best->drawn = true;
    ++racks_[best->domain.rack], ++powers_[best->domain.power];
    return best->address();
  }
  std::vector<Node>::iterator find(const std::string& address) {
    return std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.address() == address; });
  }

  std::vector<Node> nodes_;
  std::map<std::string, int> racks_, powers_;
};

// Of members that were drawn so many that no row has more in a rack than the first ones alone would have.
size_t members_for_racks(Ring ring) {
  const int least = Ring{{ring.racks.begin(), ring.racks.begin() + std::ptrdiff_t(ring.width)}, ring.width}.crowding().first;
  while (ring.racks.size() > ring.width && ring.crowding().first > least) ring.racks.pop_back();
  return ring.racks.size();
}

// ---- what is found in a directory

std::string largest_that_fits(const layout::Scheme& scheme, size_t nodes) {
  if (nodes < 2) return "none, since one node alone cannot lose any";
  const int k = int(nodes) - scheme.m;
  return scheme.k == 1 || k < 2 ? fmt::format("mirror:{}", std::min<size_t>(nodes, size_t(scheme.m) + 1)) : fmt::format("rs:{}+{}", k, scheme.m);
}

// The node that writes a checkpoint keeps none of its units where all of them are to be remote.
size_t spared_nodes(const Settings& settings) { return settings.units_remote && !settings.checkpoint.empty() ? 1 : 0; }

size_t nodes_needed(const layout::Scheme& scheme, const Settings& settings) { return size_t(scheme.width()) + spared_nodes(settings); }

Status too_few(const layout::Scheme& scheme, size_t nodes, const std::string& reasons, size_t spared = 0) {
  const size_t needed = size_t(scheme.width()) + spared;
  const std::string mend = nodes == 0 ? "start the agents of these nodes, or name others"
                                      : fmt::format("the largest scheme that fits is {}; name more nodes, or give the scheme with --protect",
                                                    largest_that_fits(scheme, nodes - std::min(nodes, spared)));
  return Status(Kind::invalid,
                fmt::format("{}{} needs {} {} and there {} {}{}; {}", scheme.name(), spared ? " with --units remote" : "", needed,
                            noun_for(needed, "node"), nodes == 1 ? "is" : "are", nodes, reasons.empty() ? "" : fmt::format(" ({})", reasons), mend));
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

// Under the directory's lock: two jobs that begin at once give it one identity.
Status join(Probe& probe, const std::string& pool_id, uint64_t deadline_ms) {
  const auto lock = lock_directory(probe);
  if (!lock) return lock.status();
  probe = std::move(probe_directories({probe.path}, {}, deadline_ms)[0]);
  if (!probe.reachable()) return probe.status;
  HF_TRY(check_can_join(probe));
  if (probe.pool) return {};
  const PoolMarker marker{pool_id, layout::random_id(), parse_node_path(probe.path).node};
  HF_TRY(probe.lane->run([target = probe.target, text = encode(marker)] { return target->put(marker_name, bytes_of_text(text), true); }));
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
    for (const std::string& path : unmarked_) HF_TRY(join_or_leave_out(path));  // markers stay: another job may have put files there by now
    HF_TRY(check_enough());
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
    if (!probe.reachable()) return leave_out(probe.path, probe.status);
    HF_TRY(check_can_join(probe));
    mend_marker(probe);
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

  Status leave_out(const std::string& path, const Status& why) {
    std::erase(usable_, path);
    look_.remarks.push_back(fmt::format("{} is left out: {}", path, why.sentence()));
    return {};
  }

  // What is lost, or full, by now is left out like what has not answered. What is no directory of a pool is the user's to mend.
  Status join_or_leave_out(const std::string& path) {
    const Status joined = join_one(path);
    return joined || joined.kind() == Kind::invalid ? joined : leave_out(path, joined);
  }

  Status join_one(const std::string& path) {
    Probe probe = std::move(probe_directories({path}, {}, settings_.deadline_ms)[0]);
    if (!probe.reachable()) return probe.status;
    HF_TRY(join(probe, pool_id_, settings_.deadline_ms));
    return check_one(probe);
  }

  Status check_enough() {
    look_.usable_nodes = count_nodes(usable_);
    return settings_.protects() ? check_enough_nodes(settings_, usable_, fmt::format("{}", fmt::join(look_.remarks, "; "))) : Status();
  }

  Status check_racks() {
    if (settings_.domains.empty() || !settings_.protects()) return {};
    const auto scheme = layout::Scheme::parse(*settings_.protect);
    if (!scheme) return scheme.status();
    auto draw = Draw::from(usable_, settings_.domains, "");
    if (!draw) return draw.status();
    for (int unit = 0; unit < scheme->width(); ++unit) (void)draw->next();
    if (draw->most_in_a_rack() > scheme->m)
      look_.remarks.push_back(
          fmt::format("{} does not survive the loss of a rack: at least one rack has {} of a row's {} units; use more racks, or a scheme "
                      "with more redundancy",
                      scheme->name(), draw->most_in_a_rack(), scheme->width()));
    return {};
  }

  const Settings& settings_;
  PoolLook look_;
  std::string pool_id_;
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
      if (usable.sys_errno() == EMFILE) return no_descriptors(probe.path);  // nothing is known of the node
      LatelyLost::of_this_process().add(probe.path);
      if (!draw->drop(probe.path) && usable.kind() != Kind::invalid) lost.push_back(lost_member(probe.path, usable));
      reasons += (reasons.empty() ? "" : "; ") + usable.sentence();
    }
  }
  if (int(members.size()) >= least) {
    Ring ring{{}, size_t(least)};
    for (const Member& member : members) ring.racks.push_back(draw->rack_of(member.path));
    if (!settings.domains.empty()) members.resize(members_for_racks(std::move(ring)));
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

namespace {

// Of directories none of which is a pool's.
std::string why_no_pool(const std::vector<Probe>& probes) {
  constexpr size_t most = 3;
  const bool unused = std::all_of(probes.begin(), probes.end(), [](const Probe& probe) { return probe.reachable() && !probe.has_marker; });
  std::vector<std::string> words;
  for (size_t i = 0; i < probes.size() && i < most; ++i) words.push_back(unused ? probes[i].path : why_not_member(probes[i], ""));
  if (probes.size() > most) words.push_back("...");
  if (unused)
    return fmt::format("no job has used {} yet, so nothing is kept there: give {} to one with holdfast run --local", fmt::join(words, ", "),
                       probes.size() == 1 ? "it" : "them");
  return fmt::format("no directory of the nodes can be read: {}", fmt::join(words, "; "));
}

}  // namespace

Result<TargetSet> look_at_pool(const std::vector<std::string>& directories, uint64_t deadline_ms) {
  std::vector<std::string> paths;
  for (const std::string& directory : directories) paths.push_back(absolute_target(directory));
  const std::vector<Probe> probes = probe_directories(paths, {}, deadline_ms);
  TargetSet set = pool_of(probes);
  if (!set.id.empty()) return set;
  return Status(Kind::not_found, why_no_pool(probes));
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

std::vector<std::string> take_anew(const std::vector<std::string>& directories, const std::string& pool_id, uint64_t deadline_ms) {
  std::vector<std::string> paths, taken;
  for (const std::string& directory : directories) paths.push_back(absolute_target(directory));
  for (Probe& probe : probe_directories(paths, {}, deadline_ms)) {
    const bool can_be_taken = probe.reachable() && !probe.pool && check_can_join(probe);
    if (can_be_taken && join(probe, pool_id, deadline_ms)) taken.push_back(probe.path);
  }
  return taken;
}

namespace {

// Racks of the members as far as the file of domains knows their nodes. A node that it does not name is a rack of its own.
Ring ring_of(const Located& file, const std::map<std::string, Domain>& domains) {
  Ring ring{{}, size_t(file.manifest.geometry.scheme.width())};
  for (const Member& member : file.members) {
    const auto domain = domains.find(node_of(member.path));
    const bool known = member.usable() && domain != domains.end();
    ring.racks.push_back(known ? domain->second.rack : fmt::format("/member {}", member.index));
  }
  return ring;
}

// Those that the file of domains knows where there is one: agents of other jobs are among them.
std::vector<std::string> placed(std::vector<std::string> candidates, const Settings& settings, const Domains& domains) {
  if (!settings.domains.empty()) std::erase_if(candidates, [&](const std::string& one) { return !domains.count(node_of(one)); });
  return candidates;
}

// Those of nodes that keep no part of the file.
std::vector<std::string> free_of(const Located& file, std::vector<std::string> candidates) {
  std::set<std::string> taken;
  for (const layout::ManifestMember& member : file.manifest.members) taken.insert(node_of(member.path));
  std::erase_if(candidates, [&](const std::string& one) { return taken.count(node_of(one)) > 0; });
  return candidates;
}

bool can_be_member(const Probe& probe) { return probe.reachable() && probe.pool && check_can_join(probe); }

}  // namespace

Result<std::vector<std::pair<int, std::string>>> choose_live(const Located& file, const std::vector<std::string>& candidates,
                                                             const Settings& settings) {
  std::vector<std::pair<int, std::string>> chosen;
  std::vector<int> lost;
  for (const Member& member : file.members)
    if (!member.usable()) lost.push_back(member.index);
  if (lost.empty()) return chosen;
  const auto domains = domains_of(settings);
  if (!domains) return domains.status();
  Ring ring = ring_of(file, *domains);
  auto draw = Draw::from(placed(free_of(file, candidates), settings, *domains), settings.domains, file.manifest.file_id);
  if (!draw) return draw.status();
  for (size_t next = 0; next < lost.size();) {
    const size_t place = size_t(lost[next]);
    const auto path = draw->next_for(ring, place);
    if (!path) break;
    const Probe probe = std::move(probe_directories({*path}, {}, settings.deadline_ms)[0]);
    if (!can_be_member(probe)) {
      (void)draw->drop(*path);
      continue;
    }
    if (!settings.domains.empty()) ring.racks[place] = draw->rack_of(*path);
    chosen.emplace_back(lost[next++], *path);
  }
  return chosen;
}

Status too_few_live(const Located& file, size_t found, const Settings& settings) {
  const auto lost = std::count_if(file.members.begin(), file.members.end(), [](const Member& member) { return !member.usable(); });
  const auto number = [](auto count, const char* noun) { return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s"); };
  return Status(Kind::not_found,
                fmt::format("{} has {} and {} that keep{} no part of it {} known{}; start agents on more nodes, or name directories with --replace "
                            "OLD=NEW",
                            file.manifest.path, number(lost, "lost member"), number(found, "live node"), found == 1 ? "s" : "",
                            found == 1 ? "is" : "are", settings.domains.empty() ? "" : fmt::format(" and stand in {}", settings.domains)));
}

Result<std::vector<std::string>> live_members(const Located& file, std::vector<std::string> candidates, const Settings& settings) {
  for (const Member& member : file.members) candidates.push_back(member.path);
  for (std::string& candidate : candidates) candidate = absolute_target(candidate);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  const auto domains = domains_of(settings);
  if (!domains) return domains.status();
  candidates = placed(std::move(candidates), settings, *domains);
  std::vector<std::string> live;
  for (size_t i = 0; i < candidates.size(); i += probed_at_once) {
    const auto end = candidates.begin() + std::ptrdiff_t(std::min(i + probed_at_once, candidates.size()));
    for (const Probe& probe : probe_directories({candidates.begin() + std::ptrdiff_t(i), end}, {}, settings.deadline_ms))
      if (can_be_member(probe)) live.push_back(probe.path);
  }
  return live;
}

size_t count_nodes(const std::vector<std::string>& directories) {
  std::set<std::string> nodes;
  for (const std::string& directory : directories) nodes.insert(node_of(directory));
  return nodes.size();
}

Status check_enough_nodes(const Settings& settings, const std::vector<std::string>& directories, const std::string& reasons) {
  const auto scheme = layout::Scheme::parse(*settings.protect);
  if (!scheme) return scheme.status();
  const size_t nodes = count_nodes(directories);
  return nodes >= nodes_needed(*scheme, settings) ? Status() : too_few(*scheme, nodes, reasons, spared_nodes(settings));
}

}  // namespace holdfast::catalog
