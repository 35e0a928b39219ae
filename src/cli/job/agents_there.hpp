// `holdfast agents status|stop` of nodes that --hosts names, from here or by a command that --with says on each of them.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// --hosts and --with, which is returned.
CLI::Option* add_there(CLI::App& app, std::string& hosts, std::string& with);
// With `with` the exit code of the whole: `action` has been done on all of these nodes, the worst counts. Without it the names of `hosts` are added to
// `nodes`, for who does it from here. An exit code, too, where these cannot be told.
std::optional<int> ask_there(const std::string& action, const std::string& hosts, const std::string& with, std::vector<std::string>& nodes);

}  // namespace holdfast::cli
