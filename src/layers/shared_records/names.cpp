#include "layers/shared_records/names.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::layers {

std::optional<RecordName> parse_record_name(std::string_view name) {
  RecordName parsed;
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos || dash < 8 || dash > 19) return {};
  auto [end, error] = std::from_chars(name.data(), name.data() + dash, parsed.number);
  if (error != std::errc() || end != name.data() + dash) return {};
  name.remove_prefix(dash + 1);
  constexpr size_t id_digits = 32;
  if (name.size() < id_digits + 2 || name[id_digits] != '.') return {};
  parsed.session = name.substr(0, id_digits);
  const bool hex = std::all_of(parsed.session.begin(), parsed.session.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (!hex) return {};
  name.remove_prefix(id_digits + 1);
  parsed.note = name == "note";
  const bool numbers = std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  if (!parsed.note && !numbers) return {};
  return parsed;
}

PendingRecord pending_of(const ScannedEntry& found) {
  const layout::Entry& e = found.entry;
  return {e.collective, e.timestamp_ns, e.id, e.rank, found.position + layout::entry_header_bytes, e.length, e.checksum};
}

}  // namespace holdfast::layers
