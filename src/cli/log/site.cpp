#include "cli/log/site.hpp"

#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "base/config.hpp"
#include "catalog/user_files.hpp"
#include "target/stripes.hpp"

namespace holdfast::cli {

// linux/magic.h, and those of file systems that are not in the kernel's own tree.
std::string name_of_file_system(uint64_t magic) {
  static const std::map<uint64_t, const char*> names{{0x01021994, "tmpfs"},     {0xef53, "ext4"},     {0x58465342, "xfs"},  {0x9123683e, "btrfs"},
                                                     {0x794c7630, "overlayfs"}, {0xf2f52010, "f2fs"}, {0x2fc12fc1, "zfs"},  {0x6969, "nfs"},
                                                     {0x0bd00bd0, "lustre"},    {0x00c36400, "ceph"}, {0x47504653, "gpfs"}, {0x20030528, "orangefs"},
                                                     {0x19830326, "beegfs"},    {0x65735546, "fuse"}, {0xfe534d42, "smb"},  {0x01021997, "9p"}};
  const auto found = names.find(magic);
  return found == names.end() ? "" : found->second;
}

namespace {

using advice::Place;

// How many object storage targets the client of a Lustre file system sees: one number a mounted file system. Of several the largest, for which is
// which the names do not say.
uint32_t lustre_devices() {
  uint32_t most = 0;
  for (const char* directory : {"/sys/fs/lustre/lov", "/proc/fs/lustre/lov"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      const auto text = catalog::read_small(entry.path().string() + "/numobd", 64);
      uint32_t number = 0;
      if (text) std::from_chars(text->data(), text->data() + text->size(), number);
      most = std::max(most, number);
    }
  }
  return most;
}

std::optional<std::string> attribute_of(const std::string& path, const char* name) {
  std::string value(64 << 10, '\0');  // the kernel's own limit
  const ssize_t length = ::getxattr(path.c_str(), name, value.data(), value.size());
  if (length < 0) return std::nullopt;
  value.resize(size_t(length));
  return value;
}

void take(Place& place, const std::optional<target::Stripes>& layout) {
  if (!layout) return;
  place.stripe_count = uint32_t(layout->count);
  place.stripe_bytes = layout->unit_bytes;
}

// `path` is there; what it does not say stays unknown.
Place place_of(const std::string& path) {
  Place place;
  struct statfs found {};
  if (::statfs(path.c_str(), &found) == 0) place.file_system = name_of_file_system(uint64_t(found.f_type) & 0xffffffffu);
  for (const char* name : {"ceph.file.layout", "ceph.dir.layout"}) {
    const auto text = attribute_of(path, name);
    if (!text) continue;
    place.file_system = "ceph";  // by way of FUSE, too
    take(place, target::parse_ceph_layout(*text));
  }
  if (place.lustre()) {
    if (const auto blob = attribute_of(path, "lustre.lov")) take(place, target::parse_lustre_layout(*blob));
    place.devices = lustre_devices();
  }
  return place;
}

// The file itself, or the directory that it was in; empty where neither is there: the log is from another machine.
std::string what_is_there(const std::string& path, bool files) {
  if (files && catalog::look(path, true)) return path;
  const std::string directory = catalog::parent_of(path);
  return catalog::look(directory, true) ? directory : "";
}

}  // namespace

void SiteOptions::add(CLI::App& app) {
  app.add_option("--devices", devices, "Storage devices (Lustre: OSTs) that the file system has")->type_name("N");
  app.add_option("--stripes", stripes, "Devices that the job's files were spread over")->type_name("N");
  app.add_option("--stripe-size", stripe_size, "In stripes of that size")->type_name("SIZE");
  app.add_option("--most-stripes", most_stripes, "Devices that one file may be spread over, if not all")->type_name("N");
  app.add_option("--file-system", file_system, "Their file system: lustre, ceph, nfs, ext4 ...")->type_name("NAME");
}

Result<advice::Site> look_at_site(const profile::Log& log, const SiteOptions& options, const advice::Site& known) {
  constexpr size_t most_looked_at = 256;
  uint64_t stripe_bytes = 0;
  if (!options.stripe_size.empty()) {
    const auto size = parse_size(options.stripe_size);
    if (!size || *size == 0) return Status(Kind::invalid, "--stripe-size is '" + options.stripe_size + "': write 1MiB, 64k ...");
    stripe_bytes = *size;
  }
  auto with_options = [&](Place place) {
    if (!options.file_system.empty()) place.file_system = options.file_system;
    if (place.local()) return place;  // no devices that stripes could lie on
    if (options.stripes) place.stripe_count = options.stripes;
    if (options.devices) place.devices = options.devices;
    if (options.most_stripes) place.most_stripes = options.most_stripes;
    if (stripe_bytes) place.stripe_bytes = stripe_bytes;
    else if (place.stripe_count && !place.stripe_bytes) place.stripe_bytes = 1 << 20;
    return place;
  };
  advice::Site site;
  std::map<std::string, Place> seen;  // by what was looked at
  for (const profile::FileUse& file : log.files) {
    if (!file.path.starts_with('/')) continue;
    Place place = known.place_of(file.path);
    if (place.file_system.empty()) {
      const std::string there = what_is_there(file.path, seen.size() < most_looked_at);
      const auto [entry, fresh] = seen.try_emplace(there);
      if (fresh && !there.empty()) entry->second = place_of(there);
      place = entry->second;
    }
    site.add(file.path, with_options(place));
  }
  return site;
}

}  // namespace holdfast::cli
