// What a redundant job leaves of its state for `holdfast status --job`, while it runs and afterwards: a file of the user's.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {

class JobState {
 public:
  explicit JobState(std::string command);
  ~JobState();
  JobState(JobState&& other) noexcept
      : command_(std::move(other.command_)),
        path_(std::move(other.path_)),
        log_(std::exchange(other.log_, "")),
        separate_files_(std::move(other.separate_files_)),
        process_(other.process_) {}
  // The hub's words, as JSON.
  void write(std::string_view json);
  // Files whose replicas were to write parts of their own, as of the last words.
  const std::vector<std::string>& separate_files() const { return separate_files_; }
  // A directory that goes with this object: empty where it cannot be made.
  std::string make_log();

 private:
  std::string command_, path_, log_;
  std::vector<std::string> separate_files_;
  int process_;
};

}  // namespace holdfast::cli
