// On a disk that is nearly full the copies of protected files give way. Their own rank was then shown an older copy that was still there, and built the next
// version on it. A file that was removed and written anew before was absent.
#include <fcntl.h>

#include "base/node_path.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class CopyGone : public TwoRanks {
 protected:
  CopyGone() : TwoRanks("/data/ck.{step}.{rank}") {}

  int open(int flags) {
    Status status;
    const int fd = fronts[0]->open_to_write(*fronts[0]->match(path), flags, 0644, status);
    EXPECT_GE(fd, 0) << status.sentence();
    return fd;
  }
  void close(int fd) {
    site.close(fd);
    (void)fronts[0]->closed(fd);
    protectors[0].work();
  }
  void write(const std::string& text, int flags = O_WRONLY | O_CREAT | O_TRUNC) {
    const int fd = open(flags);
    EXPECT_EQ(site.write(fd, text.data(), text.size()), ssize_t(text.size()));
    close(fd);
  }
  // All that is protected, as on a disk that has no room.
  void evict() {
    const LocalFiles files(parse_node_path(settings.local[0]).path, run.id, run.attempt);
    for (const LocalName& name : files.list(State::kept)) EXPECT_TRUE(files.evict(name).ok());
  }
  std::string read() {
    const auto sight = fronts[0]->look(*fronts[0]->match(path));
    if (!sight) return sight.status().sentence();
    if (sight->what != Front::Sight::local) return "absent";
    const catalog::Descriptor fd(site.openat(AT_FDCWD, sight->path.c_str(), O_RDONLY, 0));
    std::string text(64, '\0');
    text.resize(size_t(std::max<ssize_t>(site.pread(fd.get(), text.data(), text.size(), 0), 0)));
    return text;
  }

  const std::string path = "/data/ck.1.0";
};

TEST_F(CopyGone, and_what_the_attempt_began_with_does_not_come_back) {
  write("before"), write_file(1, "/data/ck.1.1");
  begin_again_with(1);
  EXPECT_EQ(read(), "before");
  write("now");
  evict();
  EXPECT_EQ(read(), "now");
  evict();
  write("!", O_RDWR);
  EXPECT_EQ(read(), "!ow") << "the next version begins with it";
}

TEST_F(CopyGone, and_an_older_version_is_no_answer_where_its_nodes_keep_silent) {
  write("before"), write_file(1, "/data/ck.1.1");
  settings.units_remote = true;
  begin_again_with(1);
  EXPECT_EQ(read(), "before");
  site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
  write("now");  // to the last two nodes
  site.heal(sim::Site::gate_number(1));
  evict();
  for (const int silent : {2, 3}) site.gate->fail(sim::Site::gate_number(silent), Kind::timed_out);
  EXPECT_NE(read().find("are lost, or do not answer"), std::string::npos) << read();
  for (const int silent : {2, 3}) site.heal(sim::Site::gate_number(silent));
  EXPECT_EQ(read(), "now");
}

TEST_F(CopyGone, and_a_file_that_was_removed_and_written_anew_is_there) {
  write("first");
  ASSERT_TRUE(fronts[0]->remove(*fronts[0]->match(path)).ok());
  EXPECT_EQ(read(), "absent");
  write("second");
  evict();
  EXPECT_EQ(read(), "second");
  evict();
  write(" and more", O_WRONLY | O_APPEND | O_CREAT);
  EXPECT_EQ(read(), "second and more");
  const auto listing = fronts[0]->list("/data");
  ASSERT_TRUE(listing.ok() && *listing);
  EXPECT_TRUE((*listing)->names.contains("ck.1.0") && !(*listing)->removed.contains("ck.1.0"));
  ASSERT_TRUE(fronts[0]->remove(*fronts[0]->match(path)).ok());
  evict();
  EXPECT_EQ(read(), "absent");
}

}  // namespace
}  // namespace holdfast::checkpoint
