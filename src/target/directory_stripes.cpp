#include "target/directory_stripes.hpp"

#include "base/raw_syscalls.hpp"

namespace holdfast::target {

namespace {

constexpr long orangefs_magic = 0x20030528;
constexpr size_t max_attribute_bytes = 65536;

std::optional<std::string> attribute(int fd, const char* name) {
  std::string value(max_attribute_bytes, '\0');
  const ssize_t length = raw::fgetxattr(fd, name, value.data(), value.size());
  if (length < 0) return std::nullopt;
  value.resize(size_t(length));
  return value;
}

bool set_attribute(int fd, const char* name, const std::string& value) { return raw::fsetxattr(fd, name, value.data(), value.size(), 0) == 0; }

// Any file system with user attributes would store OrangeFS's names faithfully and mean nothing by it.
bool is_orangefs(int fd) {
  struct statfs found;
  return raw::fstatfs(fd, &found) == 0 && found.f_type == orangefs_magic;
}

}  // namespace

Stripes read_stripes(int fd) {
  if (auto text = attribute(fd, "ceph.file.layout"))
    if (auto stripes = parse_ceph_layout(*text)) return *stripes;
  if (auto blob = attribute(fd, "lustre.lov"))
    if (auto stripes = parse_lustre_layout(*blob)) return *stripes;
  if (is_orangefs(fd))
    if (auto text = attribute(fd, "user.pvfs2.num_dfiles"))
      if (auto stripes = parse_orangefs_layout(*text)) return *stripes;
  return {};
}

std::optional<Stripes> make_striped_file(int directory, const char* path, mode_t mode, const StripeWish& wish) {
  if (raw::mknodat(directory, path, S_IFREG | (mode & 07777)) != 0) return std::nullopt;
  int fd = -1;
  do fd = raw::openat(directory, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (const raw::Fd made{fd}) return request_stripes(made.get(), wish);
  const int reason = errno;
  raw::unlinkat(directory, path, 0);
  errno = reason;
  return std::nullopt;
}

Stripes request_stripes(int fd, const StripeWish& wish) {
  const std::string unit = std::to_string(wish.unit_bytes), count = std::to_string(wish.count);
  if (set_attribute(fd, "lustre.lov", encode_lustre_wish(wish))) return read_stripes(fd);
  if (attribute(fd, "ceph.file.layout")) {
    // Each step must leave a legal layout: the object is a multiple of the unit. A zero is refused, and so leaves what there is.
    (void)set_attribute(fd, "ceph.file.layout.object_size", unit);
    (void)set_attribute(fd, "ceph.file.layout.stripe_unit", unit);
    (void)set_attribute(fd, "ceph.file.layout.object_size", unit);
    (void)set_attribute(fd, "ceph.file.layout.stripe_count", count);
  } else if (is_orangefs(fd)) {
    (void)set_attribute(fd, "user.pvfs2.num_dfiles", count);
    (void)set_attribute(fd, "user.pvfs2.dist_name", "simple_stripe");
    const bool asked = set_attribute(fd, "user.pvfs2.dist_params", "strip_size:" + unit);
    Stripes stripes = read_stripes(fd);
    if (asked) stripes.unit_bytes = wish.unit_bytes;  // can be set and not read back
    return stripes;
  }
  return read_stripes(fd);
}

}  // namespace holdfast::target
