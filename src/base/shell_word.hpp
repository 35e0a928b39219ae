// Names in command lines that a person is to type again, or a shell runs.
#pragma once
#include <string>

namespace holdfast {

// Quoted in any case.
std::string shell_quoted(const std::string& text);
// As one word: quoted where the text needs it.
std::string shell_word(const std::string& text);

}  // namespace holdfast
