// Target sets that exist already: looking at one never makes one.
#pragma once
#include <string>
#include <vector>

#include "catalog/catalog.hpp"

namespace holdfast::cli {

bool is_target(const std::string& directory);  // it has a marker
Result<catalog::TargetSet> open_set(const std::vector<std::string>& directories, const Settings& settings);

}  // namespace holdfast::cli
