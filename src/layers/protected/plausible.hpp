// Whether the targets can hold what a manifest says: a forged or damaged size must not be believed for hours of reading, or fill the
// disk that it is exported to.
#pragma once
#include "base/config.hpp"
#include "layers/protected/members.hpp"
#include "layout/manifest.hpp"

namespace holdfast::layers {

// The last row always has a record, so on some member the records reach to it. Where they do not on any (all were cut short), the
// data must: damage is no forgery. Kind::corrupt with the mend. Asks each available member for the lengths of its objects, once.
Status check_plausible(Members& members, const catalog::Located& located, const layout::Manifest& manifest);
// The same for the manifest of now; a file that cannot be read at all is left to whoever reads it.
Status check_plausible(const catalog::Located& located, const Settings& settings);

}  // namespace holdfast::layers
