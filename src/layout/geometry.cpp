#include "layout/geometry.hpp"

#include <charconv>
#include <numeric>

#include <fmt/format.h>

namespace holdfast::layout {

namespace {
bool parse_number(std::string_view text, int& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Status unknown_scheme(std::string_view text) {
  return Status(Kind::invalid, fmt::format("unknown scheme '{}': use mirror:R with R from 1 to {}, or rs:K+M with K from 1 "
                                           "to {} and M from 1 to {}, for example rs:4+2",
                                           text, max_mirrors, max_data_units, max_redundancy));
}
}  // namespace

std::string Scheme::name() const { return mirror ? fmt::format("mirror:{}", m + 1) : fmt::format("rs:{}+{}", k, m); }

Result<Scheme> Scheme::parse(std::string_view text) {
  if (text.starts_with("mirror:")) {
    int copies = 0;
    if (!parse_number(text.substr(7), copies) || copies < 1 || copies > max_mirrors) return unknown_scheme(text);
    return Scheme{1, copies - 1, true};
  }
  if (text.starts_with("rs:")) {
    std::string_view numbers = text.substr(3);
    size_t plus = numbers.find('+');
    int k = 0, m = 0;
    if (plus == std::string_view::npos || !parse_number(numbers.substr(0, plus), k) || !parse_number(numbers.substr(plus + 1), m) || k < 1 ||
        k > max_data_units || m < 1 || m > max_redundancy)
      return unknown_scheme(text);
    return Scheme{k, m, false};
  }
  return unknown_scheme(text);
}

const char* placement_name(Placement placement) { return placement == Placement::interleaved ? "interleaved" : "separate"; }

Result<Placement> parse_placement(std::string_view text) {
  if (text == "interleaved") return Placement::interleaved;
  if (text == "separate") return Placement::separate;
  return Status(Kind::invalid, fmt::format("unknown placement '{}': use interleaved or separate", text));
}

Status Geometry::check() const {
  auto bad = [](std::string sentence) { return Status(Kind::invalid, std::move(sentence)); };
  if (scheme.k < 1 || scheme.k > max_data_units || scheme.m < 0 || scheme.m > max_redundancy)
    return bad(fmt::format("scheme {} is outside its limits", scheme.name()));
  if (auto named = Scheme::parse(scheme.name()); !named || !(*named == scheme))
    return bad(fmt::format("a scheme of {} data and {} redundancy units has no name", scheme.k, scheme.m));
  if (unit_bytes < min_unit_bytes || unit_bytes > max_unit_bytes || unit_bytes % min_unit_bytes)
    return bad(
        fmt::format("striping unit {} must be a multiple of {} between {} and {} bytes", unit_bytes, min_unit_bytes, min_unit_bytes, max_unit_bytes));
  if (block_bytes < 4096 || block_bytes > (64 << 10) || unit_bytes % block_bytes)
    return bad(fmt::format("checksum block {} does not divide the striping unit {}", block_bytes, unit_bytes));
  if (members > max_pool_members)
    return bad(fmt::format("a file has at most {} targets and {} are asked for: lower --striping-factor", max_pool_members, members));
  if (members < scheme.width())
    return bad(fmt::format("{} needs {} targets and {} {} given: name more with --targets, or choose a smaller scheme", scheme.name(), scheme.width(),
                           members, members == 1 ? "is" : "are"));
  if (single_directory && members != scheme.width()) return bad("a single directory has one member per unit");
  if (single_directory && (start < 0 || start > max_start)) return bad(fmt::format("start_iodevice {} is not from 0 to {}", start, max_start));
  if (!single_directory && (start < 0 || start >= members))
    return bad(fmt::format("start_iodevice {} is not one of the {} targets (0 to {})", start, members, members - 1));
  return Status();
}

uint32_t block_bytes_for(uint64_t unit_bytes) {
  uint32_t block = 32 << 10;
  while (block > 4096 && unit_bytes % block) block /= 2;
  return block;
}

UnitPlace place(const Geometry& g, uint64_t row, int unit) {
  const uint64_t width = uint64_t(g.scheme.width()), k = uint64_t(g.scheme.k), s = g.unit_bytes;
  const uint64_t global = row * width + uint64_t(unit);
  if (g.placement == Placement::interleaved) {
    if (g.single_directory) return {unit, 0, global * s};
    // The pattern repeats after so many rows. Each repetition begins one target further, so that redundancy rotates over all targets, also where
    // their number and the row's width have a common divisor (6 targets, 4+2).
    const uint64_t n = uint64_t(g.members), period_rows = std::lcm(width, n) / width;
    return {int((uint64_t(g.start) + global + row / period_rows) % n), 0, global / n * s};
  }
  if (g.single_directory) {
    if (unit < g.scheme.k) return {unit, 0, (row * k + uint64_t(unit)) * s};
    return {unit, 1 + unit - g.scheme.k, row * k * s};
  }
  return {(g.start + unit) % g.members, unit, row * s};
}

MemberSet record_holders(const Geometry& g, uint64_t row) {
  if (!g.is_wide()) return MemberSet::first(g.members);
  MemberSet holders;
  for (int unit = 0; unit < g.scheme.width(); ++unit) holders.add(place(g, row, unit).member);
  return holders;
}

int object_count(const Geometry& g) {
  if (g.placement == Placement::interleaved) return 1;
  return g.single_directory ? 1 + g.scheme.m : g.scheme.width();
}

bool holds(const Geometry& g, int member, int object) {
  if (g.placement == Placement::interleaved) return object == 0;
  if (g.single_directory) return object == 0 ? member < g.scheme.k : member == g.scheme.k + object - 1;
  return (g.start + object) % g.members == member;
}

}  // namespace holdfast::layout
