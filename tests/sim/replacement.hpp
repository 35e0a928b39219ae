// An empty target that is to take a member's place.
#pragma once
#include <memory>
#include <string>

#include "sim/world.hpp"

namespace holdfast::sim {

struct EmptyTarget {
  const int index;
  const std::string path = "/n" + std::to_string(index), uuid = layout::random_id();
  const std::shared_ptr<target::MemoryDirectory> directory = std::make_shared<target::MemoryDirectory>();

  void offer(catalog::Located& located) const {
    catalog::Member member;
    member.index = index;
    member.uuid = uuid;
    member.path = path;
    member.target = target::make_memory_target(directory, path);
    member.lane = target::make_inline_lane();
    located.replacements.push_back(std::move(member));
  }
  // From here on everybody finds it in the member's place.
  void move_in(World& world) const {
    world.directories[size_t(index)] = directory;
    world.identity.members[size_t(index)].uuid = uuid;
    world.identity.members[size_t(index)].path = path;
  }
};

}  // namespace holdfast::sim
