#include "tree/mounts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "catalog/user_files.hpp"

namespace holdfast::tree {

namespace {

constexpr std::array<std::string_view, 24> shared_kinds = {"9p",    "afs",       "beegfs", "ceph",   "cifs", "coda",  "daos",     "gfs",
                                                           "gfs2",  "glusterfs", "gpfs",   "lustre", "mmfs", "ncpfs", "nfs",      "nfs4",
                                                           "ocfs2", "orangefs",  "panfs",  "pvfs2",  "smb3", "smbfs", "virtiofs", "wekafs"};
// File systems in user space are mostly those of servers; these are of the node.
constexpr std::array<std::string_view, 7> own_fuse_kinds = {"fuseblk",    "fuse.ntfs-3g", "fuse.exfat",     "fuse.fuse-overlayfs",
                                                            "fuse.lxcfs", "fuse.portal",  "fuse.gvfsd-fuse"};

// linux/magic.h, and the file systems' own sources for those that are not in the kernel.
constexpr std::array<uint64_t, 16> shared_magics = {
    0x6969,      // NFS
    0x0bd00bd0,  // Lustre
    0x00c36400,  // CephFS
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x20030528,  // OrangeFS
    0x65735546,  // FUSE
    0x517b,      // SMB
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB2
    0x01021997,  // 9P
    0x5346414f,  // AFS
    0x73757245,  // Coda
    0x7461636f,  // OCFS2
    0x01161970,  // GFS2
    0xaad7aaea,  // PanFS
};

template <size_t Count>
bool is_one_of(const std::array<std::string_view, Count>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

// Blanks and backslashes are written as \ooo.
std::string unescaped(std::string_view text) {
  std::string result;
  auto octal = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1; };
  for (size_t i = 0; i < text.size(); ++i) {
    const int a = octal(i + 1), b = octal(i + 2), c = octal(i + 3);
    const bool escape = text[i] == '\\' && a >= 0 && b >= 0 && c >= 0;
    result += escape ? static_cast<char>(a * 64 + b * 8 + c) : text[i];
    if (escape) i += 3;
  }
  return result;
}

int number_of(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool lies_in(const std::string& path, const std::string& directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

// Bytes of the longest of these that the path lies in.
std::optional<size_t> longest(const std::vector<std::string>& directories, const std::string& path) {
  std::optional<size_t> bytes;
  for (const std::string& directory : directories)
    if (lies_in(path, directory) && directory.size() >= bytes.value_or(0)) bytes = directory.size();
  return bytes;
}

}  // namespace

Sharing sharing_of_kind(std::string_view kind, std::string_view source) {
  if (is_one_of(shared_kinds, kind)) return Sharing::shared;
  if (kind.starts_with("fuse")) return is_one_of(own_fuse_kinds, kind) ? Sharing::node_local : Sharing::shared;
  // What nobody here knows and comes from a server: "host:/export", "//host/share".
  const bool served = source.find(":/") != std::string_view::npos || source.starts_with("//");
  return served ? Sharing::shared : Sharing::node_local;
}

Sharing sharing_of_magic(uint64_t magic) {
  const bool shared = std::find(shared_magics.begin(), shared_magics.end(), magic) != shared_magics.end();
  return shared ? Sharing::shared : Sharing::node_local;
}

Mounts::Mounts(std::string_view mountinfo) {
  for (size_t at = 0; at < mountinfo.size();) {
    const size_t end = std::min(mountinfo.find('\n', at), mountinfo.size());
    const auto fields = fields_of(mountinfo.substr(at, end - at));
    at = end + 1;
    // id parent device root point options [tags...] - kind source options
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 3) continue;
    mounts_.push_back({number_of(fields[0]), number_of(fields[1]), unescaped(fields[4]), sharing_of_kind(dash[1], unescaped(dash[2]))});
  }
}

// As the kernel walks: from the root mount into what is mounted on the way, for a mount hides what lay below it.
const Mounts::Mount* Mounts::mount_of(const std::string& path) const {
  auto is_root = [&](const Mount& mount) {
    return mount.point == "/" &&
           std::none_of(mounts_.begin(), mounts_.end(), [&](const Mount& other) { return other.id == mount.parent && &other != &mount; });
  };
  const auto root = std::find_if(mounts_.begin(), mounts_.end(), is_root);
  const Mount* current = root == mounts_.end() ? nullptr : &*root;
  for (size_t steps = 0; current && steps < mounts_.size(); ++steps) {
    const Mount* next = nullptr;
    for (const Mount& mount : mounts_) {
      const bool below = &mount != current && mount.parent == current->id && lies_in(path, mount.point);
      if (below && (!next || mount.point.size() < next->point.size())) next = &mount;
    }
    if (!next) break;
    current = next;
  }
  return current;
}

Sharing Mounts::sharing_of(const std::string& path, const PolicySettings& settings) const {
  const Mount* mount = mount_of(path);
  const size_t mounted = mount ? mount->point.size() : 0;
  const auto shared = longest(settings.shared_mounts, path), local = longest(settings.local_mounts, path);
  if (shared && *shared >= mounted && *shared >= local.value_or(0)) return Sharing::shared;
  if (local && *local >= mounted) return Sharing::node_local;
  return mount ? mount->sharing : Sharing::node_local;
}

Sharing sharing_of(const std::string& absolute_path, const PolicySettings& settings) {
  constexpr size_t most_bytes = 1 << 20;  // thousands of mounts
  const std::string path = catalog::resolved_path(absolute_path);
  const auto text = catalog::read_beginning("/proc/self/mountinfo", most_bytes);
  const Mounts mounts(text ? *text : std::string());
  if (mounts.known()) return mounts.sharing_of(path, settings);
  // Without /proc: the file system itself says what it is, and what the settings name is below its root.
  const bool shared = sharing_of_magic(catalog::file_system_magic(catalog::parent_of(path))) == Sharing::shared;
  const std::string kind = shared ? "nfs" : "ext4";
  return Mounts("1 0 0:1 / / rw - " + kind + " / rw\n").sharing_of(path, settings);
}

bool mount_is_meant(const std::string& absolute_path, const PolicySettings& settings) {
  if (settings.mounts == "any") return true;
  return (sharing_of(absolute_path, settings) == Sharing::shared) == (settings.mounts == "shared");
}

}  // namespace holdfast::tree
