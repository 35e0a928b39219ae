// A directory of the simulated tree as a target: where a file's members lie in the directory of its path.
#pragma once
#include "sim/openers_site.hpp"

namespace holdfast::sim {

inline constexpr int single_place = 1000;  // by which the gate knows it

std::shared_ptr<target::Target> make_tree_target(Site& site, InodePtr directory, std::string label);

}  // namespace holdfast::sim
