// Who has a file open to write, where the file system has no leases to ask.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "catalog/environment.hpp"
#include "catalog/writers.hpp"

namespace holdfast::catalog {
namespace {

class Writers : public testing::Test {
 protected:
  Writers() {
    EXPECT_NE(::mkdtemp(directory_), nullptr);
    file_ = std::string(directory_) + "/file";
  }
  ~Writers() override { std::filesystem::remove_all(directory_); }

  char directory_[32] = "/tmp/holdfast-writers-XXXXXX";
  std::string file_;
};

TEST_F(Writers, are_those_that_have_it_open_or_mapped) {
  const int written = ::open(file_.c_str(), O_RDWR | O_CREAT, 0600), read = ::open(file_.c_str(), O_RDONLY);
  ASSERT_TRUE(written >= 0 && read >= 0 && ::ftruncate(written, 4096) == 0);
  EXPECT_TRUE(is_open_to_write(read));
  void* const shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, written, 0);
  ASSERT_NE(shared, MAP_FAILED);
  ::close(written);
  EXPECT_TRUE(is_open_to_write(read)) << "the mapping is left";
  ::munmap(shared, 4096);
  EXPECT_FALSE(is_open_to_write(read));
  void* const own = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, read, 0);
  EXPECT_FALSE(is_open_to_write(read)) << "a private mapping changes nothing";
  ::munmap(own, 4096);
  ::close(read);
}

// No lease can be had on a FIFO, as on files of NFS.
TEST_F(Writers, are_found_where_there_are_no_leases) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const int read = ::open(file_.c_str(), O_RDONLY | O_NONBLOCK);
  int held[2];
  ASSERT_TRUE(read >= 0 && ::pipe(held) == 0);
  EXPECT_FALSE(environment().has_writers(read));
  const pid_t child = ::fork();
  if (child == 0) {
    const int written = ::open(file_.c_str(), O_WRONLY);
    char end;
    ::close(held[1]);
    ::_exit(written >= 0 && ::read(held[0], &end, 1) == 0 ? 0 : 1);
  }
  bool seen = false;
  for (int look = 0; look < 1000 && !seen; ++look) seen = environment().has_writers(read), ::usleep(1000);
  EXPECT_TRUE(seen) << "another process has it open to write";
  ::close(held[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(environment().has_writers(read));
  ::close(read), ::close(held[0]);
}

}  // namespace
}  // namespace holdfast::catalog
