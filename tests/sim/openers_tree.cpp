// The tree below / as a crash may leave it: which names and bytes a power cut keeps.
#include "sim/openers_site.hpp"

#include <algorithm>
#include <cstring>

namespace holdfast::sim {

namespace {

constexpr uint64_t sector_bytes = 512;  // what a device writes whole
constexpr uint64_t block_bytes = 4096;  // new ones a file system keeps whole, or as zeros

}  // namespace

Tree::Tree() : root_(make(S_IFDIR | 0755)) { root_->parent = root_.get(); }

InodePtr Tree::make(mode_t mode) {
  auto node = std::make_shared<Inode>();
  node->number = next_number_++;
  node->mode = mode;
  node->changed = node->written = ++clock_;
  return node;
}

InodePtr Tree::below(const Inode& directory, const std::string& path) const {
  const size_t slash = path.find('/');
  const InodePtr node = find(directory, path.substr(0, slash));
  return slash == path.npos || !node ? node : below(*node, path.substr(slash + 1));
}

InodePtr Tree::find(const Inode& directory, const std::string& name) const {
  auto found = directory.entries.find(name);
  return found == directory.entries.end() ? nullptr : found->second;
}

void Tree::name(Inode& directory, const std::string& name, InodePtr node, uint64_t number) {
  if (node) {
    node->changed = ++clock_;
    if (node->directory()) node->parent = &directory;
    directory.entries[name] = node;
  } else {
    directory.entries.erase(name);
  }
  directory.changed = ++clock_;
  if (may_lose_power) unsynced_.push_back({number, directory.shared_from_this(), name, std::move(node)});
}

void Tree::enter(Inode& directory, const std::string& new_name, InodePtr node) { name(directory, new_name, std::move(node), ++next_naming_); }

void Tree::rename(Inode& from, const std::string& old_name, Inode& to, const std::string& new_name) {
  const uint64_t number = ++next_naming_;
  InodePtr node = find(from, old_name);
  name(from, old_name, nullptr, number);
  name(to, new_name, std::move(node), number);
}

void Tree::write(Inode& file, uint64_t offset, ByteView bytes) {
  file.now.write(offset, bytes);
  if (may_lose_power) file.unsynced.push_back({false, offset, Bytes(bytes.begin(), bytes.end())});
  file.changed = file.written = ++clock_;
}

void Tree::cut(Inode& file, uint64_t size) {
  file.now.truncate(size);
  if (may_lose_power) file.unsynced.push_back({true, size, {}});
  file.changed = file.written = ++clock_;
}

void Tree::sync(Inode& node, bool with_time) {
  node.durable = node.now;
  node.unsynced.clear();
  if (with_time) node.durable_changed = node.changed;
  if (!node.directory()) return;
  node.durable_entries = node.entries;
  std::erase_if(unsynced_, [&](const Naming& naming) { return naming.directory.get() == &node; });
}

void Tree::sync_name(Inode& directory, const std::string& name) {
  if (InodePtr node = find(directory, name)) directory.durable_entries[name] = node;
  else directory.durable_entries.erase(name);
  std::erase_if(unsynced_, [&](const Naming& naming) { return naming.directory.get() == &directory && naming.name == name; });
}

void Tree::lose_names(std::mt19937_64& random) {
  // 0: none of the unsynced ones are left, 1: all, 2: those up to some moment, 3: some.
  const unsigned style = random() % 4;
  const uint64_t moment = unsynced_.empty() ? 0 : unsynced_[random() % unsynced_.size()].number;
  std::map<uint64_t, bool> some;
  for (const Naming& naming : unsynced_) {
    if (style == 3) some.try_emplace(naming.number, random() % 2);
    const bool kept = style == 1 || (style == 2 && naming.number <= moment) || (style == 3 && some[naming.number]);
    if (!kept) continue;
    if (naming.node) naming.directory->durable_entries[naming.name] = naming.node;
    else naming.directory->durable_entries.erase(naming.name);
  }
  unsynced_.clear();
}

void Tree::lose_bytes(Inode& file, std::mt19937_64& random) {
  // 0: nothing unsynced is left, 1: all of it, 2: some changes whole, 3: torn, 4: the size alone.
  const unsigned style = file.unsynced.empty() ? 1 : random() % 5;
  const uint64_t before = file.durable.size();
  for (const Inode::Change& change : file.unsynced) {
    const bool whole = style == 1 || (style == 2 && random() % 2);
    if (change.cut) {
      if (whole || style == 4 || (style == 3 && random() % 2)) file.durable.truncate(change.offset);
    } else if (whole) {
      file.durable.write(change.offset, change.data);
    } else if (style == 4) {
      file.durable.truncate(std::max(file.durable.size(), change.offset + change.data.size()));
    } else if (style == 3) {
      for (uint64_t at = 0, part; at < change.data.size(); at += part) {
        const uint64_t from = change.offset + at, unit = from < before ? sector_bytes : block_bytes;
        part = std::min(unit - from % unit, change.data.size() - at);
        if (random() % 2) file.durable.write(from, ByteView(change.data).subspan(at, part));
      }
    }
  }
  file.now = file.durable;
  file.unsynced.clear();
  if (style != 1 && random() % 2) file.changed = file.durable_changed;
  if (style == 1 && file.changed != file.durable_changed && random() % 2) file.changed = file.durable_changed;
  file.durable_changed = file.changed;
}

// What lies below as the power failure has left it.
void Tree::settle(Inode& node, std::set<Inode*>& settled, std::mt19937_64& random) {
  node.locked_by = -1;
  node.locked_bytes.clear();
  if (!settled.insert(&node).second) return;
  if (node.regular()) return lose_bytes(node, random);
  node.durable_changed = node.changed;
  node.entries = node.durable_entries;
  for (auto& [name, below] : node.entries) {
    if (below->directory()) below->parent = &node;
    settle(*below, settled, random);
  }
}

void Tree::power_loss(uint64_t seed) {
  std::mt19937_64 random(seed);
  lose_names(random);
  std::set<Inode*> settled;
  settle(*root_, settled, random);
}

namespace {
void collect_below(Inode& directory, std::set<const Inode*>& all) {
  if (!directory.directory() || !all.insert(&directory).second) return;
  for (const auto* entries : {&directory.entries, &directory.durable_entries})
    for (const auto& [name, node] : *entries) collect_below(*node, all);
}
}  // namespace

// Of one device, whose root is `top`.
void Tree::power_loss_below(Inode& top, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<const Inode*> below;
  collect_below(top, below);
  std::vector<Naming> elsewhere;
  for (Naming& naming : unsynced_)
    if (!below.contains(naming.directory.get())) elsewhere.push_back(naming);
  std::erase_if(unsynced_, [&](const Naming& naming) { return !below.contains(naming.directory.get()); });
  lose_names(random);
  unsynced_ = std::move(elsewhere);
  std::set<Inode*> settled;
  settle(top, settled, random);
}

std::string Tree::path_of(const Inode& directory) const {
  if (&directory == root_.get()) return "";
  for (const auto& [name, node] : directory.parent->entries)
    if (node.get() == &directory) return path_of(*directory.parent) + "/" + name;
  return "";
}

}  // namespace holdfast::sim
