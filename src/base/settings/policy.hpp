// What the tree reads: which files are meant.
#pragma once
#include <string>
#include <vector>

namespace holdfast {

struct PolicySettings {
  std::vector<std::string> path_globs;     // empty: every file created through MPI-IO
  std::string mounts = "any";              // file systems that the globs of plain files speak of: any, shared or local
  std::vector<std::string> shared_mounts;  // shared between nodes whatever their kind
  std::vector<std::string> local_mounts;   // each node's own whatever their kind
};

}  // namespace holdfast
