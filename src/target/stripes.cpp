#include "target/stripes.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

namespace holdfast::target {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int max_nodes = 1 << 20;

// lov_user_md: where its fields lie.
constexpr uint32_t lov_v1 = 0x0BD10BD0, lov_v3 = 0x0BD30BD0, lov_specific = 0x0BD50BD0, lov_composite = 0x0BD60BD0;
constexpr uint32_t pattern_striped = 1;
constexpr size_t unit_at = 24, count_at = 28, start_at = 30, v1_objects_at = 32, v3_objects_at = 48;
constexpr size_t object_bytes = 24, object_node_at = 20;
constexpr uint16_t any_start = 0xffff;
constexpr int max_stripes = 2000;  // of one Lustre file
// lov_comp_md_v1: a header, and an entry for each component.
constexpr size_t entry_count_at = 14, entries_at = 32, entry_bytes = 48;
constexpr size_t entry_begin_at = 8, entry_end_at = 16, entry_offset_at = 24, entry_size_at = 28;

std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const char* begin = text.data() + at + key.size();
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || end == begin) return std::nullopt;
  return value;
}

// The caller has checked the length.
template <class T>
T at(std::string_view blob, size_t offset) {
  T value;
  std::memcpy(&value, blob.data() + offset, sizeof value);
  return value;
}

template <class T>
void put(std::string& blob, size_t offset, T value) {
  std::memcpy(blob.data() + offset, &value, sizeof value);
}

std::optional<Stripes> parse_plain_lov(std::string_view blob) {
  if (blob.size() < v1_objects_at) return std::nullopt;
  const auto magic = at<uint32_t>(blob, 0);
  if (magic != lov_v1 && magic != lov_v3) return std::nullopt;
  if (at<uint32_t>(blob, 4) != pattern_striped) return std::nullopt;
  const size_t objects_at = magic == lov_v1 ? v1_objects_at : v3_objects_at;
  Stripes stripes;
  stripes.unit_bytes = at<uint32_t>(blob, unit_at);
  stripes.count = at<uint16_t>(blob, count_at);  // 0xffff is "all", which no file that has objects says
  if (stripes.unit_bytes == 0 || stripes.count < 1 || stripes.count > max_stripes) return std::nullopt;
  if (blob.size() < objects_at + size_t(stripes.count) * object_bytes) return std::nullopt;
  for (int i = 0; i < stripes.count; ++i) stripes.nodes.push_back(at<uint32_t>(blob, objects_at + size_t(i) * object_bytes + object_node_at));
  return stripes;
}

}  // namespace

int Stripes::distinct_nodes() const {
  if (hashed) return 1;
  if (nodes.empty()) return count;
  std::vector<uint32_t> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  return int(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

std::optional<Stripes> parse_ceph_layout(std::string_view text) {
  auto unit = number_after(text, "stripe_unit="), count = number_after(text, "stripe_count=");
  if (!unit || !count || *count < 1 || *count > uint64_t(max_nodes)) return std::nullopt;
  return Stripes{*unit, int(*count), true, {}};
}

std::optional<Stripes> parse_lustre_layout(std::string_view blob) {
  if (blob.size() < sizeof(uint32_t) || at<uint32_t>(blob, 0) != lov_composite) return parse_plain_lov(blob);
  if (blob.size() < entries_at + entry_bytes || at<uint16_t>(blob, entry_count_at) != 1) return std::nullopt;
  const std::string_view entry = blob.substr(entries_at, entry_bytes);
  const bool whole = at<uint64_t>(entry, entry_begin_at) == 0 && at<uint64_t>(entry, entry_end_at) == std::numeric_limits<uint64_t>::max();
  const auto offset = at<uint32_t>(entry, entry_offset_at), bytes = at<uint32_t>(entry, entry_size_at);
  if (!whole || offset > blob.size() || bytes > blob.size() - offset) return std::nullopt;
  return parse_plain_lov(blob.substr(offset, bytes));
}

std::string encode_lustre_wish(const StripeWish& wish) {
  const bool listed = wish.start == 0;
  std::string blob(listed ? v3_objects_at + size_t(wish.count) * object_bytes : v1_objects_at, '\0');
  put(blob, 0, listed ? lov_specific : lov_v1);
  put(blob, 4, pattern_striped);
  put(blob, unit_at, uint32_t(wish.unit_bytes));
  put(blob, count_at, uint16_t(wish.count));
  put(blob, start_at, wish.start == any_node || listed ? any_start : uint16_t(wish.start));
  if (listed)
    for (int i = 0; i < wish.count; ++i) put(blob, v3_objects_at + size_t(i) * object_bytes + object_node_at, uint32_t(i));
  return blob;
}

std::optional<Stripes> parse_orangefs_layout(std::string_view text) {
  int nodes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), nodes);
  if (error != std::errc() || nodes < 1 || nodes > max_nodes) return std::nullopt;
  return Stripes{0, nodes, false, {}};
}

}  // namespace holdfast::target
