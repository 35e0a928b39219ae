// Whether a whole copy, or a plain file, still holds what its row records say. This decides where its size or times do not tell whether a user has
// changed it. The one place of the catalog that knows of rows.
#pragma once
#include <cstdint>

#include "catalog/located.hpp"

namespace holdfast::catalog {

// As long as data object 0 is while the last block has not been cut to the file's size.
uint64_t padded_size(const layout::Manifest& manifest);
// Reads all of it, so only where it is small. False where it is not, where anything differs, and where nothing can be checked. `now` is how it looks:
// what was found is remembered for as long as it looks so.
bool holds_its_checksums(const Located& located, int member, const layout::PathState& now);

}  // namespace holdfast::catalog
