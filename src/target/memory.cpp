#include "target/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/vectors.hpp"
#include "target/name.hpp"

namespace holdfast::target {

namespace {

constexpr uint64_t kSectorBytes = 512;  // what a device writes whole

Status failure(int sys_errno, const std::string& what) { return Status::from_errno(sys_errno, what); }

bool is_below(const std::string& name, const std::string& directory) {
  return name.size() > directory.size() && name.starts_with(directory) && name[directory.size()] == '/';
}

}  // namespace

// --- SparseBytes

size_t SparseBytes::read(uint64_t offset, ByteSpan into) const {
  if (offset >= size_) return 0;
  size_t count = std::min<uint64_t>(into.size(), size_ - offset);
  for (size_t done = 0; done < count;) {
    uint64_t in_page = (offset + done) % kPageBytes;
    size_t part = std::min<uint64_t>(count - done, kPageBytes - in_page);
    auto page = pages_.find((offset + done) / kPageBytes);
    if (page == pages_.end()) {
      std::memset(into.data() + done, 0, part);
    } else {
      std::memcpy(into.data() + done, page->second->data() + in_page, part);
    }
    done += part;
  }
  return count;
}

SparseBytes::Page& SparseBytes::own_page(uint64_t index) {
  std::shared_ptr<Page>& page = pages_[index];
  if (!page) {
    page = std::make_shared<Page>(kPageBytes);
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

void SparseBytes::write(uint64_t offset, ByteView from) {
  for (size_t done = 0; done < from.size();) {
    uint64_t in_page = (offset + done) % kPageBytes;
    size_t part = std::min<uint64_t>(from.size() - done, kPageBytes - in_page);
    std::memcpy(own_page((offset + done) / kPageBytes).data() + in_page, from.data() + done, part);
    done += part;
  }
  if (!from.empty()) size_ = std::max(size_, offset + from.size());
}

void SparseBytes::truncate(uint64_t size) {
  if (size < size_) {
    pages_.erase(pages_.lower_bound(divide_up(size, kPageBytes)), pages_.end());
    uint64_t in_page = size % kPageBytes;
    if (in_page && pages_.count(size / kPageBytes)) {
      Page& page = own_page(size / kPageBytes);
      std::fill(page.begin() + in_page, page.end(), std::byte{0});
    }
  }
  size_ = size;
}

// --- MemoryDirectory

MemoryDirectory::NodePtr MemoryDirectory::find(const std::string& name) const {
  auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : found->second;
}

bool MemoryDirectory::has_directory(const std::string& name) const { return name.empty() || directories_.count(name); }

uint64_t MemoryDirectory::allocated_bytes() const {
  uint64_t total = 0;
  std::set<const Node*> met;  // some have several names
  for (const auto& [name, node] : objects_)
    if (node.use_count() == 1 || met.insert(node.get()).second) total += node->now.allocated_bytes();
  return total;
}

void MemoryDirectory::rename_directory(const std::string& from, const std::string& to) {
  auto moved = [&](const std::string& name) { return name == from || is_below(name, from) ? to + name.substr(from.size()) : name; };
  std::set<std::string> directories;
  for (const std::string& name : directories_) directories.insert(moved(name));
  directories_ = durable_directories_ = std::move(directories);
  for (auto* objects : {&objects_, &durable_objects_}) {
    std::map<std::string, NodePtr> renamed;
    for (auto& [name, node] : *objects) renamed[moved(name)] = node;
    *objects = std::move(renamed);
  }
}

// What is left of one object where the power goes. `style`: 0 nothing unsynced is left, 1 all of it, 2 some operations whole, 3 torn by sectors.
SparseBytes MemoryDirectory::content_left(const Node& node, unsigned style, std::mt19937_64& random) {
  SparseBytes left = node.durable;
  for (const Operation& op : node.unsynced) {
    const bool whole = style == 1 || (style == 2 && random() % 2);
    if (op.is_truncate) {
      if (op.only_grows && left.size() >= op.offset) continue;
      if (whole || (style == 3 && random() % 2)) left.truncate(op.offset);
    } else if (whole) {
      left.write(op.offset, op.data);
    } else if (style == 3) {
      write_torn(left, op, random);
    }
  }
  return left;
}

void MemoryDirectory::write_torn(SparseBytes& into, const Operation& op, std::mt19937_64& random) {
  for (uint64_t at = 0; at < op.data.size();) {
    const uint64_t part = std::min(kSectorBytes - (op.offset + at) % kSectorBytes, op.data.size() - at);
    if (random() % 2) into.write(op.offset + at, ByteView(op.data).subspan(at, part));
    at += part;
  }
}

void MemoryDirectory::lose_directories(std::mt19937_64& random) {
  // Those that were not made durable are there or not; none stands in one that is gone.
  std::erase_if(directories_, [&](const std::string& name) { return !durable_directories_.contains(name) && random() % 2; });
  std::erase_if(directories_, [&](const std::string& name) { return !has_directory(split_name(name).first); });
  durable_directories_ = directories_;
}

void MemoryDirectory::power_loss(uint64_t seed) {
  std::lock_guard guard(mutex_);
  std::mt19937_64 random(seed);
  std::map<const Node*, NodePtr> met;  // some have several names
  auto survived = [&](const Node& node) {
    NodePtr& left = met[&node];
    if (left) return left;
    left = std::make_shared<Node>();
    const unsigned style = random() % 4;
    left->now = left->durable = content_left(node, style, random);
    left->inode = node.inode;
    const bool kept_time = style == 1 || (seed + uint64_t(node.changed)) % 2;
    left->changed = left->durable_changed = kept_time ? node.changed : node.durable_changed;
    return left;
  };
  lose_directories(random);
  std::set<std::string> names;
  for (const auto* objects : {&objects_, &durable_objects_})
    for (const auto& [name, node] : *objects) names.insert(name);
  std::map<std::string, NodePtr> after;
  for (const std::string& name : names) {
    NodePtr now = find(name);
    auto durable = durable_objects_.find(name);
    NodePtr before = durable == durable_objects_.end() ? nullptr : durable->second;
    NodePtr chosen = now == before || random() % 2 ? now : before;
    if (chosen && has_directory(split_name(name).first)) after[name] = survived(*chosen);
  }
  objects_ = after;
  durable_objects_ = after;
  locks_.clear();
}

void MemoryDirectory::make_durable(const std::string& name, NodePtr node) {
  durable_objects_[name] = std::move(node);
  for (std::string above = split_name(name).first; !above.empty(); above = split_name(above).first) durable_directories_.insert(above);
}

void MemoryDirectory::release_locks() {
  std::lock_guard guard(mutex_);
  locks_.clear();
}

MemoryDirectory::Snapshot MemoryDirectory::snapshot() const {
  std::lock_guard guard(mutex_);
  Snapshot taken;
  for (const auto& [name, node] : objects_) taken.objects[name] = node->now;
  taken.directories = directories_;
  return taken;
}

void MemoryDirectory::restore(const Snapshot& snapshot) {
  std::lock_guard guard(mutex_);
  objects_.clear();
  for (const auto& [name, content] : snapshot.objects) {
    objects_[name] = std::make_shared<Node>(Node{content, content, {}});
  }
  durable_objects_ = objects_;
  directories_ = durable_directories_ = snapshot.directories;
}

Result<SparseBytes> MemoryDirectory::snapshot_object(const std::string& name) const {
  std::lock_guard guard(mutex_);
  if (NodePtr node = find(name)) return node->now;
  return failure(ENOENT, name);
}

void MemoryDirectory::restore_object(const std::string& name, const SparseBytes& content) {
  std::lock_guard guard(mutex_);
  objects_[name] = durable_objects_[name] = std::make_shared<Node>(Node{content, content, {}});
}

bool MemoryDirectory::flip_bit(const std::string& name, uint64_t bit) {
  std::lock_guard guard(mutex_);
  NodePtr node = find(name);
  if (!node || bit / 8 >= node->now.size()) return false;
  for (SparseBytes* content : {&node->now, &node->durable}) {
    std::byte value{};
    if (content->read(bit / 8, ByteSpan(&value, 1)) == 0) continue;
    value ^= std::byte(1u << (bit % 8));
    content->write(bit / 8, ByteView(&value, 1));
  }
  return true;
}

bool MemoryDirectory::truncate_object(const std::string& name, uint64_t size) {
  std::lock_guard guard(mutex_);
  NodePtr node = find(name);
  if (!node) return false;
  node->now.truncate(size);
  node->durable.truncate(std::min(size, node->durable.size()));
  return true;
}

bool MemoryDirectory::remove_object(const std::string& name) {
  std::lock_guard guard(mutex_);
  durable_objects_.erase(name);
  return objects_.erase(name) > 0;
}

std::vector<std::string> MemoryDirectory::object_names() const {
  std::lock_guard guard(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, node] : objects_) names.push_back(name);
  return names;
}

Result<MemoryDirectory::Look> MemoryDirectory::look(const std::string& name) {
  std::lock_guard guard(mutex_);
  const NodePtr node = find(name);
  if (!node) return failure(ENOENT, name);
  if (!node->inode) node->inode = next_inode_++;
  return Look{node->inode, node->now.size(), node->changed};
}

bool MemoryDirectory::is_directory(const std::string& name) const {
  std::lock_guard guard(mutex_);
  return has_directory(name);
}

Status MemoryDirectory::sync_object(const std::string& name) {
  std::lock_guard guard(mutex_);
  const NodePtr node = find(name);
  if (!node) return failure(ENOENT, name);
  node->durable = node->now;
  node->unsynced.clear();
  node->durable_changed = node->changed;
  make_durable(name, node);
  return {};
}

void MemoryDirectory::set_mounted(bool mounted) {
  std::lock_guard guard(mutex_);
  mounted_ = mounted;
}

void MemoryDirectory::set_capacity(uint64_t bytes) {
  std::lock_guard guard(mutex_);
  capacity_bytes_ = bytes;
}

void MemoryDirectory::set_mappable(bool mappable) {
  std::lock_guard guard(mutex_);
  mappable_ = mappable;
}

// --- the Target's side

class MemoryObject final : public Object {
 public:
  MemoryObject(std::shared_ptr<MemoryDirectory> directory, MemoryDirectory::NodePtr node, std::string name, std::string label, bool writable)
      : directory_(std::move(directory)), node_(std::move(node)), name_(std::move(name)), label_(std::move(label)), writable_(writable) {}

  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    std::lock_guard guard(directory_->mutex_);
    size_t done = 0;
    for (const iovec& v : into) {
      size_t count = node_->now.read(offset + done, ByteSpan(static_cast<std::byte*>(v.iov_base), v.iov_len));
      done += count;
      if (count < v.iov_len) break;
    }
    return done;
  }

  Status write(uint64_t offset, std::span<const iovec> from) override {
    if (!writable_) return failure(EBADF, "cannot write " + label_);
    Bytes all = concatenated(from);
    std::lock_guard guard(directory_->mutex_);
    // Coarse on purpose: an overwrite counts as growth only where it makes the object longer.
    uint64_t growth = offset + all.size() > node_->now.size() ? all.size() : 0;
    if (growth && directory_->allocated_bytes() + growth > directory_->capacity_bytes_) {
      return failure(ENOSPC, "cannot write " + label_);
    }
    node_->now.write(offset, all);
    node_->changed = ++directory_->clock_;
    node_->unsynced.push_back({false, offset, std::move(all), false});
    return {};
  }

  // Memory to begin with: only the room has to be made.
  bool map(uint64_t offset, uint64_t bytes) override {
    {
      std::lock_guard guard(directory_->mutex_);
      if (!directory_->mappable_ || !writable_) return false;
    }
    auto there = size();
    const uint64_t from = std::max(offset, *there);
    if (from >= offset + bytes) return true;
    Bytes zeros(offset + bytes - from);
    const iovec vector{zeros.data(), zeros.size()};
    return write(from, std::span<const iovec>(&vector, 1)).ok();
  }

  Status sync() override {
    std::lock_guard guard(directory_->mutex_);
    node_->durable = node_->now;
    node_->unsynced.clear();
    if (directory_->find(name_) == node_) directory_->make_durable(name_, node_);
    return {};
  }

  Status truncate(uint64_t size) override {
    if (!writable_) return failure(EBADF, "cannot truncate " + label_);
    std::lock_guard guard(directory_->mutex_);
    node_->now.truncate(size);
    node_->changed = ++directory_->clock_;
    node_->unsynced.push_back({true, size, {}, false});
    return {};
  }

  Status grow(uint64_t size) override {
    if (!writable_) return failure(EBADF, "cannot extend " + label_);
    std::lock_guard guard(directory_->mutex_);
    if (node_->now.size() >= size) return {};
    if (directory_->allocated_bytes() >= directory_->capacity_bytes_) return failure(ENOSPC, "cannot extend " + label_);
    node_->now.truncate(size);
    node_->changed = ++directory_->clock_;
    node_->unsynced.push_back({true, size, {}, true});
    return {};
  }

  Result<uint64_t> size() override {
    std::lock_guard guard(directory_->mutex_);
    return node_->now.size();
  }

  Status still_there() override {
    std::lock_guard guard(directory_->mutex_);
    if (directory_->find(name_) == node_) return {};
    return Status(Kind::lost, label_ + " was deleted or replaced while it was open", ESTALE);
  }

 private:
  std::shared_ptr<MemoryDirectory> directory_;
  MemoryDirectory::NodePtr node_;
  std::string name_, label_;
  bool writable_;
};

class MemoryLock final : public Lock {
 public:
  MemoryLock(std::shared_ptr<MemoryDirectory> directory, std::string name, uint64_t token)
      : directory_(std::move(directory)), name_(std::move(name)), token_(token) {}
  ~MemoryLock() override {
    std::lock_guard guard(directory_->mutex_);
    std::erase_if(directory_->locks_, [&](const auto& held) { return held.first == name_ && held.second.token == token_; });
  }

 private:
  std::shared_ptr<MemoryDirectory> directory_;
  std::string name_;
  uint64_t token_;
};

// The names in one directory, as links to objects.
class MemoryNames final : public NameStore {
 public:
  MemoryNames(std::shared_ptr<MemoryDirectory> directory, std::string place, std::string label)
      : directory_(std::move(directory)), place_(std::move(place)), label_(std::move(label)) {}

  std::string describe() const override { return label_; }

  Status make(const std::string& name, const std::string& content) override {
    std::lock_guard guard(directory_->mutex_);
    if (!directory_->has_directory(place_)) return failure(ENOENT, "cannot make " + name);
    if (directory_->find(at(name))) return failure(EEXIST, "cannot make " + name);
    auto node = std::make_shared<MemoryDirectory::Node>();
    node->now.write(0, std::as_bytes(std::span(content)));
    directory_->objects_[at(name)] = node;
    return {};
  }
  Status link(const std::string& from, const std::string& to) override {
    std::lock_guard guard(directory_->mutex_);
    auto node = directory_->find(at(from));
    if (!node) return failure(ENOENT, "cannot link " + to);
    if (directory_->find(at(to))) return failure(EEXIST, "cannot link " + to);
    directory_->objects_[at(to)] = node;
    return {};
  }
  Status rename(const std::string& from, const std::string& to) override {
    std::lock_guard guard(directory_->mutex_);
    auto node = directory_->find(at(from));
    if (!node) return failure(ENOENT, "cannot rename " + from);
    directory_->objects_.erase(at(from));
    directory_->objects_[at(to)] = node;
    return {};
  }
  Status remove(const std::string& name) override {
    std::lock_guard guard(directory_->mutex_);
    return directory_->objects_.erase(at(name)) ? Status() : failure(ENOENT, "cannot remove " + name);
  }
  Result<std::string> read(const std::string& name) override {
    std::lock_guard guard(directory_->mutex_);
    auto node = directory_->find(at(name));
    if (!node) return failure(ENOENT, "cannot read " + name);
    std::string content(node->now.size(), '\0');
    node->now.read(0, std::as_writable_bytes(std::span(content)));
    return content;
  }
  Result<int> links(const std::string& name) override {
    std::lock_guard guard(directory_->mutex_);
    auto node = directory_->find(at(name));
    if (!node) return failure(ENOENT, "cannot look at " + name);
    return int(std::count_if(directory_->objects_.begin(), directory_->objects_.end(), [&](const auto& entry) { return entry.second == node; }));
  }
  Result<std::vector<std::string>> list() override {
    std::lock_guard guard(directory_->mutex_);
    std::vector<std::string> names;
    for (const auto& [name, node] : directory_->objects_)
      if (auto [parent, leaf] = split_name(name); parent == place_) names.push_back(leaf);
    return names;
  }

 private:
  std::string at(const std::string& name) const { return place_.empty() ? name : place_ + "/" + name; }
  std::shared_ptr<MemoryDirectory> directory_;
  std::string place_, label_;
};

// The node's lock, and the name.
class MemoryNamedLock final : public Lock {
 public:
  MemoryNamedLock(std::unique_ptr<Lock> of_node, std::unique_ptr<Lock> name) : of_node_(std::move(of_node)), name_(std::move(name)) {}

 private:
  std::unique_ptr<Lock> of_node_, name_;  // the name goes first
};

class MemoryTarget final : public Target {
 public:
  MemoryTarget(std::shared_ptr<MemoryDirectory> directory, std::string name, NodeLocks locks)
      : directory_(std::move(directory)), label_(std::move(name)), node_locks_(std::move(locks)) {}

  std::string describe() const override { return label_; }

  Result<std::shared_ptr<Object>> open(const std::string& name, OpenMode mode, Pages) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    MemoryDirectory::NodePtr node;
    if (Status status = find_or_make(name, mode == OpenMode::create, node); !status.ok()) return status;
    return std::shared_ptr<Object>(std::make_shared<MemoryObject>(directory_, node, name, at(name), mode != OpenMode::read));
  }

  Result<Stripes> make_striped(const std::string& name, const StripeWish&) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    if (directory_->find(name)) return failure(EEXIST, "cannot make " + at(name));
    MemoryDirectory::NodePtr node;
    if (Status status = find_or_make(name, true, node); !status.ok()) return status;
    return Stripes();
  }

  Result<Stripes> stripes(const std::string& name) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    MemoryDirectory::NodePtr node;
    if (Status status = find_or_make(name, false, node); !status.ok()) return status;
    return Stripes();
  }

  Status put(const std::string& name, ByteView content, bool durable) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    HF_TRY(check_place(name));
    if (directory_->allocated_bytes() + content.size() > directory_->capacity_bytes_) {
      return failure(ENOSPC, "cannot write " + at(name));
    }
    auto node = std::make_shared<MemoryDirectory::Node>();
    node->now.write(0, content);
    // By rename: a crash leaves the old or the new one whole, or, where there was none, perhaps a torn one.
    if (durable || directory_->find(name)) node->durable = node->now;
    else node->unsynced.push_back({false, 0, Bytes(content.begin(), content.end()), false});
    directory_->objects_[name] = node;
    if (durable) directory_->make_durable(name, node);
    return {};
  }

  bool moves_objects() const override { return true; }

  Status move(const std::string& from, const std::string& to) override {
    HF_TRY(check_name(from));
    HF_TRY(check_name(to));
    std::lock_guard guard(directory_->mutex_);
    const MemoryDirectory::NodePtr node = directory_->find(from);
    if (!node) return failure(ENOENT, "cannot write " + at(to));
    directory_->objects_.erase(from);
    directory_->durable_objects_.erase(from);
    directory_->objects_[to] = node;
    directory_->make_durable(to, node);
    return {};
  }

  Status link(const std::string& from, const std::string& to) override {
    HF_TRY(check_name(from));
    HF_TRY(check_name(to));
    std::lock_guard guard(directory_->mutex_);
    HF_TRY(check_place(to));
    const MemoryDirectory::NodePtr node = directory_->find(from), there = directory_->find(to);
    if (!node) return failure(ENOENT, "cannot write " + at(to));
    if (there && there != node) return failure(EEXIST, "cannot write " + at(to));
    directory_->objects_[to] = node;
    directory_->make_durable(to, node);
    return {};
  }

  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    MemoryDirectory::NodePtr node;
    if (Status status = find_or_make(name, false, node); !status.ok()) return status;
    if (node->now.size() > max_bytes) {
      return Status(Kind::corrupt, at(name) + " is larger than the " + std::to_string(max_bytes) + " bytes it may have");
    }
    Bytes content(node->now.size());
    node->now.read(0, content);
    return content;
  }

  Status make_directory(const std::string& name) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    if (!directory_->has_directory(split_name(name).first)) return failure(ENOENT, "cannot make " + at(name));
    if (directory_->find(name)) return failure(EEXIST, "cannot make " + at(name));
    directory_->directories_.insert(name);
    return {};
  }

  Status remove(const std::string& name) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    if (directory_->directories_.count(name)) return failure(EISDIR, "cannot remove " + at(name));
    if (!directory_->objects_.erase(name)) return failure(ENOENT, "cannot remove " + at(name));
    return {};
  }

  Status remove_directory(const std::string& name) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    std::erase_if(directory_->objects_, [&](const auto& entry) { return is_below(entry.first, name); });
    for (auto* directories : {&directory_->directories_, &directory_->durable_directories_})
      std::erase_if(*directories, [&](const auto& entry) { return entry == name || is_below(entry, name); });
    return {};
  }

  // Only a directory can stand in an object's place here.
  Status set_aside(const std::string& name) override {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    if (!directory_->directories_.count(name)) return {};
    const auto [parent, leaf] = split_name(name);
    std::string aside;
    for (int number = 0; aside.empty() || directory_->directories_.count(aside); ++number)
      aside = (parent.empty() ? "" : parent + "/") + "aside." + std::to_string(number) + "." + leaf;
    directory_->rename_directory(name, aside);
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (!directory.empty()) HF_TRY(check_name(directory));
    std::lock_guard guard(directory_->mutex_);
    if (!directory_->has_directory(directory)) return failure(ENOENT, "cannot list " + at(directory));
    std::set<std::string> names;
    auto add = [&](const std::string& name) {
      auto [parent, leaf] = split_name(name);
      if (parent == directory) names.insert(leaf);
    };
    for (const auto& [name, node] : directory_->objects_) add(name);
    for (const std::string& name : directory_->directories_) add(name);
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<Space> space() override {
    std::lock_guard guard(directory_->mutex_);
    uint64_t used = directory_->allocated_bytes();
    return Space{directory_->capacity_bytes_, directory_->capacity_bytes_ - std::min(used, directory_->capacity_bytes_)};
  }

  Status check_identity() override {
    std::lock_guard guard(directory_->mutex_);
    if (directory_->mounted_) return {};
    return Status(Kind::lost, label_ + " is no longer the directory that was opened", ENODEV);
  }

  Result<std::unique_ptr<Lock>> try_lock(const std::string& name, Hold hold) override {
    auto of_node = try_lock_of_node(name, hold);
    if (!of_node.ok() || !node_locks_.names) return of_node;
    auto [place, leaf] = split_name(name);
    auto by_name = lock_by_name(std::make_shared<MemoryNames>(directory_, place, at(place)), leaf, hold, *node_locks_.names);
    if (!by_name.ok()) return by_name;
    return std::unique_ptr<Lock>(std::make_unique<MemoryNamedLock>(std::move(*of_node), std::move(*by_name)));
  }

  Result<std::vector<std::string>> break_locks(const std::string& directory) override {
    MemoryNames names(directory_, directory, at(directory));
    return target::break_locks(names);
  }

 private:
  Result<std::unique_ptr<Lock>> try_lock_of_node(const std::string& name, Hold hold) {
    HF_TRY(check_name(name));
    std::lock_guard guard(directory_->mutex_);
    MemoryDirectory::NodePtr node;
    if (Status status = find_or_make(name, true, node); !status.ok()) return status;
    auto [first, last] = directory_->locks_.equal_range(name);
    for (auto held = first; held != last; ++held)
      if (held->second.node == node_locks_.node && (hold != Hold::shared || held->second.hold != Hold::shared))
        return Status(Kind::busy, at(name) + " is locked by another opener");
    const uint64_t token = directory_->next_token_++;
    directory_->locks_.insert({name, {token, hold, node_locks_.node}});
    return std::unique_ptr<Lock>(std::make_unique<MemoryLock>(directory_, name, token));
  }

  std::string at(const std::string& name) const { return label_ + "/" + name; }

  // The caller holds the directory's mutex.
  Status check_place(const std::string& name) const {
    if (directory_->directories_.count(name)) return failure(EISDIR, "cannot open " + at(name));
    if (!directory_->has_directory(split_name(name).first)) return failure(ENOENT, "cannot open " + at(name));
    return {};
  }
  Status find_or_make(const std::string& name, bool make, MemoryDirectory::NodePtr& node) {
    HF_TRY(check_place(name));
    node = directory_->find(name);
    if (!node && !make) return failure(ENOENT, "cannot open " + at(name));
    if (!node) node = directory_->objects_[name] = std::make_shared<MemoryDirectory::Node>();
    return {};
  }

  std::shared_ptr<MemoryDirectory> directory_;
  std::string label_;
  NodeLocks node_locks_;
};

std::shared_ptr<Target> make_memory_target(std::shared_ptr<MemoryDirectory> directory, std::string name, NodeLocks locks) {
  return std::make_shared<MemoryTarget>(std::move(directory), std::move(name), std::move(locks));
}

}  // namespace holdfast::target
