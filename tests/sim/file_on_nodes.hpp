// One file on six nodes, and processes that write it by the nodes' agents: for what is to happen to some of their sessions and ways.
#pragma once
#include <fmt/format.h>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {

inline uint64_t row_of(const engine::ProtectedFile& file) { return file.located().manifest.geometry.row_bytes(); }

inline Status write(engine::ProtectedFile& file, uint64_t from, uint64_t to, int value) {
  const Bytes bytes(to - from, std::byte(value));
  const Extent extent{from, bytes.size()};
  return file.write({&extent, 1}, bytes);
}

class FileOnNodes {
 public:
  static constexpr int members = 6;

  explicit FileOnNodes(uint64_t seed) : schedule(seed), site_(1) {
    site_.by_agents = true, site_.gated = false;
    site_.agents.begin_weather(seed);
    site_.agents.begin_network([this](std::function<void()> what) { schedule.add(std::move(what)); });
    settings_ = site_.add_set("rs:4+2", {"/t0", "/t1", "/t2", "/t3", "/t4", "/t5"});
  }
  Result<std::unique_ptr<engine::ProtectedFile>> open(bool write, bool make = false) {
    auto located = make ? catalog::create(path, settings_, 0644, true) : catalog::locate(path, settings_);
    if (!located.ok()) return located.status();
    return engine::ProtectedFile::open(std::move(*located), {true, write, make}, settings_, *alone_);
  }
  // Agents hear nothing of the process any more, for so long that its sessions end.
  void lose_sessions(int process, unsigned of_members) {
    for (int member = 0; member < members; ++member)
      if (of_members >> member & 1) site_.agents.expire(process, member);
  }
  void cut(int process, unsigned from_members, Kind how) {
    constexpr int for_good = 1 << 20;
    for (int member = 0; member < members; ++member)
      if (from_members >> member & 1) site_.agents.cut(process, member, how, for_good);
  }
  void mend_ways() { site_.agents.mend_ways(); }
  void hide_path_from(int process) { site_.hidden_from.insert(process); }
  void show_path() { site_.hidden_from.clear(); }
  uint64_t requests() const { return site_.agents.all_round_trips(); }
  // The bytes of the first row's two halves, or why they cannot be read.
  std::string read_row() {
    auto file = open(false);
    if (!file.ok()) return file.status().sentence();
    Bytes seen(row_of(**file));
    const Extent extent{0, seen.size()};
    if (auto got = (*file)->read({&extent, 1}, seen); !got.ok()) return got.status().sentence();
    return fmt::format("{}{}", int(seen.front()), int(seen.back()));
  }
  // What an agent did that it must not.
  const std::string& wrong() const { return site_.agents.wrong(); }

  Schedule schedule;

 private:
  static constexpr char path[] = "/data/f";
  Site site_;
  const catalog::ReplacedEnvironment in_site_{site_};
  Settings settings_;
  std::unique_ptr<exchange::Exchange> alone_ = exchange::make_solo();
};

inline std::string names_of(unsigned some) {
  std::string text;
  for (int member = 0; member < FileOnNodes::members; ++member)
    if (some >> member & 1) text += std::to_string(member);
  return text;
}

}  // namespace holdfast::sim
