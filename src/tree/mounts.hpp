// Whether a file lies on a file system that several nodes share, or on one of this node's own. It goes by the kind of the mount that it lies on, and
// by what the settings say of directories.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings/policy.hpp"

namespace holdfast::tree {

enum class Sharing : uint8_t { node_local, shared };

// By the names that the kernel gives to file systems ("nfs4", "fuse.sshfs") and to what is mounted ("server:/export", "/dev/sda1").
Sharing sharing_of_kind(std::string_view kind, std::string_view source);
// The same by the number of statfs(2).
Sharing sharing_of_magic(uint64_t magic);

class Mounts {
 public:
  // The text of /proc/PID/mountinfo, proc(5). Lines that are none are left out.
  explicit Mounts(std::string_view mountinfo);
  bool known() const { return !mounts_.empty(); }
  // Of the mount that an absolute path without links leads to, and of what the settings say. The longest directory counts,
  // theirs where both are of the same length.
  Sharing sharing_of(const std::string& path, const PolicySettings& settings) const;

 private:
  struct Mount {
    int id = 0, parent = 0;
    std::string point;
    Sharing sharing = Sharing::node_local;
  };
  const Mount* mount_of(const std::string& path) const;

  std::vector<Mount> mounts_;
};

// By this process's mounts as they are now; links at the path are followed.
Sharing sharing_of(const std::string& absolute_path, const PolicySettings& settings);
// Whether the settings' globs mean files there at all.
bool mount_is_meant(const std::string& absolute_path, const PolicySettings& settings);

}  // namespace holdfast::tree
