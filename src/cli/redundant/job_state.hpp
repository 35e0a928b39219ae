// What a redundant job leaves of its state for `holdfast status --job`, while it runs and afterwards: a file of the user's.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::cli {

class JobState {
 public:
  explicit JobState(std::string command);
  // The hub's words, as JSON.
  void write(std::string_view json);

 private:
  std::string command_, path_;
  int process_;
};

}  // namespace holdfast::cli
