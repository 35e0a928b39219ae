#include "base/config.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

// Only config_file.cpp knows TOML; the records of the keys are in settings/.
#include "base/config_file.hpp"
#include "base/environment.hpp"
#include "base/rank_variables.hpp"
#include "base/settings/origins.hpp"
#include "base/settings/record.hpp"
#include "base/settings/text.hpp"

namespace holdfast {

namespace {

// `called` is the key as the user wrote it, for the message.
Status apply(Settings& s, const Record& record, const Given& given, const std::string& called) {
  if (record.take(s, given)) return Status();
  return Status(Kind::invalid, fmt::format("{} is '{}': allowed is {}", called, given.value, record.allowed()));
}

Status apply_file(Settings& s, const std::string& path) {
  auto entries = read_config_file(path);
  if (!entries) return entries.status();
  const std::string whole = text::absolute(path, text::working_directory());
  const std::string base = whole.substr(0, std::max<size_t>(whole.rfind('/'), 1));
  for (const ConfigEntry& entry : *entries) {
    const Record* record = find_record(entry.key);
    if (!record) {
      std::vector<std::string> known;
      for_each_record([&](const Record& each) { known.emplace_back(each.key); });
      return Status(Kind::invalid,
                    fmt::format("{} has the key '{}', which means nothing: the keys are {}", path, entry.key, text::join(known, ", ")));
    }
    const std::string called = fmt::format("{} in {}", entry.key, path);
    if (entry.values.size() > 1 && !record->separator()) return Status(Kind::invalid, fmt::format("{} is a list: give one value", called));
    for (const std::string& value : entry.values)
      if (const char separator = record->separator(); entry.is_list && text::find_unescaped(value, {&separator, 1}) != std::string::npos)
        return Status(Kind::invalid, fmt::format("{} has the element '{}', and '{}' {}", called, value, separator,
                                                 separator == ':' ? "separates elements: write '\\:' for it" : "may not be in one"));
    const std::string value = text::join(entry.values, record->separator() == ',' ? "," : ":");
    HF_TRY(apply(s, *record, Given{value, Source::file, base}, called));
  }
  return Status();
}

// The kernel takes no longer one, with its name. One of just this length goes on in the next.
constexpr size_t bytes_of_a_variable = (128 << 10) - 128;

bool goes_on(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value && std::strlen(value) == bytes_of_a_variable;
}

// A variable that is set to nothing asks for nothing; lists can be emptied that way.
std::optional<std::string> variable_of(const Record& record) {
  const char* value = std::getenv(record.variable().c_str());
  if (!value || !(*value || record.separator())) return {};
  std::string whole = value;
  for (int part = 2; goes_on(record.variable(part - 1)); ++part) whole += environment_variable(record.variable(part).c_str());
  return whole;
}

Status apply_environment(Settings& s) {
  const std::string base = text::working_directory();
  for (const Area* area : areas())
    for (const Record& record : area->records)
      if (const auto value = variable_of(record)) HF_TRY(apply(s, record, Given{text::trim(*value), Source::environment, base}, record.variable()));
  return Status();
}

}  // namespace

std::optional<SettingFacts> facts_of_setting(std::string_view key) {
  const Record* record = find_record(key);
  if (!record) return std::nullopt;
  return SettingFacts{record->variable(), record->hint_name(), record->allowed(), record->proposals()};
}

bool environment_has(const char* name) { return std::getenv(name) != nullptr; }

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
// A shell has an unsetenv of its own, which knows of no variable yet when libraries are loaded.
void forget_environment_variable(const char* name) {
  ::unsetenv(name);
  const size_t length = std::strlen(name);
  char** to = environ;
  for (char** from = environ; from && *from; ++from)
    if (std::strncmp(*from, name, length) != 0 || (*from)[length] != '=') *to++ = *from;
  if (to) *to = nullptr;
}
namespace {

// As a shell's `~`; empty where neither the environment nor the system knows one.
std::string home_directory() {
  if (std::string home = environment_variable("HOME"); !home.empty()) return home;
  char text[4096];
  passwd entry, *found = nullptr;
  return ::getpwuid_r(::geteuid(), &entry, text, sizeof text, &found) == 0 && found ? found->pw_dir : "";
}

std::string state_directory(const std::string& what) {
  if (const std::string state = environment_variable("XDG_STATE_HOME"); !state.empty()) return state + "/holdfast/" + what;
  const std::string home = home_directory();
  return home.empty() ? "" : home + "/.local/state/holdfast/" + what;
}

}  // namespace

std::string agents_directory() {
  if (const std::string said = environment_variable("HOLDFAST_AGENTS"); !said.empty()) return said;
  return state_directory("agents");
}

std::string jobs_directory() { return state_directory("jobs"); }

std::string job_of_this_process() {
  constexpr size_t digits = 16;
  std::string job = environment_variable(job_variable);
  if (job.size() != digits || job.find_first_not_of("0123456789abcdef") != std::string::npos) job.clear();
  return job;
}

namespace {

// Variables of ours that are no settings.
constexpr const char* other_variables[] = {"HOLDFAST_CONFIG",     "HOLDFAST_PYTHON",           "HOLDFAST_RANK",         "HOLDFAST_PROFILE_PIECES",
                                           "HOLDFAST_TEST_NODES", "HOLDFAST_AGENTS",           "HOLDFAST_REPLICA",      "HOLDFAST_CHECKPOINT_RUN",
                                           "HOLDFAST_NODE",       "HOLDFAST_CHILD_OF_REPLICA", "HOLDFAST_RANKS_BEFORE", job_variable};

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
  for_each_record([&](const Record& record) {
    known.push_back(record.variable());
    for (int part = 2; goes_on(record.variable(part - 1)); ++part) known.push_back(record.variable(part));
  });
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

bool is_only_rank() {
  bool is_said = rank_of_environment().empty();
  for (const char* name : size_variables) {
    const std::string said = environment_variable(name);
    if (!said.empty() && said != "1") return false;
    is_said |= !said.empty();
  }
  return is_said;
}

namespace {

std::string file_to_read(const std::string& config_path) {
  const char* named = config_path.empty() ? std::getenv("HOLDFAST_CONFIG") : config_path.c_str();
  if (named) return named;
  return config_file_exists("holdfast.toml") ? "holdfast.toml" : "";
}

}  // namespace

Result<Origins> origins_of_settings(const std::string& config_path) {
  Origins origins{file_to_read(config_path), {}};
  if (!origins.file.empty()) {
    const auto entries = read_config_file(origins.file);
    if (!entries) return entries.status();
    for (const ConfigEntry& entry : *entries)
      if (const Record* record = find_record(entry.key)) origins.by_key[record->key] = Source::file;
  }
  for_each_record([&](const Record& record) {
    if (variable_of(record)) origins.by_key[record.key] = Source::environment;
  });
  return origins;
}

Result<Settings> Settings::load_with(const std::string& config_path) {
  Settings settings;
  if (const std::string file = file_to_read(config_path); !file.empty()) HF_TRY(apply_file(settings, file));
  HF_TRY(apply_environment(settings));
  return settings;
}

Result<Settings> Settings::load() { return load_with(""); }

namespace {

void apply_layout_hint(Settings& s, const Record& record, std::string_view value) {
  const bool unit = record.key == "striping_unit";
  const std::string usable = unit ? nearest_unit(value) : std::string(value);
  if (!record.take(s, Given{usable, Source::hint, {}})) {
    s.hint_remarks.push_back(fmt::format("the hint {} '{}' is ignored: allowed is {}", record.key, value, record.allowed()));
    return;
  }
  if (unit && s.striping_unit && usable != value && *parse_size(value) != *s.striping_unit)
    s.hint_remarks.push_back(fmt::format("the hint striping_unit '{}' is taken as {}", value, usable));
  s.factor_is_hinted |= record.key == "striping_factor";
  s.start_is_hinted |= record.key == "start_iodevice";
}

}  // namespace

Status Settings::apply_hint(std::string_view name, std::string_view value) {
  const std::string key(name.starts_with("holdfast_") ? name.substr(9) : name);
  const Record* record = find_record(key);
  if (!record || record->hint_name() != name) return Status();
  if (record->hint != Hint::layout)
    return apply(*this, *record, Given{text::trim(value), Source::hint, text::working_directory()}, "hint " + std::string(name));
  apply_layout_hint(*this, *record, text::trim(value));
  return Status();
}

Status Settings::apply_option(std::string_view key, std::string_view value) {
  const Record* record = find_record(key);
  if (!record) return Status(Kind::internal, fmt::format("there is no setting '{}'", key));
  return apply(*this, *record, Given{text::trim(value), Source::command_line, text::working_directory()}, record->option_name());
}

Status Settings::check() const {
  auto bad = [](std::string sentence) { return Status(Kind::invalid, std::move(sentence)); };
  if (!contradiction.empty()) return bad(contradiction);
  if (!targets.empty() && !local.empty()) return bad("targets and local say both where the files are kept; leave one of them out");
  if (!protects()) return Status();
  const int width = scheme_width();
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

// Calls f(record, text) for each setting that differs from its default.
template <class F>
void for_each_change(const Settings& s, const F& f) {
  const Settings fresh;
  for_each_record([&](const Record& record) {
    const std::string value = record.text(s);
    if (value != record.text(fresh)) f(record, value);
  });
}

}  // namespace

std::map<std::string, std::string> Settings::hints() const {
  std::map<std::string, std::string> out;
  for_each_change(*this, [&](const Record& record, const std::string& value) {
    if (record.hint != Hint::none) out[record.hint_name()] = value;
  });
  // The scheme has two keys, and a program may ask for either.
  if (protect) out["holdfast_protect"] = *protect;
  if (protect && protect->starts_with("mirror:")) out["replication_factor"] = protect->substr(7);
  return out;
}

std::map<std::string, std::string> Settings::environment() const {
  std::map<std::string, std::string> out;
  for_each_change(*this, [&](const Record& record, const std::string&) {
    const std::string value = record.text_for_jobs(*this);
    for (size_t done = 0, part = 1; done < value.size() || part == 1; done += bytes_of_a_variable, ++part)
      out[record.variable(int(part))] = value.substr(done, bytes_of_a_variable);
  });
  // What the file said is in the variables; a job that changes its directory must not meet another file.
  out["HOLDFAST_CONFIG"] = "";
  return out;
}

bool glob_matches(const std::string& glob, const std::string& absolute_path) {
  if (glob.find('/') != std::string::npos) return ::fnmatch(glob.c_str(), absolute_path.c_str(), 0) == 0;
  return ::fnmatch(glob.c_str(), absolute_path.c_str() + absolute_path.rfind('/') + 1, 0) == 0;
}

}  // namespace holdfast
