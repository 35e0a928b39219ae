#include "cli/job/hosts.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/config.hpp"
#include "base/host_name.hpp"
#include "base/node_list.hpp"
#include "base/node_path.hpp"

namespace holdfast::cli {

namespace {

Status no_host(std::string_view text) {
  return Status(Kind::invalid, fmt::format("'{}' is no list of nodes: write n1,n2,n3 or n[1-3], or name a file with a node a line", text));
}

// n9 before n10: so they are said in few words.
bool comes_before(const std::string& one, const std::string& other) { return ::strverscmp(one.c_str(), other.c_str()) < 0; }

Result<std::vector<std::string>> named(std::vector<std::string> all, std::string_view text) {
  std::sort(all.begin(), all.end(), comes_before);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const std::string& name : all)
    if (!names_a_node(name + ":/")) return no_host(name.empty() ? text : name);
  if (all.empty()) return no_host(text);
  return all;
}

}  // namespace

std::vector<std::string> without_domains(std::vector<std::string> names) {
  std::vector<std::string> labels;
  for (const std::string& name : names) {
    const std::string label = name.substr(0, name.find('.'));
    labels.push_back(label.find_first_not_of("0123456789") == std::string::npos ? name : label);  // else an address
  }
  std::sort(labels.begin(), labels.end(), comes_before);
  const bool differ = std::adjacent_find(labels.begin(), labels.end()) == labels.end();
  return differ ? labels : names;
}

std::string short_host_name() {
  const std::string whole = host_name();
  return whole.substr(0, whole.find('.'));
}

bool is_this_host(const std::string& node) { return node == short_host_name() || node == host_name(); }

Result<std::vector<std::string>> expand_hosts(std::string_view list) {
  std::vector<std::string> all;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (!expand_names(list.substr(begin, i - begin), all) || all.size() > most_names) return no_host(list);
    begin = i + 1;
  }
  return named(std::move(all), list);
}

Result<std::vector<std::string>> read_hosts(const std::string& file) {
  std::ifstream in(file);
  if (!in) return Status::from_errno(errno, fmt::format("the list of nodes {} cannot be read", file));
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line) && all.size() < most_names;) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    if (words >> name) all.push_back(name.substr(0, name.find(':')));
  }
  return named(std::move(all), file);
}

Result<std::vector<std::string>> hosts_of_job(const std::string& given) {
  struct stat state = {};
  if (!given.empty()) return ::stat(given.c_str(), &state) == 0 && !S_ISDIR(state.st_mode) ? read_hosts(given) : expand_hosts(given);
  if (const std::string list = environment_variable("SLURM_JOB_NODELIST"); !list.empty()) return expand_hosts(list);
  for (const char* file : {"PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"})
    if (const std::string path = environment_variable(file); !path.empty()) {
      auto names = read_hosts(path);
      return names ? without_domains(std::move(*names)) : names;
    }
  return std::vector<std::string>();
}

}  // namespace holdfast::cli
