// Where the replicas of a rank keep what is not in their file yet. Each team has a part, and a note lies beside the file for as long as that is so.
#pragma once
#include <cstdint>
#include <string>

#include "base/file_layer.hpp"

namespace holdfast::file {

class Parts {
 public:
  virtual ~Parts() = default;
  // By the leader: what all of them are to be told for attend(). Kind::unsupported: there can be no parts.
  virtual Result<std::string> place() = 0;
  // From now on it is about the parts with this id at that place.
  virtual void attend(uint64_t id, const std::string& place, uint64_t teams) = 0;

  // By the leader: from now on the parts count. It may be there already, from a leader that was lost.
  virtual Status make_note() = 0;
  virtual bool has_note() = 0;
  // By the leader, when all is joined: the note goes first. Nothing of that need be there. `durable`: no crash brings it back.
  virtual Status remove() = 0;
  virtual Status make_removals_durable() = 0;

  // This replica's own: a record, head and data, at a place. Whoever dies in the middle of that leaves a part of it.
  virtual Status write(uint64_t at, ByteView head, ByteView data) = 0;
  virtual void let_go() = 0;
  // Bytes of a team's part to where they belong.
  virtual Status join(int team, uint64_t at, const Extent& extent, FileLayer& below) = 0;
};

}  // namespace holdfast::file
