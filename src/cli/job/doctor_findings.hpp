// What `holdfast doctor` has found.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace holdfast::cli {

enum class Level : uint8_t { ok, warn, fail };
constexpr const char* level_names[] = {"ok", "warn", "fail"};

struct Finding {
  Level level;
  std::string about;     // version, mpi, directory, node, limit or environment
  std::string sentence;  // on warn and fail with the mend in it
};

class Findings {
 public:
  explicit Findings(std::string about) : about_(std::move(about)) {}
  void ok(std::string sentence) { all_.push_back({Level::ok, about_, std::move(sentence)}); }
  void warn(std::string sentence) { all_.push_back({Level::warn, about_, std::move(sentence)}); }
  void fail(std::string sentence) { all_.push_back({Level::fail, about_, std::move(sentence)}); }
  void add(Findings more) { std::move(more.all_.begin(), more.all_.end(), std::back_inserter(all_)); }
  const std::vector<Finding>& all() const { return all_; }
  bool well() const {
    return std::all_of(all_.begin(), all_.end(), [](const Finding& f) { return f.level == Level::ok; });
  }
  size_t count(Level level) const {
    return size_t(std::count_if(all_.begin(), all_.end(), [&](const Finding& f) { return f.level == level; }));
  }

 private:
  std::string about_;
  std::vector<Finding> all_;
};

}  // namespace holdfast::cli
