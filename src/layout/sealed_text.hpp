// Small text files of ours (manifest, target marker) end in a line of what they are, their format and the checksum of everything before:
// `#holdfast-manifest 1 0123456789abcdef`. This line keeps its form in all formats, so that an old program can tell a newer file from a damaged
// one.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast::layout {

// `what` is one word, for example "manifest". A newline is put at the end of `text` where there is none.
std::string seal(std::string_view what, int format, std::string text);
// What is said of a damaged one, `how` it is so, and what mends it.
using Damaged = std::string (*)(std::string_view what, const char* how);
std::string a_copy_is_damaged(std::string_view what, const char* how);
// The text without its last line. Kind::corrupt for whatever was not written by seal() or was altered since,
// Kind::version for an intact file of a format above `newest_format`.
Result<std::string> unseal(std::string_view what, int newest_format, std::string_view sealed, Damaged sentence = a_copy_is_damaged);

// What it was before one of its bits was flipped: the checksum tells, and no other text but the one that was written has it. Nothing where more is
// damaged than that, or where the text is longer than anyone would wait for. For texts of which there is one copy.
std::optional<std::string> without_flipped_bit(std::string_view sealed);

}  // namespace holdfast::layout
