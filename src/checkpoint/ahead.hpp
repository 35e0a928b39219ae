// What a rank is about to open is fetched before it does: of the checkpoint that an attempt begins with. A process beside the node's protector does so, from
// before the program is started. Which files these are is known from who wrote them, for ranks stay where they are; and of others when their ranks begin
// (ended.hpp).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/run.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

// A version's file on this node before its content is: of its size, for who looks at that. The content comes into it, so that a program which compares what
// it has looked at with what it opens finds one file.
std::string described(const LocalFiles& files, const std::string& file_id);
Status make_hollow(const LocalFiles& files, const std::string& at, uint64_t bytes, uint32_t mode);

// That ranks open a file without a {rank} on this node, of the pattern with that number. The next attempts fetch such files ahead there.
void note_opened(const LocalFiles& files, uint32_t part);

class Ahead {
 public:
  // On node `own`, an address of the run.
  Ahead(Settings settings, Run run, const std::string& own);
  // One look: all that is known to be opened here. False where nothing is left to fetch, for any rank.
  bool work();

 private:
  struct OneFile {
    layout::Manifest manifest;
    std::optional<uint32_t> rank;  // whose it is, where its name says so
    bool is_of_node = false;       // written on this node, or one of all ranks, and ranks have opened such files here
  };
  bool find();
  bool is_wanted(const OneFile& file, const std::set<uint32_t>& ranks) const;
  void fetch_if_missing(const layout::Manifest& manifest) const;

  const Settings settings_;
  const Run run_;
  const std::string own_;
  const LocalFiles files_;
  std::optional<std::vector<OneFile>> left_;
};

// Of that version, where it is being fetched ahead just now: until that has ended.
void wait_for_ahead(const LocalFiles& files, const std::string& file_id, uint64_t patience_ms);

}  // namespace holdfast::checkpoint
