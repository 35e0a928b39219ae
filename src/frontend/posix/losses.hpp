// Files whose last close could not put all of what was written on storage. The program was told then, by close; but many look at no close's
// answer, and natively the write itself would have failed.
#pragma once
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::frontend::posix {

struct Loss {
  std::string path, sentence;
};

// Of this process, in order; of one file the first.
void note_loss(const std::string& path, const Status& status);
bool any_loss();  // a load
// They are told once. Without those of files that are gone: nobody misses their bytes.
std::vector<Loss> take_losses();
// In the child of a fork: they are its parent's.
void forget_losses();

}  // namespace holdfast::frontend::posix
