// Several threads of one process in one open file: reads go on beside each other, and none sees half of a write.
#include <atomic>
#include <condition_variable>
#include <future>
#include <random>
#include <thread>

#include "unit/engine/scene.hpp"
#include "unit/target/forwarding_target.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds deadline = 30s;

// As a process has it: a companion for each target.
catalog::Located with_companions(catalog::Located located) {
  for (catalog::Member& member : located.members) member.lane = target::make_companion_lane(member.path, deadline);
  return located;
}

// A disk that does not answer until it is told to.
class Held {
 public:
  Status wait() {
    std::unique_lock guard(mutex_);
    if (!held_) return Status();
    ++waiting_;
    changed_.notify_all();
    changed_.wait(guard, [&] { return !held_; });
    return status_;
  }
  void hold() {
    std::lock_guard guard(mutex_);
    held_ = true, waiting_ = 0;
  }
  // And how the calls end that it has held up.
  void let_go(Status status = {}) {
    std::lock_guard guard(mutex_);
    held_ = false, status_ = std::move(status);
    changed_.notify_all();
  }
  void wait_for_one() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int waiting_ = 0;
  Status status_;
};

class HeldObject final : public target::ForwardingObject {
 public:
  HeldObject(std::shared_ptr<target::Object> inner, Held& held) : ForwardingObject(std::move(inner)), held_(held) {}
  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    HF_TRY(held_.wait());
    return inner_->read(offset, into);
  }

 private:
  Held& held_;
};

constexpr uint64_t rows = 24;

void write_file(World& world) {
  Opener writer(world, true);
  for (uint64_t row = 0; row < rows; ++row)
    writer.write(row * world.identity.geometry.row_bytes(), world.identity.geometry.row_bytes(), int(row + 1));
  writer.close();
}

// A file on members of which the first one's reads can be held up; all of its rows are known.
struct Scene {
  explicit Scene(const std::string& scheme, bool write) : world(scheme) {
    write_file(world);
    catalog::Located located = with_companions(world.locate());
    const auto slow = std::make_shared<WatchedTarget>(located.members[0].target, [](auto&, auto&) {});
    slow->wrap = [this](std::shared_ptr<target::Object> object) { return std::make_shared<HeldObject>(std::move(object), held); };
    located.members[0].target = slow;
    file = std::make_unique<Opener>(world, std::move(located), false, write);
    EXPECT_TRUE(*file) << file->status.sentence();
    EXPECT_EQ(file->read(0, rows * geometry().row_bytes()).size(), rows * geometry().row_bytes());
  }
  const layout::Geometry& geometry() const { return world.identity.geometry; }
  // Of a data unit on the first member, or not there: where it begins.
  uint64_t unit_on(bool first_member, int unit, uint64_t first_row = 2) const {
    uint64_t row = first_row;
    while ((layout::place(geometry(), row, unit).member == 0) != first_member) ++row;
    return row * geometry().row_bytes() + uint64_t(unit) * geometry().unit_bytes;
  }

  World world;
  Held held;
  std::unique_ptr<Opener> file;
};

TEST(SideBySide, a_read_does_not_wait_for_another_ones_target) {
  Scene scene("rs:2+1", false);
  const uint64_t slow = scene.unit_on(true, 0) + 10, fast = scene.unit_on(false, 1) + 10;
  scene.held.hold();
  auto first = std::async(std::launch::async, [&] { return scene.file->read(slow, 100); });
  scene.held.wait_for_one();
  auto second = std::async(std::launch::async, [&] { return scene.file->read(fast, 100); });
  EXPECT_EQ(second.wait_for(10s), std::future_status::ready);
  scene.held.let_go();
  EXPECT_TRUE(all_are(first.get(), int(slow / scene.geometry().row_bytes() + 1)));
  EXPECT_TRUE(all_are(second.get(), int(fast / scene.geometry().row_bytes() + 1)));
}

// A half of what is read has come when the other half's target fails. Before the read goes on the row is written anew. It is a fresh one: whole
// rows of it go to their place at once.
TEST(SideBySide, a_read_that_was_overtaken_begins_anew) {
  Scene scene("rs:2+1", true);
  const uint64_t row_bytes = scene.geometry().row_bytes();
  const uint64_t border = scene.unit_on(true, 1, rows), row = border / row_bytes * row_bytes;
  scene.file->write(row, row_bytes, 100);
  scene.held.hold();
  auto read = std::async(std::launch::async, [&] { return scene.file->read(border - 1000, 2000); });
  scene.held.wait_for_one();
  auto write = std::async(std::launch::async, [&] { scene.file->write(row, row_bytes, 200); });
  std::this_thread::sleep_for(200ms);  // it waits for its turn
  scene.held.let_go(Status(Kind::io, "the disk has failed"));
  const Bytes seen = read.get();
  write.get();
  ASSERT_EQ(seen.size(), 2000u);
  EXPECT_TRUE(all_are(seen, int(seen[0]))) << "of before the write and of after it";
  scene.file->close();
}

// Rows of the first half stay as they are; each cell of the second half is written whole, over and over.
TEST(SideBySide, readers_see_each_write_whole_or_not_at_all) {
  World world("rs:4+2");
  write_file(world);
  const uint64_t row_bytes = world.identity.geometry.row_bytes(), half = rows / 2 * row_bytes, cell = 5000;
  Opener file(world, with_companions(world.locate()));
  ASSERT_TRUE(file) << file.status.sentence();
  for (uint64_t at = half; at + cell <= 2 * half; at += cell) file.write(at, cell, 200);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (unsigned seed = 1; seed <= 4; ++seed)
    readers.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (uint64_t turn = 0; !over; ++turn) {
        if (turn % 2) {
          const uint64_t at = half + random() % (half / cell) * cell;
          const Bytes seen = file.read(at, cell);
          wrong += seen.size() != cell || !all_are(seen, int(seen[0]));
        } else {
          const uint64_t at = random() % (half - row_bytes * 2), count = 1 + random() % (turn % 3 ? 300 : 2 * row_bytes);
          const Bytes seen = file.read(at, count);
          for (uint64_t i = 0; i < seen.size(); ++i) wrong += seen[i] != std::byte((at + i) / row_bytes + 1);
        }
      }
    });
  std::mt19937 random(99);
  for (int turn = 0; turn < 600; ++turn) {
    file.write(half + random() % (half / cell) * cell, cell, 1 + turn % 250);
    if (turn % 10 == 9) file.sync();
    if (turn == 300) world.gate->fail(2, Kind::io);  // from here on rows are rebuilt
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  file.close();
}

}  // namespace
}  // namespace holdfast::sim
