// Fortran opens what it only reads to read and write. Each such open made a version of what it had read: it was the newest, or of the same number as what its
// rank wrote meanwhile, and other nodes were refused for it.
#include "base/node_path.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class OpensToUpdate : public TwoRanks {
 protected:
  explicit OpensToUpdate(const std::string& pattern) : TwoRanks(pattern) {}
  int open(uint32_t rank, const std::string& path, int flags = O_RDWR) {
    status = Status();
    return fronts[rank]->open_to_write(*fronts[rank]->match(path), flags, 0644, status);
  }
  void close(uint32_t rank, int fd) {
    site.close(fd);
    fronts[rank]->closed(fd);
  }
  void put(int fd, const std::string& text) { EXPECT_EQ(site.pwrite(fd, text.data(), text.size(), 0), ssize_t(text.size())); }
  void write(uint32_t rank, const std::string& path, const std::string& text, int flags = O_WRONLY | O_CREAT | O_TRUNC) {
    const int fd = open(rank, path, flags);
    ASSERT_GE(fd, 0) << status.sentence();
    put(fd, text);
    close(rank, fd);
    protectors[rank].work();
  }
  std::string text_of(int fd) {
    std::string text(64, '\0');
    text.resize(size_t(std::max<ssize_t>(site.pread(fd, text.data(), text.size(), 0), 0)));
    return text;
  }
  std::string read(uint32_t rank, const std::string& path) {
    const auto sight = fronts[rank]->look(*fronts[rank]->match(path));
    if (!sight || sight->what != Front::Sight::local) return "";
    const catalog::Descriptor fd(site.openat(AT_FDCWD, sight->path.c_str(), O_RDONLY, 0));
    return text_of(fd.get());
  }
  // As Fortran reads.
  std::string read_by_update(uint32_t rank, const std::string& path) {
    const int fd = open(rank, path);
    if (fd < 0) return status.sentence();
    const std::string text = text_of(fd);
    close(rank, fd);
    protectors[rank].work();
    return text;
  }
  size_t copies_at(uint32_t rank, State state) {
    return LocalFiles(parse_node_path(settings.local[rank * 2]).path, run.id, run.attempt).list(state).size();
  }
  size_t versions() { return protected_of(*catalog::VersionList().look(settings.local, 1000)).size(); }
  std::string failed_at(uint32_t rank) {
    const LocalFiles files(parse_node_path(settings.local[rank * 2]).path, run.id, run.attempt);
    const auto all = files.list(State::failed);
    return all.empty() ? "" : files.why(all.front());
  }
  Status status;
};

class OfARank : public OpensToUpdate {
 protected:
  OfARank() : OpensToUpdate("/data/ck.{step}.{rank}") {}
  const std::string path = "/data/ck.5.1";
};

TEST_F(OfARank, a_file_that_another_rank_only_reads_stays_as_it_is) {
  for (const char* text : {"v1", "v2", "v3"}) {
    write(1, path, text);
    EXPECT_EQ(read_by_update(0, path), text);
  }
  EXPECT_EQ(read(1, path), "v3");
  EXPECT_EQ(versions(), 3u) << "and none of who has only read";
}

TEST_F(OfARank, its_rank_sees_what_another_one_has_written_and_writes_after_it) {
  write(1, path, "first");
  write(0, path, "by 0");
  write(0, path, "by 0 again");
  EXPECT_EQ(read(1, path), "by 0 again");
  write(1, path, "final by 1");
  EXPECT_EQ(read(1, path), "final by 1");
  EXPECT_EQ(read(0, path), "final by 1") << "of its own copy nobody says that it is the newest";
}

TEST_F(OfARank, an_update_that_another_one_has_overtaken_fails_by_name) {
  write(1, path, "first");
  const int fd = open(0, path);
  put(fd, "late");
  write(1, path, "second");
  close(0, fd);
  Protector(settings, run, settings.local[0], [](const std::string&) {}).work();
  EXPECT_NE(failed_at(0).find("n3 wrote it as well"), std::string::npos) << failed_at(0);
  EXPECT_EQ(read(1, path), "second");
}

class OfAll : public OpensToUpdate {
 protected:
  OfAll() : OpensToUpdate("/data/ck.{step}") { write(0, path, "first"); }
  const std::string path = "/data/ck.5";
};

TEST_F(OfAll, nodes_have_it_open_at_once_as_long_as_nobody_writes) {
  const int here = open(0, path), there = open(1, path);
  ASSERT_GE(here, 0);
  ASSERT_GE(there, 0) << status.sentence();
  EXPECT_EQ(text_of(there), "first");
  write(1, path, "second", O_WRONLY);
  close(1, there);
  protectors[1].work();
  close(0, here);
  EXPECT_EQ(read(0, path), "second");
  EXPECT_EQ(versions(), 2u);
}

TEST_F(OfAll, of_two_nodes_that_write_it_at_once_one_fails_by_name) {
  const int here = open(0, path), there = open(1, path);
  put(there, "there");
  close(1, there);
  protectors[1].work();
  put(here, "here");
  close(0, here);
  Protector(settings, run, settings.local[0], [](const std::string&) {}).work();
  EXPECT_NE(failed_at(0).find("n3 wrote it as well"), std::string::npos) << failed_at(0);
}

TEST_F(OfAll, what_another_node_writes_meanwhile_is_seen_where_it_is_open) {
  const int here = open(0, path);
  write(1, path, "second");
  EXPECT_EQ(read(0, path), "second");
  EXPECT_EQ(text_of(here), "first") << "what it has opened";
  EXPECT_EQ(read_by_update(0, path), "second");
  close(0, here);
  EXPECT_EQ(read(0, path), "second");
  write(0, path, "third");
  EXPECT_EQ(read(1, path), "third");
}

TEST_F(OfAll, what_another_node_removes_meanwhile_is_gone) {
  const int here = open(0, path);
  EXPECT_TRUE(fronts[1]->remove(*fronts[1]->match(path)).ok());
  EXPECT_EQ(read(0, path), "");
  close(0, here);
  EXPECT_EQ(read(0, path), "");
}

TEST_F(OfAll, who_is_killed_with_it_open_has_torn_nothing) {
  site.close(open(1, path));
  EXPECT_TRUE(protectors[1].end());
  EXPECT_EQ(copies_at(1, State::torn), 0u);
  EXPECT_EQ(copies_at(1, State::writing), 0u);
}

TEST_F(OfAll, who_is_killed_after_a_write_has) {
  const int there = open(1, path);
  put(there, "second");
  site.close(there);
  EXPECT_TRUE(protectors[1].end());
  EXPECT_EQ(copies_at(1, State::torn), 1u);
}

TEST_F(OfAll, who_opens_to_write_goes_on_with_what_is_open) {
  const int reads = open(0, path), writes = open(0, path, O_WRONLY);
  put(writes, "second");
  EXPECT_EQ(text_of(reads), "second");
  EXPECT_LT(open(1, path), 0) << "a node that writes is waited for";
  close(0, writes);
  close(0, reads);
  protectors[0].work();
  EXPECT_EQ(read(1, path), "second");
}

TEST_F(OfAll, who_writes_the_same_bytes_has_written) {
  write(1, path, "first", O_RDWR);
  EXPECT_EQ(versions(), 2u);
}

}  // namespace
}  // namespace holdfast::checkpoint
