// A plain file that is renamed to where a protected one is wanted: the usual way to write a checkpoint.
#pragma once
#include <cstdint>
#include <string>

#include "tree/tree.hpp"

namespace holdfast::tree {

enum class Making : uint8_t { by_settings, as_what_is_there };

// Renames it so that it is protected from then on. At every moment one of the names leads to what is new, and what was at `to` goes only
// when what is new has its place. Where it fails everything is as before. The native call's where the file is open for writing somewhere, so
// that it has to stay plain, with a line.
Answer rename_plain(const std::string& from, const Name& to, Making making, const Settings& settings, Openings& openings);

}  // namespace holdfast::tree
