#include "sim/openers_site.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "layout/random_source.hpp"
#include "sim/far_gate.hpp"
#include "sim/openers_single.hpp"

namespace holdfast::sim {

namespace {

constexpr int most_links = 8;
constexpr char own_descriptors[] = "/proc/self/fd/";

int fails_with(int error) {
  errno = error;
  return -1;
}

}  // namespace

// --- Site: what happens to it

Site::Site(uint64_t seed) : ids_(seed), ids_of_the_kernel_(layout::random_source) {
  current_ = this;
  layout::random_source = [](unsigned char* into, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) into[i] = static_cast<unsigned char>(current_->ids_() >> 32);
  };
  auto data = tree.make(S_IFDIR | 0755);
  tree.enter(*tree.root(), "data", data);
  tree.sync(*tree.root());
}

Site::~Site() { layout::random_source = ids_of_the_kernel_; }

int Site::add_place(std::string path) {
  places.push_back({std::move(path), std::make_shared<target::MemoryDirectory>()});
  return int(places.size()) - 1;
}

Settings Site::add_set(const std::string& protect, const std::vector<std::string>& paths) {
  Settings settings;
  settings.protect = protect;
  settings.striping_unit = 4096;
  for (const std::string& path : paths) settings.targets.push_back(places[size_t(add_place(path))].path);
  return settings;
}

int Site::place_at(const std::string& path) const {
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].path == path) return int(i);
  return -1;
}

std::shared_ptr<target::MemoryDirectory> Site::empty_place(int place) {
  auto old = std::exchange(places[size_t(place)].directory, std::make_shared<target::MemoryDirectory>());
  heal(place);
  gate->swap(place);
  return old;
}

void Site::put_back(int place, std::shared_ptr<target::MemoryDirectory> directory) {
  places[size_t(place)].directory = std::move(directory);
  gate->swap(place);
}

void Site::add_node_disk(const std::string& name) {
  disks.push_back({name, name + ":/" + name, tree.make(S_IFDIR | 0755)});
  tree.enter(*tree.root(), name, disks.back().root);
  tree.sync(*tree.root());
}

namespace {
InodePtr copy_of(Tree& tree, const Inode& node) {
  InodePtr copy = tree.make(node.mode);
  copy->now = copy->durable = node.now;
  for (const auto& [name, below] : node.entries) {
    copy->entries[name] = copy_of(tree, *below);
    if (below->directory()) copy->entries[name]->parent = copy.get();
  }
  copy->durable_entries = copy->entries;
  return copy;
}
}  // namespace

InodePtr Site::copy_of_disk(int node) { return copy_of(tree, *disks[size_t(node)].root); }

void Site::change_disk(int node, InodePtr root) {
  NodeDisk& disk = disks[size_t(node)];
  disk.root = root ? std::move(root) : tree.make(S_IFDIR | 0755);
  tree.enter(*tree.root(), disk.name, disk.root);
  tree.sync(*tree.root());
  gate->swap(gate_number(node));
}

// Who has something open there gets errors from now on.
void Site::lose_power_of_disk(int node, uint64_t seed) {
  std::erase_if(open_, [&](const auto& open) { return open.second.on_disk == node; });
  tree.power_loss_below(*disks[size_t(node)].root, seed);
  gate->swap(gate_number(node));
}

void Site::lose_nodes() {
  for (auto& [where, memory] : remembered_) memory->lose();
  remembered_.clear();
}

void Site::power_loss(uint64_t seed) {
  gate = std::make_shared<Gate>();
  for (Place& place : places) {
    place.directory->release_locks();
    place.directory->power_loss(seed++);
  }
  tree.power_loss(seed);
  open_.clear();
}

namespace {
void list_below(const Inode& directory, const std::string& path, std::string& text) {
  for (const auto& [name, node] : directory.entries) {
    std::string content(std::min<uint64_t>(node->now.size(), 24), '\0');
    node->now.read(0, std::as_writable_bytes(std::span(content)));
    std::replace_if(
        content.begin(), content.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '.');
    text += "  " + path + "/" + name + (node->link() ? " -> " + node->leads_to : " " + std::to_string(node->now.size()) + " " + content) + "\n";
    if (node->directory()) list_below(*node, path + "/" + name, text);
  }
}
}  // namespace

std::string Site::listing() const {
  std::string text;
  list_below(*tree.find(*tree.root(), "data"), "/data", text);
  for (const Place& place : places)
    for (const std::string& name : place.directory->object_names())
      text += "  " + place.path + "/" + name + " " + std::to_string(place.directory->look(name)->size) + "\n";
  return text;
}

// --- reaching things

// Every call is a point where the turn may pass, and where the process may die.
bool Site::may_go_on() {
  Schedule::yield();
  if (!gate->dead() && Schedule::count_call()) return true;
  errno = EIO;
  return false;
}

bool Site::reaches(int place) {
  const Status status = gate->admit(place, gate->disk(place));
  if (!status.ok()) errno = status.to_errno();
  return status.ok();
}

bool Site::reaches(const Open& open) {
  const Status status = open.on_disk < 0 ? Status() : gate->admit(gate_number(open.on_disk), open.disk);
  if (!status.ok()) errno = status.to_errno();
  return status.ok();
}

Site::Open* Site::open_of(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) errno = EBADF;
  return found == open_.end() ? nullptr : &found->second;
}

int Site::enter_open(Open open) {
  open_[next_fd_] = std::move(open);
  return next_fd_++;
}

bool Site::into_place(const std::string& rest, Found& found) {
  found.object = rest;
  while (!found.object.empty() && found.object.back() == '/') found.object.pop_back();
  return reaches(found.place);
}

// False where the node is lost.
bool Site::into_disk(Found& found) {
  const auto disk = std::find_if(disks.begin(), disks.end(), [&](const NodeDisk& one) { return found.node && one.root == found.node; });
  if (disk == disks.end()) return true;
  found.disk = int(disk - disks.begin());
  return reaches(gate_number(found.disk));
}

// False and errno where the way itself is missing; what it leads to may be missing all the same.
bool Site::walk(int directory, const std::string& path, bool follow, Found& found, int links) {
  InodePtr at = tree.root();
  if (path.empty() || path.front() != '/') {
    Open* open = directory == AT_FDCWD ? nullptr : open_of(directory);
    if (directory != AT_FDCWD && !open) return false;
    if (open) at = open->node;
    if (!at || !at->directory()) return fails_with(ENOTDIR) == 0;
  }
  found = {at, at, ".", -1, "", -1};
  for (size_t from = 0; from < path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    const std::string name = path.substr(from, end - from);
    from = end + 1;
    if (name.empty() || name == ".") continue;
    if (!found.node) return fails_with(ENOENT) == 0;
    if (!found.node->directory()) return fails_with(ENOTDIR) == 0;
    found.directory = found.node;
    found.name = name;
    found.node = name == ".." ? found.directory->parent->shared_from_this() : tree.find(*found.directory, name);
    if (found.directory == tree.root() && (found.place = place_at("/" + name)) >= 0)
      return into_place(from < path.size() ? path.substr(from) : "", found);
    if (found.directory == tree.root() && !into_disk(found)) return false;
    if (found.node && found.node->link() && (follow || from < path.size())) {
      if (links >= most_links) return fails_with(ELOOP) == 0;
      const std::string rest = from < path.size() ? "/" + path.substr(from) : "";
      const std::string& to = found.node->leads_to;
      if (to.empty() || to.front() != '/') return fails_with(EIO) == 0;  // no relative ones are made here
      return walk(AT_FDCWD, to + rest, follow, found, links + 1);
    }
  }
  if (hidden_from.contains(Schedule::current_rank())) return fails_with(EIO) == 0;
  return true;
}

// --- system calls

int Site::open_boot_id() {
  const std::string text = boot_id();
  Open open;
  open.node = tree.make(S_IFREG | 0444);
  open.node->now.write(0, std::as_bytes(std::span(text)));
  return enter_open(std::move(open));
}

int Site::openat(int directory, const char* name, int flags, mode_t mode) {
  Found found;
  // Who remembers a directory to follow it changes nothing, and learns nothing by that.
  const bool follows = directory == AT_FDCWD && (flags & O_PATH) && (flags & O_NOFOLLOW);
  if (boot_id && std::strcmp(name, "/proc/sys/kernel/random/boot_id") == 0) return open_boot_id();
  if (!(follows || may_go_on()) || !walk(directory, name, !(flags & O_NOFOLLOW), found)) return -1;
  Open open;
  open.path_only = flags & O_PATH;
  if (found.place >= 0) {
    struct stat state;
    if (!look_at_place(found.place, found.object, &state)) return -1;
    if ((flags & O_DIRECTORY) && !S_ISDIR(state.st_mode)) return fails_with(ENOTDIR);
    open.place = found.place;
    open.object = found.object;
    return enter_open(std::move(open));
  }
  if (found.node && (flags & O_CREAT) && (flags & O_EXCL)) return fails_with(EEXIST);
  if (!found.node && !(flags & O_CREAT)) return fails_with(ENOENT);
  if (!found.node && is_full(found.disk)) return fails_with(ENOSPC);
  if (!found.node) tree.enter(*found.directory, found.name, found.node = tree.make(S_IFREG | (mode & 0777)));
  if ((flags & O_DIRECTORY) && !found.node->directory()) return fails_with(ENOTDIR);
  if (found.node->link() && !open.path_only) return fails_with(ELOOP);
  if (found.node->directory() && (flags & O_ACCMODE) != O_RDONLY) return fails_with(EISDIR);
  if ((flags & O_TRUNC) && found.node->now.size()) tree.cut(*found.node, 0);
  open.node = found.node;
  open.writable = !open.path_only && (flags & O_ACCMODE) != O_RDONLY;
  if (flags & O_APPEND) open.position = found.node->now.size();
  open.on_disk = found.disk;
  if (open.on_disk >= 0) open.disk = gate->disk(gate_number(open.on_disk));
  const int fd = enter_open(std::move(open));
  if (found.disk >= 0) Schedule::at_death([this, fd] { close(fd); });
  return fd;
}

// Whose processes have died has nothing open any more.
bool Site::has_writers(int fd) {
  const Open* open = may_go_on() ? open_of(fd) : nullptr;
  return open && std::any_of(open_.begin(), open_.end(), [&](const auto& other) { return other.second.node == open->node && other.second.writable; });
}

void Site::close(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  if (found->second.node && found->second.node->locked_by == fd) found->second.node->locked_by = -1;
  if (found->second.node) std::erase_if(found->second.node->locked_bytes, [fd](const auto& one) { return one.second == fd; });
  open_.erase(found);
}

ssize_t Site::pread(int fd, void* into, size_t bytes, uint64_t offset) {
  if (!may_go_on()) return -1;
  Open* open = open_of(fd);
  if (!open) return -1;
  if (!open->node || !open->node->regular() || open->path_only) return fails_with(EBADF);
  if (!reaches(*open)) return -1;
  return ssize_t(open->node->now.read(offset, ByteSpan(static_cast<std::byte*>(into), bytes)));
}

ssize_t Site::write(int fd, const void* from, size_t bytes) {
  const auto found = open_.find(fd);
  const ssize_t put = pwrite(fd, from, bytes, found == open_.end() ? 0 : found->second.position);
  if (put > 0) open_.at(fd).position += uint64_t(put);
  return put;
}

ssize_t Site::pwrite(int fd, const void* from, size_t bytes, uint64_t offset) {
  if (!may_go_on()) return -1;
  Open* open = open_of(fd);
  if (!open) return -1;
  if (!open->node || !open->node->regular() || open->path_only) return fails_with(EBADF);
  if (!reaches(*open)) return -1;
  if (is_full(open->on_disk)) return fails_with(ENOSPC);
  tree.write(*open->node, offset, ByteView(static_cast<const std::byte*>(from), bytes));
  return ssize_t(bytes);
}

int Site::fsync(int fd) {
  if (!may_go_on()) return -1;
  Open* open = open_of(fd);
  if (!open) return -1;
  if (open->path_only) return fails_with(EBADF);
  if (open->node) return tree.sync(*open->node), 0;
  if (!reaches(open->place)) return -1;
  const Status status = places[size_t(open->place)].directory->sync_object(open->object);
  return status.ok() ? 0 : fails_with(status.to_errno());
}

int Site::write_out(int fd) {
  if (!may_go_on()) return -1;
  const Open* open = open_of(fd);
  if (!open || !open->node || open->path_only) return fails_with(EBADF);
  return tree.sync(*open->node, false), 0;
}

// Permissions decide nothing here, and a power cut takes none of them back: it is no step of a schedule.
int Site::fchmod(int fd, mode_t mode) {
  Open* open = open_of(fd);
  if (!open) return -1;
  if (!open->node || open->path_only) return fails_with(EBADF);
  open->node->mode = (open->node->mode & S_IFMT) | (mode & 07777);
  open->node->changed = tree.now();
  return 0;
}

// Everybody here is one user.
int Site::fchown(int fd, uid_t, gid_t) {
  const Open* open = open_of(fd);
  return open && open->node && !open->path_only ? 0 : fails_with(EBADF);
}

void Site::look_at(const Inode& node, struct stat* into) {
  *into = {};
  into->st_dev = 1;
  into->st_ino = node.number;
  into->st_mode = node.mode;
  const auto below = std::count_if(node.entries.begin(), node.entries.end(), [](const auto& entry) { return entry.second->directory(); });
  into->st_nlink = node.directory() ? nlink_t(2 + below) : node.names;
  into->st_uid = geteuid();
  into->st_size = off_t(node.link() ? node.leads_to.size() : node.now.size());
  into->st_ctim = {node.changed / 1'000'000'000, node.changed % 1'000'000'000};
  into->st_mtim = {node.written / 1'000'000'000, node.written % 1'000'000'000};
}

bool Site::look_at_place(int place, const std::string& object, struct stat* into) {
  *into = {};
  into->st_dev = dev_t(100 + place + 1000 * gate->disk(place));  // numbered anew at each mount
  into->st_nlink = 1;
  target::MemoryDirectory& directory = *places[size_t(place)].directory;
  auto found = directory.look(object);
  if (object.empty() || !found) {
    if (!object.empty() && !directory.is_directory(object)) return fails_with(ENOENT) == 0;
    into->st_mode = S_IFDIR | 0755;
    into->st_ino = 1'000'000;
    return true;
  }
  into->st_mode = S_IFREG | 0644;
  into->st_ino = found->inode;
  into->st_size = off_t(found->size);
  into->st_ctim = {found->changed / 1'000'000'000, found->changed % 1'000'000'000};
  return true;
}

int Site::fstatat(int directory, const char* name, struct stat* into, int flags) {
  if (!may_go_on()) return -1;
  Found found;
  if (flags & AT_EMPTY_PATH && *name == '\0') {
    const Open* open = open_of(directory);
    if (!open) return -1;
    found.node = open->node;
    found.place = open->place;
    found.object = open->object;
    if (found.place >= 0 && !reaches(found.place)) return -1;
    if (found.node && hidden_from.contains(Schedule::current_rank())) return fails_with(EIO);
  } else if (!walk(directory, name, !(flags & AT_SYMLINK_NOFOLLOW), found)) {
    return -1;
  }
  if (found.place >= 0) return look_at_place(found.place, found.object, into) ? 0 : -1;
  if (!found.node) return fails_with(ENOENT);
  look_at(*found.node, into);
  return 0;
}

int Site::fstatfs(int fd, struct statfs* into) {
  if (!may_go_on() || !open_of(fd)) return -1;
  *into = {};
  return 0;
}

int Site::mkdirat(int directory, const char* name, mode_t mode) {
  Found found;
  if (!may_go_on() || !walk(directory, name, false, found)) return -1;
  if (found.node || found.place >= 0) return fails_with(EEXIST);
  tree.enter(*found.directory, found.name, tree.make(S_IFDIR | (mode & 0777)));
  return 0;
}

int Site::unlinkat(int directory, const char* name, int flags) {
  Found found;
  if (!may_go_on() || !walk(directory, name, false, found)) return -1;
  if (found.place >= 0) return fails_with(EBUSY);
  if (!found.node) return fails_with(ENOENT);
  if (!(flags & AT_REMOVEDIR) && found.node->directory()) return fails_with(EISDIR);
  if ((flags & AT_REMOVEDIR) && !found.node->directory()) return fails_with(ENOTDIR);
  if (found.node->directory() && !found.node->entries.empty()) return fails_with(ENOTEMPTY);
  tree.remove(*found.directory, found.name);
  makes_room(found.node);
  return 0;
}

void Site::makes_room(const InodePtr& gone) {
  for (NodeDisk& disk : disks)
    if (gone && disk.full_until == gone) disk.full = false;
}

int Site::renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  Found source, destination;
  if (!may_go_on() || !walk(from_directory, from, false, source) || !walk(to_directory, to, false, destination)) return -1;
  if (source.place >= 0 || destination.place >= 0) return fails_with(EXDEV);
  if (!source.node) return fails_with(ENOENT);
  if (destination.node == source.node) return 0;
  if (destination.node) {
    if (flags & RENAME_NOREPLACE) return fails_with(EEXIST);
    if (destination.node->directory() != source.node->directory()) return fails_with(source.node->directory() ? ENOTDIR : EISDIR);
    if (destination.node->directory() && !destination.node->entries.empty()) return fails_with(ENOTEMPTY);
  }
  tree.rename(*source.directory, source.name, *destination.directory, destination.name);
  return 0;
}

int Site::linkat(int from_directory, const char* from, int to_directory, const char* to) {
  Found source, destination;
  if (!may_go_on() || !walk(from_directory, from, false, source) || !walk(to_directory, to, false, destination)) return -1;
  if (source.place >= 0 || destination.place >= 0) return fails_with(EXDEV);
  if (!source.node) return fails_with(ENOENT);
  if (destination.node) return fails_with(EEXIST);
  ++source.node->names;
  tree.enter(*destination.directory, destination.name, source.node);
  return 0;
}

int Site::symlinkat(const char* content, int directory, const char* name) {
  Found found;
  if (!may_go_on() || !walk(directory, name, false, found)) return -1;
  if (found.node || found.place >= 0) return fails_with(EEXIST);
  InodePtr link = tree.make(S_IFLNK | 0777);
  link->leads_to = content;
  tree.enter(*found.directory, found.name, link);
  return 0;
}

ssize_t Site::readlinkat(int directory, const char* name, char* into, size_t bytes) {
  std::string text;
  if (std::string_view(name).starts_with(own_descriptors)) {
    const Open* open = open_of(std::atoi(name + sizeof own_descriptors - 1));
    if (!open) return -1;
    if (open->node && !open->node->directory()) return fails_with(ENOENT);  // a file knows no directory that it is in
    text = !open->node ? places[size_t(open->place)].path : tree.path_of(*open->node);
    if (text.empty()) text = "/";
  } else {
    Found found;
    if (!may_go_on() || !walk(directory, name, false, found)) return -1;
    if (found.place >= 0) return fails_with(EINVAL);
    if (!found.node) return fails_with(ENOENT);
    if (!found.node->link()) return fails_with(EINVAL);
    text = found.node->leads_to;
  }
  const size_t length = std::min(bytes, text.size());
  std::memcpy(into, text.data(), length);
  return ssize_t(length);
}

ssize_t Site::getdents64(int fd, void* into, size_t bytes) {
  if (!may_go_on()) return -1;
  Open* open = open_of(fd);
  if (!open) return -1;
  if (!open->node || !open->node->directory() || open->path_only) return fails_with(ENOTDIR);
  if (!std::exchange(open->listing, true))
    for (const auto& [name, node] : open->node->entries) open->names.push_back(name);
  size_t done = 0;
  for (; open->listed < open->names.size(); ++open->listed) {
    const std::string& name = open->names[open->listed];
    const auto length = static_cast<unsigned short>(round_up(offsetof(dirent64, d_name) + name.size() + 1, 8));
    if (done + length > bytes) break;
    dirent64 entry{};
    entry.d_reclen = length;
    std::memcpy(entry.d_name, name.c_str(), name.size() + 1);
    std::memcpy(static_cast<char*>(into) + done, &entry, length);
    done += length;
  }
  return ssize_t(done);
}

int Site::rewind(int directory) {
  if (!may_go_on()) return -1;
  Open* open = open_of(directory);
  if (!open) return -1;
  open->listing = false;
  open->names.clear();
  open->listed = 0;
  return 0;
}

// The system takes it back from a process that dies.
int Site::lock_byte(int fd, uint64_t at) {
  if (!may_go_on()) return -1;
  const Open* open = open_of(fd);
  if (!open || !open->node) return -1;
  const auto [found, first] = open->node->locked_bytes.try_emplace(at, fd);  // until that is closed, by a process's death as well
  if (first || found->second == fd) return 0;
  Schedule::yield(true);
  return fails_with(EAGAIN);
}

int Site::unlock_byte(int fd, uint64_t at) {
  const Open* open = may_go_on() ? open_of(fd) : nullptr;
  if (!open || !open->node) return -1;
  const auto found = open->node->locked_bytes.find(at);
  if (found != open->node->locked_bytes.end() && found->second == fd) open->node->locked_bytes.erase(found);
  return 0;
}

int Site::lock_whole(int fd) {
  if (!may_go_on()) return -1;
  const Open* open = open_of(fd);
  if (!open || !open->node) return -1;
  if (open->node->locked_by >= 0 && open->node->locked_by != fd) {
    Schedule::yield(true);  // whoever finds it busy asks again: others must get on
    return fails_with(EAGAIN);
  }
  open->node->locked_by = fd;
  Schedule::at_death([this, fd] { close(fd); });
  return 0;
}

ssize_t Site::getcwd(char* into, size_t bytes) {
  std::strncpy(into, "/data", bytes);
  return 6;
}

// --- the ways to the targets, and time

Result<std::shared_ptr<target::Target>> Site::open_target(const std::string& path, const target::DirectoryOptions& options) {
  const int place = place_at(path);
  if (place < 0 && path == "/data") {
    const InodePtr data = tree.find(*tree.root(), "data");
    auto storage = seen_by_node(make_tree_target(*this, data, path), single_place, [this, data](const std::string& name) {
      const InodePtr node = tree.below(*data, name);
      return node ? ObjectStamp{node->number, node->changed} : ObjectStamp{};
    });
    return std::shared_ptr<target::Target>(std::make_shared<GatedTarget>(std::move(storage), gate, single_place));
  }
  for (size_t i = 0; i < disks.size(); ++i)
    if (disks[i].address == path) return open_disk(int(i));
  if (place < 0) return Status::from_errno(ENOENT, path);
  const int disk = gate->disk(place);
  HF_TRY(gate->state_of(place, disk));
  const auto directory = places[size_t(place)].directory;
  if (by_agents) {  // which remember nothing for the nodes
    auto served = agents.attach(target::make_memory_target(directory, path), place, options.read_first);
    if (!served.ok() || !gated) return served;
    if (agents.has_network()) return std::shared_ptr<target::Target>(std::make_shared<FarGatedTarget>(std::move(*served), gate, place, disk));
    return std::shared_ptr<target::Target>(std::make_shared<GatedTarget>(std::move(*served), gate, place, disk));
  }
  auto storage = seen_by_node(target::make_memory_target(directory, path), place, [directory, disk](const std::string& name) {
    auto found = directory->look(name);
    return found ? ObjectStamp{uint64_t(disk) << 32 | found->inode, found->changed} : ObjectStamp{};
  });
  return std::shared_ptr<target::Target>(std::make_shared<GatedTarget>(std::move(storage), gate, place, disk));
}

Result<std::shared_ptr<target::Target>> Site::open_disk(int node) {
  const int number = gate_number(node), mounted = gate->disk(number);
  HF_TRY(gate->admit_on_the_way(number, mounted));
  std::shared_ptr<target::Target> storage = make_tree_target(*this, disks[size_t(node)].root, disks[size_t(node)].address);
  if (by_agents) {
    auto served = agents.attach(std::move(storage), number);
    if (!served.ok()) return served;
    storage = std::move(*served);
  }
  return std::shared_ptr<target::Target>(std::make_shared<GatedTarget>(std::move(storage), gate, number, mounted));
}

std::shared_ptr<target::Target> Site::seen_by_node(std::shared_ptr<target::Target> storage, int place,
                                                   std::function<ObjectStamp(const std::string&)> stamp) {
  if (nodes == 1) return storage;
  auto& memory = remembered_[{Schedule::current_rank() % nodes, place}];
  if (!memory) memory = std::make_shared<NodeMemory>(remembered_.size());
  return make_remembering_target(std::move(storage), memory, std::move(stamp));
}

// Others get on while this one waits.
namespace {

// One call at a time, whichever thread of a process makes it.
class LaneInTurns final : public target::Lane {
 public:
  std::shared_ptr<target::Ticket> submit(std::function<Status()> call) override {
    while (busy_) Schedule::let_threads_on();
    busy_ = true;
    auto ticket = lane_->submit(std::move(call));
    busy_ = false;
    return ticket;
  }
  bool set_aside() const override { return lane_->set_aside(); }
  bool readmit() override { return lane_->readmit(); }
  void let_go(std::shared_ptr<const void> thing) override { lane_->let_go(std::move(thing)); }

 private:
  std::shared_ptr<target::Lane> lane_ = target::make_inline_lane();
  bool busy_ = false;
};

}  // namespace

std::shared_ptr<target::Lane> Site::lane_for(const std::string&, std::chrono::milliseconds) { return std::make_shared<LaneInTurns>(); }

// Others have their turns meanwhile: as many as it lasts long, and not one for each wait. Those who wait at once wait through the same time.
void Site::wait(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds of_a_turn(25);
  const auto until = now() + time;
  do {
    time_ += std::min<std::chrono::nanoseconds>(of_a_turn, std::max(until - now(), std::chrono::nanoseconds(0)));
    Schedule::yield(true);
  } while (now() < until);
}

}  // namespace holdfast::sim
