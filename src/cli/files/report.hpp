// How a file's status is told, by status, verify and repair alike.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/maintenance.hpp"

namespace holdfast::cli {

// Heading, health, table of members, and what to do about it.
void print_status(const engine::FileStatus& status, bool advise = true);
std::string layout_line(const layout::Manifest& manifest);  // "rs:4+2 interleaved over 6 targets, unit 1.0 MiB, 4.0 MiB"
nlohmann::json json_of_failure(const std::string& path, const Status& status);

}  // namespace holdfast::cli
