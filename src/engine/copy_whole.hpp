// All bytes of one open file into a protected one that was just made.
#pragma once
#include <string>

#include "base/file_layer.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"

namespace holdfast::engine {

// The first `size` bytes; zeros stay holes. The size is set last, by a commit: all of it is durable then, whatever a close is to do. Kind::busy where `from` becomes shorter meanwhile; ECANCELED
// where `progress`, if there is one, asks to stop.
Status copy_whole(FileLayer& from, uint64_t size, ProtectedFile& to, const std::string& from_path, const Progress& progress = {});

}  // namespace holdfast::engine
