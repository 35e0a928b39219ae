// What `holdfast doctor` finds of other nodes: directories that their agents serve, the pool of --local, and the racks that they are in.
#pragma once
#include <string>

#include "base/config.hpp"
#include "cli/job/doctor_findings.hpp"

namespace holdfast::cli {

// `hosts`: a list or a file; empty: the resource manager's nodes, else this one.
Findings look_at_nodes(const Settings& settings, const std::string& hosts);

}  // namespace holdfast::cli
