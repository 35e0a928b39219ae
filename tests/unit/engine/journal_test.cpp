// What journals vouch for, which of several counts, and what of them is durable when.
#include "engine/journal.hpp"

#include "engine/object_sizes.hpp"
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

class Journals : public testing::Test {
 protected:
  uint64_t generation_of(Parts& parts, uint64_t row) {
    auto record = parts.reader.record(row);
    EXPECT_TRUE(record.ok()) << record.status().sentence();
    return record.ok() ? record->generation : 0;
  }
  World world{"rs:2+1"};
  const uint64_t row = world.identity.geometry.row_bytes();
};

// A commit that failed has left two rows under a name that the next one has, too.
TEST_F(Journals, begin_empty) {
  Parts parts(world);
  {
    engine::Journal failed(parts.members, parts.records, parts.located, "5.0");
    expect_ok(failed.append(parts.row(1, 5, 1)));
    expect_ok(failed.append(parts.row(2, 5, 2)));
  }
  parts.write_journal("5.0", 3, 5, 3);
  ASSERT_TRUE(parts.journals.add("5.0"));
  EXPECT_EQ(parts.journals.rows().size(), 1u);
  EXPECT_TRUE(parts.journals.holds(3));
}

TEST_F(Journals, that_were_overtaken_are_not_put_in_place) {
  Parts parts(world);
  parts.write_journal("3.0", 1, 3, 3);
  parts.write_in_place(1, 5, 5);
  engine::replay_journal(parts.members, parts.records, parts.located, "3.0");
  EXPECT_EQ(generation_of(parts, 1), 5u);
  Bytes seen(row);
  const engine::RowRange whole{1, 0, row, seen.data()};
  expect_ok(parts.reader.read({&whole, 1}));
  EXPECT_TRUE(all_are(seen, 5));
}

TEST_F(Journals, count_by_their_generation_not_by_their_turn) {
  Parts parts(world);
  parts.write_journal("5.0", 1, 5, 5);
  parts.write_journal("3.0", 1, 3, 3);
  ASSERT_TRUE(parts.journals.add("5.0") && parts.journals.add("3.0"));
  EXPECT_EQ(generation_of(parts, 1), 5u);
}

// The lone opener merges its row with all of them.
TEST_F(Journals, of_before_still_vouch_for_their_bytes) {
  Parts parts(world);
  parts.write_journal("3.0", 1, 3, 3, {{100, 200}});
  parts.write_journal("5.0", 1, 5, 5, {{500, 600}});
  ASSERT_TRUE(parts.journals.add("3.0") && parts.journals.add("5.0"));
  const Intervals vouched = parts.journals.vouched_since(1, 0);
  EXPECT_TRUE(vouched.covers(100, 200));
  EXPECT_TRUE(vouched.covers(500, 600));
}

// The first opener is the lone one: commits of others wait in journals.
class BesideTheLone : public Journals {
 protected:
  void SetUp() override {
    lone = std::make_unique<Opener>(world, true);
    ASSERT_TRUE(*lone) << lone->status.sentence();
  }
  std::unique_ptr<Opener> lone;
};

TEST_F(BesideTheLone, a_cut_makes_holes_of_rows_in_journals) {
  Opener other(world);
  ASSERT_TRUE(other) << other.status.sentence();
  other.write(0, 4 * row, 7);
  other.sync();
  other.set_size(row);
  other.set_size(4 * row);
  const Bytes seen = read_anew(world, 0, 4 * row);
  ASSERT_EQ(seen.size(), 4 * row);
  for (uint64_t at = 0; at < seen.size(); ++at) ASSERT_EQ(seen[at], std::byte(at < row ? 7 : 0)) << "byte " << at;
}

// Its cut could not be made while the lone opener lived; then all of them died.
TEST_F(BesideTheLone, who_opens_next_makes_the_cut_that_was_left) {
  lone->write(0, 4 * row, 7);
  lone->sync();
  Opener other(world);
  ASSERT_TRUE(other) << other.status.sentence();
  other.set_size(row);
  other.set_size(4 * row);
  other.die();
  lone->die();
  Opener next(world);
  ASSERT_TRUE(next) << next.status.sentence();
  const Bytes seen = next.read(0, 4 * row);
  ASSERT_EQ(seen.size(), 4 * row);
  for (uint64_t at = 0; at < seen.size(); ++at) ASSERT_EQ(seen[at], std::byte(at < row ? 7 : 0)) << "byte " << at;
  next.close();
}

// What another one has committed of a row stays when this one commits another part of it.
TEST_F(BesideTheLone, rows_of_journals_keep_what_the_lone_one_adds) {
  lone->set_size(2 * row);
  {
    Opener other(world);
    ASSERT_TRUE(other) << other.status.sentence();
    other.write(100, 50, 8);
    other.close();
  }
  lone->write(300, 50, 9);
  lone->sync();
  const Bytes seen = read_anew(world, 0, 400);
  EXPECT_TRUE(all_are(Bytes(seen.begin() + 100, seen.begin() + 150), 8));
  EXPECT_TRUE(all_are(Bytes(seen.begin() + 300, seen.begin() + 350), 9));
}

// It may have read the manifest before the commit that put a journal in its place.
TEST_F(BesideTheLone, who_finds_a_journal_gone_reads_the_manifest_anew) {
  lone->set_size(2 * row);
  {
    Opener other(world);
    ASSERT_TRUE(other) << other.status.sentence();
    other.write(100, 50, 8);
    other.close();
  }
  catalog::Located located = world.locate();
  bool read = false;
  auto watch = [&](const std::string& call, const std::string& name) {
    if (call != "open" || name.find("journal.") == std::string::npos || std::exchange(read, true)) return;
    lone->sync();  // which puts it in its place
  };
  located.members[0].target = std::make_shared<WatchedTarget>(located.members[0].target, watch);
  Opener reader(world, std::move(located), false, false);
  ASSERT_TRUE(reader) << reader.status.sentence();
  EXPECT_TRUE(read);
  EXPECT_TRUE(reader->located().manifest.journals.empty());
  EXPECT_TRUE(all_are(reader.read(100, 50), 8));
}

// A user's program reads a plain copy as it lies there.
TEST(PlainCopies, end_where_the_file_does_after_a_journal) {
  World world("mirror:2", layout::Placement::separate, 2);
  const uint64_t row = world.identity.geometry.row_bytes(), size = 2 * row + 171;
  {
    Opener file(world, true);
    file.write(0, size, 7);
    file.close();
  }
  Opener file(world);
  file.write(size - 100, 100, 8);  // of a row that is synced
  const catalog::Located located = file->located();
  file.close();
  for (int object : {0, 1}) {
    ASSERT_TRUE(engine::is_plain(located.manifest.geometry, object));
    auto copy = world.directories[size_t(object)]->snapshot_object(located.data_name(object));
    ASSERT_TRUE(copy.ok());
    EXPECT_EQ(copy->size(), size);
  }
}

// An atomic write leaves a journal that nothing has made durable yet: where power fails its row may be refused, and still lies in its place as it
// was. Who puts journals in place over synced rows makes them durable before: from then on power takes nothing.
class AtomicWrites : public testing::Test {
 protected:
  void begin() {
    world = std::make_unique<World>("rs:2+1");
    row = world->identity.geometry.row_bytes();
    Opener file(*world, true);
    file.write(0, 2 * row, 1);
    data = file->located().data_name(0);
    file.close();
    before.clear();
    for (auto& directory : world->directories) before.push_back(content_of(*directory));
  }
  Bytes content_of(const target::MemoryDirectory& directory) const {
    auto object = directory.snapshot_object(data);
    EXPECT_TRUE(object.ok());
    Bytes bytes(object.ok() ? object->size() : 0);
    if (object.ok()) object->read(0, bytes);
    return bytes;
  }
  void write_atomically(Opener& file) {
    expect_ok(file->set_atomic(true));
    file.write(row / 3, row, 2);
  }
  bool as_it_was(size_t member) const {
    Bytes now = content_of(*world->directories[member]);
    now.resize(before[member].size());
    return now == before[member];
  }
  void expect_old_or_new_after_power_failed(uint64_t seed) {
    world->after_crash(seed);
    Opener reader(*world, false, false);
    ASSERT_TRUE(reader) << reader.status.sentence();
    auto seen = reader.try_read(0, 2 * row);
    if (!seen.ok()) {
      for (size_t member = 0; member < before.size(); ++member) ASSERT_TRUE(as_it_was(member)) << seen.status().sentence();
      return;
    }
    for (uint64_t at = 0; at < seen->size(); ++at) {
      const bool may_be_new = at >= row / 3 && at < row / 3 + row;
      ASSERT_TRUE((*seen)[at] == std::byte(1) || (may_be_new && (*seen)[at] == std::byte(2))) << "byte " << at;
    }
  }
  // `act` is killed at its n-th call on storage, and power fails. It returns whether it came to its end.
  void at_each_call(const std::function<bool(int64_t calls)>& act) {
    bool finished = false;
    for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
      for (uint64_t seed = 1; seed <= 8; ++seed) {
        SCOPED_TRACE("killed at call " + std::to_string(calls) + ", seed " + std::to_string(seed));
        begin();
        finished = act(calls);
        expect_old_or_new_after_power_failed(seed);
        if (HasFatalFailure()) return;
      }
    EXPECT_TRUE(finished) << "it has more calls than were tried";
  }

  std::unique_ptr<World> world;
  uint64_t row = 0;
  std::string data;
  std::vector<Bytes> before;  // by member: its data
};

TEST_F(AtomicWrites, of_others_are_durable_before_a_sync_puts_them_in_place) {
  at_each_call([&](int64_t calls) {
    Opener first(*world), other(*world);
    first.write(5 * row, 1, 1);
    first.sync();  // it is not the lone one any more
    write_atomically(other);
    other.die();
    first.write(6 * row, 1, 1);
    world->gate->die_at = world->gate->calls + calls;
    return first->sync().ok() && !world->gate->dead();
  });
}

TEST_F(AtomicWrites, that_others_left_are_durable_before_an_open_puts_them_in_place) {
  at_each_call([&](int64_t calls) {
    {
      Opener dead(*world);
      write_atomically(dead);
    }
    world->gate->die_at = world->gate->calls + calls;
    const Opener next(*world);
    return next && !world->gate->dead();
  });
}

// A fast close makes nothing durable but what it would take away.
TEST(FastClose, takes_no_synced_row_where_power_fails_after_it) {
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    World world("rs:2+1");
    const uint64_t row = world.identity.geometry.row_bytes();
    {
      Opener file(world, true);
      file.write(0, 2 * row, 1);
      file.close();
    }
    world.settings.fast_close = true;
    {
      Opener file(world);
      file.write(row / 3, row, 2);
      file.close();
    }
    world.after_crash(seed);
    Opener reader(world, false, false);
    ASSERT_TRUE(reader) << reader.status.sentence();
    auto seen = reader.try_read(0, 2 * row);
    ASSERT_TRUE(seen.ok()) << seen.status().sentence() << ", seed " << seed;
    for (uint64_t at = 0; at < seen->size(); ++at) ASSERT_TRUE((*seen)[at] == std::byte(1) || (*seen)[at] == std::byte(2)) << "byte " << at;
  }
}

}  // namespace
}  // namespace holdfast::sim
