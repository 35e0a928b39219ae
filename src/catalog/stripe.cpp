#include "catalog/stripe.hpp"

#include <charconv>
#include <cstring>

#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr int max_nodes = 1 << 20;
constexpr long orangefs_magic = 0x20030528;

std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const char* begin = text.data() + at + key.size();
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || end == begin) return std::nullopt;
  return value;
}

template <class T>
T at(std::string_view blob, size_t offset) {
  T value;
  std::memcpy(&value, blob.data() + offset, sizeof value);
  return value;
}

// Any file system with user attributes would store OrangeFS's names faithfully and mean nothing by it.
bool is_orangefs(const std::string& path) {
  const raw::Fd file(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  struct statfs found;
  return file && raw::fstatfs(file.get(), &found) == 0 && found.f_type == orangefs_magic;
}

StripeLayout read_stripes(const std::string& path) {
  if (auto text = get_attribute(path, "ceph.file.layout"))
    if (auto layout = parse_ceph_layout(*text)) return *layout;
  if (auto blob = get_attribute(path, "lustre.lov"))
    if (auto layout = parse_lustre_layout(*blob)) return *layout;
  if (is_orangefs(path))
    if (auto text = get_attribute(path, "user.pvfs2.num_dfiles"))
      if (auto layout = parse_orangefs_layout(*text)) return *layout;
  return {};
}

}  // namespace

std::optional<StripeLayout> parse_ceph_layout(std::string_view text) {
  auto unit = number_after(text, "stripe_unit="), count = number_after(text, "stripe_count=");
  if (!unit || !count || *count < 1 || *count > uint64_t(max_nodes)) return std::nullopt;
  return StripeLayout{*unit, int(*count), true};
}

std::optional<StripeLayout> parse_lustre_layout(std::string_view blob) {
  if (blob.size() < 32) return std::nullopt;
  const auto magic = at<uint32_t>(blob, 0);
  if (magic != 0x0BD10BD0 && magic != 0x0BD30BD0) return std::nullopt;
  const auto count = at<uint16_t>(blob, 28);
  if (count == 0 || count == 0xffff) return std::nullopt;  // "default" and "all": not a number of nodes
  return StripeLayout{at<uint32_t>(blob, 24), int(count)};
}

std::optional<StripeLayout> parse_orangefs_layout(std::string_view text) {
  int nodes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
  if (error != std::errc() || nodes < 1 || nodes > max_nodes) return std::nullopt;
  return StripeLayout{0, nodes};
}

StripeLayout request_stripes(const std::string& empty_file, uint64_t unit_bytes, int nodes) {
  if (get_attribute(empty_file, "ceph.file.layout")) {
    // Each step must leave a legal layout: the object is a multiple of the unit.
    (void)set_attribute(empty_file, "ceph.file.layout.object_size", std::to_string(unit_bytes));
    (void)set_attribute(empty_file, "ceph.file.layout.stripe_unit", std::to_string(unit_bytes));
    (void)set_attribute(empty_file, "ceph.file.layout.object_size", std::to_string(unit_bytes));
    (void)set_attribute(empty_file, "ceph.file.layout.stripe_count", std::to_string(nodes));
  } else if (is_orangefs(empty_file)) {
    (void)set_attribute(empty_file, "user.pvfs2.num_dfiles", std::to_string(nodes));
    (void)set_attribute(empty_file, "user.pvfs2.dist_name", "simple_stripe");
    Status unit = set_attribute(empty_file, "user.pvfs2.dist_params", "strip_size:" + std::to_string(unit_bytes));
    StripeLayout layout = read_stripes(empty_file);
    if (unit.ok()) layout.unit_bytes = unit_bytes;  // can be set and not read back
    return layout;
  }
  return read_stripes(empty_file);
}

}  // namespace holdfast::catalog
