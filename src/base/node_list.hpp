// Many nodes in few words: n[1-3,07]-ib. And directories of theirs: n[1-64];m2:/tmp/hf-{node}.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

inline constexpr std::string_view node_mark = "{node}";
// With the node's name in the place of that, and the other way round.
std::string with_node(std::string text, const std::string& node);
std::string with_node_mark(std::string text, const std::string& node);

inline constexpr size_t most_names = 1000000;  // what asks for more is a mistake
// One element of a list, with any number of brackets. False where it makes no sense.
bool expand_names(std::string_view text, std::vector<std::string>& out);
// Elements that expand_names() makes these names of, in their order. Brackets stand at an element's end only: Slurm knows no others.
std::string names_in_few_words(std::span<const std::string> names, char between);

// The elements of a list of directories, separated by commas. NAMES:/DIR[:/DIR...] is each of these directories of each of the nodes, where NAMES is
// several elements with ';' between them, or one with brackets. {node} is the node's name there. Nothing where NAMES makes no sense.
// A comma or a backslash of a directory has a backslash before it.
std::optional<std::vector<std::string>> expand_directories(std::string_view list);
std::string with_escaped_commas(std::string_view directory);
// A list that expand_directories() makes these of, in their order. They have their backslashes.
std::string directories_in_few_words(std::span<const std::string> directories);

}  // namespace holdfast
