// A temporary directory with target directories t0, t1, ... and a place for the user's files.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "catalog/catalog.hpp"

namespace holdfast::catalog {

namespace fs = std::filesystem;

class Scene : public ::testing::Test {
 protected:
  Scene() {
    char name[] = "/tmp/holdfast-catalog.XXXXXX";
    root = fs::canonical(mkdtemp(name));
    fs::create_directory(root / "home");
    settings.deadline_ms = 5000;
  }
  ~Scene() override { fs::remove_all(root); }

  // n target directories, named in `settings`.
  void targets(int n, const std::string& scheme) {
    settings.targets.clear();
    for (int i = 0; i < n; ++i) {
      fs::create_directories(target(i));
      settings.targets.push_back(target(i));
    }
    settings.protect = scheme;
  }
  std::string target(int i) const { return root / ("t" + std::to_string(i)); }
  std::string user(const std::string& name) const { return root / "home" / name; }
  std::string sidecar(const std::string& name) const { return root / "home" / ("." + name + ".holdfast"); }

  static std::string read(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static void empty(const std::string& directory) {
    for (const auto& entry : fs::directory_iterator(directory)) fs::remove_all(entry.path());
  }

  // What a writer's close does for the catalog: the next manifest on all members, then at the path.
  static void close_file(Located& located) {
    located.manifest.settled_epoch = ++located.manifest.epoch;
    const std::string text = layout::encode(located.manifest);
    for (const Member& member : located.members) {
      if (!member.usable()) continue;
      ASSERT_TRUE(member.target->put(located.meta_name(member.index, "manifest"), std::as_bytes(std::span(text.data(), text.size())), false).ok());
    }
    Status status = located.path_keeper->publish(located.manifest, true);
    ASSERT_TRUE(status.ok()) << status.sentence();
  }

  fs::path root;
  Settings settings;
};

inline ::testing::AssertionResult says(const Status& status, const std::string& words) {
  if (status.ok()) return ::testing::AssertionFailure() << "succeeded";
  if (status.sentence().find(words) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "says: " << status.sentence();
}

}  // namespace holdfast::catalog
