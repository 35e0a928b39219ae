// Where each node remembers for itself what is in a file (NFS, most FUSE mounts), a node does not see what another one has written a moment ago. Replicas on
// nodes of their own shared out the reads of a file that the program also writes: all of them got what one node remembered.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/raw_syscalls.hpp"
#include "file/coordinated/coordinated.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {
namespace {

struct Chosen {
  std::string read, write;
};

// Of a file that is written, or not, by replicas on nodes of their own or on one.
Chosen chosen(const raw::Fd& file, const char* read, const char* write, bool writes, bool apart = true) {
  Disk disk(apart);
  Group group(2, {}, disk);
  FakeReplica replica(group, 0);
  const Protocols protocols = choose({.read_protocol = read, .write_protocol = write}, replica, {.descriptor = file.get(), .writes = writes});
  return {name_of(protocols.read), name_of(protocols.write)};
}

class WhereNodesCache : public testing::Test {
 protected:
  // No node sees at once what another one changes there, as far as anybody knows; and memory, which is the node's own.
  const raw::Fd unknown_{raw::openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)}, known_{memfd_create("known", MFD_CLOEXEC)};
};

TEST_F(WhereNodesCache, a_file_that_is_written_is_read_by_one_node) {
  EXPECT_EQ(chosen(unknown_, "distributed-chunked", "simple", true).read, "chunked-and-chained");
  EXPECT_EQ(chosen(unknown_, "auto", "auto", true).read, "chunked-and-chained");
  EXPECT_EQ(chosen(unknown_, "distributed-chunked", "simple", false).read, "distributed-chunked");
  EXPECT_EQ(chosen(known_, "distributed-chunked", "simple", true).read, "distributed-chunked");
  EXPECT_EQ(chosen(unknown_, "distributed-chunked", "simple", true, false).read, "distributed-chunked") << "one node has one memory";
}

TEST_F(WhereNodesCache, auto_shares_writes_out_where_nodes_see_alike) {
  EXPECT_EQ(chosen(unknown_, "auto", "auto", true).write, "simple");
  EXPECT_EQ(chosen(known_, "auto", "auto", true).write, "distributed");
  EXPECT_EQ(chosen(known_, "auto", "auto", true, false).write, "simple");
}

}  // namespace
}  // namespace holdfast::file::test
