// Turns what comes through a pipe into whole lines with their origin, and writes them.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::service {

class LineWriter {
 public:
  // `origin` stands behind the time: "rank 3 out". Lines go to `file`, appended; text goes to `otherwise` as it came once that fails.
  LineWriter(std::string origin, int file, int otherwise) : origin_(std::move(origin)), file_(file), otherwise_(otherwise) {}

  void take(std::string_view text);  // as it comes, with or without line ends
  void end();                        // a last line without its end gets one

 private:
  void write(const std::string& lines, std::string_view as_they_came);

  std::string origin_;
  int file_, otherwise_;
  std::string begun_;  // of a line whose end has not come
  bool failed_ = false;
};

}  // namespace holdfast::service
