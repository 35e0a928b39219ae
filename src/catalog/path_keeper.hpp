// The PathKeeper of real paths.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "catalog/located.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

struct KeeperPlace {
  std::string path;                 // the user's, absolute
  std::string former_path;          // where the stub stood before it was moved: its sidecar goes at the next publish
  std::vector<bool> member_lost;    // not to be linked to
  Status read_only;                 // of a copied stub: why nothing is published
  bool replace_torn = false;        // what a power cut has left of the stub
  std::string torn_directory = {};  // of a file that was never synced: what leads to that is replaced
  bool replace_foreign = false;     // put the entry back even where somebody put something else there
  uint64_t deadline_ms = 10000;     // for looking at a whole copy on its target
};

std::shared_ptr<PathKeeper> make_path_keeper(KeeperPlace place);

// What the manifest wants to stand at the user's path.
struct WantedEntry {
  bool plain = false;    // data object 0 itself
  std::string leads_to;  // a link, where not empty
  int member = -1;       // whose whole copy that is
};
WantedEntry wanted_entry(const layout::Manifest& manifest, const std::vector<bool>& member_lost);

// The whole copy that stands at the path, or will do so at the next publish. Kind::unsupported: the file has none.
Result<FileState> look_at_copy(const layout::Manifest& manifest, const std::vector<bool>& member_lost, uint64_t deadline_ms);

}  // namespace holdfast::catalog
