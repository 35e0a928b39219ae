#include "service/line_writer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <regex>

namespace holdfast::service {
namespace {

struct Memory {
  int fd = memfd_create("text", MFD_CLOEXEC);
  ~Memory() { close(fd); }
  std::string text() const {
    std::string whole(size_t(lseek(fd, 0, SEEK_END)), 0);
    EXPECT_EQ(pread(fd, whole.data(), whole.size(), 0), ssize_t(whole.size()));
    return whole;
  }
  // Without the time.
  std::string lines() const { return std::regex_replace(text(), std::regex(R"(\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} )"), "["); }
};

TEST(LineWriter, PiecesBecomeWholeLines) {
  Memory file, otherwise;
  LineWriter lines("rank 3 out", file.fd, otherwise.fd);
  for (const char* piece : {"on", "e\ntwo\n\nthr", "ee"}) lines.take(piece);
  EXPECT_EQ(file.lines(), "[rank 3 out] one\n[rank 3 out] two\n[rank 3 out] \n");
  lines.end();
  EXPECT_EQ(file.lines(), "[rank 3 out] one\n[rank 3 out] two\n[rank 3 out] \n[rank 3 out] three\n");
  EXPECT_EQ(otherwise.text(), "");
}

TEST(LineWriter, ALineWithoutEndIsNotKeptForEver) {
  Memory file, otherwise;
  LineWriter lines("rank 0 err", file.fd, otherwise.fd);
  for (int i = 0; i < 40; ++i) lines.take(std::string(64 << 10, 'x'));
  EXPECT_GE(file.text().size(), size_t(2) << 20);
}

TEST(LineWriter, WhatCannotBeWrittenGoesWhereItWouldHaveGone) {
  Memory otherwise;
  LineWriter lines("rank 0 out", -1, otherwise.fd);
  lines.take("first\nsec");
  lines.take("ond\n");
  EXPECT_EQ(otherwise.text(), "holdfast: the file of --gather-output cannot be written any more; the output goes on here\nfirst\nsecond\n");
}

}  // namespace
}  // namespace holdfast::service
