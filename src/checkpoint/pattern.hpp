// Which paths of a program are its checkpoints: 'ck/ck.{step}.{rank}'. Both fields are numbers; one that stands twice has one value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace holdfast::checkpoint {

struct Named {
  uint64_t step = 0;
  uint32_t rank = 0;
  bool operator==(const Named&) const = default;
};

class Pattern {
 public:
  // `text` is an absolute path with its fields. Kind::invalid with the mend for unknown fields, and for what is not served yet.
  static Result<Pattern> parse(const std::string& text);
  // The same, of the directory to which links in the part before its first field lead by now: paths are matched without links.
  static Result<Pattern> resolve(const std::string& text);

  const std::string& text() const { return text_; }
  // Cheap: what almost all paths fail at. `name` is a path's last component.
  bool may_be(std::string_view name) const;
  std::optional<Named> match(std::string_view absolute) const;
  // Whether files of this directory may be some.
  bool may_lie_in(std::string_view absolute) const;
  // The directory whose entries may match; empty where that differs from step to step.
  std::string directory() const;

 private:
  enum class Part : uint8_t { literal, step, rank };
  struct Piece {
    Part part;
    std::string text;
  };
  struct Fields {
    std::optional<uint64_t> step;
    std::optional<uint32_t> rank;
  };
  static bool fits(const std::vector<Piece>& pieces, std::string_view path, Fields& fields);

  std::string text_;
  std::vector<Piece> pieces_, directory_pieces_;
  std::string name_begins_, name_ends_;  // of the last component: the text before its first field and behind its last one
};

}  // namespace holdfast::checkpoint
