// How large a file its targets can hold: a size or an offset beyond that is the caller's mistake, and no target's failure.
#pragma once
#include "engine/members.hpp"

namespace holdfast::engine {

// Whether every object of a file of `size` bytes has at most `object_bytes` bytes.
bool fits(const layout::Geometry& geometry, uint64_t size, uint64_t object_bytes);

// Up to this size nobody is asked.
uint64_t always_held_bytes(const layout::Geometry& geometry);

// The most bytes that an object may have on all available members, by an object of its own that it makes and removes on each of them. A member
// that fails otherwise is not counted.
uint64_t largest_object_bytes(Members& members, const catalog::Located& located);

}  // namespace holdfast::engine
