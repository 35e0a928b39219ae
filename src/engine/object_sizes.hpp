// How long a file's objects are on a member, and the calls that make them so.
#pragma once
#include "engine/members.hpp"

namespace holdfast::engine {

// Whether data object `object` is a whole copy or the plain file itself: exactly as long as the logical file.
bool is_plain(const layout::Geometry& geometry, int object);
// The most bytes that data object `object` has for a file of `size` bytes.
uint64_t object_bytes(const layout::Geometry& geometry, int object, uint64_t size);

// Cuts off everything beyond `size`, records included, and extends plain objects that end before it (with zeros).
MemberCall cut_call(const catalog::Located& located, int member, uint64_t size, size_t slot_bytes);
// The same on all available members, side by side.
void cut_objects(Members& members, const catalog::Located& located, uint64_t size, size_t slot_bytes);
// The same where the file has become longer again since somebody was killed in that cut. All between is holes, and the records reach behind its last row.
void cut_under(Members& members, const catalog::Located& located, uint64_t size, uint64_t later_size, size_t slot_bytes);
// Takes the padding of the last checksum block off plain objects; leaves alone what another opener has made longer.
MemberCall trim_call(const catalog::Located& located, int member, uint64_t size);

// Extends plain objects that end before `size` (with zeros), and cuts nothing.
MemberCall lengthen_call(const catalog::Located& located, int member, uint64_t size);
// Kind::corrupt where a plain object is longer than `size` and the padding of the last block.
MemberCall is_longer_call(const catalog::Located& located, int member, uint64_t size);

}  // namespace holdfast::engine
