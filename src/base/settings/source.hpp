#pragma once
#include <cstdint>

namespace holdfast {

// Where a value came from; a higher source wins over a lower one, whatever the order in which they are applied.
enum class Source : uint8_t { defaults, file, environment, command_line, hint };

}  // namespace holdfast
