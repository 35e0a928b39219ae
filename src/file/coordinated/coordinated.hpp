// An open file that all replicas of a rank use as one; see README.md. One call after the other.
#pragma once
#include <memory>
#include <string>

#include "base/file_layer.hpp"
#include "file/coordinated/protocol.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file {

enum class Call : uint64_t { write = 1, read, append, size, sync, set_size, close, zero, next, allocate, open, unlink, rename, make_directory };

// A number for what calls are about: the same in all replicas, other for another file, and for another open of it.
uint64_t subject_of(const std::string& kind, const std::string& path);
uint64_t subject_of_next_open(const std::string& path);

// `name` is for messages.
std::unique_ptr<FileLayer> coordinated(std::unique_ptr<FileLayer> below, redundant::Replica& replica, uint64_t subject, std::string name,
                                       ReadProtocol read = ReadProtocol::simple);

}  // namespace holdfast::file
