// The parts of a plain file, as files beside it: `.NAME.holdfast-parts-ID` is the note, and `.TEAM` after that a team's part; docs/format-parts.md.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/raw_syscalls.hpp"
#include "file/coordinated/parts.hpp"
#include "file/coordinated/protocol.hpp"
#include "layout/part.hpp"

namespace holdfast::file {

inline constexpr std::string_view parts_word = ".holdfast-parts-";
std::string part_of_team(const std::string& note, int team);
// Into the note of a file that is being joined: its state, without a time.
Status write_joining(int note, uint64_t id, layout::PathState file, const std::string& path);
// Bytes of one file at a place of another, by the file system itself where it can: then nothing may have to be moved.
Status copy_between(int from, uint64_t at, int to, const Extent& extent, const std::string& name);

// Null: with these protocols a file has none.
std::unique_ptr<Parts> parts_of(int file, const Protocols& protocols, const redundant::Replica& replica);

class PartFiles final : public Parts {
 public:
  // `file`: open for writing, and for as long as this one is used.
  PartFiles(int file, int team, int rank) : file_(file), team_(team), rank_(rank) {}

  Result<std::string> place() override;
  void attend(uint64_t id, const std::string& place, uint64_t teams) override;
  Status make_note() override;
  bool has_note() override;
  Status remove() override;
  Status make_removals_durable() override;
  Status write(uint64_t at, ByteView head, ByteView data) override;
  void let_go() override;
  Status join(int team, uint64_t at, const Extent& extent, FileLayer& below) override;

 private:
  void note_join();
  Result<int> part_to_read(int team);

  const int file_, team_, rank_;
  uint64_t id_ = 0, teams_ = 0;
  std::string path_;  // the note's
  raw::Fd note_, own_;
  bool joins_ = false;  // which the note says
  std::map<int, raw::Fd> others_;
};

}  // namespace holdfast::file
