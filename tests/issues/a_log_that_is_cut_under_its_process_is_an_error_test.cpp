// A process copies small records into a mapped piece of its log. Once a log that somebody else had cut ended the process by a signal.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/coarse_clock.hpp"
#include "layers/shared_records/record_log.hpp"
#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::layers {
namespace {

constexpr Staging quick{64 << 10, 3};

bool append(RecordLog& log) {
  layout::Entry entry;
  entry.session = 1;
  return log.append(entry, Bytes(100, std::byte{7})).ok();
}

void let_a_tick_pass() {
  const int64_t now = coarse_now_ns();
  while (coarse_now_ns() == now) usleep(500);
}

// In a process of its own, which a signal may end. 0: an append said that the log was cut, and so did the next one.
int appends_while_it_is_cut(const std::string& directory, uint64_t left) {
  std::vector<Shelf::Holder> holders{{target::open_directory(directory).value(), nullptr, "logs/"}};
  RecordLog log(std::make_shared<Shelf>(std::move(holders), 1, "here"), "log", 0, quick);
  for (int i = 0; i < 10; ++i)
    if (!append(log)) return 1;
  std::filesystem::resize_file(directory + "/logs/log.0", left);
  let_a_tick_pass();
  return append(log) || append(log) ? 2 : 0;
}

TEST(RecordLog, that_is_cut_under_its_process_is_an_error_and_no_signal) {
  for (const char* parent : {"/dev/shm", "/var/tmp"}) {  // both are mapped
    if (access(parent, W_OK) != 0) continue;
    for (const uint64_t left : {0, 5000}) {
      const target::TemporaryDirectory directory{std::filesystem::path(parent)};
      const pid_t child = fork();
      if (child == 0) _exit(appends_while_it_is_cut(directory.path(), left));
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status) << ", cut to " << left << " bytes in " << parent;
      EXPECT_EQ(WEXITSTATUS(status), 0) << "cut to " << left << " bytes in " << parent;
    }
  }
}

}  // namespace
}  // namespace holdfast::layers
