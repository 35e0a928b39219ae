// What programs that replicas have started append to files. Each team has such programs, and each file is to have their bytes once. One writes when all have
// come to that call, the team that leads where it can, and for the others it is done. Who has waited for others for some time writes: they may print less.
//
// Bytes are counted by stream: of one process and file. Processes of one name that append to a file are numbered in each team, in the order in which they
// begin. When a team is lost, the others go on where it was. Kept by the hub. Pure: facts in, answers out.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"

namespace holdfast::redundant {

// Of a call that appends.
struct ChildAppend {
  int team = 0, rank = 0;
  uint64_t process = 0;          // that asks: one call at a time
  std::string path, program;     // the program's name
  uint64_t end = 0;              // of the file, just before
  uint64_t length = 0, sum = 0;  // of this call; of all that the process has appended to the file with it
};

// To the process.
struct AppendAnswer {
  enum What : uint64_t {
    write,    // all behind the first `skip` bytes; `torn` of those a lost one may have written, somewhere behind `at`
    is_done,  // `value`: behind its last byte, or a negative errno
    is_lost,  // the process's team
  };
  uint64_t process = 0;
  What what = is_done;
  uint64_t skip = 0, at = 0, torn = 0;
  int64_t value = 0;
};

// How much of the first `torn` of these bytes there is in what lies behind the place where somebody has begun to append them.
uint64_t there_of_torn(ByteView behind, ByteView bytes, uint64_t torn);

class ChildAppends {
 public:
  // `living`: the teams whose processes append, as bits. The first one leads.
  ChildAppends(std::function<bool(int team)> is_lost, std::function<uint64_t()> living) : is_lost_(std::move(is_lost)), living_(std::move(living)) {}
  using Answers = std::vector<AppendAnswer>;

  Answers asks(const ChildAppend& append, int64_t now_ms);
  // Of who was told to write: so many bytes, up to `place`, or a negative errno.
  Answers wrote(uint64_t process, uint64_t place, int64_t taken, int64_t now_ms);
  Answers gone(uint64_t process, int64_t now_ms);
  // From time to time, and when a team was lost.
  Answers look(int64_t now_ms);
  // Lines for the user, once each.
  std::vector<std::string> differences() { return std::exchange(differences_, {}); }
  size_t streams() const { return streams_.size(); }

 private:
  struct Part {  // a team's
    uint64_t process = 0, asked = 0, sum = 0;
    std::optional<ChildAppend> call;
    int64_t since_ms = 0;
    bool is_over = false, heard_failure = false;
  };
  struct Piece {
    uint64_t process = 0, at = 0, length = 0;
    int team = 0;
  };
  struct Stream {
    int rank = 0;
    std::string path, program;
    uint64_t number = 0, done = 0, place = 0;
    std::optional<Piece> writing, torn;
    std::optional<std::pair<uint64_t, int64_t>> failed;  // where, and how
    std::map<int, Part> parts;
  };
  using Place = std::list<Stream>::iterator;
  Place stream_of(const ChildAppend& append);
  void settle(Stream& stream, int64_t now_ms, Answers& answers);
  void settle_part(Stream& stream, int team, Part& part, int64_t now_ms, Answers& answers);
  bool may_write(const Stream& stream, int team, const Part& part, int64_t now_ms) const;
  static void tell_to_write(Stream& stream, int team, const Part& part, Answers& answers);
  void give_up_lost_ones(Stream& stream, Answers& answers);
  bool is_over(const Stream& stream) const;
  void compare(const Stream& stream);
  int leader() const;

  const std::function<bool(int)> is_lost_;
  const std::function<uint64_t()> living_;
  std::list<Stream> streams_;
  std::map<std::pair<uint64_t, std::string>, Place> by_process_;  // and path
  std::map<uint64_t, Place> calling_;                             // by process
  std::map<std::pair<int, std::string>, uint64_t> numbers_;       // by team; and rank, path and program
  std::vector<std::string> differences_;
};

}  // namespace holdfast::redundant
