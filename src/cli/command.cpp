#include "cli/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/node_path.hpp"
#include "base/say.hpp"
#include "base/settings/record.hpp"
#include "base/settings/text.hpp"
#include "base/shell_word.hpp"
#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/pattern.hpp"
#include "cli/job/node_agents.hpp"
#include "cli/option_facts.hpp"
#include "target/agent_registry.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::cli {

namespace {

volatile sig_atomic_t interrupt_seen = 0;

// With the default behind it.
std::string help_of(const Record& record) {
  const std::string fallback = record.is_flag() ? "" : record.shown(Settings());
  return fallback.empty() ? record.help : fmt::format("{} ({})", record.help, fallback);
}

}  // namespace

void SettingsOptions::add(CLI::App& app, std::string_view key, const std::string& help, const std::string& value) {
  const Record& record = *find_record(key);
  const std::string text = help.empty() ? help_of(record) : help;
  CLI::Option* option = nullptr;
  if (record.is_flag())
    option = app.add_flag_callback(
        record.option_name(), [this, &record] { given_.emplace_back(record.key, "true"); }, text);
  else if (record.separator() == ':') option = add_globs(app, record, text);
  else
    option = app.add_option_function<std::string>(
        record.option_name(), [this, &record](const std::string& v) { given_.emplace_back(record.key, v); }, text);
  if (!record.is_flag()) option->type_name(value.empty() ? record.value : value);
  option->group(settings_group);
}

// As in "$PWD/ck/ck.{step}": a ':' in the name of a directory that is there separates nothing.
std::string with_colons_of_directories(const std::string& glob) {
  const size_t colon = text::find_unescaped(glob, ":"), ends = glob.find('/', colon);
  if (colon == std::string::npos || ends == std::string::npos || !catalog::look(path_from_here(text::unescaped(glob.substr(0, ends))), true))
    return glob;
  return with_colons_of_directories(glob.substr(0, colon) + "\\" + glob.substr(colon));
}

// Options that may be given several times.
CLI::Option* SettingsOptions::add_globs(CLI::App& app, const Record& record, const std::string& help) {
  auto take = [this, &record](std::vector<std::string> globs) {
    const bool may_be_shared = std::holds_alternative<Patterns>(record.kind);
    for (std::string& glob : globs) {
      const size_t begins = may_be_shared && glob.starts_with(checkpoint::shared_prefix) ? checkpoint::shared_prefix.size() : 0;
      glob.replace(begins, std::string::npos, with_colons_of_directories(glob.substr(begins)));
      if (text::find_unescaped(std::string_view(glob).substr(begins), ":") != std::string::npos)
        throw CLI::ValidationError(record.option_name(), fmt::format("'{}' has a ':', which separates globs: write '\\:' for it", glob));
    }
    given_.emplace_back(record.key, fmt::format("{}", fmt::join(globs, ":")));
  };
  return app.add_option_function<std::vector<std::string>>(record.option_name(), take, help)->expected(1)->take_all()->allow_extra_args(false);
}

void SettingsOptions::add_config(CLI::App& app) {
  app.add_option("--config", config_, "Settings file to read instead of ./holdfast.toml")->type_name("FILE");
}

void SettingsOptions::add_waiting(CLI::App& app) {
  for (const char* key : {"deadline", "patience", "locks", "lock_patience"}) add(app, key);
}

void SettingsOptions::add_finding(CLI::App& app) {
  add(app, "targets", "Where to look for the file's target set if its sidecar is gone: any member");
  add_waiting(app);
  add(app, "accept_epoch");
  add_config(app);
}

void SettingsOptions::add_making(CLI::App& app) {
  for (const char* key :
       {"protect", "targets", "local", "domains", "placement", "striping_unit", "striping_factor", "start_iodevice", "allow_shared_target"})
    add(app, key);
  add_waiting(app);
  add_config(app);
}

Result<Settings> SettingsOptions::load() const {
  auto settings = Settings::load_with(config_);
  if (!settings) return settings.status();
  for (const auto& [key, value] : given_) HF_TRY(settings->apply_option(key, value));
  target::choose_lock_way(settings->locks);
  return settings;
}

int fail(const Status& status, int code) {
  say("holdfast: {}\n", status.sentence());
  return code;
}

int code_of(const Status& status) {
  switch (status.kind()) {
    case Kind::ok: return exit_ok;
    case Kind::lost:
    case Kind::stale:
    case Kind::timed_out: return exit_lost;
    default: return exit_error;
  }
}

int code_of(engine::Health health) { return static_cast<int>(health); }

namespace {

// Nodes out of reach are no excuse where more is lost than the scheme bears without them.
bool is_lost_for_good(const std::string& path, const Settings& settings) {
  auto located = catalog::locate(path, settings, {.ignore_edits = true});
  if (!located) return false;
  auto report = engine::file_status(*located, settings);
  return report.ok() && report->health == engine::Health::lost;
}

}  // namespace

int fail_for(const std::string& path, const Status& status, const Settings& settings) {
  const bool named = status.sentence().find(path) != std::string::npos;
  say("holdfast: {}{}\n", named ? "" : path + ": ", status.sentence());
  std::set<std::string> unreached;  // nodes
  for (const std::string& address : target::unreached_addresses()) unreached.insert(parse_node_path(address).node);
  if (code_of(status) != exit_lost || unreached.empty()) return code_of(status);
  if (catalog::kind_of(path_from_here(path)) != catalog::PathKind::protected_file) return exit_error;
  if (is_lost_for_good(path_from_here(path), settings)) return exit_lost;
  say("holdfast: whether anything of it is lost cannot be told while no agent answers on {}; start {} with holdfast agents start\n",
      fmt::join(unreached, ", "), unreached.size() == 1 ? "it" : "them");
  return exit_error;
}

std::string how_to_reach(const std::string& address) {
  const NodePath parsed = parse_node_path(address);
  // A simulated node's agent takes no connections from other machines.
  if (is_of_simulated(parsed.node, parsed.path))
    return fmt::format("start the agent of simulated node {}: holdfast agents start --this-node-only --node {} {}", parsed.node, parsed.node,
                       shell_word(parsed.path));
  return fmt::format("start its agent, on {}: holdfast agents start --node {} {}", parsed.node, parsed.node, shell_word(parsed.path));
}

std::string pattern_from_here(const std::string& pattern) {
  return pattern.starts_with('/') ? plain_path(pattern) : text::escaped(path_from_here("")) + "/" + pattern;
}

std::string path_from_here(const std::string& path) {
  if (path.starts_with('/') || names_a_node(path)) return plain_address(path);
  char here[PATH_MAX];
  const std::string directory = ::getcwd(here, sizeof here) ? here : "";
  return path.empty() ? directory : directory + "/" + path;
}

void print_json(const nlohmann::json& json) {
  // Names are bytes and need not be UTF-8: what is not is replaced, for JSON has no other way.
  show("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json json_of(const engine::FileStatus& status) {
  const layout::Geometry& g = status.manifest.geometry;
  nlohmann::json members = nlohmann::json::array();
  for (const engine::MemberReport& m : status.members) {
    nlohmann::json member = {{"member", m.member}, {"path", m.path}, {"state", m.state}};
    if (const auto& nodes = status.manifest.members[size_t(m.member)].nodes; !nodes.empty()) member["nodes"] = nodes;
    if (!m.why.empty()) member["why"] = m.why;
    if (m.units) member["units"] = m.units, member["damaged_units"] = m.damaged_units;
    members.push_back(std::move(member));
  }
  nlohmann::json out = {{"path", status.manifest.path},
                        {"file_id", status.manifest.file_id},
                        {"set_id", status.manifest.set_id},
                        {"scheme", g.scheme.name()},
                        {"placement", layout::placement_name(g.placement)},
                        {"single_directory", g.single_directory},
                        {"striping_unit", g.unit_bytes},
                        {"targets", g.members},
                        {"start_iodevice", g.start},
                        {"size", status.manifest.size},
                        {"epoch", status.manifest.epoch},
                        {"health", engine::health_name(status.health)},
                        {"tolerates_more", status.tolerates_more},
                        {"members", std::move(members)}};
  if (const auto& version = status.manifest.version) {
    out["path"] = version->file;
    out["checkpoint"] = {{"run", version->run}, {"attempt", version->attempt.number}, {"step", version->step}, {"rank", version->rank}};
    if (version->attempt.id) out["checkpoint"]["attempt_id"] = layout::id_text(version->attempt.id);
  }
  return out;
}

bool interrupted() { return interrupt_seen; }

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupt_seen = 1; };
  action.sa_flags = SA_RESETHAND;  // a second one ends the process at once
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace holdfast::cli
