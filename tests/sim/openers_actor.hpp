// A process of an opener, as the parts of OpenersWorld that make it do something know it.
#pragma once
#include "sim/openers_world.hpp"

namespace holdfast::sim {

// One rank of an opener that has the file open.
struct OpenersWorld::Actor {
  RunningOpener& opener;
  int rank, process;
  Random together;  // the same on all ranks: what they do as one
  Random own;
  std::shared_ptr<File> file;  // of all its threads
  uint64_t step = 0;
  bool in_thread = false;
};

}  // namespace holdfast::sim
