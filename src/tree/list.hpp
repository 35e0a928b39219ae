// What listings of directories show of a name, and what links lead to: a program sees its files and not what Holdfast keeps beside them.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::tree {

// One entry of a directory (a descriptor), `type` as in dirent's d_type: both become what a program sees, in place. False: it sees nothing.
bool show_entry(int directory, char* name, unsigned char& type);

// Whether a name could be one of those that are not shown: then `is_hidden` says it.
bool may_be_hidden(std::string_view name);
bool is_hidden(const std::string& path);
// Whether a component of the path behind its first `root` bytes is hidden: where a walk that began at the root may not come.
bool passes_hidden(const std::string& path, size_t root);

// Where links that begin at the path end at one of Holdfast's own, which is a file to programs; empty where they do not.
std::string end_at_own_link(const std::string& path);

}  // namespace holdfast::tree
