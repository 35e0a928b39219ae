#include "checkpoint/said_once.hpp"

#include <fmt/format.h>

#include "catalog/pool.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"

namespace holdfast::checkpoint {

namespace {

// Of several at once one makes the note's name: a second object cannot have it.
Status make_note(target::Target& target, const std::string& directory, const std::string& note, const std::string& by) {
  const std::string own = note + "." + by;
  HF_TRY(target.make_directory(directory));
  HF_TRY(target.put(own, {}, false));
  const Status made = target.link(own, note);
  (void)target.remove(own);
  return made;
}

}  // namespace

bool is_first_to_say(uint64_t step, const std::string& cause, const std::string& own, const Run& run, const Settings& settings) {
  const auto pool = catalog::look_at_pool(run.nodes, settings.deadline_ms);
  if (!pool) return true;
  const std::string directory = fmt::format("{}/{}", directory_of_attempt(run.id, run.attempt), said_directory);
  const std::string note = fmt::format("{}/{}.{}", directory, step, catalog::digits_of_node(cause));
  for (const catalog::Member& member : pool->members) {
    if (!member.usable()) continue;
    const auto make = [target = member.target, directory, note, by = catalog::digits_of_node(own)] {
      return make_note(*target, directory, note, by);
    };
    return member.lane->run(make).kind() != Kind::exists;
  }
  return true;
}

}  // namespace holdfast::checkpoint
