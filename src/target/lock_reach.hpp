// How far the kernel's locks of a file system reach. Many network and FUSE mounts grant them by each node for itself: two nodes would not
// keep each other out, and nothing would say so.
#pragma once
#include <cstdint>
#include <string_view>

namespace holdfast::target {

// How files are locked: by the kernel where its locks reach everybody, else by names too; or as the user says.
enum class LockWay : uint8_t { automatic, kernel, names };
// One way for the whole process: all programs that open a file have to use the same one.
void choose_lock_way(LockWay way);
void choose_lock_way(std::string_view setting);  // "auto", "kernel" or "names"
LockWay lock_way();

// By statfs(2)'s number alone. all_nodes: also where the storage is this node's own. ask_mount: it depends on how it is mounted.
enum class Reach : uint8_t { all_nodes, one_node, ask_mount };
Reach reach_of_magic(uint64_t magic);
// By what the mount table says of it: the kind ("nfs4", "fuse.sshfs") and the options of the file system.
bool locks_reach_all_nodes(std::string_view kind, std::string_view options);
// Of the file system of an open directory. Reads the mount table only where that decides.
bool locks_reach_all_nodes(int directory, uint64_t magic);
bool locks_reach_all_nodes(int directory);

// By statfs(2)'s number: whether a node sees what another one wrote only after that one's fsync or close and an open of its own. That is so for NFS,
// FUSE, SMB, and what is not known. Not so where the storage is this node's own, or where the nodes keep each other's memory true (Lustre, CephFS).
bool caches_by_node(uint64_t magic);

// Whether a lock there takes a name beside the kernel's lock.
inline bool needs_names(bool reach_all) { return lock_way() == LockWay::names || (lock_way() == LockWay::automatic && !reach_all); }

}  // namespace holdfast::target
