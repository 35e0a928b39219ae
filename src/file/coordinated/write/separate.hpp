// Distributed Separate Write: each replica writes a chunk of what all have agreed on to a file of its own, its part. What the parts have is joined with
// the file when somebody is to see it: before a read, at a sync, at the close. All replicas know alike what lies where.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "file/coordinated/kept_writes.hpp"
#include "file/coordinated/parts.hpp"
#include "file/coordinated/protocol.hpp"

namespace holdfast::file {

// For each byte of the file that is not there yet, where its newest writing lies.
class PartsOfFile {
 public:
  struct Source {
    uint64_t end = 0;
    int team = 0;
    uint64_t at = 0;  // in the team's part
  };
  void add(const Extent& extent, int team, uint64_t at);
  uint64_t end() const { return sources_.empty() ? 0 : sources_.rbegin()->second.end; }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const auto& [begin, source] : sources_) sum += source.end - begin;
    return sum;
  }
  const std::map<uint64_t, Source>& sources() const { return sources_; }

 private:
  void split(uint64_t at);
  std::map<uint64_t, Source> sources_;  // by where they begin
};

class SeparateWrites {
 public:
  explicit SeparateWrites(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
  // Whether this write may go to the parts.
  static bool suits(const Common& file, std::span<const Extent> extents, ByteView data);
  // Nothing: it is to be written simply, after a join.
  std::optional<Outcome> write(const Common& file, std::span<const Extent> extents, ByteView data);

  bool has_any() const { return number_ > 0; }
  // Of the last byte that is not in the file yet.
  uint64_t end() const { return all_.end(); }
  // `repeat`: all that was written since the last sync, where the loss of a node may take it along; null: nothing is lost with anybody. Answers the
  // teams that have written to the file.
  Result<uint64_t> join(const Common& file, const std::function<Status()>& repeat);
  // Within the leader's turn at a sync: parts that have gone do not come back.
  Status make_removals_durable();

 private:
  struct Chunk {
    int team = 0;
    uint64_t at = 0;
    Share share;
    std::vector<Extent> extents;
  };
  using Chunks = std::vector<Chunk>;
  Chunks chunks_of(std::span<const Extent> extents, ByteView data) const;
  Status write_own(const Common& file, const Chunks& chunks, ByteView data) const;
  void take_in(const Chunks& chunks);
  Status copy(FileLayer& below, std::optional<int> team) const;
  void forget();

  const std::unique_ptr<Parts> parts_;
  uint64_t id_ = 0, teams_ = 0;   // of the parts that there are, and whose they are
  uint64_t number_ = 0;           // of the last write that is not in the file; 0: there is none
  bool is_over_ = false;          // nothing is added before it is joined
  std::map<int, uint64_t> ends_;  // of the parts
  PartsOfFile all_;
  bool removed_ = false;  // since the last sync
};

}  // namespace holdfast::file
