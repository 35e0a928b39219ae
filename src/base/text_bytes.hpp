// Text as the bytes that it is stored as, and back. Both look at what is given: it has to live as long.
#pragma once
#include <span>
#include <string_view>

#include "base/bytes.hpp"

namespace holdfast {

inline ByteView bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view chars_of(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace holdfast
