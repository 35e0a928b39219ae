#include "cli/files/sets.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/node_path.hpp"
#include "catalog/pool.hpp"
#include "target/address.hpp"

namespace holdfast::cli {

bool is_target(const std::string& directory) {
  constexpr const char* marker = "holdfast-target.json";
  if (!names_a_node(directory)) return ::access((directory + "/" + marker).c_str(), F_OK) == 0;
  const auto target = target::open(directory);
  return target.ok() && (*target)->get(marker, 1 << 20).ok();
}

Result<catalog::TargetSet> open_set(const std::vector<std::string>& directories, const Settings& settings) {
  if (std::none_of(directories.begin(), directories.end(), is_target))
    return Status(Kind::not_found, fmt::format("{} {} no target that can be reached: mount it, or name a directory that holds "
                                               "holdfast-target.json",
                                               fmt::join(directories, ", "), directories.size() == 1 ? "is" : "are"));
  if (auto pool = catalog::look_at_pool(directories, settings.deadline_ms)) return pool;
  Settings looking = settings;  // no demand on how many there are
  looking.protect.reset();
  return catalog::open_or_create_set(directories, looking);
}

}  // namespace holdfast::cli
