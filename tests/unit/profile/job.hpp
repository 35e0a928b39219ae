// A directory of pieces of the test's own, and this process profiled into it.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "profile/record.hpp"
#include "profile/reduce.hpp"

namespace holdfast::profile {

namespace fs = std::filesystem;

class ProfiledTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "holdfast-profile-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    turn_on(directory_ / "job.pieces");
  }
  void TearDown() override {
    forget_piece();
    ::unsetenv("HOLDFAST_PROFILE_PIECES");
    ::unsetenv("HOLDFAST_TRACE");
    ::unsetenv("HOLDFAST_PROFILE_MPI");
    fs::remove_all(directory_);
  }
  void turn_on(const fs::path& pieces) {
    pieces_ = pieces;
    forget_piece();
    ::setenv("HOLDFAST_PROFILE_PIECES", pieces.c_str(), 1);
  }

  std::vector<fs::path> piece_files() const {
    std::vector<fs::path> files;
    if (fs::exists(pieces_))
      for (const auto& entry : fs::directory_iterator(pieces_)) files.push_back(entry.path());
    return files;
  }
  static std::optional<LeftPiece> read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return read_piece([&](uint64_t offset, ByteSpan into) {
      file.clear();
      file.seekg(std::streamoff(offset));
      return bool(file.read(reinterpret_cast<char*>(into.data()), std::streamsize(into.size())));
    });
  }
  // What `holdfast run` would make of it now, with this process still at work.
  Log reduced(Job job = {}) const {
    std::vector<LeftPiece> pieces;
    for (const fs::path& path : piece_files()) {
      auto piece = read(path);
      EXPECT_TRUE(piece) << path;
      if (piece) pieces.push_back(std::move(*piece));
    }
    return reduce(std::move(job), pieces);
  }

  static void access(Record& record, bool write, uint64_t offset, uint64_t bytes, uint64_t took = 1000) {
    const Counter kind = write ? Counter::writes_independent : Counter::reads_independent;
    const uint64_t now = ticks();
    count(record, CountedCall{write, kind, kind, offset, bytes}, now - took, now);
  }

  fs::path directory_, pieces_;
};

}  // namespace holdfast::profile
