// A file on a pool is written anew over the nodes that live, and takes the place of what was there. That is done where fewer nodes are free than it
// has lost. A node can keep one member's part only, so another one that lives cannot take a lost one's place beside its own. docs/decisions/0055
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "engine/maintenance.hpp"

namespace holdfast::engine {

// Over all of `live`, directories of pools that answer, but as many nodes as the scheme bears to lose: a later repair needs these. What is at the path is the
// old file or the new one, whole, and the new one has the old one's bytes and looks. Kind::busy, and nothing is changed, where a program has it open for
// writing; ECANCELED where `progress` asks to stop. The file that is there now.
Result<catalog::Located> restripe(const std::string& path, std::vector<std::string> live, const Settings& settings, const Progress& progress);

}  // namespace holdfast::engine
