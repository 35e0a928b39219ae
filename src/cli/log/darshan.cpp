#include "cli/log/darshan.hpp"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "catalog/user_files.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

// Beside the command, as it is built and as it is installed.
std::string converter() {
  const auto self = catalog::read_link("/proc/self/exe");
  return directory_of(self ? *self : "") + "/../libexec/holdfast/darshan_log.py";
}

advice::Site site_of(const nlohmann::json& places) {
  advice::Site site;
  if (!places.is_array()) return site;
  for (const nlohmann::json& one : places) {
    if (!one.is_object() || !one.contains("path") || !one["path"].is_string()) continue;
    auto number = [&](const char* key) -> uint64_t { return one.contains(key) && one[key].is_number_unsigned() ? one[key].get<uint64_t>() : 0; };
    advice::Place place;
    if (one.contains("file_system") && one["file_system"].is_string()) place.file_system = one["file_system"].get<std::string>();
    place.stripe_count = uint32_t(number("stripe_count"));
    place.stripe_bytes = number("stripe_bytes");
    place.devices = uint32_t(number("devices"));
    site.add(one["path"].get<std::string>(), std::move(place));
  }
  return site;
}

}  // namespace

bool is_darshan_log(const std::string& path) { return path.ends_with(".darshan"); }

Result<ForeignLog> read_darshan_log(const std::string& path) {
  constexpr auto patience = std::chrono::minutes(10);  // the package reads large logs slowly
  const std::string named = environment_variable("HOLDFAST_PYTHON"), python = named.empty() ? "python3" : named;
  if (auto there = catalog::look(path, true); !there) return there.status();
  if (!find_on_path(python))
    return Status(Kind::unsupported,
                  "a Darshan log is read by Python, and '" + python + "' is not found: install Python 3, or name one by HOLDFAST_PYTHON");
  const auto text = output_of({python, converter(), path}, patience);
  const nlohmann::json json = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  if (!json.is_object())
    return Status(Kind::internal, path + " could not be converted; what Python says shows: " + python + " " + converter() + " " + path);
  if (json.contains("error") && json["error"].is_string()) return Status(Kind::unsupported, path + ": " + json["error"].get<std::string>());
  if (!json.contains("log")) return Status(Kind::internal, path + ": the conversion has no log in it");
  auto log = profile::from_json_text(json["log"].dump());
  if (!log) return Status(log.status().kind(), path + ": " + log.status().sentence());
  return ForeignLog{std::move(*log), site_of(json.value("places", nlohmann::json::array()))};
}

}  // namespace holdfast::cli
