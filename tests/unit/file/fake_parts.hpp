// Parts in memory. A node that is lost takes along what its team has written.
#pragma once
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "file/coordinated/parts.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {

// What lies beside one file.
class PartsDisk {
 public:
  explicit PartsDisk(bool forgets) : forgets_(forgets) {}
  void lose(int team) {
    std::lock_guard lock(mutex_);
    if (!forgets_) return;
    for (auto& [key, part] : parts_)
      if (key.second == team) part.clear();
  }
  size_t left() const { return notes_.size() + parts_.size(); }
  int written() const { return written_; }
  int fails_at = 0;  // the n-th write of all fails, and those after it: the disk is full

 private:
  friend class FakeParts;
  const bool forgets_;
  std::mutex mutex_;
  std::set<uint64_t> notes_;
  std::map<std::pair<uint64_t, int>, Bytes> parts_;
  int written_ = 0;
};

class FakeParts final : public Parts {
 public:
  FakeParts(PartsDisk& disk, FakeReplica& replica) : disk_(disk), replica_(replica) {}
  Result<std::string> place() override { return std::string("here"); }
  void attend(uint64_t id, const std::string& place, uint64_t teams) override {
    EXPECT_EQ(place, "here");
    id_ = id, teams_ = teams;
  }
  Status make_note() override {
    std::lock_guard lock(disk_.mutex_);
    disk_.notes_.insert(id_);
    return Status();
  }
  bool has_note() override {
    std::lock_guard lock(disk_.mutex_);
    return disk_.notes_.contains(id_);
  }
  Status remove() override {
    std::lock_guard lock(disk_.mutex_);
    disk_.notes_.erase(id_);
    std::erase_if(disk_.parts_, [this](const auto& one) { return one.first.first == id_; });
    return Status();
  }
  Status make_removals_durable() override { return Status(); }
  Status write(uint64_t at, ByteView head, ByteView data) override {
    std::lock_guard lock(disk_.mutex_);
    if (++disk_.written_ >= disk_.fails_at && disk_.fails_at > 0) return Status(Kind::no_space, "the disk is full", ENOSPC);
    Bytes& content = disk_.parts_[{id_, replica_.place().team}];
    put(content, at, head);
    put(content, at + head.size(), data);
    return Status();
  }
  void let_go() override { id_ = 0; }
  Status join(int team, uint64_t at, const Extent& extent, FileLayer& below) override {
    Bytes bytes(extent.length);
    {
      std::lock_guard lock(disk_.mutex_);
      const Bytes& content = disk_.parts_[{id_, team}];
      if (content.size() < at + bytes.size()) return Status(Kind::io, "a part is shorter than what was written to it", EIO);
      std::copy_n(content.begin() + ptrdiff_t(at), bytes.size(), bytes.begin());
    }
    return below.write({&extent, 1}, bytes);
  }

 private:
  PartsDisk& disk_;
  FakeReplica& replica_;
  uint64_t id_ = 0, teams_ = 0;
};

}  // namespace holdfast::file::test
