#include "file/open_as_replica.hpp"

#include "catalog/catalog.hpp"
#include "exchange/agree.hpp"
#include "file/coordinated/coordinated.hpp"
#include "file/coordinated/led_together.hpp"
#include "file/coordinated/names.hpp"

namespace holdfast::file {

Result<OpenedAsReplica> open_as_replica(const std::string& path, const How& how, const Settings& settings, redundant::Replica& replica,
                                        exchange::Exchange& ranks) {
  const auto open = [=, &settings](exchange::Exchange& who, bool first, bool again) -> Result<std::unique_ptr<CollectiveFile>> {
    How now = how;
    now.make &= first;
    now.exclusive &= !again;  // a team that was lost may have made it
    auto found = find_together(path, now, settings, who);
    HF_TRY(found.status());
    auto file = open_together(std::move(*found), now, settings, who);
    HF_TRY(file.status());
    return std::unique_ptr<CollectiveFile>(std::move(*file));
  };
  auto file = led_together(open, replica, subject_of_next_open(replica, path), path, ranks);
  HF_TRY(file.status());
  auto located = catalog::locate(path, settings);
  HF_TRY(exchange::agree(ranks, located.status()));
  return OpenedAsReplica{std::move(*file), std::move(located->manifest)};
}

Result<Found> find_as_replica(const std::string& path, const How& how, const Settings& settings, redundant::Replica& replica) {
  if (!how.make) return find(path, how, settings);
  Result<Found> own(Kind::internal, "not looked for yet");
  const Outcome made = once(replica, Call::open, path, "protected", [&](bool again) {
    How now = how;
    now.exclusive &= !again;
    own = find(path, now, settings);
    return Outcome{own.status(), own && own->fresh};
  });
  HF_TRY(made.status);
  if (!own) own = find(path, {.write = how.write}, settings);
  if (own) own->fresh = made.value != 0;
  return own;
}

}  // namespace holdfast::file
