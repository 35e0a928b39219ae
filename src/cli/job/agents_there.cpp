#include "cli/job/agents_there.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/config.hpp"
#include "base/node_path.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/hosts.hpp"
#include "cli/log/job.hpp"

namespace holdfast::cli {

namespace {

// `which`: NODE or NODE:DIR. What the node's own processes see: the registry by its name there, and its agents by the node's sockets.
int on_node(const std::string& action, const std::string& which, const std::string& with) {
  const auto self = catalog::read_link("/proc/self/exe");
  const std::string way = with_node(with, names_a_node(which) ? node_of(which) : which);
  return run_to_end({"sh", "-c",
                     fmt::format("{} env HOLDFAST_AGENTS={} {} agents {} {} </dev/null", way, shell_quoted(agents_directory()),
                                 shell_quoted(self ? *self : "holdfast"), action, shell_quoted(which))});
}

}  // namespace

CLI::Option* add_there(CLI::App& app, std::string& hosts, std::string& with) {
  app.add_option("--hosts", hosts, "Those of these nodes")->type_name("LIST|FILE");
  return app.add_option("--with", with, "Do it on each of these nodes, by a command such as 'ssh {node}'")->type_name("COMMAND");
}

std::optional<int> ask_there(const std::string& action, const std::string& hosts, const std::string& with, std::vector<std::string>& nodes) {
  if (hosts.empty() && with.empty()) return std::nullopt;
  if (!hosts.empty() || nodes.empty()) {
    const auto named = hosts_of_job(hosts);
    if (!named) return fail(named.status());
    for (const std::string& node : *named)
      if (std::count(nodes.begin(), nodes.end(), node) == 0) nodes.push_back(node);
  }
  if (with.empty()) return std::nullopt;
  if (nodes.empty())
    return fail(Status(Kind::invalid, "--with says how a command is run on other nodes, and not on which: name them with --hosts n1,n2,..."));
  int code = exit_ok;
  for (const std::string& node : nodes) {
    const int one = on_node(action, node, with);
    if (one < 0) return fail(Status::from_errno(errno, "sh cannot be started"));
    code = std::max(code, one);
  }
  return code;
}

}  // namespace holdfast::cli
