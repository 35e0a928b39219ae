// Calls on files that each replica has for itself, which have failed in some of them: a disk of a node is full, or broken. All replicas are to have one
// outcome. So who fails waits until its twins have come to the same place. Where they fail there as well, they all get one answer. Else who has failed is
// lost: the others have had what it could not have, and have gone on. Kept by the hub. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::redundant {

class OwnFailures {
 public:
  // A twin that fails there too, but later than this after the first one, is taken for one that has not.
  static constexpr int64_t patience_ms = 2000;

  struct Report {
    int team = 0, rank = 0;
    uint64_t place = 0;  // the call and its file, the same in all replicas
    int64_t answer = 0;  // how much was done, or the negative errno
    std::string why = {};
    int64_t at_ms = 0;
  };
  struct Judged {
    std::vector<Report> told;  // each with everybody's answer
    std::vector<Report> lost;
  };
  void add(Report report) { waiting_.push_back(std::move(report)); }
  std::vector<int> ranks() const;  // that wait
  // `living`: the teams in which the rank lives, as bits. Those told and lost do not wait any more.
  Judged judge(int rank, uint64_t living, int64_t now_ms);

 private:
  std::vector<Report> waiting_;
};

}  // namespace holdfast::redundant
