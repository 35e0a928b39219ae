// Room on the disk of a directory of this node.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::catalog {

// For this user; nothing where the file system does not say.
std::optional<uint64_t> free_bytes_at(const std::string& directory);

}  // namespace holdfast::catalog
