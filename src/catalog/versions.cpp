#include "catalog/versions.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/entry.hpp"
#include "catalog/growing.hpp"
#include "catalog/pool.hpp"
#include "catalog/probe.hpp"
#include "catalog/user_files.hpp"
#include "layout/groups.hpp"
#include "layout/pack.hpp"

namespace holdfast::catalog {

namespace {

constexpr uint64_t most_unit_bytes = 1 << 20;

// Units no larger than the content needs: small checkpoints would be padded to whole rows else.
Result<layout::Geometry> geometry_for(uint64_t bytes, const Settings& settings) {
  auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  if (!scheme) return scheme.status();
  layout::Geometry g;
  g.scheme = *scheme;
  g.placement = layout::Placement::interleaved;
  g.members = scheme->width();
  const uint64_t asked = settings.striping_unit.value_or(0);
  const uint64_t needed = round_up(std::max<uint64_t>(divide_up(bytes, uint64_t(scheme->k)), 1), layout::min_unit_bytes);
  g.unit_bytes = asked ? asked : std::min(needed, most_unit_bytes);
  g.block_bytes = layout::block_bytes_for(g.unit_bytes);
  if (Status status = g.check(); !status) return status;
  return g;
}

Member member_from(const Probe& probe, int index) {
  Member member;
  member.index = index;
  member.path = probe.path;
  member.uuid = probe.uuid();
  member.target = probe.target;
  member.lane = probe.lane;
  return member;
}

Member lost_member(const std::string& path, int index, Status why) {
  Member member;
  member.index = index;
  member.path = path;
  member.lost = Status(why.kind() == Kind::timed_out ? why.kind() : Kind::lost, why.sentence());
  return member;
}

size_t fewest_of(const layout::Scheme& scheme) { return size_t(scheme.k + (scheme.m > 0)); }

// Those of the writer's group that answer come first. Where they are too few others of the job serve, and then the places that are left are lost.
class MemberChoice {
 public:
  MemberChoice(const layout::Scheme& scheme, const LeftOut& left_out, uint32_t mode, uint64_t deadline_ms)
      : scheme_(scheme), left_out_(left_out), mode_(mode), deadline_ms_(deadline_ms) {}
  std::vector<Member> of(const std::vector<std::string>& group, const std::vector<std::string>& all) {
    take(group);
    if (members_.size() < fewest_of(scheme_)) take(others(group, all));
    for (size_t i = 0; members_.size() < width() && i < lost_.size(); ++i) {
      lost_[i].index = int(members_.size());
      members_.push_back(std::move(lost_[i]));
    }
    return std::move(members_);
  }

 private:
  size_t width() const { return size_t(scheme_.width()); }
  // From behind the group on, and round.
  static std::vector<std::string> others(const std::vector<std::string>& group, const std::vector<std::string>& all) {
    std::vector<std::string> found;
    const size_t first = size_t(std::find(all.begin(), all.end(), group.front()) - all.begin());
    for (size_t i = 0; i < all.size(); ++i)
      if (const std::string& one = all[(first + i) % all.size()]; !std::count(group.begin(), group.end(), one)) found.push_back(one);
    return found;
  }
  void take(const std::vector<std::string>& nodes) {
    for (const Probe& probe : probe_directories(nodes, {.mode = mode_}, deadline_ms_)) {
      if (members_.size() == width()) return;
      const auto left_out = left_out_.find(probe.path);
      if (left_out != left_out_.end()) lost_.push_back(lost_member(probe.path, 0, left_out->second));
      else if (probe.reachable() && probe.pool) members_.push_back(member_from(probe, int(members_.size())));
      else lost_.push_back(lost_member(probe.path, 0, probe.reachable() ? Status(Kind::lost, why_not_member(probe, "")) : probe.status));
    }
  }

  const layout::Scheme scheme_;
  const LeftOut& left_out_;
  const uint32_t mode_;
  const uint64_t deadline_ms_;
  std::vector<Member> members_, lost_;
};

// What keeps a node from being one, without its address, with which a sentence may begin.
std::string reason_of(const Member& member) {
  const std::string& sentence = member.lost.sentence();
  return sentence.starts_with(member.path) ? sentence.substr(member.path.size()) : ": " + sentence;
}

// The same for all nodes that a reason may be said of: without what is to be done, and without their names.
std::string kind_of_reason(std::string reason, const std::string& node) {
  reason.resize(std::min(reason.find(';'), reason.size()));
  for (size_t at = node.empty() ? std::string::npos : reason.find(node); at != std::string::npos; at = reason.find(node))
    reason.erase(at, node.size());
  return reason;
}

// Each once, of the first of its nodes, with the names of the others.
std::string reasons_of(const std::vector<Member>& members) {
  struct Reason {
    std::string kind, first, text, others;
  };
  std::vector<Reason> all;
  for (const Member& member : members) {
    if (member.usable()) continue;
    const std::string node = parse_node_path(member.path).node, name = node.empty() ? member.path : node, text = reason_of(member);
    const std::string kind = kind_of_reason(text, node);
    const auto known = std::find_if(all.begin(), all.end(), [&](const Reason& one) { return one.kind == kind; });
    if (known == all.end()) all.push_back({kind, name, text, ""});
    else known->others += (known->others.empty() ? "" : ", ") + name;
  }
  std::string said;
  for (const Reason& one : all) said += fmt::format("; {}{}{}", one.first, one.others.empty() ? "" : fmt::format(" (as {})", one.others), one.text);
  return said;
}

// The same words for all files of a job, up to the reasons.
Status check_enough(const std::vector<Member>& members, const layout::Scheme& scheme) {
  const auto live = size_t(std::count_if(members.begin(), members.end(), [](const Member& m) { return m.usable(); }));
  if (members.size() == size_t(scheme.width()) && live >= fewest_of(scheme)) return {};
  return Status(Kind::lost, fmt::format("{} of the job's nodes can take a part, and {} needs at least {}{}", live, scheme.name(), fewest_of(scheme),
                                        reasons_of(members)));
}

}  // namespace

std::vector<std::string> group_of(const std::vector<std::string>& all, const std::string& own, size_t width) {
  const auto found = std::find(all.begin(), all.end(), own);
  if (found == all.end() || width == 0) return {};
  const size_t mine = size_t(found - all.begin());
  size_t begin = 0, count = all.size();  // where there are too few for any group
  for (const int size : layout::group_sizes(int(all.size()), int(width))) {
    count = size_t(size);
    if (mine < begin + count) break;
    begin += count;
  }
  std::vector<std::string> members;
  for (size_t i = 0; i < count; ++i) members.push_back(all[begin + (mine - begin + i) % count]);
  return members;
}

namespace {

// Racks of one power supply are neighbours.
std::pair<std::string, std::string> rack_of(const std::string& address, const Domains& domains) {
  const auto domain = domains.find(parse_node_path(address).node);
  return domain == domains.end() ? std::make_pair("", "node " + address) : std::make_pair(domain->second.power, "rack " + domain->second.rack);
}

// Each time the first of the rack of which the fewest have come, behind those of `first`.
std::vector<std::string> least_crowded_first(std::vector<std::string> nodes, const std::vector<std::string>& first, const Domains& domains) {
  std::map<std::pair<std::string, std::string>, int> racks;
  std::map<std::string, int> powers;
  const auto count = [&](const std::string& node) {
    const auto rack = rack_of(node, domains);
    ++racks[rack], ++powers[rack.first];
  };
  std::for_each(first.begin(), first.end(), count);
  std::vector<std::string> ordered;
  while (!nodes.empty()) {
    const auto crowd = [&](const std::string& node) {
      const auto rack = rack_of(node, domains);
      return std::make_pair(racks[rack], powers[rack.first]);
    };
    const auto next = std::min_element(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return crowd(a) < crowd(b); });
    count(*next);
    ordered.push_back(std::move(*next));
    nodes.erase(next);
  }
  return ordered;
}

}  // namespace

// Rack after rack, the nodes are dealt to the groups in turn.
std::vector<std::string> group_of(const std::vector<std::string>& all, const std::string& own, size_t width, const Domains& domains) {
  if (domains.empty() || width == 0 || !std::count(all.begin(), all.end(), own)) return group_of(all, own, width);
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> racks;
  for (const std::string& node : all) racks[rack_of(node, domains)].push_back(node);
  std::vector<std::vector<std::string>> groups(std::max<size_t>(1, all.size() / width));
  size_t next = 0;
  for (const auto& [rack, nodes] : racks)
    for (const std::string& node : nodes) groups[next++ % groups.size()].push_back(node);
  auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return std::count(one.begin(), one.end(), own) > 0; });
  std::rotate(group->begin(), std::find(group->begin(), group->end(), own), group->end());
  group->erase(group->begin());
  auto others = least_crowded_first(std::move(*group), {own}, domains);
  others.insert(others.begin(), own);
  return others;
}

namespace {

// Side by side on all members that answer, with the version's directory: a status for each member.
std::vector<Status> on_all(const Located& located, const std::function<Status(target::Target&, const std::string&)>& call) {
  std::vector<std::pair<size_t, std::shared_ptr<target::Ticket>>> tickets;
  for (size_t i = 0; i < located.members.size(); ++i)
    if (const Member& member = located.members[i]; member.usable())
      tickets.emplace_back(i, member.lane->submit(
                                  [target = member.target, directory = located.manifest.directory, call] { return call(*target, directory); }));
  std::vector<Status> all(located.members.size());
  for (auto& [i, ticket] : tickets) all[i] = ticket->wait();
  return all;
}

// Who cannot make it is lost.
void make_directories(Located& located, LeftOut* left_out = nullptr) {
  const layout::Version& version = *located.manifest.version;
  const std::string of_file = version.is_single() ? " " + digits_of_path(version.file) : "";
  const std::string owner = fmt::format("{} {} {}{}\n", version.run, layout::text_of(version.attempt), version.step, of_file);
  const std::vector<Status> made = on_all(located, [owner](target::Target& target, const std::string& directory) {
    HF_TRY(target.make_directory(directory));
    (void)note_owner(target, directory, owner);  // where no member has room for one, none has for the version
    return Status();
  });
  for (Member& member : located.members)
    if (const Status& status = made[size_t(member.index)]; !status.ok()) {
      if (left_out) left_out->emplace(member.path, status);
      member = lost_member(member.path, member.index, status);
    }
}

std::string id_with(const std::string& node) {
  std::string id = layout::random_id();
  id.replace(id.size() - node_digits, node_digits, node);
  return id;
}

// Of a version that takes the place of another one.
std::string successor_id(const std::string& id) { return id_with(id.substr(id.size() - node_digits)); }

}  // namespace

namespace {

std::string digits_of(const std::string& text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ uint8_t(c)) * 16777619u;
  return fmt::format("{:08x}", hash);
}

}  // namespace

std::string digits_of_node(const std::string& address) { return digits_of(address); }
std::string digits_of_path(const std::string& path) { return digits_of(path); }

std::vector<std::string> keepers_of(const std::vector<std::string>& all, const std::string& own, size_t width, const Domains& domains, bool remote) {
  auto group = group_of(all, own, width + (remote ? 1 : 0), domains);
  if (remote && !group.empty()) std::rotate(group.begin(), group.begin() + 1, group.end());
  return group;
}

Result<Located> prepare_version(const layout::Version& version, const std::string& own, uint64_t bytes, uint32_t mode, const Settings& settings,
                                const layout::Manifest* of, LeftOut* left_out) {
  auto geometry = geometry_for(bytes, settings);
  if (!geometry) return geometry.status();
  const auto domains = domains_of(settings);
  if (!domains) return domains.status();
  const auto group = keepers_of(settings.local, own, size_t(geometry->scheme.width()), *domains, settings.units_remote);
  if (group.empty()) return Status(Kind::invalid, own + " is no directory of the job's pool");
  Located located;
  layout::Manifest& manifest = located.manifest;
  manifest.file_id = of ? successor_id(of->file_id) : id_with(digits_of_node(own));
  manifest.path = version.file;
  manifest.directory = file_directory_name(version.file, manifest.file_id);
  manifest.geometry = *geometry;
  manifest.mode = mode & 0777;
  manifest.pool = true;
  manifest.version = version;
  located.members = MemberChoice(geometry->scheme, left_out ? *left_out : LeftOut(), manifest.mode, settings.deadline_ms).of(group, settings.local);
  HF_TRY(check_enough(located.members, geometry->scheme));
  make_directories(located, left_out);
  if (const Status enough = check_enough(located.members, geometry->scheme); !enough.ok()) {
    (void)remove_version(located);
    return enough;
  }
  const auto any = std::find_if(located.members.begin(), located.members.end(), [](const Member& m) { return m.usable(); });
  auto pool = look_at_pool({any->path}, settings.deadline_ms);
  if (!pool) return pool.status();
  manifest.set_id = pool->id;
  for (const Member& member : located.members) manifest.members.push_back({member.uuid, member.path, false, ""});
  return located;
}

namespace {

// In turn, so that the files of a checkpoint go to different ones; those first that are not lost together with what is left.
std::vector<std::string> spares_of(const Located& of, const std::vector<std::string>& nodes, const Domains& domains) {
  std::vector<std::string> spares;
  for (const std::string& node : nodes)
    if (std::none_of(of.members.begin(), of.members.end(), [&](const Member& member) { return member.usable() && member.path == node; }))
      spares.push_back(node);  // also one that has lost its disk
  const layout::Version& version = *of.manifest.version;
  if (!spares.empty()) std::rotate(spares.begin(), spares.begin() + std::ptrdiff_t((version.rank + version.writer) % spares.size()), spares.end());
  if (domains.empty()) return spares;
  std::vector<std::string> left;
  for (const Member& member : of.members)
    if (member.usable()) left.push_back(member.path);
  return least_crowded_first(std::move(spares), left, domains);
}

// Those that answer, and that are named. The places of the others are taken by spares.
std::vector<Member> successors_of(const Located& of, const std::vector<std::string>& nodes, const Domains& domains, uint64_t deadline_ms) {
  std::vector<Member> members = of.members;
  std::erase_if(members, [&](const Member& member) { return !member.usable() || !std::count(nodes.begin(), nodes.end(), member.path); });
  const std::vector<Probe> spares = probe_directories(spares_of(of, nodes, domains), {.mode = of.manifest.mode}, deadline_ms);
  auto spare = spares.begin();
  for (int index = 0; index < int(of.members.size()); ++index) {
    if (size_t(index) < members.size() && members[size_t(index)].index == index) continue;
    while (spare != spares.end() && !(spare->reachable() && spare->pool)) ++spare;
    if (spare == spares.end()) return {};
    members.insert(members.begin() + index, member_from(*spare++, index));
  }
  return members;
}

// On these members, with what `of` holds.
Located successor(const Located& of, std::vector<Member> members, const layout::Version& version, std::string id, uint32_t mode) {
  Located located;
  located.members = std::move(members);
  layout::Manifest& manifest = located.manifest;
  manifest.file_id = std::move(id);
  manifest.path = version.file;
  manifest.directory = file_directory_name(version.file, manifest.file_id);
  manifest.set_id = of.manifest.set_id;
  manifest.geometry = of.manifest.geometry;
  manifest.mode = mode;
  manifest.pool = true;
  manifest.version = version;
  for (const Member& member : located.members) manifest.members.push_back({member.uuid, member.path, false, ""});
  make_directories(located);
  return located;
}

}  // namespace

Result<Located> prepare_renamed(const Located& of, const layout::Version& version, const std::string& own, uint32_t mode) {
  const auto lost = std::find_if(of.members.begin(), of.members.end(), [](const Member& member) { return !member.usable(); });
  if (lost != of.members.end()) return Status(Kind::unsupported, fmt::format("{}: {}", of.manifest.path, lost->lost.sentence()));
  return successor(of, of.members, version, id_with(digits_of_node(own)), mode);
}

Result<Located> prepare_successor(const Located& of, const std::vector<std::string>& nodes, const Settings& settings) {
  const auto domains = domains_of(settings);
  if (!domains) return domains.status();
  auto members = successors_of(of, nodes, *domains, settings.deadline_ms);
  if (members.empty()) return Status(Kind::unsupported, fmt::format("{}: there are too few other nodes", of.manifest.path));
  Located located = successor(of, std::move(members), *of.manifest.version, successor_id(of.manifest.file_id), of.manifest.mode);
  located.manifest.pack = of.manifest.pack;
  return located;
}

namespace {

FoundVersion found_on(const std::set<std::string>& holders, const layout::Manifest& manifest, std::set<std::string>& copies_on) {
  FoundVersion version{manifest, {}, 0, 0};
  std::erase_if(copies_on, [&](const std::string& uuid) { return !holders.contains(uuid); });
  for (const layout::ManifestMember& member : manifest.members) {
    if (member.stale || !holders.contains(member.uuid)) {
      ++version.missing_members;
      continue;
    }
    version.on.push_back(member.path);
    version.copies += copies_on.contains(member.uuid);
  }
  return version;
}

// It, or each of its files where it is a pack.
void add_versions(const std::shared_ptr<const layout::Manifest>& manifest, FoundVersion found, std::vector<FoundVersion>& into) {
  if (manifest->pack.empty()) return into.push_back(std::move(found));
  for (size_t i = 0; i < manifest->pack.size(); ++i) {
    into.push_back(found);
    into.back().manifest = layout::file_in(manifest, i);
  }
}

}  // namespace

// Directories of which this member's copy was read.
std::set<std::string> VersionList::shown_by(const std::string& uuid) const {
  std::set<std::string> directories;
  for (const auto& [directory, known] : known_)
    if (known.copies_on.contains(uuid)) directories.insert(directories.end(), directory);
  return directories;
}

bool VersionList::may_miss(const std::string& path) const {
  const std::string begins = file_directory_name(path, "");
  return std::any_of(unread_.begin(), unread_.end(), [&](const std::string& directory) { return directory.starts_with(begins); });
}

namespace {

struct SeenOn {
  std::vector<std::string> names, unread;
  std::vector<layout::Manifest> fresh;
  void add(const std::string& name, const Result<Bytes>& text) {
    auto manifest = text ? layout::decode(*text) : Result<layout::Manifest>(text.status());
    if (manifest && manifest->is_final() && manifest->directory == name) fresh.push_back(std::move(*manifest));
    else if (!text) unread.push_back(name);
  }
};

// In a member's lane. Who knows most of them reads the few that are new; who knows none asks for all at once.
Status look_on(target::Target& target, const std::set<std::string>& known, SeenOn& seen) {
  if (known.empty())
    return target.get_each({"", "manifest", layout::max_manifest_bytes}, [&seen](const std::string& name, const Result<Bytes>& text) {
      if (!is_file_directory(name)) return;
      seen.names.push_back(name);
      seen.add(name, text);
    });
  auto names = target.list("");
  if (!names) return names.status();
  for (const std::string& name : *names) {
    if (!is_file_directory(name)) continue;
    seen.names.push_back(name);
    if (!known.contains(name)) seen.add(name, target.get(name + "/manifest", layout::max_manifest_bytes));
  }
  return {};
}

}  // namespace

Result<std::vector<FoundVersion>> VersionList::look(const std::vector<std::string>& directories, uint64_t deadline_ms) {
  auto pool = look_at_pool(directories, deadline_ms);
  if (!pool) return Status(Kind::lost, pool.status().sentence());
  std::vector<std::tuple<const Member*, std::shared_ptr<SeenOn>, std::shared_ptr<target::Ticket>>> asked;
  silent_.clear(), unread_.clear();
  for (const Member& member : pool->members) {
    if (!member.usable()) {
      silent_.push_back(member.path);
      continue;
    }
    auto seen = std::make_shared<SeenOn>();
    auto ticket = member.lane->submit([target = member.target, seen, known = shown_by(member.uuid)] { return look_on(*target, known, *seen); });
    asked.emplace_back(&member, std::move(seen), std::move(ticket));
  }
  std::map<std::string, std::set<std::string>> holders;  // uuids of the members that have a directory of that name
  for (auto& [member, seen, ticket] : asked) {
    if (!ticket->wait()) {
      silent_.push_back(member->path);
      continue;
    }
    for (const std::string& name : seen->names) holders[name].insert(member->uuid);
    unread_.insert(seen->unread.begin(), seen->unread.end());
    for (layout::Manifest& manifest : seen->fresh) {
      manifest.path = manifest.version->file;
      const std::string directory = manifest.directory;
      Known& known = known_[directory];
      if (!known.manifest) known.manifest = std::make_shared<const layout::Manifest>(std::move(manifest));
      known.copies_on.insert(member->uuid);
    }
  }
  // Dropped, or to be read again when its nodes come back.
  std::erase_if(known_, [&](const auto& one) { return !holders.contains(one.first); });
  std::vector<FoundVersion> found;
  for (auto& [directory, known] : known_) add_versions(known.manifest, found_on(holders.at(directory), *known.manifest, known.copies_on), found);
  return found;
}

Located locate_version(const layout::Manifest& manifest, const Settings& settings) {
  Located located;
  located.manifest = layout::stored(manifest);
  located.manifest.path = manifest.version ? manifest.version->file : manifest.path;
  std::vector<std::string> paths;
  for (const layout::ManifestMember& member : manifest.members) paths.push_back(member.path);
  const std::vector<Probe> probes = probe_directories(paths, {.mode = located.manifest.mode}, settings.deadline_ms);
  for (size_t i = 0; i < probes.size(); ++i) {
    const Probe& probe = probes[i];
    const bool is_it = probe.reachable() && probe.pool && probe.uuid() == manifest.members[i].uuid && !probe.uuid().empty();
    if (is_it) located.members.push_back(member_from(probe, int(i)));
    else
      located.members.push_back(
          lost_member(probe.path, int(i), probe.reachable() ? Status(Kind::lost, probe.path + " has another identity, or none") : probe.status));
  }
  return located;
}

Status remove_version(const Located& located) {
  Status worst;
  for (const Status& gone : on_all(located, [](target::Target&target, const std::string&directory) { return target.remove_directory(directory); }))
    if (!gone.ok()) worst = gone;
  return worst;
}

}  // namespace holdfast::catalog
