// A file that ranks have opened together and that only one team has open below, with a team that dies before, within or after each of its acts.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "file/coordinated/led_together.hpp"
#include "unit/file/fake_teams.hpp"

namespace holdfast::file::test {
namespace {

constexpr uint64_t own_bytes = 64;  // of each rank

// The program of one rank: each writes where no other does, and all make the same collective calls.
std::string run_rank(CollectiveFile& file, uint64_t seed, int rank, int ranks) {
  std::mt19937_64 together(seed), own(seed * 31 + uint64_t(rank));
  std::string seen;
  const uint64_t mine = uint64_t(rank) * own_bytes;
  const auto some = [&](size_t bytes) {
    Bytes made(bytes);
    for (std::byte& byte : made) byte = std::byte('a' + own() % 26);
    return made;
  };
  if (!file.set_size(uint64_t(ranks) * own_bytes).ok()) return "not set";  // where it ends is the business of all
  for (int i = 0; i < 9; ++i) {
    for (uint64_t alone = own() % 3; alone > 0; --alone) {
      const Bytes data = some(1 + own() % 9);
      const Extent extent{mine + own() % 50, data.size()};
      if (own() % 3) seen += file.write({&extent, 1}, data).ok() ? "w" : "!";
      Bytes back(data.size());
      const auto got = file.read({&extent, 1}, back);
      seen += own() % 3 && got ? std::string(reinterpret_cast<const char*>(back.data()), *got) : "?";
    }
    bool more = together() % 4 == 0;
    switch (together() % 6) {
      case 0:
      case 1: {
        const Bytes data = some(8);
        const Extent extents[2] = {{1000 + uint64_t(i) * 100 + mine, 3}, {1020 + uint64_t(i) * 100 + mine, 5}};
        seen += file.write_all(extents, data, more).ok() ? "W" : "!";
        break;
      }
      case 2: {
        Bytes into(40);
        const Extent extent{together() % 1100, into.size()};
        const auto got = file.read_all({&extent, 1}, into, more);
        seen += "R" + std::to_string(got ? *got : 0) + std::string(reinterpret_cast<const char*>(into.data()), into.size());
        break;
      }
      case 3: seen += file.sync().ok() ? "S" : "!"; break;
      case 4: seen += "s" + std::to_string(file.agreed_size() ? *file.agreed_size() : 0); break;
      default: seen += file.set_size(uint64_t(ranks) * own_bytes + together() % 900).ok() ? "c" : "!";
    }
    seen += more ? "+" : "";
  }
  return seen + (file.close().ok() ? "" : "!");
}

struct TeamOutcomes {
  std::vector<std::vector<std::string>> seen;  // of the teams that live, by rank
  Bytes content;
  int acts = 0;
  bool two_writers = false;
};

TeamOutcomes run_teams(int teams, int ranks, uint64_t seed, Death death) {
  Storage storage;
  World world(teams, ranks, death, storage);
  std::vector<std::vector<std::string>> seen(size_t(teams), std::vector<std::string>(size_t(ranks), "died"));
  std::vector<std::thread> threads;
  for (int team = 0; team < teams; ++team)
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, team, rank] {
        TeamReplica replica(world, team, rank);
        TeamExchange exchange(world, team, rank);
        int opener = 0;
        const OpenTogether open = [&](exchange::Exchange& who, bool, bool) -> Result<std::unique_ptr<CollectiveFile>> {
          if (who.rank() == 0) opener = storage.open(team);
          opener = int(who.all_max({who.rank() == 0 ? opener : 0})[0]);
          return std::unique_ptr<CollectiveFile>(std::make_unique<OpenedFile>(storage, who, opener));
        };
        try {
          const auto file = led_together(open, replica, 17, "file", exchange);
          seen[size_t(team)][size_t(rank)] = file ? run_rank(**file, seed, rank, ranks) : "not opened";
        } catch (const Died&) {
        }
      });
  for (std::thread& thread : threads) thread.join();
  TeamOutcomes outcomes{{}, storage.durable(), world.acts(), storage.two_writers()};
  for (int team = 0; team < teams; ++team)
    if (world.lives(team)) outcomes.seen.push_back(seen[size_t(team)]);
  return outcomes;
}

void expect_as_alone(const TeamOutcomes& left, const TeamOutcomes& alone, const std::string& what) {
  ASSERT_EQ(left.content, alone.content) << what;
  for (const auto& seen : left.seen) ASSERT_EQ(seen, alone.seen[0]) << what;
}

struct TeamCase {
  int teams, ranks;
};
class LedTogether : public testing::TestWithParam<TeamCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, LedTogether, testing::Values(TeamCase{2, 1}, TeamCase{2, 2}, TeamCase{2, 3}, TeamCase{3, 2}),
                         [](const auto& info) { return std::to_string(info.param.teams) + "_teams_of_" + std::to_string(info.param.ranks); });

TEST_P(LedTogether, without_a_loss_all_see_what_one_team_alone_sees) {
  const auto [teams, ranks] = GetParam();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const TeamOutcomes all = run_teams(teams, ranks, seed, {});
    expect_as_alone(all, run_teams(1, ranks, seed, {}), "seed " + std::to_string(seed));
    ASSERT_FALSE(all.two_writers);
  }
}

TEST_P(LedTogether, a_team_may_die_at_any_act) {
  const auto [teams, ranks] = GetParam();
  int fired = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const TeamOutcomes alone = run_teams(1, ranks, seed, {});
    const int acts = run_teams(teams, ranks, seed, {}).acts;
    for (int act = 1; act <= acts; ++act)
      for (const Death::When when : {Death::before, Death::within, Death::after}) {
        const std::string what = "seed " + std::to_string(seed) + ", act " + std::to_string(act) + ", " + std::to_string(when);
        const TeamOutcomes left = run_teams(teams, ranks, seed, {when, act});
        ASSERT_EQ(int(left.seen.size()), teams - 1) << what;
        expect_as_alone(left, alone, what);
        ++fired;
      }
  }
  EXPECT_GT(fired, 100);
}

}  // namespace
}  // namespace holdfast::file::test
