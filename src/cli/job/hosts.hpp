// The names of a job's nodes: from the user, or from the resource manager.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace holdfast::cli {

std::string short_host_name();
// By its short name or by its long one.
bool is_this_host(const std::string& node);

// A launcher or a batch system may list long names; a node's is the short one, as long as no two nodes have the same.
std::vector<std::string> without_domains(std::vector<std::string> names);

// "n1,n2", "n[1-3,07-09]-ib,m" as Slurm writes it. Each name once.
Result<std::vector<std::string>> expand_hosts(std::string_view list);
// A file with a node a line, as for mpirun. What follows the name, or a ':' after it, is of no interest, nor is what stands behind '#'.
Result<std::vector<std::string>> read_hosts(const std::string& file);
// `given`: a list, or a file that is there. Empty: the resource manager's, by their short names; nothing where there is none.
Result<std::vector<std::string>> hosts_of_job(const std::string& given);

}  // namespace holdfast::cli
