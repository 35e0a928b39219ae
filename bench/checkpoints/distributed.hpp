// The distributed algorithm, which the low-communication one is compared with (Bautista Gomez et al., algorithm 1): the i-th blocks of the group's
// nodes are coded together. Partial sums go round the nodes in a ring: each node adds its own block's part and hands the sum on, and the last one
// keeps it. A sum is handed on as an object write by the agent of the next node, so that both algorithms use the same agents and links.
//
// Each node has its checkpoint as the object `source` of its directory, and gets `parity`, which is as long (m = k).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::bench {

inline constexpr const char* source_name = "source";
inline constexpr const char* parity_name = "parity";

struct Place {
  int rank = 0, group = 0;
  std::string own, right;        // addresses of directories: this node's, and the next one's
  std::string right_host;        // where the next node's process listens
  int port = 0, right_port = 0;  // here, and there
  uint64_t unit_bytes = 0;
  bool is_wrong = false;  // for the check of the check: one node multiplies by another number
};

struct Times {
  double all = 0, read = 0, code = 0, wait = 0;  // wait: for the sums of others, and for room to hand on
};

class Distributed {
 public:
  // Listens, so that the others can come.
  static Result<Distributed> on(const Place& place);
  Distributed(Distributed&& other) noexcept;
  ~Distributed();
  // To the next node, and from the one before. All nodes at once.
  Status join();
  // All nodes at once.
  Result<Times> code();

 private:
  Distributed() = default;
  Place place_;
  int listener_ = -1, left_ = -1, right_ = -1;
};

// Takes away any half of the nodes, with their data and parity, makes anew what they had from what the others have, and compares.
Status check_parity(const std::vector<std::string>& directories, uint64_t unit_bytes);

}  // namespace holdfast::bench
