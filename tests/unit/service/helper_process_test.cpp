#include "service/helper_process.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::service {
namespace {

// As a process of ours is started by a shell.
int with_little_room() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  const rlim_t all = limit.rlim_max;
  limit.rlim_cur = 64;
  if (all <= 64 || setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  use_all_descriptors();
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == all ? 0 : 2;
}

TEST(HelperProcess, may_have_as_many_descriptors_as_the_system_allows) {
  const pid_t child = fork();
  if (child == 0) _exit(with_little_room());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holdfast::service
