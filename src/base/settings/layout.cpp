#include "base/settings/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/settings/record.hpp"
#include "base/settings/text.hpp"

namespace holdfast {

namespace {

// The same limits as layout/geometry.hpp, which this room may not include; a test holds the two together.
constexpr int max_mirrors = 8, max_data_units = 32, max_redundancy = 8;
constexpr uint64_t min_unit_bytes = 4096, max_unit_bytes = 256ull << 20;

// Number of units of a row, 0 for none; nullopt for what is no scheme.
std::optional<int> width_of(std::string_view scheme) {
  int k = 0, m = 0;
  if (scheme == "none") return 0;
  if (scheme.starts_with("mirror:")) {
    if (!text::parse_integer(scheme.substr(7), k) || k < 1 || k > max_mirrors) return std::nullopt;
    return k;
  }
  const size_t plus = scheme.find('+');
  if (!scheme.starts_with("rs:") || plus == std::string_view::npos) return std::nullopt;
  if (!text::parse_integer(scheme.substr(3, plus - 3), k) || !text::parse_integer(scheme.substr(plus + 1), m)) return std::nullopt;
  if (k < 1 || k > max_data_units || m < 1 || m > max_redundancy) return std::nullopt;
  return k + m;
}

// The scheme has two keys; the higher source wins, and two that disagree in one source are a contradiction.
void set_scheme(LayoutSettings& s, std::string scheme, Source source, bool by_factor) {
  if (source < s.protect_source) return;
  const bool same_source = source == s.protect_source && s.protect_is_replication_factor != by_factor && s.protect;
  s.contradiction.clear();
  if (same_source && *s.protect != scheme) {
    const std::string& factor = by_factor ? scheme : *s.protect;
    const std::string& protect = by_factor ? *s.protect : scheme;
    s.contradiction =
        fmt::format("replication_factor {} asks for {} and protect asks for {}: give one of the two", factor.substr(7), factor, protect);
  }
  s.protect = std::move(scheme);
  s.protect_source = source;
  s.protect_is_replication_factor = by_factor;
}

bool take_protect(Settings& s, const Given& given) {
  if (!width_of(given.value)) return false;
  set_scheme(s, std::string(given.value), given.source, false);
  return true;
}

std::string text_of_protect(const Settings& s) { return s.protect_is_replication_factor ? "" : s.protect.value_or(""); }

bool take_replication_factor(Settings& s, const Given& given) {
  int copies = 0;
  if (!text::parse_integer(given.value, copies) || copies < 1 || copies > max_mirrors) return false;
  set_scheme(s, fmt::format("mirror:{}", copies), given.source, true);
  return true;
}

std::string text_of_replication_factor(const Settings& s) { return s.protect && s.protect_is_replication_factor ? s.protect->substr(7) : ""; }

// 0 is what other implementations of MPI-IO call "the default": no request.
bool take_striping_unit(Settings& s, const Given& given) {
  const auto bytes = parse_size(given.value);
  if (!bytes || (*bytes && (*bytes < min_unit_bytes || *bytes > max_unit_bytes || *bytes % min_unit_bytes))) return false;
  s.striping_unit = *bytes ? std::optional<uint64_t>(*bytes) : std::nullopt;
  return true;
}

std::string text_of_striping_unit(const Settings& s) { return s.striping_unit ? std::to_string(*s.striping_unit) : ""; }

constexpr Record layout_records[] = {
    {.key = "protect",
     .kind = Special{take_protect, text_of_protect,
                     "mirror:R with R from 1 to 8, rs:K+M with K from 1 to 32 and M from 1 to 8 (for example rs:4+2), or none"},
     .hint = Hint::ours,
     .values = "mirror:2 mirror:3 rs:2+1 rs:4+2 rs:8+3 none",
     .value = "SCHEME",
     .unset = "none",
     .help = "Scheme: mirror:R (R copies) or rs:K+M (K data and M redundancy units)",
     .more = "As many targets as the scheme has redundancy units (M, or R-1) may be lost. Without a scheme, files that are protected already stay "
             "so, and an open can ask for protection by a hint."},
    {.key = "replication_factor",
     .kind = Special{take_replication_factor, text_of_replication_factor, "a number of copies from 1 to 8"},
     .hint = Hint::of_the_field,
     .values = "2 3",
     .value = "N",
     .help = "Copies of new files: the same as protect with mirror:N",
     .more = "A hint that other implementations of MPI-IO know too."},
    {.key = "placement",
     .kind = OptionalWord{&LayoutSettings::placement},
     .hint = Hint::ours,
     .values = "interleaved separate",
     .value = "KIND",
     .unset = "interleaved",
     .help = "interleaved or separate (redundancy apart from data)",
     .more = "interleaved: redundancy rotates over all targets; separate: it lies on targets of its own."},
    {.key = "striping_unit",
     .kind = Special{take_striping_unit, text_of_striping_unit, "a multiple of 4096 bytes from 4096 to 256MiB, or 0 for the default"},
     .hint = Hint::layout,
     .values = "64KiB 256KiB 1MiB 4MiB",
     .value = "BYTES",
     .unset = "1MiB",
     .help = "Bytes per unit: 64k, 1MiB",
     .more = "Of a hint the nearest size that is possible is taken."},
    {.key = "striping_factor",
     .kind = OptionalNumber{&LayoutSettings::striping_factor, 1, "a number of storage devices, or 0 for the default"},
     .hint = Hint::layout,
     .value = "N",
     .unset = "all",
     .help = "Number of devices to stripe over",
     .more = "At least as many as the scheme is wide."},
    {.key = "start_iodevice",
     .kind = OptionalNumber{&LayoutSettings::start_iodevice, 0, "a device's number from 0 on, or -1 for the default"},
     .hint = Hint::layout,
     .value = "N",
     .help = "The first device's number"},
    {.key = "allow_shared_target",
     .kind = Flag{&LayoutSettings::allow_shared_target},
     .hint = Hint::ours,
     .help = "Accept units of one row on one device",
     .more = "Losing that device may then lose data."},
};

}  // namespace

constinit const Area layout_area{"Scheme and layout of new files", layout_records};

int LayoutSettings::scheme_width() const { return protect ? width_of(*protect).value_or(0) : 0; }

std::string nearest_unit(std::string_view value) {
  const auto bytes = parse_size(value);
  if (!bytes.ok() || *bytes == 0) return std::string(value);
  const uint64_t bounded = std::clamp(*bytes, uint64_t(min_unit_bytes), uint64_t(max_unit_bytes));
  return std::to_string((bounded + min_unit_bytes - 1) / min_unit_bytes * min_unit_bytes);
}

void LayoutSettings::fit_layout_hints(int available) {
  const int width = scheme_width();
  if (factor_is_hinted && striping_factor) {
    const int most = available > 0 ? available : *striping_factor;
    const int fits = std::max(std::min(*striping_factor, most), width);
    if (fits != *striping_factor) hint_remarks.push_back(fmt::format("the hint striping_factor '{}' is taken as {}", *striping_factor, fits));
    striping_factor = fits;
  }
  const int devices = available > 0 ? striping_factor.value_or(available) : 0;
  if (start_is_hinted && start_iodevice && devices && *start_iodevice >= devices) {
    hint_remarks.push_back(fmt::format("the hint start_iodevice '{}' is ignored: there are devices 0 to {}", *start_iodevice, devices - 1));
    start_iodevice.reset();
  }
}

}  // namespace holdfast
