// What the nodes keep is damaged, bit by bit, and nobody is told.
#include <fmt/format.h>

#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {

namespace {

void flip_a_bit_below(Inode& directory, std::mt19937_64& random) {
  std::vector<InodePtr> files;
  for (const auto& [name, node] : directory.entries)
    if (node->regular() && node->now.size() > 0) files.push_back(node);
  if (files.empty()) return;
  target::SparseBytes& bytes = files[random() % files.size()]->now;
  std::byte one{};
  const uint64_t at = random() % bytes.size();
  bytes.read(at, ByteSpan(&one, 1));
  one ^= std::byte(1u << random() % 8);
  bytes.write(at, ByteView(&one, 1));
}

}  // namespace

// What it held is to be made anew, from what is damaged.
void CheckpointsWorld::wipe_one() {
  const size_t node = random(site_.disks.size());
  note(fmt::format("n{} is wiped", node + 1));
  count(Did::nodes_wiped);
  site_.change_disk(int(node), nullptr);
  model_.held[node].clear();
}

// When all is well and whole: some of the nodes of each file, as many as may be lost or more, have lost their disk or have a bit turned in what they keep
// of it. The next attempt reads the right bytes all the same, or is refused where there were more; and what is made anew of it is right. The attempt after one
// that was refused passes over that checkpoint.
void CheckpointsWorld::check_damage() {
  if (model_.promised.empty()) return;
  learn_of_renewals();
  const bool wiped = one_in(2);
  if (wiped) wipe_one();
  bool is_borne = true;
  for (auto& [place, file] : model_.promised.rbegin()->second.files) {
    std::vector<size_t> holders;
    for (size_t node = 0; node < model_.held.size(); ++node)
      if (model_.held[node].contains(file.id)) holders.push_back(node);
    std::shuffle(holders.begin(), holders.end(), random_);
    const uint64_t may_lose = holders.size() - std::min(holders.size(), size_t(file.least));
    const uint64_t damaged = std::min<uint64_t>(holders.size(), one_in(4) ? may_lose + 1 : random(may_lose + 1));
    is_borne &= damaged <= may_lose;
    for (uint64_t i = 0; i < damaged; ++i) damage(int(holders[i]), file.id);
  }
  count(is_borne ? Did::damage_borne : Did::damage_beyond);
  note(is_borne ? "some bits are turned" : "more bits are turned than the scheme bears");
  faults_ = !is_borne;
  if (wiped) begin_run();
  const bool well = !failed() && attempt(true);
  // Where the program had given that checkpoint up the attempt has begun with another one, and nobody has met the damage.
  if (is_borne || failed() || well) return;
  faults_ = 0;
  (void)attempt(true);
}

// What is stored together is damaged together.
void CheckpointsWorld::damage(int node, const std::string& file_id) {
  std::set<std::string>& held = model_.held[size_t(node)];
  for (const auto& [name, directory] : site_.disks[size_t(node)].root->entries) {
    const auto& manifests = final_manifests_in(name, *directory);
    if (std::none_of(manifests.begin(), manifests.end(), [&](const auto& one) { return one.file_id == file_id; })) continue;
    flip_a_bit_below(*directory, random_);
    count(Did::bits_turned);
    for (const layout::Manifest& one : manifests) held.erase(one.file_id);
  }
  held.erase(file_id);
}

}  // namespace holdfast::sim
