// What ranks say of the files that they write together, each by an open of its own (shared.hpp): names in their nodes' own directories. A rank takes part in a
// file from its first open on, and is done with it when it has begun another checkpoint, or its program says so. docs/decisions/0052, 0106
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "checkpoint/local.hpp"

namespace holdfast::checkpoint {

inline constexpr const char* parts_directory = "parts";  // beside the states

// How far a rank is. Until one has written all may open the file as often as they like, and truncate it: it is all one.
enum class Taking : uint8_t {
  opened,
  writes,
  written,  // and it has closed the file
  done
};

// One such name. What it says of a file holds for one version of it.
struct Part {
  std::string file;  // what stands for path and number; empty: whatever file of the step this rank takes no part in
  uint64_t step = 0;
  std::optional<uint32_t> rank;  // nothing: all ranks, by the word of a file that completes the checkpoint
  Taking taking = Taking::opened;
  bool operator==(const Part&) const = default;
  bool is_of(const LocalName& name) const;
  bool is_done() const { return taking == Taking::done; }
  bool has_written() const { return taking >= Taking::writes; }
  Part for_name(const LocalName& name) const;  // the same said of another file
};
std::string encode(const Part& part);
std::optional<Part> decode_part(const std::string& text);

// Those of one node.
class Parts {
 public:
  explicit Parts(const LocalFiles& files) : directory_(files.directory() + "/" + parts_directory) {}

  // From now on the rank takes part in the file. `ends_others`: it is done with all that are of another checkpoint, or earlier versions of this one.
  Status take(const LocalName& name, uint32_t rank, bool ends_others) const;
  bool has_taken(const LocalName& name, uint32_t rank) const;
  // It has taken part, and writes now; or no process of it that is known has what it writes to open any more.
  void writes(const LocalName& name, uint32_t rank) const;
  void closes(const LocalName& name, uint32_t rank) const;
  // ... or is done with it.
  bool has_written(const LocalName& name, uint32_t rank) const;
  // The rank writes no more of other checkpoints than that one.
  void begins(uint64_t step, uint32_t rank) const;
  // The program says so of one: also where the rank has taken no part in it.
  Status complete(uint64_t step, uint32_t rank) const;
  // A file that completes the checkpoint was closed. `rank`: of that one; nothing: of all.
  Status completed(const LocalName& name, std::optional<uint32_t> rank) const;
  // Whether a rank of this node may write more of it.
  bool any_at_work(const LocalName& name) const;

 private:
  std::vector<Part> all() const;
  void move(Part part, Taking to) const;
  Status put(const Part& part) const;
  void remove(const Part& part) const;

  const std::string directory_;
};

}  // namespace holdfast::checkpoint
