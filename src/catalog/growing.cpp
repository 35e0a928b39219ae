#include "catalog/growing.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/text_bytes.hpp"
#include "catalog/creation.hpp"
#include "catalog/entry.hpp"
#include "catalog/pool.hpp"
#include "catalog/versions.hpp"

namespace holdfast::catalog {

namespace {

constexpr size_t most_owner_bytes = 256;
constexpr const char* owner_note = "growing";

// In this process's memory: no other one comes by a path, so there is nobody to keep out and nothing to leave behind.
class NoPath final : public PathKeeper {
 public:
  Result<layout::Manifest> sidecar() override {
    const std::lock_guard lock(mutex_);
    return last_ ? Result<layout::Manifest>(*last_) : Status(Kind::not_found, "nothing was written yet");
  }
  Status publish(layout::Manifest& manifest, bool) override {
    const std::lock_guard lock(mutex_);
    last_ = manifest;
    return {};
  }
  Result<std::unique_ptr<target::Lock>> try_lock(bool) override { return std::make_unique<target::Lock>(); }

 private:
  std::mutex mutex_;
  std::optional<layout::Manifest> last_;
};

Result<layout::Geometry> geometry_of_growing(const Settings& settings) {
  auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  if (!scheme) return scheme.status();
  layout::Geometry g;
  g.scheme = *scheme;
  g.placement = layout::Placement::interleaved;
  g.unit_bytes = settings.striping_unit.value_or(0) ? *settings.striping_unit : default_unit_bytes;
  g.block_bytes = layout::block_bytes_for(g.unit_bytes);
  return g;
}

// The calls wait for the slowest of them.
std::vector<Status> on_members(std::vector<Member>& members, const std::function<Status(target::Target&)>& call) {
  std::vector<std::shared_ptr<target::Ticket>> tickets(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].usable()) tickets[i] = members[i].lane->submit([target = members[i].target, call] { return call(*target); });
  std::vector<Status> all(members.size());
  for (size_t i = 0; i < members.size(); ++i)
    if (tickets[i]) all[i] = tickets[i]->wait();
  return all;
}

void lose(Member& member, const Status& why) {
  member.target.reset();
  member.lane.reset();
  member.lost = Status(why.kind() == Kind::timed_out ? why.kind() : Kind::lost, why.sentence());
}

Status lose_failed(std::vector<Member>& members, const std::vector<Status>& answers, const layout::Scheme& scheme) {
  Status failure;
  for (size_t i = 0; i < members.size(); ++i) {
    if (answers[i].ok()) continue;
    failure = answers[i];
    lose(members[i], answers[i]);
  }
  const auto lost = std::count_if(members.begin(), members.end(), [](const Member& member) { return !member.usable(); });
  return lost > scheme.m ? failure : Status();
}

}  // namespace

Result<Located> make_growing(const std::string& path, const std::string& own, uint32_t mode, const std::string& owner, const Settings& settings) {
  auto geometry = geometry_of_growing(settings);
  if (!geometry) return geometry.status();
  Located located;
  layout::Manifest& manifest = located.manifest;
  manifest.file_id = layout::random_id();
  manifest.file_id.replace(manifest.file_id.size() - node_digits, node_digits, digits_of_node(own));
  manifest.path = path;
  manifest.directory = file_directory_name(path, manifest.file_id);
  manifest.mode = mode & 0777;
  manifest.epoch = 1;
  manifest.pool = true;
  const int width = geometry->scheme.width(), most = std::min(int(settings.local.size()), layout::max_members);
  auto chosen = choose_from_pool(settings, manifest.file_id, std::clamp(settings.striping_factor.value_or(0), width, std::max(width, most)), width,
                                 manifest.mode);
  if (!chosen) return chosen.status();
  geometry->members = int(chosen->members.size());
  HF_TRY(geometry->check());
  manifest.geometry = *geometry;
  manifest.set_id = chosen->id;
  located.members = std::move(chosen->members);
  located.path_keeper = std::make_shared<NoPath>();
  for (Member& member : located.members) {
    manifest.members.push_back({member.uuid, member.path, false, ""});
    if (!member.usable()) member.uuid.clear();
  }
  const auto make = [directory = manifest.directory, owner](target::Target& target) {
    HF_TRY(target.make_directory(directory));
    Status noted = note_owner(target, directory, owner);
    if (!noted.ok()) (void)target.remove_directory(directory);  // without a note nobody would find it again
    return noted;
  };
  Status made = lose_failed(located.members, on_members(located.members, make), geometry->scheme);
  if (made) made = lose_failed(located.members, put_first_manifests(located), geometry->scheme);
  if (made) made = located.path_keeper->publish(manifest, false);
  if (!made) {
    (void)remove_version(located);
    return made;
  }
  return located;
}

Located locate_growing(const layout::Manifest& manifest, const Settings& settings) {
  Located located = locate_version(manifest, settings);
  located.path_keeper = std::make_shared<NoPath>();
  (void)located.path_keeper->publish(located.manifest, false);
  return located;
}

Status note_owner(target::Target& target, const std::string& directory, const std::string& owner) {
  return target.put(directory + "/" + owner_note, bytes_of_text(owner), false);
}

void release_growing(const Located& located) {
  std::vector<Member> members = located.members;
  (void)on_members(members, [directory = located.manifest.directory](target::Target& target) { return target.remove(directory + "/" + owner_note); });
}

namespace {

// What one member knows of a directory. Nothing is settled by a manifest that cannot be read.
enum class Knows : uint8_t { left, complete, nothing };

Knows knows_of(target::Target& target, const std::string& directory) {
  const auto text = target.get(directory + "/manifest", layout::max_manifest_bytes);
  if (!text) return text.status().kind() == Kind::not_found ? Knows::left : Knows::nothing;
  const auto manifest = layout::decode(*text);
  if (!manifest) return Knows::nothing;
  return manifest->is_final() ? Knows::complete : Knows::left;
}

// Directories of all members.
struct Directories {
  std::mutex mutex;
  std::set<std::string> names;
  void add(const std::string& name) {
    const std::lock_guard lock(mutex);
    names.insert(name);
  }
  std::set<std::string> now() {
    const std::lock_guard lock(mutex);
    return names;
  }
};

std::set<std::string> noted_for(std::vector<Member>& members, const std::function<bool(const std::string& owner)>& is_meant) {
  const auto found = std::make_shared<Directories>();
  (void)on_members(members, [found, is_meant](target::Target& target) -> Status {
    return target.get_each({"", owner_note, most_owner_bytes}, [&](const std::string& name, const Result<Bytes>& owner) {
      if (owner && is_file_directory(name) && is_meant(std::string(reinterpret_cast<const char*>(owner->data()), owner->size()))) found->add(name);
    });
  });
  return found->now();
}

std::set<std::string> complete_of(std::vector<Member>& members, const std::set<std::string>& names) {
  const auto found = std::make_shared<Directories>();
  (void)on_members(members, [found, names](target::Target& target) -> Status {
    for (const std::string& name : names)
      if (knows_of(target, name) == Knows::complete) found->add(name);
    return {};
  });
  return found->now();
}

}  // namespace

// A member that was away when the file was completed has a note still, and its manifest of before. So all are asked, not those with a note alone.
// Each gives up only what it does not know to be complete, for those who know that may be away by now. Of what another one knows to be complete it
// gives up the note. Its units may be good, and a repair may be at work there.
void remove_growing(const std::vector<std::string>& directories, const std::function<bool(const std::string& owner)>& is_meant,
                    uint64_t deadline_ms) {
  auto pool = look_at_pool(directories, deadline_ms);
  if (!pool) return;
  const std::set<std::string> noted = noted_for(pool->members, is_meant);
  if (noted.empty()) return;
  const std::set<std::string> complete = complete_of(pool->members, noted);
  (void)on_members(pool->members, [noted, complete](target::Target& target) -> Status {
    for (const std::string& name : noted)
      if (complete.contains(name)) (void)target.remove(name + "/" + owner_note);
      else if (knows_of(target, name) == Knows::left) (void)target.remove_directory(name);
    return {};
  });
}

}  // namespace holdfast::catalog
