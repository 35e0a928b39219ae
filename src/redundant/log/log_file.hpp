// What one rank of one team has been told so far, as a file that both write and read as memory. An entry is there for others as soon as it is made,
// and outlives the process. Its blocks are set aside before they are used, so a full disk is an answer and no signal.
//
// On one node. Where teams lie on several each process has a file without a name, and whoever follows it a copy, which grows as its bytes come.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "redundant/log/keeper.hpp"

namespace holdfast::redundant {

int64_t clock_ms();  // as entries have it

// Of a call or an intent: the claim, and what follows it.
struct ClaimAndRest {
  Claim claim;
  ByteView rest;
};
std::optional<ClaimAndRest> claim_in(ByteView payload);

// As long as the process lives: mapped at once, so that all teams have the same addresses.
class LogFile {
 public:
  explicit LogFile(uint64_t most_bytes) : most_(most_bytes) {}
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  // To write: a new file. Else only the place in memory.
  Status make(const std::string& path);
  // Likewise, where nobody else has to find it; for a copy where it was set aside.
  Status make_unnamed(const std::string& directory);
  Status set_aside();
  // To read, where it was set aside: another one's, from its beginning.
  Status open(const std::string& path);

  // A copy: what comes next of another one's bytes, which are entries once they are whole. False: there is no room, now and ever after.
  bool copy(ByteView bytes);
  uint64_t copied() const { return copied_; }
  void set_cut();
  // How far it has been written, and what stands there from a place on.
  static constexpr uint64_t beginning = 64;
  uint64_t end() const;
  ByteView since(uint64_t at, uint64_t most) const;

  // Nothing more of what its writer goes by stands in another log.
  void set_whole();
  bool is_whole() const;
  // False: there is no room, now and ever after.
  bool append(Entry::Kind kind, uint64_t subject, uint64_t number, std::span<const ByteView> payload);
  std::optional<Entry> next();
  // Where that one will be; and back to the first one.
  uint64_t at() const { return at_; }
  void back() { at_ = std::min(at_, beginning); }
  bool at_end() const;
  // The writer has had no more room: entries are missing at the end.
  bool is_cut() const;
  bool has_room() const { return at_ != 0 && !is_cut(); }

 private:
  struct Head;
  Head* head() const { return static_cast<Head*>(memory_); }
  std::byte* place(uint64_t at) const { return static_cast<std::byte*>(memory_) + at; }
  bool grow(uint64_t to);
  Status begin(const std::string& name);
  Status map(int protection, int flags, int fd);

  const uint64_t most_;
  void* memory_ = nullptr;
  raw::Fd fd_;  // of the writer
  uint64_t at_ = 0, allocated_ = 0, copied_ = 0;
};

// The keeper that writes there.
class LogKeeper final : public Keeper {
 public:
  // `waiting`: decisions that have come and are not asked for yet (Decisions::waiting); the program is in the call that is written down.
  explicit LogKeeper(LogFile& file, std::function<Bytes()> waiting = nullptr) : file_(file), waiting_(std::move(waiting)) {}
  void call(uint64_t subject, uint64_t number, const Claim& claim, ByteView outcome) override;
  void intent(uint64_t subject, uint64_t number, const Claim& claim) override;
  void decision(uint64_t subject, uint64_t number, ByteView answer) override;
  void bytes(uint64_t subject, uint64_t number, ByteView bytes);
  void opened(uint64_t name, uint64_t number);
  void repeat(const Entry& entry) override;

 private:
  void note_what_waits();

  LogFile& file_;
  const std::function<Bytes()> waiting_;
};

std::string log_path(const std::string& directory, int team, int rank);

}  // namespace holdfast::redundant
