#include "sim/openers_single.hpp"

#include <algorithm>
#include <cerrno>

#include "target/name.hpp"

namespace holdfast::sim {

namespace {

using target::Hold;
using target::OpenMode;

Status failure(int error, const std::string& what) { return Status::from_errno(error, what); }

Status has_room(const Site& site, const InodePtr& root, const std::string& what) {
  for (const NodeDisk& disk : site.disks)
    if (disk.root == root && disk.full) return failure(ENOSPC, what);
  return {};
}

// The names of the directories on the way down from a target's root, as long as they are there.
void sync_way(Tree& tree, const Inode& root, Inode* directory) {
  for (; directory != &root && directory->parent; directory = directory->parent) {
    const auto& names = directory->parent->entries;
    const auto named = std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.second.get() == directory; });
    if (named == names.end()) return;
    tree.sync_name(*directory->parent, named->first);
  }
}

class TreeObject final : public target::Object {
 public:
  TreeObject(Site& site, InodePtr root, InodePtr directory, std::string leaf, InodePtr node, std::string label)
      : site_(site),
        root_(std::move(root)),
        directory_(std::move(directory)),
        leaf_(std::move(leaf)),
        node_(std::move(node)),
        label_(std::move(label)) {}

  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    size_t done = 0;
    for (const iovec& v : into) {
      const size_t count = node_->now.read(offset + done, ByteSpan(static_cast<std::byte*>(v.iov_base), v.iov_len));
      done += count;
      if (count < v.iov_len) break;
    }
    return done;
  }
  Status write(uint64_t offset, std::span<const iovec> from) override {
    HF_TRY(has_room(site_, root_, label_));
    for (const iovec& v : from) {
      site_.tree.write(*node_, offset, ByteView(static_cast<const std::byte*>(v.iov_base), v.iov_len));
      offset += v.iov_len;
    }
    return {};
  }
  // As fdatasync(2), which may leave the time behind; the name is made durable with it.
  Status sync() override {
    site_.tree.sync(*node_, false);
    if (site_.tree.find(*directory_, leaf_) == node_) site_.tree.sync_name(*directory_, leaf_);
    sync_way(site_.tree, *root_, directory_.get());
    return {};
  }
  Status truncate(uint64_t size) override { return site_.tree.cut(*node_, size), Status(); }
  Status grow(uint64_t size) override {
    if (node_->now.size() < size) site_.tree.cut(*node_, size);
    return {};
  }
  Result<uint64_t> size() override { return node_->now.size(); }
  Status still_there() override {
    if (site_.tree.find(*directory_, leaf_) == node_) return {};
    return Status(Kind::lost, label_ + " was deleted or replaced while it was open", ESTALE);
  }

 private:
  Site& site_;
  InodePtr root_, directory_;
  std::string leaf_;
  InodePtr node_;
  std::string label_;
};

class TreeLock final : public target::Lock {
 public:
  TreeLock(std::shared_ptr<Site::Locks> all, InodePtr node, uint64_t token) : all_(std::move(all)), node_(std::move(node)), token_(token) {}
  ~TreeLock() override {
    std::erase_if(*all_, [&](const auto& held) { return held.first == node_ && held.second.first == token_; });
  }

 private:
  std::shared_ptr<Site::Locks> all_;
  InodePtr node_;
  uint64_t token_;
};

class TreeTarget final : public target::Target {
 public:
  TreeTarget(Site& site, InodePtr root, std::string label) : site_(site), root_(std::move(root)), label_(std::move(label)) {}
  std::string describe() const override { return label_; }

  Result<std::shared_ptr<target::Object>> open(const std::string& name, OpenMode mode, target::Pages) override {
    InodePtr directory, node;
    HF_TRY(find(name, mode == OpenMode::create, directory, node));
    return std::shared_ptr<target::Object>(
        std::make_shared<TreeObject>(site_, root_, directory, target::split_name(name).second, node, label_ + "/" + name));
  }
  Result<target::Stripes> make_striped(const std::string& name, const target::StripeWish&) override {
    InodePtr directory, node;
    if (find(name, false, directory, node).ok()) return failure(EEXIST, name);
    HF_TRY(find(name, true, directory, node));
    return target::Stripes();
  }
  Result<target::Stripes> stripes(const std::string&) override { return target::Stripes(); }

  Status put(const std::string& name, ByteView content, bool durable) override {
    InodePtr directory;
    HF_TRY(directory_of(name, directory));
    HF_TRY(has_room(site_, root_, name));
    Tree& tree = site_.tree;
    InodePtr fresh = tree.make(S_IFREG | 0644);
    tree.write(*fresh, 0, content);
    if (durable) tree.sync(*fresh);
    tree.enter(*directory, target::split_name(name).second, fresh);
    if (durable) tree.sync(*directory), sync_way(tree, *root_, directory.get());
    return {};
  }
  bool moves_objects() const override { return true; }
  Status move(const std::string& from, const std::string& to) override {
    InodePtr directory, node;
    HF_TRY(find(from, false, directory, node));
    site_.tree.rename(*directory, target::split_name(from).second, *directory, target::split_name(to).second);
    site_.tree.sync(*directory);
    return {};
  }
  Status link(const std::string& from, const std::string& to) override {
    InodePtr from_directory, node, directory;
    HF_TRY(find(from, false, from_directory, node));
    HF_TRY(directory_of(to, directory));
    const std::string leaf = target::split_name(to).second;
    const InodePtr there = site_.tree.find(*directory, leaf);
    if (there && there != node) return failure(EEXIST, label_ + "/" + to);
    if (!there) site_.tree.enter(*directory, leaf, node), ++site_.second_names;
    site_.tree.sync_name(*directory, leaf);
    sync_way(site_.tree, *root_, directory.get());
    return {};
  }
  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    InodePtr directory, node;
    if (Status status = find(name, false, directory, node); !status.ok()) return status;
    if (node->now.size() > max_bytes) return Status(Kind::corrupt, name + " is larger than it may be");
    Bytes content(node->now.size());
    node->now.read(0, content);
    return content;
  }
  Status make_directory(const std::string& name) override {
    InodePtr directory;
    HF_TRY(directory_of(name, directory));
    const std::string leaf = target::split_name(name).second;
    if (!site_.tree.find(*directory, leaf)) site_.tree.enter(*directory, leaf, site_.tree.make(S_IFDIR | 0755));
    return {};
  }
  Status remove(const std::string& name) override {
    InodePtr directory, node;
    HF_TRY(find(name, false, directory, node));
    site_.tree.remove(*directory, target::split_name(name).second);
    site_.makes_room(node);
    return {};
  }
  Status remove_directory(const std::string& name) override {
    InodePtr directory;
    HF_TRY(directory_of(name, directory));
    const std::string leaf = target::split_name(name).second;
    site_.tree.remove(*directory, leaf);
    site_.tree.sync_name(*directory, leaf);
    return {};
  }
  Status set_aside(const std::string&) override { return {}; }  // nobody puts anything else there
  Result<std::vector<std::string>> list(const std::string& name) override {
    InodePtr directory = root_;
    if (!name.empty()) {
      HF_TRY(directory_of(name + "/x", directory));
    }
    std::vector<std::string> names;
    for (const auto& [entry, node] : directory->entries) names.push_back(entry);
    return names;
  }
  Result<target::Space> space() override { return target::Space{1ull << 50, 1ull << 50}; }
  Status check_identity() override { return {}; }
  Result<std::unique_ptr<target::Lock>> try_lock(const std::string& name, Hold hold) override {
    InodePtr directory, node;
    if (Status status = find(name, true, directory, node); !status.ok()) return status;
    auto& all = site_.locks;
    auto [first, last] = all->equal_range(node);
    for (auto held = first; held != last; ++held)
      if (hold != Hold::shared || held->second.second != Hold::shared) return Status(Kind::busy, name + " is locked by another opener");
    const uint64_t token = ++site_.last_lock;
    all->insert({node, {token, hold}});
    return std::unique_ptr<target::Lock>(std::make_unique<TreeLock>(all, node, token));
  }

 private:
  Status directory_of(const std::string& name, InodePtr& directory) const {
    HF_TRY(target::check_name(name));
    directory = root_;
    const std::string parent = target::split_name(name).first;
    for (size_t from = 0; from < parent.size();) {
      const size_t end = std::min(parent.find('/', from), parent.size());
      directory = site_.tree.find(*directory, parent.substr(from, end - from));
      if (!directory || !directory->directory()) return failure(ENOENT, label_ + "/" + name);
      from = end + 1;
    }
    return {};
  }
  Status find(const std::string& name, bool make, InodePtr& directory, InodePtr& node) const {
    HF_TRY(directory_of(name, directory));
    const std::string leaf = target::split_name(name).second;
    node = site_.tree.find(*directory, leaf);
    if (node && !node->regular()) return failure(EISDIR, label_ + "/" + name);
    if (!node && !make) return failure(ENOENT, label_ + "/" + name);
    if (!node) site_.tree.enter(*directory, leaf, node = site_.tree.make(S_IFREG | 0644));
    return {};
  }

  Site& site_;
  InodePtr root_;
  std::string label_;
};

}  // namespace

std::shared_ptr<target::Target> make_tree_target(Site& site, InodePtr directory, std::string label) {
  return std::make_shared<TreeTarget>(site, std::move(directory), std::move(label));
}

}  // namespace holdfast::sim
