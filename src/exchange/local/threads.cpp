#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "exchange/exchange.hpp"

namespace holdfast::exchange {

namespace {

enum class Step : uint8_t { barrier, all_gather, all_to_all, all_max };

// What the ranks share. A step is: everyone posts a pointer to its part, meets, takes what it needs from the others,
// meets again. Only then may anyone's part go away.
class Meeting {
 public:
  explicit Meeting(int ranks) : posts_(ranks) {}
  int ranks() const { return static_cast<int>(posts_.size()); }

  void post_and_meet(int rank, Step step, void* part) {
    std::unique_lock guard(mutex_);
    posts_[rank] = {step, part};
    meet(guard);
    for (const Post& post : posts_) {
      if (post.step == step) continue;
      // A bug of ours: going on would hand one step's bytes to another.
      std::fprintf(stderr, "holdfast: ranks called different collective steps of one exchange\n");
      std::abort();
    }
  }
  void* part_of(int rank) const { return posts_[rank].part; }  // between the two meetings only
  void meet_again() {
    std::unique_lock guard(mutex_);
    meet(guard);
  }

 private:
  struct Post {
    Step step = Step::barrier;
    void* part = nullptr;
  };

  void meet(std::unique_lock<std::mutex>& guard) {
    const uint64_t round = round_;
    if (++arrived_ == posts_.size()) {
      arrived_ = 0;
      ++round_;
      everyone_.notify_all();
    } else {
      everyone_.wait(guard, [&] { return round_ != round; });
    }
  }

  std::mutex mutex_;
  std::condition_variable everyone_;
  std::vector<Post> posts_;
  size_t arrived_ = 0;
  uint64_t round_ = 0;
};

class Threads final : public Exchange {
 public:
  Threads(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return meeting_->ranks(); }

  void barrier() override {
    meeting_->post_and_meet(rank_, Step::barrier, nullptr);
    meeting_->meet_again();
  }

  std::vector<Bytes> all_gather(ByteView mine) override {
    meeting_->post_and_meet(rank_, Step::all_gather, &mine);
    std::vector<Bytes> all;
    for (int i = 0; i < size(); ++i) {
      const ByteView& part = *static_cast<ByteView*>(meeting_->part_of(i));
      all.emplace_back(part.begin(), part.end());
    }
    meeting_->meet_again();
    return all;
  }

  std::vector<Bytes> all_to_all(std::vector<Bytes> to) override {
    to.resize(size());  // ranks past the end get nothing
    meeting_->post_and_meet(rank_, Step::all_to_all, &to);
    std::vector<Bytes> from;
    // Element rank_ of each rank's vector is ours alone to take.
    for (int i = 0; i < size(); ++i) {
      from.push_back(std::move((*static_cast<std::vector<Bytes>*>(meeting_->part_of(i)))[rank_]));
    }
    meeting_->meet_again();
    return from;
  }

  std::vector<int64_t> all_max(std::vector<int64_t> mine) override {
    meeting_->post_and_meet(rank_, Step::all_max, &mine);
    std::vector<int64_t> most = mine;
    for (int i = 0; i < size(); ++i) {
      const auto& part = *static_cast<std::vector<int64_t>*>(meeting_->part_of(i));
      for (size_t k = 0; k < std::min(most.size(), part.size()); ++k) most[k] = std::max(most[k], part[k]);
    }
    meeting_->meet_again();
    return most;
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Exchange>> make_threads(int ranks) {
  auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::unique_ptr<Exchange>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<Threads>(meeting, rank));
  return all;
}

}  // namespace holdfast::exchange
