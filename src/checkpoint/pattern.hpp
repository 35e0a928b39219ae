// Which paths of a program are its checkpoints: 'ck/ck.{step}.{rank}'. Both fields are numbers; one that stands twice has one value. Where there is no
// {step} a file's versions are counted; where there is no {rank} it is a file of all ranks together. 'shared:PATTERN': they write it together, too.
// With wildcards ('ck/{step}/*.{rank}') nobody knows beforehand how many files there will be. Without any field ('results/*.dat') each file is protected by
// itself, and is of no checkpoint (singles.hpp).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace holdfast::checkpoint {

inline constexpr std::string_view shared_prefix = "shared:";

struct Named {
  uint64_t step = 0;
  uint32_t rank = 0;
  uint32_t part = 0;  // which of several patterns
  bool operator==(const Named&) const = default;
};

class Pattern {
 public:
  // `text` is an absolute path with its fields. A backslash lets what would begin one stand for itself. Kind::invalid with the mend for unknown fields, and for what is not served yet.
  static Result<Pattern> parse(const std::string& text);
  // The same, of the directory to which links in the part before its first field lead by now: paths are matched without links.
  static Result<Pattern> resolve(const std::string& text);

  const std::string& text() const { return text_; }
  bool has_step() const { return has_step_; }
  bool has_rank() const { return has_rank_; }
  bool is_single() const { return !has_step_ && !has_rank_; }
  bool is_shared() const { return is_shared_; }
  // `*` or `?` stands in it.
  bool is_open() const { return is_open_; }
  // A file of it is the last that is written of its checkpoint.
  bool completes() const { return completes_; }
  // Cheap: what almost all paths fail at. `name` is a path's last component.
  bool may_be(std::string_view name) const;
  std::optional<Named> match(std::string_view absolute) const;
  // A path that matches, without its step: the same file in each checkpoint. Steps that are padded with zeros stay apart by their width.
  std::string stem(std::string_view absolute) const;
  // Whether files of this directory may be some; whether files in it or in directories below it may.
  bool may_lie_in(std::string_view absolute) const;
  bool may_lie_below(std::string_view absolute) const;
  // Whether files that match lie somewhere below this directory, whatever it holds; and of which step they are where its path says that.
  struct Above {
    std::optional<uint64_t> step;
  };
  std::optional<Above> above(std::string_view absolute) const;
  // The last directory above all that match.
  std::string root() const;
  // The directory whose entries may match; empty where that differs from step to step.
  std::string directory() const;

 private:
  friend class Patterns;
  enum class Form : uint8_t { literal, step, rank, any, one };  // any: `*`, one: `?`
  struct Piece {
    Form form;
    std::string text;
  };
  using Pieces = std::vector<Piece>;
  struct Fields {
    std::optional<uint64_t> step;
    std::optional<uint32_t> rank;
    std::string stem = {};
  };
  Pieces pieces_until_component(size_t components) const;
  static bool fits(const Pieces& pieces, std::string_view path, Fields& fields) { return fits(pieces, 0, path, fields, true); }
  static bool fits(const Pieces& pieces, size_t at, std::string_view path, Fields& fields, bool begins_component);
  static bool fits_number(const Pieces& pieces, size_t at, std::string_view path, Fields& fields);
  static bool fits_any(const Pieces& pieces, size_t at, std::string_view path, Fields& fields, bool begins_component);
  Status check(int steps, int ranks) const;

  std::string text_;
  bool has_step_ = false, has_rank_ = false, is_shared_ = false, is_open_ = false, completes_ = false;
  Pieces pieces_, directory_pieces_;
  std::string name_begins_, name_ends_;  // of the last component: the text before its first field and behind its last one
};

// All of a job: a checkpoint consists of files of each of them.
class Patterns {
 public:
  // Kind::invalid, too, where some have a {step} and others none, for then nothing says which files belong together. `completing`: of files that
  // are the last of their checkpoint.
  static Result<Patterns> parse(const std::vector<std::string>& texts, const std::vector<std::string>& completing = {});
  static Result<Patterns> resolve(const std::vector<std::string>& texts, const std::vector<std::string>& completing = {});

  const std::vector<Pattern>& all() const { return all_; }
  bool have_step() const { return all_.front().has_step(); }
  bool have_rank(uint32_t part) const { return all_[part].has_rank(); }
  // Each file is protected by itself: there are no checkpoints.
  bool are_single() const { return all_.front().is_single(); }
  bool are_shared(uint32_t part) const { return all_[part].is_shared(); }
  // Whether a checkpoint is whole only when it is said which files it has (roll.hpp): by a file that completes it, where there is such a pattern.
  bool are_rolled() const;
  bool have_completing() const;
  bool completes(const Named& named) const { return all_[named.part].completes(); }
  // A checkpoint of a job of so many ranks has so many files, and this one its place among them. Of a pattern with {rank} each rank has one. Those of
  // patterns with wildcards come beside them all, and are told apart by their stems.
  uint32_t files_of_all(uint32_t ranks) const;
  uint32_t place(const Named& named, uint32_t ranks) const;
  // Of a file without a place of its own; else empty.
  std::string stem(std::string_view absolute) const;
  bool may_be(std::string_view name) const;
  std::optional<Named> match(std::string_view absolute) const;
  bool may_lie_in(std::string_view absolute) const;
  bool may_lie_below(std::string_view absolute) const;
  // Whether directories of steps may lie in this one; whether this is one, of which step, where it is no other pattern's.
  bool may_hold_steps(std::string_view directory) const;
  std::optional<uint64_t> step_of_directory(std::string_view directory) const;
  bool have_directories_of_steps() const;  // at all
  std::string texts() const;               // for messages

 private:
  template <class Parse>
  static Result<Patterns> each(const std::vector<std::string>& texts, const std::vector<std::string>& completing, Parse parse);
  Status check() const;
  std::vector<Pattern> all_;
};

}  // namespace holdfast::checkpoint
