// Partial rows that do not fit in memory until they are folded in. They are parked, unsynced, on m+1 members, so that losing m of them loses
// nothing that the program has written. Only the process that wrote them reads them; a process that dies leaves litter, which goes with the
// file.
#pragma once
#include <string>
#include <vector>

#include "engine/members.hpp"

namespace holdfast::engine {

struct SpilledRange {
  uint64_t begin = 0, end = 0;  // in the row
  uint64_t offset = 0;          // in the spill object
  uint64_t checksum = 0;
};

class Spill {
 public:
  Spill(Members& members, const catalog::Located& located, int rank);
  // Before the first write: the objects' name is the opener's own.
  void belong_to(uint64_t opener);
  // Appends; Kind::lost where not even one member takes it.
  Result<uint64_t> write(ByteView bytes);
  Status read(const SpilledRange& range, std::byte* into);
  bool empty() const { return end_ == 0; }
  // Removes the objects; the next write starts anew.
  void clear();

 private:
  void choose_holders();

  Members& members_;
  const catalog::Located& located_;
  std::string name_;
  int rank_;
  std::vector<int> holders_;
  uint64_t end_ = 0;
};

}  // namespace holdfast::engine
