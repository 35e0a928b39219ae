// Ranks open what they only read to read and write also where all of them write one file. Each such open made a version of it: where they said MPI_MODE_CREATE it was
// the newest, and a restart went back to it. An older one that was looked at so also completed the newer one, which was not written to its end yet.
#include "base/node_path.hpp"
#include "catalog/growing.hpp"
#include "checkpoint/shared.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class OpenedByRanks : public TwoRanks {
 protected:
  explicit OpenedByRanks(const std::string& pattern) : TwoRanks(pattern) { settings.fast_close = false; }
  Status write_to(const catalog::Located& located, const std::string& text) {
    const auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(located, {.read = true, .write = true}, settings, *alone);
    if (!file) return file.status();
    const Extent extent{0, text.size()};
    HF_TRY((*file)->write({&extent, 1}, std::as_bytes(std::span(text))));
    return (*file)->close();
  }
  std::string text_at(const catalog::Located& located) {
    const auto alone = exchange::make_solo();
    const auto file = engine::ProtectedFile::open(located, {}, settings, *alone);
    if (!file) return file.status().sentence();
    Bytes bytes(64);
    const Extent extent{0, bytes.size()};
    const auto got = (*file)->read({&extent, 1}, bytes);
    return got ? std::string(reinterpret_cast<const char*>(bytes.data()), size_t(*got)) : got.status().sentence();
  }
  size_t versions() { return protected_of(*catalog::VersionList().look(settings.local, 1000)).size(); }
  size_t notes_at(uint32_t rank, State state) { return files_of(rank).list(state).size(); }
  LocalFiles files_of(uint32_t rank) { return {parse_node_path(settings.local[rank * 2]).path, run.id, run.attempt}; }
  Front::File file(uint32_t rank, const std::string& path) { return *fronts[rank]->match(path); }
  void protect() {
    for (int turns = 0; turns < 40; ++turns)
      for (Protector& protector : protectors) protector.work();
  }
};

class EachByItself : public OpenedByRanks {
 protected:
  EachByItself() : OpenedByRanks("shared:/data/ck.{step}") {}
  Front::Shared open(uint32_t rank, const std::string& path, int flags = O_RDWR) {
    const auto shared = fronts[rank]->open_shared(file(rank, path), flags, 0644);
    EXPECT_TRUE(shared.ok()) << shared.status().sentence();
    return shared ? *shared : Front::Shared();
  }
  void put(uint32_t rank, const Front::Shared& shared, const std::string& text) {
    Status written = fronts[rank]->shared_written(shared).status();
    if (written) written = write_to(locate_shared(shared.manifest, settings), text);
    EXPECT_TRUE(written.ok()) << written.sentence();
  }
  void close(uint32_t rank, const Front::Shared& shared) { fronts[rank]->shared_closed(shared, true, true); }
  std::string text_of(const Front::Shared& shared) { return text_at(locate_shared(shared.manifest, settings)); }
  void write_by_both(const std::string& path, const std::string& text) {
    const Front::Shared shared[] = {open(0, path, anew), open(1, path, anew)};
    for (const uint32_t rank : {0, 1}) put(rank, shared[rank], text), close(rank, shared[rank]);
  }
  static constexpr int anew = O_WRONLY | O_CREAT | O_TRUNC;
  std::vector<SharedFile> records() { return *SharedFiles::look(run, settings)->find_all(); }
  const std::string path = "/data/ck.5", next = "/data/ck.6";
};

TEST_F(EachByItself, what_is_only_read_is_no_version) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  ASSERT_EQ(versions(), 1u) << "the next one is not complete yet";
  for (int again = 0; again < 2; ++again) {
    const auto one = open(0, path), other = open(1, path);
    EXPECT_EQ(one.name, other.name);
    EXPECT_EQ(text_of(other), "first");
    EXPECT_EQ(notes_at(0, State::together), 1u) << "of the next one: who reads minds nobody";
    close(0, one);
    EXPECT_EQ(text_of(other), "first") << "the other rank has it open";
    close(1, other);
  }
  ASSERT_EQ(records().size(), 1u);
  EXPECT_EQ(records().front().name.file, next);
  EXPECT_EQ(seal_left(run, settings, true), std::vector<std::string>());
  EXPECT_EQ(versions(), 2u);
  EXPECT_EQ(whole(), (std::vector<uint64_t>{5, 6}));
}

TEST_F(EachByItself, who_looks_at_an_older_one_is_not_done_with_the_newer_one) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  for (const uint32_t rank : {0, 1}) close(rank, open(rank, path));
  protect();
  EXPECT_EQ(whole(), (std::vector<uint64_t>{5}));
}

TEST_F(EachByItself, it_is_one_when_any_rank_writes) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto one = open(0, path), other = open(1, path);
  EXPECT_FALSE(*fronts[1]->find_shared(file(1, path))) << "who reads is led to the version";
  put(1, other, "again");
  EXPECT_TRUE(*fronts[0]->find_shared(file(0, path)));
  close(1, other);
  close(0, one);
  EXPECT_EQ(records().size(), 2u);
  EXPECT_EQ(seal_left(run, settings, true), std::vector<std::string>());
  EXPECT_EQ(versions(), 3u);
  std::string newest;
  const auto all = *catalog::VersionList().look(settings.local, 1000);
  for (const catalog::FoundVersion& found : all)
    if (found.manifest.version->file == path && found.manifest.version->number == one.name.number)
      newest = text_at(catalog::locate_version(found.manifest, settings));
  EXPECT_EQ(newest, "again");
}

TEST_F(EachByItself, who_writes_the_same_bytes_has_written) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto one = open(0, path);
  put(0, one, "first");
  close(0, one);
  (void)seal_left(run, settings, true);
  EXPECT_EQ(versions(), 3u);
}

TEST_F(EachByItself, who_is_killed_with_it_open_has_torn_nothing) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  (void)open(1, path);
  for (Protector& protector : protectors) EXPECT_TRUE(protector.end());
  EXPECT_EQ(seal_left(run, settings, false), std::vector<std::string>());
  EXPECT_EQ(records().size(), 1u) << "the next one";
  EXPECT_EQ(notes_at(1, State::torn), 1u) << "of the next one, which not all ranks were done with";
  EXPECT_EQ(whole(), (std::vector<uint64_t>{5}));
}

TEST_F(EachByItself, who_is_killed_after_a_write_has) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  put(1, open(1, path), "half");
  for (Protector& protector : protectors) EXPECT_TRUE(protector.end());
  (void)seal_left(run, settings, false);
  EXPECT_EQ(notes_at(1, State::torn), 2u);
}

// Who had only looked at a file had taken part in it, and began another version where it wrote it anew. The others, which had not, joined the one that was looked at.
TEST_F(EachByItself, ranks_that_write_anew_what_one_of_them_has_read_meet) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);  // so nobody knows that nobody has it open any more
  close(0, open(0, path));
  const auto one = open(0, path, O_WRONLY | O_CREAT | O_TRUNC), other = open(1, path, O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_EQ(one.name, other.name);
  EXPECT_EQ(one.manifest.file_id, other.manifest.file_id);
}

// Its place in the order was that of the look.
TEST_F(EachByItself, what_is_written_anew_after_a_look_is_later_than_what_was_written_meanwhile) {
  write_by_both(path, "first");
  protect();
  write_by_both(next, "next");
  protect();
  site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
  close(0, open(0, path));
  write_by_both("/data/ck.7", "meanwhile");
  const auto meanwhile = records();
  ASSERT_FALSE(meanwhile.empty());
  const auto again = open(1, path, O_WRONLY | O_CREAT | O_TRUNC);
  for (const SharedFile& one : meanwhile) EXPECT_LT(one.name.written, again.name.written) << one.name.file;
}

// Programs make the file first, or look whether they may write it, and then all ranks open it. Who had opened it already began another version, where it truncated the file.
// So each of two versions had some ranks' bytes, and one of them was whole without a word.
TEST_F(EachByItself, who_has_written_nothing_may_truncate_it_once_more) {
  const auto both_meet = [&](const std::string& slot, const LocalName& first) {
    const Front::Shared shared[] = {open(0, slot, anew), open(1, slot, anew)};
    for (const uint32_t rank : {0, 1}) {
      EXPECT_EQ(shared[rank].name, first) << slot;
      put(rank, shared[rank], slot), close(rank, shared[rank]);
    }
  };
  const auto made = open(0, "/data/ck.5", anew);
  close(0, made);
  both_meet("/data/ck.5", made.name);
  const auto begun = open(0, "/data/ck.6", anew), probed = open(1, "/data/ck.6");
  close(1, probed), close(0, begun);
  both_meet("/data/ck.6", begun.name);
  const auto one = open(0, "/data/ck.7", anew), kept = open(1, "/data/ck.7");
  both_meet("/data/ck.7", one.name);
  close(1, kept), close(0, one);
  const auto again = open(0, "/data/ck.7", anew);
  EXPECT_NE(again.name, one.name) << "it has written to it";
  close(0, again);
}

// A rank that has opened it, and had nothing to write this time, does not meet those of the time before.
TEST_F(EachByItself, who_truncates_what_others_have_written_begins_another_one) {
  const auto first = open(0, path, anew);
  put(0, first, "first"), close(0, first);
  close(1, open(1, path, anew));
  const auto one = open(1, path, anew), other = open(0, path, anew);
  EXPECT_NE(one.name, first.name);
  EXPECT_EQ(other.name, one.name);
}

TEST_F(EachByItself, a_look_by_who_would_only_write_is_a_look) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
  close(0, open(0, path, O_WRONLY));
  const auto newest = records().back().name;
  const auto one = open(0, path, O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_EQ(open(1, path, O_WRONLY | O_CREAT | O_TRUNC).name, one.name);
  EXPECT_GT(one.name.written, newest.written);
}

// It was renamed, or whoever looked first has given it up.
TEST_F(EachByItself, what_nothing_leads_to_is_not_written) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto looks = open(0, path);
  const auto all = *SharedFiles::look(run, settings);
  for (const SharedFile& one : records())
    if (one.name.file == path) all.forget(one);
  EXPECT_EQ(fronts[0]->shared_written(looks).status().kind(), Kind::stale);
}

TEST_F(EachByItself, what_is_removed_may_be_written_by_who_has_it_open) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto looks = open(0, path);
  EXPECT_TRUE(fronts[0]->remove(file(0, path)).ok());
  EXPECT_TRUE(fronts[0]->shared_written(looks).ok());
}

// It has nothing to write this time. Nobody waits for more of it than that it goes on.
TEST_F(EachByItself, who_has_opened_it_to_write_takes_part_in_what_is_begun_anew) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto writes = open(1, path, O_WRONLY);
  const auto one = open(0, path, O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_GT(one.name.number, writes.name.number);
  put(0, one, "a"), close(0, one), close(1, writes);
  for (const uint32_t rank : {0, 1}) close(rank, open(rank, "/data/ck.7", O_WRONLY | O_CREAT | O_TRUNC));
  protect();
  EXPECT_EQ(versions(), 3u);
  const auto again = open(0, path, O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_EQ(open(1, path, O_WRONLY | O_CREAT | O_TRUNC).name, again.name);
}

// A rank that opens slots to write, as all do, and never has anything to write.
TEST_F(EachByItself, who_never_writes_keeps_nobody_waiting) {
  write_by_both(path, "first"), write_by_both(next, "next");
  protect();
  for (const std::string& slot : {path, next, path}) {
    const auto one = open(0, slot, O_WRONLY), other = open(1, slot, O_WRONLY);
    put(0, one, "again"), close(0, one), close(1, other);
    protect();
  }
  EXPECT_GE(versions(), 3u) << "each is whole when both have gone on";
}

// It is one file to all who have it open, as any that is truncated.
TEST_F(EachByItself, who_still_looks_at_it_sees_it_truncated) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto looks = open(1, path);
  const auto one = open(0, path, O_WRONLY | O_CREAT | O_TRUNC);
  EXPECT_GT(one.name.number, looks.name.number);
  EXPECT_EQ(one.manifest.file_id, looks.manifest.file_id);
  EXPECT_EQ(text_of(looks), "");
  close(1, looks);
  EXPECT_EQ(open(1, path, O_WRONLY | O_CREAT | O_TRUNC).name, one.name);
}

TEST_F(EachByItself, who_writes_to_what_it_had_open_writes_to_what_was_begun_anew) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  auto looks = open(1, path);
  const auto one = open(0, path, O_WRONLY | O_CREAT | O_TRUNC);
  put(0, one, "a");
  const auto goes_by = fronts[1]->shared_written(looks);
  ASSERT_TRUE(goes_by.ok()) << goes_by.status().sentence();
  EXPECT_EQ(*goes_by, one.name);
  close(0, one);
  for (const uint32_t rank : {0, 1}) close(rank, open(rank, "/data/ck.7", O_WRONLY | O_CREAT | O_TRUNC));
  protect();
  EXPECT_EQ(versions(), 2u) << "it is open still";
  EXPECT_TRUE(write_to(locate_shared(looks.manifest, settings), "ab").ok());
  close(1, looks);
  protect();
  EXPECT_EQ(versions(), 3u);
  const auto all = *catalog::VersionList().look(settings.local, 1000);
  const auto is_it = [&](const catalog::FoundVersion& found) { return found.manifest.version->number == one.name.number; };
  const auto found = std::find_if(all.begin(), all.end(), is_it);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(text_at(catalog::locate_version(found->manifest, settings)), "ab");
}

// What a node has of before, which was away when it was begun anew, leads nobody.
TEST_F(EachByItself, an_old_record_that_comes_back_is_passed_over) {
  protectors.clear();
  for (const uint32_t rank : {0, 1}) {  // what is lost is said of some
    protectors.emplace_back(settings, run, settings.local[rank * 2], [](const std::string&) {});
    ASSERT_TRUE(protectors.back().begin().ok());
  }
  for (int step = 10; step < 18; ++step) {
    const std::string slot = "/data/ck." + std::to_string(step);
    write_by_both(slot, "first"), write_by_both(next, "next");
    protect();
    const auto looks = open(1, slot);
    site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
    const auto one = open(0, slot, O_WRONLY | O_CREAT | O_TRUNC);
    put(0, one, "again");
    site.heal(sim::Site::gate_number(1));
    EXPECT_EQ(*fronts[1]->shared_written(looks), one.name) << slot;
    EXPECT_EQ(open(1, slot, O_WRONLY).name, one.name) << slot;
    close(0, one);
    for (int times = 0; times < 2; ++times) close(1, looks);
    write_by_both(next, "next");
    protect();
    const auto now = open(0, slot);  // a version by now
    EXPECT_EQ(text_of(now), "again") << slot;
    EXPECT_GT(now.name.number, one.name.number) << slot;
    close(0, now);
  }
}

TEST_F(EachByItself, who_is_about_to_write_to_it_is_joined) {
  write_by_both(path, "first");
  write_by_both(next, "next");
  protect();
  const auto updates = open(1, path);
  EXPECT_TRUE(fronts[1]->shared_written(updates).ok());
  EXPECT_EQ(fronts[0]->open_shared(file(0, path), anew, 0644).status().to_errno(), EBUSY) << "what it writes would be gone natively";
  EXPECT_EQ(open(0, path, O_WRONLY | O_CREAT).name, updates.name);
}

// One rank has written the file alone, and closed it. Then all truncate it and write it anew. Those that had not written it joined the version of before, and the other one began
// another: each had some ranks' bytes, and one was whole without a word. docs/decisions/0107
class WrittenByOneBefore : public EachByItself, public ::testing::WithParamInterface<uint32_t> {
 protected:
  WrittenByOneBefore() {
    const auto before = open(GetParam(), path, anew);
    put(GetParam(), before, "zzz"), close(GetParam(), before);
    number = before.name.number;
  }
  uint32_t number = 0;
};

TEST_P(WrittenByOneBefore, who_truncates_it_then_meets_in_another_one) {
  const Front::Shared shared[] = {open(0, path, anew), open(1, path, anew)};
  for (const uint32_t rank : {0, 1}) {
    EXPECT_EQ(shared[rank].name, shared[0].name);
    EXPECT_GT(shared[rank].name.number, number);
    put(rank, shared[rank], "new"), close(rank, shared[rank]);
  }
  EXPECT_EQ(text_of(shared[0]), "new");
}

TEST_P(WrittenByOneBefore, so_do_those_that_have_written_another_one_meanwhile) {
  write_by_both(next, "next");
  protect();
  const Front::Shared shared[] = {open(0, path, anew), open(1, path, anew)};
  EXPECT_EQ(shared[1].name, shared[0].name);
  for (const uint32_t rank : {0, 1}) put(rank, shared[rank], "new"), close(rank, shared[rank]);
  write_by_both(next, "after");
  protect();
  EXPECT_EQ(whole(), (std::vector<uint64_t>{6, 5})) << "the next one was whole before";
}

TEST_P(WrittenByOneBefore, who_only_opens_it_after_a_truncation_meets_there) {
  const auto one = open(GetParam(), path, anew), other = open(1 - GetParam(), path, O_WRONLY);
  EXPECT_EQ(other.name, one.name);
}

TEST_P(WrittenByOneBefore, who_has_it_open_since_before_is_told) {
  const auto idle = open(1 - GetParam(), path, O_WRONLY);
  const auto one = open(GetParam(), path, anew);
  EXPECT_GT(one.name.number, idle.name.number);
  EXPECT_EQ(fronts[1 - GetParam()]->shared_written(idle).status().to_errno(), ESTALE) << "natively it would write to what was truncated";
}

INSTANTIATE_TEST_SUITE_P(By, WrittenByOneBefore, ::testing::Values(0, 1),
                         [](const auto& info) { return info.param == 0 ? "the_first" : "the_last"; });

// Natively what the other one has written is gone, and what it writes from now on is there.
TEST_F(EachByItself, who_truncates_what_another_one_writes_is_refused) {
  const auto one = open(0, path, anew);
  EXPECT_EQ(open(1, path, anew).name, one.name) << "it has written nothing yet";
  put(0, one, "first");
  const auto refused = fronts[1]->open_shared(file(1, path), anew, 0644);
  EXPECT_EQ(refused.status().to_errno(), EBUSY);
  EXPECT_NE(refused.status().sentence().find("a rank on n1 has written to it, and has it open"), std::string::npos) << refused.status().sentence();
  close(0, one);
}

class ByMpi : public OpenedByRanks {
 protected:
  ByMpi() : OpenedByRanks("/data/ck.{step}") { write_file(0, path); }
  Front::Together open(uint32_t rank, int flags) {
    auto begun = fronts[rank]->begin_together(file(rank, path), flags, 0644, settings);
    EXPECT_TRUE(begun.ok()) << begun.status().sentence();
    return std::move(*begun);
  }
  const std::string path = "/data/ck.5";
};

TEST_F(ByMpi, nobody_minds_one_that_may_stay_as_it_is) {
  const auto together = open(0, O_RDWR | O_CREAT);
  EXPECT_TRUE(together.may_stay_so);
  EXPECT_EQ(notes_at(0, State::together), 0u);
  write_file(1, path);  // from the other node
  EXPECT_TRUE(fronts[0]->end_together(together, false).ok());
  EXPECT_EQ(versions(), 2u);
}

TEST_F(ByMpi, one_that_is_written_is_minded) {
  EXPECT_FALSE(open(0, O_WRONLY | O_CREAT).may_stay_so);
  EXPECT_EQ(notes_at(0, State::together), 1u);
  const auto other = open(1, O_RDWR);
  EXPECT_TRUE(fronts[1]->written_together(other.name).ok());
  EXPECT_EQ(notes_at(1, State::together), 1u);
  EXPECT_TRUE(fronts[1]->end_together(other, true).ok());
  EXPECT_EQ(notes_at(1, State::together), 0u);
}

TEST_F(ByMpi, of_two_that_write_it_at_once_one_fails_by_name) {
  const auto together = open(0, O_RDWR);
  write_file(1, path);
  EXPECT_TRUE(fronts[0]->written_together(together.name).ok());
  const auto ended = fronts[0]->end_together(together, true);
  EXPECT_EQ(ended.status().kind(), Kind::busy) << ended.status().sentence();
  EXPECT_EQ(versions(), 2u);
}

}  // namespace
}  // namespace holdfast::checkpoint
