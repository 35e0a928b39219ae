// Whose turn it is to append to a file: one rank's at a time. A turn is a rank's, not a process's. So it outlives the leader that has asked for it, and
// nobody has appended since when the next leader looks what that one has done. Kept by the hub. Pure.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace holdfast::redundant {

class Appenders {
 public:
  // The same in all replicas of the rank.
  struct Append {
    int rank = 0;
    uint64_t number = 0;
    bool operator==(const Append&) const = default;
  };
  struct Granted {
    uint64_t file = 0;
    Append append;
  };
  // True: it is this one's by now. Asked again, by another leader of the rank, it is the same one.
  bool ask(uint64_t file, const Append& append);
  // Whose turn it is then. Each replica says that it is over: what is said after the first one means nothing.
  std::optional<Append> over(uint64_t file, const Append& append);
  // The rank is no more.
  std::vector<Granted> gone(int rank);

 private:
  std::map<uint64_t, std::deque<Append>> files_;  // the first one's it is
};

}  // namespace holdfast::redundant
