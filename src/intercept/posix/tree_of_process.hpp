// Names as this process's plain calls see them, with what it has open.
#pragma once
#include "tree/tree.hpp"

namespace holdfast::intercept::posix {

const tree::Tree& tree_of_process();

// What a door returns for what a name's call has come to: lines on standard error, -1 and errno.
int give(const tree::Answer& answer);
// Lines of a call that one replica has made for all, which say them alike.
Bytes packed(const std::vector<tree::Line>& lines);
void say_packed(ByteView lines);

}  // namespace holdfast::intercept::posix
