#include "target/lock_reach.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "base/raw_syscalls.hpp"

namespace holdfast::target {

namespace {

std::atomic<LockWay> chosen{LockWay::automatic};

enum class Memory { one, each_node_its_own };

struct FileSystem {
  uint64_t magic;
  Reach locks;
  Memory memory;
};

constexpr FileSystem own_storage(uint64_t magic) { return {magic, Reach::all_nodes, Memory::one}; }

// linux/magic.h, and the file systems' own sources for those that are not in the kernel.
constexpr std::array file_systems = {
    own_storage(0xef53),      // ext2, ext3, ext4
    own_storage(0x58465342),  // XFS
    own_storage(0x9123683e),  // Btrfs
    own_storage(0x01021994),  // tmpfs
    own_storage(0x858458f6),  // ramfs
    own_storage(0x2fc12fc1),  // ZFS
    own_storage(0x794c7630),  // overlayfs
    own_storage(0xf2f52010),  // F2FS
    own_storage(0xca451a4e),  // bcachefs
    own_storage(0x3153464a),  // JFS
    own_storage(0x52654973),  // ReiserFS
    own_storage(0x3434),      // NILFS
    own_storage(0x4d44),      // FAT
    own_storage(0x2011bab0),  // exFAT
    own_storage(0x5346544e),  // NTFS
    own_storage(0x7366746e),  // NTFS3
    own_storage(0x482b),      // HFS+
    own_storage(0x15013346),  // UDF
    own_storage(0x958458f6),  // hugetlbfs
    // Their servers have the locks, whatever the mount says.
    FileSystem{0x00c36400, Reach::all_nodes, Memory::one},                // CephFS
    FileSystem{0x47504653, Reach::all_nodes, Memory::one},                // GPFS
    FileSystem{0x0bd00bd0, Reach::ask_mount, Memory::one},                // Lustre
    FileSystem{0x01161970, Reach::ask_mount, Memory::one},                // GFS2
    FileSystem{0x7461636f, Reach::one_node, Memory::one},                 // OCFS2
    FileSystem{0x6969, Reach::ask_mount, Memory::each_node_its_own},      // NFS
    FileSystem{0x65735546, Reach::ask_mount, Memory::each_node_its_own},  // FUSE
};
constexpr FileSystem unknown{0, Reach::one_node, Memory::each_node_its_own};

const FileSystem& file_system(uint64_t magic) {
  const auto it = std::find_if(file_systems.begin(), file_systems.end(), [&](const FileSystem& one) { return one.magic == (magic & 0xffffffff); });
  return it == file_systems.end() ? unknown : *it;
}

// Their servers get the locks, or the storage is this node's own.
constexpr std::array<std::string_view, 5> fuse_with_locks = {"fuse.glusterfs", "fuse.ceph-fuse", "fuse.ceph", "fuseblk", "fuse.fuse-overlayfs"};

template <class List, class What>
bool is_one_of(const List& list, const What& what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

std::string read_proc(const std::string& path) {
  constexpr size_t most_bytes = 4 << 20;  // thousands of mounts
  raw::Fd file(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t got; file && text.size() < most_bytes && (got = raw::read(file.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(got));
  return text;
}

// The mount's own number, as the kernel calls it in its table; empty where it does not say.
std::string mount_of(int fd) {
  for (std::string_view line : parts(read_proc("/proc/self/fdinfo/" + std::to_string(fd)), '\n'))
    if (line.starts_with("mnt_id:")) return std::string(line.substr(line.find_last_of(" \t") + 1));
  return {};
}

}  // namespace

void choose_lock_way(LockWay way) { chosen = way; }
void choose_lock_way(std::string_view setting) {
  chosen = setting == "kernel" ? LockWay::kernel : setting == "names" ? LockWay::names : LockWay::automatic;
}
LockWay lock_way() { return chosen.load(std::memory_order_relaxed); }

Reach reach_of_magic(uint64_t magic) { return file_system(magic).locks; }
bool caches_by_node(uint64_t magic) { return file_system(magic).memory == Memory::each_node_its_own; }

bool locks_reach_all_nodes(std::string_view kind, std::string_view options) {
  const auto given = parts(options, ',');
  const auto has = [&](std::string_view option) { return is_one_of(given, option); };
  if (kind.starts_with("fuse")) return is_one_of(fuse_with_locks, kind);
  if (kind == "lustre") return has("flock");  // neither localflock nor noflock, which older ones do not even show
  if (kind == "gfs2") return !has("localflocks") && !has("lockproto=lock_nolock");
  if (kind != "nfs" && kind != "nfs4") return false;
  const bool local = std::any_of(given.begin(), given.end(),
                                 [](std::string_view option) { return option.starts_with("local_lock=") && option != "local_lock=none"; });
  return !local && !has("nolock");
}

bool locks_reach_all_nodes(int directory, uint64_t magic) {
  const Reach reach = reach_of_magic(magic);
  if (reach != Reach::ask_mount) return reach == Reach::all_nodes;
  const std::string mount = mount_of(directory), table = read_proc("/proc/self/mountinfo");
  for (std::string_view line : parts(table, '\n')) {
    // id parent device root point options [tags...] - kind source options
    const auto fields = parts(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields[0] != mount || fields.end() - dash < 4) continue;
    return locks_reach_all_nodes(dash[1], dash[3]);
  }
  return false;
}

bool locks_reach_all_nodes(int directory) {
  struct statfs found;
  return raw::fstatfs(directory, &found) == 0 && locks_reach_all_nodes(directory, uint64_t(found.f_type));
}

}  // namespace holdfast::target
