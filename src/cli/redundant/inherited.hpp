// Descriptors above 2 that `holdfast run` was started with (`3> log`, `4< <(...)`). Each team would go on with one and the same open file: its position is
// one for all, and what goes in or out does so once in each team.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::cli {

class Inherited {
 public:
  // Those of this process as it is.
  static Inherited here();
  // A line about those that the teams do not get; empty where there is none.
  std::string said() const;
  // In a team's own process: who only reads a plain file does so from a position of its own. What else is written or read by all is closed.
  void hand_on() const;

 private:
  struct One {
    int number;
    int flags;     // of the open file
    off_t at;      // its position
    bool is_read;  // by each team for itself
    std::string name;
  };
  std::vector<One> all_;
};

}  // namespace holdfast::cli
