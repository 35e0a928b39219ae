// What the catalog reads: where the parts of new files are kept.
#pragma once
#include <string>
#include <vector>

namespace holdfast {

struct PlaceSettings {
  std::vector<std::string> targets;  // absolute paths, or NODE:DIR
  std::vector<std::string> local;    // directories of a pool, in the place of targets
  std::string domains;               // a file that says which nodes are lost together
};

}  // namespace holdfast
