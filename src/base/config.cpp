#include "base/config.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>

// Only config_file.cpp knows TOML; this file is the table of keys and what their values may be.
#include "base/config_file.hpp"
#include "base/node_path.hpp"
#include "base/rank_variables.hpp"

namespace holdfast {

namespace {

// The same limits as layout/geometry.hpp, which this room may not include; a test holds the two together.
constexpr int max_mirrors = 8, max_data_units = 32, max_redundancy = 8;
constexpr uint64_t min_unit_bytes = 4096, max_unit_bytes = 256ull << 20;

// A setter answers with what is allowed, or with nothing when it took the value.
using Allowed = const char*;
constexpr Allowed taken = nullptr;

template <class T>
bool parse_integer(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = (c >= 'A' && c <= 'Z') ? char(c + 32) : c;
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    if (auto part = trim(text.substr(0, at)); !part.empty()) parts.emplace_back(part);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& parts, const char* separator) { return fmt::format("{}", fmt::join(parts, separator)); }

std::string working_directory() {
  char buffer[PATH_MAX];
  return ::getcwd(buffer, sizeof buffer) ? buffer : "/";
}

// Absolute, without empty and "." components and trailing slashes. ".." stays: with symbolic links only the
// kernel knows where it leads.
std::string absolute(std::string_view path, const std::string& base) {
  const std::string whole = path.starts_with('/') ? std::string(path) : base + "/" + std::string(path);
  std::string out;
  for (const std::string& component : split(whole, '/'))
    if (component != ".") out += "/" + component;
  return out.empty() ? "/" : out;
}

// Number of units of a row, 0 for none; nullopt for what is no scheme.
std::optional<int> scheme_width(std::string_view text) {
  int k = 0, m = 0;
  if (text == "none") return 0;
  if (text.starts_with("mirror:")) {
    if (!parse_integer(text.substr(7), k) || k < 1 || k > max_mirrors) return std::nullopt;
    return k;
  }
  const size_t plus = text.find('+');
  if (!text.starts_with("rs:") || plus == std::string_view::npos) return std::nullopt;
  if (!parse_integer(text.substr(3, plus - 3), k) || !parse_integer(text.substr(plus + 1), m)) return std::nullopt;
  if (k < 1 || k > max_data_units || m < 1 || m > max_redundancy) return std::nullopt;
  return k + m;
}

std::optional<bool> parse_bool(std::string_view text) {
  const std::string word = lower(text);
  for (const char* yes : {"true", "yes", "on", "1", "enable"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0", "disable", ""})
    if (word == no) return false;
  return std::nullopt;
}

struct Given {
  std::string_view value;
  Source source;
  const std::string& base;  // directory against which relative paths are meant
};

constexpr Allowed scheme_allowed = "mirror:R with R from 1 to 8, rs:K+M with K from 1 to 32 and M from 1 to 8 (for example rs:4+2), or none";

// The scheme has two keys; the higher source wins, and two that disagree in one source are a contradiction.
void set_scheme(Settings& s, std::string scheme, Source source, bool by_factor) {
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

Allowed set_protect(Settings& s, const Given& g) {
  if (!scheme_width(g.value)) return scheme_allowed;
  set_scheme(s, std::string(g.value), g.source, false);
  return taken;
}

Allowed set_replication_factor(Settings& s, const Given& g) {
  int copies = 0;
  if (!parse_integer(g.value, copies) || copies < 1 || copies > max_mirrors) return "a number of copies from 1 to 8";
  set_scheme(s, fmt::format("mirror:{}", copies), g.source, true);
  return taken;
}

template <std::vector<std::string> Settings::*list>
Allowed set_directories(Settings& s, const Given& g) {
  std::vector<std::string> directories;
  for (const std::string& part : split(g.value, ',')) {
    directories.push_back(names_a_node(part) ? part : absolute(part, g.base));
    if (std::count(directories.begin(), directories.end(), directories.back()) > 1) return "directories separated by commas, each named once";
  }
  s.*list = std::move(directories);
  return taken;
}

Allowed set_domains(Settings& s, const Given& g) {
  s.domains = g.value.empty() ? "" : absolute(g.value, g.base);
  return taken;
}

template <std::vector<std::string> Settings::*list>
Allowed set_globs(Settings& s, const Given& g) {
  std::vector<std::string> globs;
  for (const std::string& glob : split(g.value, ':')) {
    const std::string sign = glob[0] == '!' ? "!" : "", plain = std::string(glob).substr(sign.size());
    const bool whole_path = plain.find('/') != std::string::npos && plain[0] != '*';
    globs.push_back(whole_path ? sign + absolute(plain, g.base) : std::string(glob));
  }
  s.*list = std::move(globs);
  return taken;
}

Allowed set_checkpoint(Settings& s, const Given& g) {
  s.checkpoint.clear();
  for (const std::string& pattern : split(g.value, ':')) s.checkpoint.push_back(absolute(pattern, g.base));
  return taken;
}

Allowed set_mounts(Settings& s, const Given& g) {
  if (g.value != "any" && g.value != "shared" && g.value != "local") return "any, shared or local";
  s.mounts = std::string(g.value);
  return taken;
}

Allowed set_placement(Settings& s, const Given& g) {
  if (g.value != "interleaved" && g.value != "separate") return "interleaved or separate";
  s.placement = std::string(g.value);
  return taken;
}

// Programs hand on what other MPI-IO implementations call "the default" (0, -1): it is no request.
Allowed set_striping_unit(Settings& s, const Given& g) {
  auto bytes = parse_size(g.value);
  if (!bytes || (*bytes && (*bytes < min_unit_bytes || *bytes > max_unit_bytes || *bytes % min_unit_bytes)))
    return "a multiple of 4096 bytes from 4096 to 256MiB, or 0 for the default";
  s.striping_unit = *bytes ? std::optional<uint64_t>(*bytes) : std::nullopt;
  return taken;
}

Allowed set_striping_factor(Settings& s, const Given& g) {
  int factor = 0;
  if (!parse_integer(g.value, factor) || factor < -1) return "a number of storage devices, or 0 for the default";
  s.striping_factor = factor > 0 ? std::optional<int>(factor) : std::nullopt;
  return taken;
}

Allowed set_start_iodevice(Settings& s, const Given& g) {
  int start = 0;
  if (!parse_integer(g.value, start) || start < -1) return "a device's number from 0 on, or -1 for the default";
  s.start_iodevice = start >= 0 ? std::optional<int>(start) : std::nullopt;
  return taken;
}

Allowed set_cb_nodes(Settings& s, const Given& g) {
  int nodes = 0;
  if (!parse_integer(g.value, nodes) || nodes < -1) return "a number of processes, or 0 for the default";
  s.cb_nodes = std::max(nodes, 0);
  return taken;
}

template <bool Settings::*flag>
Allowed set_flag(Settings& s, const Given& g) {
  const auto wanted = parse_bool(g.value);
  if (!wanted) return "true or false";
  s.*flag = *wanted;
  return taken;
}

Allowed set_close(Settings& s, const Given& g) {
  if (g.value != "fast" && g.value != "durable") return "durable or fast";
  s.fast_close = g.value == "fast";
  return taken;
}

Allowed set_deadline(Settings& s, const Given& g) {
  auto ms = parse_duration_ms(g.value);
  if (!ms || *ms == 0 || *ms > 24ull * 3600 * 1000) return "a time from 1ms to 24h, for example 10, 500ms or 2min";
  s.deadline_ms = *ms;
  return taken;
}

Allowed set_patience(Settings& s, const Given& g) {
  int deadlines = 0;
  if (!parse_integer(g.value, deadlines) || deadlines < 1 || deadlines > 1000) return "a number of deadlines from 1 to 1000";
  s.patience = deadlines;
  return taken;
}

Allowed set_locks(Settings& s, const Given& g) {
  if (g.value != "auto" && g.value != "kernel" && g.value != "names") return "auto, kernel or names";
  s.locks = std::string(g.value);
  return taken;
}

Allowed set_lock_patience(Settings& s, const Given& g) {
  auto ms = parse_duration_ms(g.value);
  if (!ms || *ms == 0 || *ms > 24ull * 3600 * 1000) return "a time from 1ms to 24h, for example 30s or 10min";
  s.lock_patience_ms = *ms;
  return taken;
}

Allowed set_accept_epoch(Settings& s, const Given& g) {
  if (!parse_integer(g.value, s.accept_epoch)) return "an epoch's number, as the refused open named it";
  return taken;
}

Allowed set_buffer_bytes(Settings& s, const Given& g) {
  auto bytes = parse_size(g.value);
  if (!bytes || *bytes < (1 << 20) || *bytes > (1ull << 40)) return "a size from 1MiB to 1TiB";
  s.buffer_bytes = *bytes;
  return taken;
}

Allowed set_log_directory(Settings& s, const Given& g) {
  s.log_directory = g.value.empty() ? "" : absolute(g.value, g.base);
  return taken;
}

Allowed set_buffer(Settings& s, const Given& g) {
  int buffers = 0;
  uint64_t bytes = 0;
  if (g.value != "none") {
    const size_t by = g.value.find('x');
    const auto size = parse_size(by == std::string_view::npos ? "" : g.value.substr(by + 1));
    if (!size || !parse_integer(g.value.substr(0, by), buffers) || buffers < 1 || buffers > 1024 || *size < 4096 || *size > (1ull << 30))
      return "NxSIZE, N buffers from 1 to 1024 of 4096 bytes to 1GiB each (for example 4x16MiB), or none";
    bytes = *size;
  }
  s.buffers = buffers;
  s.buffer_size = bytes;
  return taken;
}

Allowed set_buffer_flush(Settings& s, const Given& g) {
  uint64_t ms = 0;
  if (g.value != "full" && g.value != "needed") {
    const auto after = parse_duration_ms(g.value);
    if (!after || *after < 10 || *after > 24ull * 3600 * 1000) return "full, needed, or a time from 10ms to 24h (for example 5s)";
    ms = *after;
  }
  s.buffer_flush = ms ? fmt::format("{}ms", ms) : std::string(g.value);
  s.buffer_flush_ms = ms;
  return taken;
}

Allowed set_gather_output(Settings& s, const Given& g) {
  s.gather_output = g.value.empty() ? "" : absolute(g.value, g.base);
  return taken;
}

Allowed set_shared_pointer(Settings& s, const Given& g) {
  for (const char* algorithm : {"automatic", "window", "process", "individual", "single", "native"}) {
    if (g.value != algorithm) continue;
    s.shared_pointer = algorithm;
    return taken;
  }
  return "automatic, window, process, individual, single or native";
}

Allowed set_merge(Settings& s, const Given& g) {
  if (g.value != "close" && g.value != "later") return "close or later";
  s.merge_later = g.value == "later";
  return taken;
}

Allowed set_max_metadata_records(Settings& s, const Given& g) {
  uint64_t records = 0;
  if (!parse_integer(g.value, records) || records < 1 || records > (1ull << 32)) return "a number of records from 1 to 4294967296";
  s.max_metadata_records = records;
  return taken;
}

Allowed set_ordered(Settings& s, const Given& g) {
  if (g.value != "root" && g.value != "scan") return "root or scan";
  s.ordered_by_scan = g.value == "scan";
  return taken;
}

struct Key {
  std::string_view name;
  enum Hint : uint8_t { none, ours, of_the_field, layout /* of the field too, and never refused */ } hint;
  Allowed (*set)(Settings&, const Given&);
  char separator;           // between a list's elements; 0: no list
  const char* values = "";  // worth proposing, separated by blanks: all that there are where the values are words
};

constexpr Key keys[] = {
    {"protect", Key::ours, set_protect, 0, "mirror:2 mirror:3 rs:2+1 rs:4+2 rs:8+3 none"},
    {"replication_factor", Key::of_the_field, set_replication_factor, 0, "2 3"},
    {"targets", Key::ours, set_directories<&Settings::targets>, ','},
    {"local", Key::none, set_directories<&Settings::local>, ','},
    {"domains", Key::none, set_domains, 0},
    {"checkpoint", Key::none, set_checkpoint, ':'},
    {"path", Key::none, set_globs<&Settings::path_globs>, ':'},
    {"mounts", Key::none, set_mounts, 0, "any shared local"},
    {"shared_mounts", Key::none, set_directories<&Settings::shared_mounts>, ','},
    {"local_mounts", Key::none, set_directories<&Settings::local_mounts>, ','},
    {"placement", Key::ours, set_placement, 0, "interleaved separate"},
    {"striping_unit", Key::layout, set_striping_unit, 0, "64KiB 256KiB 1MiB 4MiB"},
    {"striping_factor", Key::layout, set_striping_factor, 0},
    {"start_iodevice", Key::layout, set_start_iodevice, 0},
    {"cb_nodes", Key::layout, set_cb_nodes, 0},
    {"allow_shared_target", Key::ours, set_flag<&Settings::allow_shared_target>, 0},
    {"close", Key::ours, set_close, 0, "durable fast"},
    {"deadline", Key::ours, set_deadline, 0},
    {"patience", Key::ours, set_patience, 0},
    {"locks", Key::none, set_locks, 0, "auto kernel names"},
    {"lock_patience", Key::ours, set_lock_patience, 0},
    {"accept_epoch", Key::ours, set_accept_epoch, 0},
    {"buffer_bytes", Key::ours, set_buffer_bytes, 0},
    {"log_directory", Key::ours, set_log_directory, 0},
    {"buffer", Key::none, set_buffer, 0, "4x1MiB 4x16MiB none"},
    {"buffer_flush", Key::none, set_buffer_flush, 0, "full needed 5s"},
    {"gather_output", Key::none, set_gather_output, 0},
    {"shared_pointer", Key::ours, set_shared_pointer, 0, "automatic window process individual single native"},
    {"merge", Key::ours, set_merge, 0, "close later"},
    {"max_metadata_records", Key::ours, set_max_metadata_records, 0},
    {"ordered", Key::ours, set_ordered, 0, "root scan"},
    {"profile", Key::none, set_flag<&Settings::profile>, 0},
    {"profile_mpi", Key::none, set_flag<&Settings::profile_mpi>, 0},
    {"trace", Key::none, set_flag<&Settings::trace>, 0},
    {"profile_exclude", Key::none, set_globs<&Settings::profile_exclude>, ':'},
};

const Key* find_key(std::string_view name) {
  for (const Key& key : keys)
    if (key.name == name) return &key;
  return nullptr;
}

std::string hint_name(const Key& key) { return key.hint != Key::ours ? std::string(key.name) : "holdfast_" + std::string(key.name); }

std::string variable_name(std::string_view name) {
  std::string out = "HOLDFAST_";
  for (char c : name) out += (c >= 'a' && c <= 'z') ? char(c - 32) : c;
  return out;
}

// `called` is the key as the user wrote it, for the message.
Status apply(Settings& s, const Key& key, const Given& given, const std::string& called) {
  const Allowed allowed = key.set(s, given);
  if (allowed == taken) return Status();
  return Status(Kind::invalid, fmt::format("{} is '{}': allowed is {}", called, given.value, allowed));
}

Status apply_file(Settings& s, const std::string& path) {
  auto entries = read_config_file(path);
  if (!entries) return entries.status();
  const std::string whole = absolute(path, working_directory());
  const std::string base = whole.substr(0, std::max<size_t>(whole.rfind('/'), 1));
  for (const ConfigEntry& entry : *entries) {
    const Key* key = find_key(entry.key);
    if (!key) {
      std::vector<std::string> known;
      for (const Key& k : keys) known.emplace_back(k.name);
      return Status(Kind::invalid, fmt::format("{} has the key '{}', which means nothing: the keys are {}", path, entry.key, join(known, ", ")));
    }
    const std::string called = fmt::format("{} in {}", entry.key, path);
    if (entry.values.size() > 1 && !key->separator) return Status(Kind::invalid, fmt::format("{} is a list: give one value", called));
    for (const std::string& value : entry.values)
      if (entry.is_list && value.find(key->separator) != std::string::npos)
        return Status(Kind::invalid, fmt::format("{} has the element '{}', and '{}' may not be in one", called, value, key->separator));
    const std::string value = join(entry.values, key->separator == ',' ? "," : ":");
    HF_TRY(apply(s, *key, Given{value, Source::file, base}, called));
  }
  return Status();
}

Status apply_environment(Settings& s) {
  const std::string base = working_directory();
  for (const Key& key : keys) {
    const std::string name = variable_name(key.name);
    const char* value = std::getenv(name.c_str());
    // A variable that is set to nothing asks for nothing; lists can be emptied that way.
    if (!value || (!*value && !key.separator)) continue;
    HF_TRY(apply(s, key, Given{trim(value), Source::environment, base}, name));
  }
  return Status();
}

}  // namespace

std::optional<SettingFacts> facts_of_setting(std::string_view name) {
  const Key* key = find_key(name);
  if (!key) return std::nullopt;
  SettingFacts facts;
  facts.variable = variable_name(key->name);
  if (key->hint != Key::none) facts.hint = hint_name(*key);
  // What no setter takes but those that take any text: the sentence of the refusal is the description.
  Settings scratch;
  if (const Allowed allowed = key->set(scratch, Given{"\x01", Source::command_line, "/"}); allowed != taken) facts.allowed = allowed;
  facts.values = split(key->values, ' ');
  return facts;
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
void forget_environment_variable(const char* name) { ::unsetenv(name); }
namespace {

std::string state_directory() {
  const std::string state = environment_variable("XDG_STATE_HOME");
  return (state.empty() ? environment_variable("HOME") + "/.local/state" : state) + "/holdfast";
}

}  // namespace

std::string agents_directory() {
  if (const std::string said = environment_variable("HOLDFAST_AGENTS"); !said.empty()) return said;
  return state_directory() + "/agents";
}

std::string jobs_directory() { return state_directory() + "/jobs"; }

namespace {

// Variables of ours that are no settings.
constexpr const char* other_variables[] = {"HOLDFAST_CONFIG",     "HOLDFAST_PYTHON", "HOLDFAST_RANK",    "HOLDFAST_PROFILE_PIECES",
                                           "HOLDFAST_TEST_NODES", "HOLDFAST_AGENTS", "HOLDFAST_REPLICA", "HOLDFAST_CHECKPOINT_RUN"};

// Letters to change, add or leave out between two words (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<StrangeVariable> strange_variables() {
  constexpr size_t far = 3;  // letters: further off it is another word
  std::vector<std::string> known(std::begin(other_variables), std::end(other_variables));
  for (const Key& key : keys) known.push_back(variable_name(key.name));
  std::vector<StrangeVariable> strange;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view whole = *variable;
    const std::string name(whole.substr(0, whole.find('=')));
    if (!name.starts_with("HOLDFAST_") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto closer = [&](const std::string& a, const std::string& b) { return distance(name, a) < distance(name, b); };
    const auto nearest = std::min_element(known.begin(), known.end(), closer);
    strange.push_back({name, distance(name, *nearest) <= far ? *nearest : ""});
  }
  return strange;
}

std::string rank_of_environment() {
  for (const char* name : rank_variables)
    if (std::string rank = environment_variable(name); !rank.empty()) return rank;
  return "";
}

Result<Settings> Settings::load_with(const std::string& config_path) {
  Settings settings;
  const char* named = config_path.empty() ? std::getenv("HOLDFAST_CONFIG") : config_path.c_str();
  if (named && *named) HF_TRY(apply_file(settings, named));
  if (!named && config_file_exists("holdfast.toml")) HF_TRY(apply_file(settings, "holdfast.toml"));
  HF_TRY(apply_environment(settings));
  return settings;
}

Result<Settings> Settings::load() { return load_with(""); }

namespace {

// A unit that is no multiple of a page is made one: it was meant for other stripes.
std::string nearest_unit(std::string_view value) {
  const auto bytes = parse_size(value);
  if (!bytes.ok() || *bytes == 0) return std::string(value);
  const uint64_t bounded = std::clamp(*bytes, uint64_t(min_unit_bytes), uint64_t(max_unit_bytes));
  return std::to_string((bounded + min_unit_bytes - 1) / min_unit_bytes * min_unit_bytes);
}

void apply_layout_hint(Settings& s, const Key& key, std::string_view value) {
  const bool unit = key.name == "striping_unit";
  const std::string usable = unit ? nearest_unit(value) : std::string(value);
  const Allowed allowed = key.set(s, Given{usable, Source::hint, {}});
  if (allowed != taken) {
    s.hint_remarks.push_back(fmt::format("the hint {} '{}' is ignored: allowed is {}", key.name, value, allowed));
    return;
  }
  if (unit && s.striping_unit && usable != value && *parse_size(value) != *s.striping_unit)
    s.hint_remarks.push_back(fmt::format("the hint striping_unit '{}' is taken as {}", value, usable));
  s.factor_is_hinted |= key.name == "striping_factor";
  s.start_is_hinted |= key.name == "start_iodevice";
}

}  // namespace

Status Settings::apply_hint(std::string_view name, std::string_view value) {
  const std::string base = working_directory();
  for (const Key& key : keys) {
    if (key.hint == Key::none || hint_name(key) != name) continue;
    if (key.hint != Key::layout) return apply(*this, key, Given{trim(value), Source::hint, base}, "hint " + std::string(name));
    apply_layout_hint(*this, key, trim(value));
  }
  return Status();
}

void Settings::fit_layout_hints(int available) {
  const int width = protect ? scheme_width(*protect).value_or(0) : 0;
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

Status Settings::apply_option(std::string_view name, std::string_view value) {
  const Key* key = find_key(name);
  if (!key) return Status(Kind::internal, fmt::format("there is no setting '{}'", name));
  std::string called = "--" + std::string(name == "log_directory" ? "log-dir" : name);
  std::replace(called.begin(), called.end(), '_', '-');
  return apply(*this, *key, Given{trim(value), Source::command_line, working_directory()}, called);
}

Status Settings::check() const {
  auto bad = [](std::string sentence) { return Status(Kind::invalid, std::move(sentence)); };
  if (!contradiction.empty()) return bad(contradiction);
  if (!targets.empty() && !local.empty()) return bad("targets and local say both where the files are kept; leave one of them out");
  if (!protects()) return Status();
  const int width = scheme_width(*protect).value_or(0);
  const int given = int(targets.size());
  if (given && given < width)
    return bad(fmt::format("{} needs {} targets and {} {} given: name more with --targets, or choose a smaller scheme", *protect, width, given,
                           given == 1 ? "is" : "are"));
  if (striping_factor && given && *striping_factor > given)
    return bad(fmt::format("striping_factor {} asks for more targets than the {} given: lower it or name more", *striping_factor, given));
  if (striping_factor && *striping_factor < width && !allow_shared_target)
    return bad(
        fmt::format("striping_factor {} is less than the {} distinct devices that {} needs: raise it, or choose a "
                    "smaller scheme",
                    *striping_factor, width, *protect));
  const int devices = striping_factor.value_or(given);
  if (start_iodevice && devices && *start_iodevice >= std::max(devices, given))
    return bad(fmt::format("start_iodevice {} is not one of the {} targets (0 to {})", *start_iodevice, std::max(devices, given),
                           std::max(devices, given) - 1));
  return Status();
}

namespace {
// Every setting that differs from its default, as text that its setter takes.
std::map<std::string_view, std::string> values_of(const Settings& s) {
  const Settings fresh;
  std::map<std::string_view, std::string> out;
  if (s.protect && s.protect_is_replication_factor) out["replication_factor"] = s.protect->substr(7);
  else if (s.protect) out["protect"] = *s.protect;
  if (!s.targets.empty()) out["targets"] = join(s.targets, ",");
  if (!s.local.empty()) out["local"] = join(s.local, ",");
  if (!s.domains.empty()) out["domains"] = s.domains;
  if (!s.checkpoint.empty()) out["checkpoint"] = join(s.checkpoint, ":");
  if (!s.path_globs.empty()) out["path"] = join(s.path_globs, ":");
  if (s.mounts != fresh.mounts) out["mounts"] = s.mounts;
  if (!s.shared_mounts.empty()) out["shared_mounts"] = join(s.shared_mounts, ",");
  if (!s.local_mounts.empty()) out["local_mounts"] = join(s.local_mounts, ",");
  if (s.placement) out["placement"] = *s.placement;
  if (s.striping_unit) out["striping_unit"] = std::to_string(*s.striping_unit);
  if (s.striping_factor) out["striping_factor"] = std::to_string(*s.striping_factor);
  if (s.start_iodevice) out["start_iodevice"] = std::to_string(*s.start_iodevice);
  if (s.cb_nodes) out["cb_nodes"] = std::to_string(s.cb_nodes);
  if (s.allow_shared_target) out["allow_shared_target"] = "true";
  if (s.fast_close) out["close"] = "fast";
  if (s.deadline_ms != fresh.deadline_ms) out["deadline"] = fmt::format("{}ms", s.deadline_ms);
  if (s.patience != fresh.patience) out["patience"] = std::to_string(s.patience);
  if (s.locks != fresh.locks) out["locks"] = s.locks;
  if (s.lock_patience_ms != fresh.lock_patience_ms) out["lock_patience"] = fmt::format("{}ms", s.lock_patience_ms);
  if (s.accept_epoch) out["accept_epoch"] = std::to_string(s.accept_epoch);
  if (s.buffer_bytes != fresh.buffer_bytes) out["buffer_bytes"] = std::to_string(s.buffer_bytes);
  if (!s.log_directory.empty()) out["log_directory"] = s.log_directory;
  if (s.buffers) out["buffer"] = fmt::format("{}x{}", s.buffers, s.buffer_size);
  if (s.buffer_flush != fresh.buffer_flush) out["buffer_flush"] = s.buffer_flush;
  if (!s.gather_output.empty()) out["gather_output"] = s.gather_output;
  if (s.shared_pointer != fresh.shared_pointer) out["shared_pointer"] = s.shared_pointer;
  if (s.merge_later) out["merge"] = "later";
  if (s.max_metadata_records != fresh.max_metadata_records) out["max_metadata_records"] = std::to_string(s.max_metadata_records);
  if (s.ordered_by_scan) out["ordered"] = "scan";
  if (s.profile) out["profile"] = "true";
  if (s.profile_mpi) out["profile_mpi"] = "true";
  if (s.trace) out["trace"] = "true";
  if (!s.profile_exclude.empty()) out["profile_exclude"] = join(s.profile_exclude, ":");
  return out;
}
}  // namespace

std::map<std::string, std::string> Settings::hints() const {
  std::map<std::string, std::string> out;
  auto values = values_of(*this);
  if (protect) values["protect"] = *protect;
  if (protect && protect->starts_with("mirror:")) values["replication_factor"] = protect->substr(7);
  for (const auto& [name, value] : values)
    if (const Key* key = find_key(name); key->hint != Key::none) out[hint_name(*key)] = value;
  return out;
}

std::map<std::string, std::string> Settings::environment() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : values_of(*this)) out[variable_name(name)] = value;
  // What the file said is in the variables; a job that changes its directory must not meet another file.
  out["HOLDFAST_CONFIG"] = "";
  return out;
}

Result<uint64_t> parse_size(std::string_view text) {
  text = trim(text);
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit = lower(trim(text.substr(size_t(end - text.data()))));
  int shift = -1;
  if (unit.empty() || unit == "b") shift = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string letter(1, "kmgt"[i]);
    if (unit == letter || unit == letter + "b" || unit == letter + "ib") shift = 10 * (i + 1);
  }
  if (error != std::errc() || shift < 0 || (number << shift) >> shift != number)
    return Status(Kind::invalid, fmt::format("'{}' is not a size: write 1048576, 64k, 1MiB or 2G", text));
  return number << shift;
}

Result<uint64_t> parse_duration_ms(std::string_view text) {
  text = trim(text);
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string unit = lower(trim(text.substr(size_t(end - text.data()))));
  double factor = 0;
  if (unit == "ms") factor = 1;
  if (unit.empty() || unit == "s" || unit == "sec") factor = 1000;
  if (unit == "min" || unit == "m") factor = 60 * 1000;
  if (unit == "h") factor = 3600 * 1000;
  if (unit == "d") factor = 24.0 * 3600 * 1000;
  if (unit == "y") factor = 365.25 * 24 * 3600 * 1000;
  const double ms = number * factor;
  if (error != std::errc() || factor == 0 || !(ms >= 0 && ms < 1e15))
    return Status(Kind::invalid, fmt::format("'{}' is not a time: write 10 (seconds), 500ms, 10s, 2min, 1.5h, 30d or 3y", text));
  return uint64_t(ms + 0.5);
}

bool glob_matches(const std::string& glob, const std::string& absolute_path) {
  if (glob.find('/') != std::string::npos) return ::fnmatch(glob.c_str(), absolute_path.c_str(), 0) == 0;
  return ::fnmatch(glob.c_str(), absolute_path.c_str() + absolute_path.rfind('/') + 1, 0) == 0;
}

}  // namespace holdfast
