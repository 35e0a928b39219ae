// The hub's conversations with what replicas have started and appends to files (child_appends).
#pragma once
#include <map>

#include "redundant/frame.hpp"
#include "redundant/membership/child_appends.hpp"
#include "redundant/membership/hub_process.hpp"

namespace holdfast::redundant {

class ChildTalks {
 public:
  ChildTalks(std::function<bool(int team)> is_lost, std::function<uint64_t()> living, std::function<void(const std::string&)> say)
      : appends_(std::move(is_lost), std::move(living)), say_(std::move(say)) {}
  // `talk`: any number of its own.
  void came(uint64_t talk, int socket, const Frame& frame, int64_t now_ms);
  void gone(uint64_t talk, int64_t now_ms);
  void look(int64_t now_ms) { answer(appends_.look(now_ms)); }
  // Before others write in their place: those on this node have ended.
  void kill(int team);

 private:
  struct One {
    int socket = -1, team = 0;
    raw::Fd handle;  // of the process, where it is on this node
  };
  void answer(const ChildAppends::Answers& answers);

  ChildAppends appends_;
  const std::function<void(const std::string&)> say_;
  std::map<uint64_t, One> talks_;
};

}  // namespace holdfast::redundant
