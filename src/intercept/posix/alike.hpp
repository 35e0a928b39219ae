// A path that a door was given, as all replicas name it: see file/coordinated/alike.hpp. One load where the program has not asked for its number.
#pragma once
#include <string>

#include "file/coordinated/alike.hpp"
#include "intercept/posix/stand_in.hpp"

namespace holdfast::intercept::posix {

class Alike {
 public:
  // `path` is the door's own argument, which is another one from then on, as long as this lives.
  Alike(int directory, const char*& path, const void* caller) {
    meet_stand_ins();
    if (file::program_has_its_number.load(std::memory_order_relaxed) && path) [[unlikely]]
      name(directory, path, caller);
  }
  Alike(const Alike&) = delete;
  Alike& operator=(const Alike&) = delete;

 private:
  void name(int directory, const char*& path, const void* caller);
  std::string text_;
};

}  // namespace holdfast::intercept::posix

#define HF_ALIKE(directory, path) const holdfast::intercept::posix::Alike alike_##path(directory, path, HF_CALLER)
