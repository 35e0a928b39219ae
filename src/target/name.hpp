// Which names a Target accepts: relative, and unable to lead out of it.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "base/status.hpp"

namespace holdfast::target {

// Objects that a put in progress uses; `list` hides them and callers cannot name them.
inline constexpr std::string_view kTemporaryPrefix = ".holdfast-tmp.";

// Kind::invalid for "", an absolute path, an empty, "." or ".." component, one that is longer than 255 bytes, a NUL.
Status check_name(std::string_view name);

// "a/b/c" is {"a/b", "c"}; "c" is {"", "c"}.
std::pair<std::string, std::string> split_name(const std::string& name);

}  // namespace holdfast::target
