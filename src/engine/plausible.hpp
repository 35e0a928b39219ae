// Whether the targets can hold what a manifest says. A forged or damaged size must not be believed for hours of reading, or fill the disk that it is
// exported to.
#pragma once
#include "base/config.hpp"
#include "engine/members.hpp"
#include "layout/manifest.hpp"

namespace holdfast::engine {

// Some member's records or data have to reach half of what the manifest says beyond the first GiB. The last row always has a record, so
// they reach the end; less is believed because damage and power cuts are no forgery. Kind::corrupt with the mend. Asks each available
// member for the lengths of its objects, once, and nobody about a file of up to a GiB.
Status check_plausible(Members& members, const catalog::Located& located, const layout::Manifest& manifest);
// The same for the manifest of now; a file that cannot be read at all is left to whoever reads it.
Status check_plausible(const catalog::Located& located, const Settings& settings);

}  // namespace holdfast::engine
