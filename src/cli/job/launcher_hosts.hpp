// What a launcher's command says of hosts: in its options, in files that they or variables name, and in the allocation.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/job/launcher.hpp"

namespace holdfast::cli {

struct Host {
  std::string name;
  int slots = 0;  // 0: not said

  int places() const { return std::max(slots, 1); }
};
using Hosts = std::vector<Host>;

// What a launcher calls its hosts.
struct HostWords {
  std::vector<std::string> list, file;     // options that are followed by a list, by a file
  std::vector<std::string> file_variable;  // environment variables that name a file
  std::vector<std::string> way_variable;   // that name the command which reaches another host
  std::string put, put_file;               // the options that are written
  std::string crowd;                       // one that lets nodes of an allocation have more ranks than it has places for there; empty: they may

  bool is_file(const std::string& option) const { return std::find(file.begin(), file.end(), option) != file.end(); }
  std::vector<std::string> all() const;
};
// Null where the command begins with none of the launchers of Open MPI, and of MPICH and its kin.
const HostWords* host_words_of(const Mpi& mpi);

// "name", "name:4", "name slots=4 ...": what a list's element, or a line of a file, says.
std::optional<Host> parse_host(const std::string& text);
// A name that comes again is a further place, as launchers read it.
void add_host(Hosts& hosts, const Host& host);
Hosts hosts_in_list(const std::string& list);
Hosts hosts_in_file(const std::string& file);
Hosts hosts_of_allocation();
// The file that a launcher takes by its variables; empty where there is none.
std::string host_file_by_default(const HostWords& words);
// What stands nowhere in the command: the variables' file, or the allocation, each node with as many places as all ranks need.
Hosts hosts_by_default(const std::vector<std::string>& command, const HostWords& words);
std::string list_of(const Hosts& hosts);
// A host by its short name; an address is one as it is.
std::string short_name_of(const std::string& host);

// Options of launchers that are followed by how many ranks there are.
extern const std::vector<std::string> options_of_ranks;

// The options of a command up to its program, and behind each ':' again.
class OptionsOf {
 public:
  // `joined`: letters of those that may be followed by their value without a space, as in "-N4".
  explicit OptionsOf(const std::vector<std::string>& command, std::string_view joined = "") : command_(command), joined_(joined) {}
  // What `change` returns takes the place of each option of these, with its value.
  using Change = std::function<std::vector<std::string>(const std::string& option, const std::string& value)>;
  std::vector<std::string> change(const std::vector<std::string>& options, const Change& change) const;
  using Visit = std::function<void(const std::string& option, const std::string& value)>;
  void each(const std::vector<std::string>& options, const Visit& visit) const;

 private:
  std::pair<std::string, std::optional<std::string>> split(const std::string& word) const;

  const std::vector<std::string>& command_;
  const std::string_view joined_;
};

}  // namespace holdfast::cli
