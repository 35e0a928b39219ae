// The protected file that another one takes the place of: away from its path, and back there where that one does not come.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "tree/openings.hpp"
#include "tree/tree.hpp"

namespace holdfast::tree {

// `rename` answers Kind::busy while another process is in the middle of a commit of the file, which is over soon.
template <class Rename>
Status when_free(Rename rename) {
  constexpr int most_times = 100;
  constexpr std::chrono::milliseconds pause(20);
  for (int i = 0;; ++i) {
    const Status status = rename();
    if (status.kind() != Kind::busy || i == most_times) return status;
    std::this_thread::sleep_for(pause);
  }
}

// After put_aside() or give_way() has succeeded, one of put_back(), take_back() and remove() ends it.
class Former {
 public:
  // Both references outlive it.
  Former(std::string path, const Settings& settings, Openings& openings) : path_(std::move(path)), settings_(settings), openings_(openings) {}

  // Under a name that no directory shows. One that was edited or is out of reach goes at once: nothing of it could be put back.
  Status put_aside();
  // `by`, a protected file that nobody here has open, takes its place: by one rename where that can be. Where it fails all is as before.
  Status give_way(const std::string& by);
  // It is at its path again; a line where it cannot be.
  void put_back();
  // After give_way: `by` has its own name again as well.
  void take_back(const std::string& by);
  void remove();

  // What there is to say beside the outcome.
  std::vector<Line>& lines() { return lines_; }

 private:
  bool find_open();
  Status put_there(const std::string& by);
  Status hide();

  const std::string path_;
  const Settings& settings_;
  Openings& openings_;
  std::string hidden_;
  bool is_gone_ = false;  // it could not be hidden
  std::shared_ptr<Opened> open_;
  std::vector<Line> lines_;
};

}  // namespace holdfast::tree
