// What a creator does between its sidecar and its path entry, also for one that died there.
#pragma once
#include <cstdint>
#include <vector>

#include "catalog/located.hpp"

namespace holdfast::catalog {

// The lock by which a file's first opener says that it lives.
inline constexpr const char* first_opener = "writer.1";
// Where nothing says how wide a unit is: the file system neither.
inline constexpr uint64_t default_unit_bytes = 1 << 20;

// Puts the manifest on all members that are usable; one answer per member (ok for those that are not).
std::vector<Status> put_first_manifests(const Located& located);
// Under the file's lock: makes on the members, and at the path, what a creator that died has left out.
Status finish_creation(Located& located);

}  // namespace holdfast::catalog
