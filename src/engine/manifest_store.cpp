#include "engine/manifest_store.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "catalog/torn_creation.hpp"
#include "catalog/user_files.hpp"
#include "engine/out_of_reach.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {

constexpr auto look_again_after = std::chrono::microseconds(500);

struct Copies {
  std::vector<Status> answers;
  std::vector<std::optional<Manifest>> manifests;
  std::vector<char> nothing;  // where there is no manifest that can be read, and no data either
};

// Kind::not_found or Kind::corrupt where there is no manifest that can be read; `nothing` says whether there is data.
Status get_manifest(MemberHandle& handle, const std::string& name, std::optional<Manifest>& into, char& nothing) {
  auto text = handle.get(name, layout::max_manifest_bytes);
  auto manifest = text.ok() ? layout::decode(*text) : Result<Manifest>(text.status());
  if (manifest.ok()) {
    into = std::move(*manifest);
    return Status();
  }
  if (manifest.status().kind() == Kind::not_found || manifest.status().kind() == Kind::corrupt) {
    auto none = catalog::holds_no_data(handle.target(), name.substr(0, name.rfind('/')));
    nothing = none.ok() && *none;
  }
  return manifest.status();
}

Copies collect(Members& members, const catalog::Located& located) {
  struct Answers {
    std::vector<std::optional<Manifest>> manifests;
    std::vector<char> nothing;
  };
  const auto count = size_t(members.count());
  auto found = std::make_shared<Answers>(Answers{std::vector<std::optional<Manifest>>(count), std::vector<char>(count)});
  Copies copies;
  copies.manifests.resize(count);
  copies.nothing.resize(count);
  copies.answers = members.ask_each([&](int member) -> MemberCall {
    return [found, member, name = located.meta_name(member, "manifest")](MemberHandle& handle) {
      return get_manifest(handle, name, found->manifests[size_t(member)], found->nothing[size_t(member)]);
    };
  });
  for (int member = 0; member < members.count(); ++member) {
    if (!members.available(member)) {
      copies.answers[member] = Status(Kind::lost, members.why(member));
      continue;
    }
    copies.nothing[member] = found->nothing[size_t(member)];
    if (!copies.answers[member].ok()) continue;
    std::optional<Manifest>& manifest = found->manifests[size_t(member)];
    if (manifest->file_id != located.manifest.file_id || !(manifest->geometry == located.manifest.geometry))
      copies.answers[member] = Status(Kind::corrupt, "the manifest there is of another file");
    else copies.manifests[member] = std::move(manifest);
  }
  return copies;
}

// Whether the members that this manifest calls stale would bear the loss of all others: two halves of a network could each go on alone.
bool others_are_enough(const Manifest& manifest) {
  const auto current = std::count_if(manifest.members.begin(), manifest.members.end(), [](const auto& member) { return !member.stale; });
  return current <= manifest.geometry.scheme.m;
}

// A commit by few members counts only once the sidecar has it (write_manifest). What members hold beside what the sidecar says of them was written by
// the half of a network that could not reach it. Whoever wrote it was told so.
void pass_over_what_never_counted(Copies& copies, const catalog::Located& located, const Manifest& sidecar) {
  for (size_t member = 0; member < copies.manifests.size(); ++member) {
    const auto& copy = copies.manifests[member];
    if (!copy || copy->epoch < sidecar.epoch || !others_are_enough(*copy)) continue;
    if (!layout::disowns(sidecar, located.members[member].uuid)) continue;
    copies.answers[member] = Status(Kind::stale, fmt::format("{} holds epoch {}, which never counted: epoch {} was written without it",
                                                             located.members[member].path, copy->epoch, sidecar.epoch));
    copies.manifests[member].reset();
  }
}

// Whether some copy looks like that of a member which has missed a durable commit that nobody has written down.
bool of_several_commits(const Copies& copies) {
  const Manifest* best = nullptr;
  for (const auto& copy : copies.manifests)
    if (copy && (!best || copy->epoch > best->epoch)) best = &*copy;
  for (size_t member = 0; member < copies.manifests.size(); ++member)
    if (copies.manifests[member] && copies.manifests[member]->epoch < best->settled_epoch && !best->members[member].stale) return true;
  return false;
}

// Who holds no lock may ask one member before a commit and the next one after it, which makes a current member look stale. Ask again.
Copies collect_one_commit(Members& members, const catalog::Located& located) {
  for (int again = 0;; ++again) {
    Copies copies = collect(members, located);
    if (again == most_looks_again || !of_several_commits(copies)) return copies;
    wait_while_busy(look_again_after);
  }
}

Status nothing_left(const Copies& copies, const Members& members, const catalog::Located& located) {
  std::string why;
  Kind kind = Kind::lost;
  for (int member = 0; member < members.count(); ++member) {
    if (copies.answers[member].kind() == Kind::version) kind = Kind::version;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", members.path(member), copies.answers[member].sentence());
  }
  return Status(kind, fmt::format("{}: no target answers with its manifest ({}); bring targets back and try again", located.manifest.path, why));
}

}  // namespace

std::string replaced_by_now(const catalog::Located& located, int member, const Manifest& manifest) {
  const catalog::Member& found = located.members[size_t(member)];
  const layout::ManifestMember& now = manifest.members[size_t(member)];
  const bool moved = found.usable() && !now.uuid.empty() && !found.uuid.empty() && now.uuid != found.uuid;
  return moved ? fmt::format("{} was replaced by {}", found.path, now.path) : "";
}

namespace {

void tell_of_replacements(const catalog::Located& located, ManifestReading& reading) {
  for (const catalog::Member& member : located.members)
    if (std::string why = replaced_by_now(located, member.index, reading.manifest); !why.empty())
      reading.answers[size_t(member.index)] = Status(Kind::lost, std::move(why));
}

// What was written once has nothing that a member without the manifest could have missed: its units are checked like all others.
void take_members_without_manifest(ManifestReading& reading) {
  for (size_t member = 0; member < reading.answers.size(); ++member) {
    const Kind kind = reading.answers[member].kind();
    if (kind == Kind::not_found || kind == Kind::corrupt) reading.answers[member] = Status();
    if (reading.answers[member].ok()) reading.epochs[member] = reading.manifest.epoch;
  }
}

}  // namespace

Result<ManifestReading> read_manifest(Members& members, const catalog::Located& located, const Settings& settings) {
  // The sidecar first: it follows the members, so that what it knows they have by the time they are asked. The other way round a
  // commit between the two looks like one to members that do not answer.
  auto sidecar = located.path_keeper ? located.path_keeper->sidecar() : Result<Manifest>(Status(Kind::not_found, "no sidecar"));
  Copies copies = collect_one_commit(members, located);
  // Nothing is known of a member for which this process has no descriptor. Taken for lost, it would be written down as stale.
  const auto lacks = [](const Status& answer) { return answer.sys_errno() == EMFILE; };
  if (std::any_of(copies.answers.begin(), copies.answers.end(), lacks)) return catalog::no_descriptors(located.manifest.path);
  const bool of_this_file = sidecar.ok() && sidecar->file_id == located.manifest.file_id;
  if (of_this_file && settings.accept_epoch == 0) pass_over_what_never_counted(copies, located, *sidecar);
  ManifestReading reading;
  reading.epochs.resize(members.count());
  std::vector<layout::ManifestCopy> sound_copies;
  for (int member = 0; member < members.count(); ++member) {
    if (!copies.manifests[member]) continue;
    const Manifest& manifest = *copies.manifests[member];
    reading.epochs[member] = manifest.epoch;
    sound_copies.push_back({&manifest, located.members[size_t(member)].uuid});
  }
  int sound = int(sound_copies.size());
  const Manifest* best = layout::newest_of(sound_copies);
  // What a power failure can leave of a creation: whoever answers and holds nothing has missed nothing. Where nothing leads to the file, it
  // may be what is left of a removal.
  const bool from_sidecar = !best && sidecar.ok() && sidecar->file_id == located.manifest.file_id && sidecar->never_synced();
  if (from_sidecar && std::count(copies.nothing.begin(), copies.nothing.end(), true) > located.manifest.geometry.scheme.m) best = &*sidecar;
  if (!best) return nothing_left(copies, members, located);
  for (int member = 0; best->never_synced() && !located.by_search && member < members.count(); ++member)
    if (copies.nothing[member]) copies.answers[member] = Status(), ++sound;
  const bool accepted = settings.accept_epoch != 0 && settings.accept_epoch == best->epoch;
  const bool same_file = sidecar.ok() && sidecar->file_id == best->file_id;
  auto refuse = [&](const std::string& why) {
    return Status(Kind::stale, fmt::format("{}: {}; only epoch {} could be served, from {} target{}: bring the others back, or accept it "
                                           "with --accept-epoch {}",
                                           best->path, why, best->epoch, sound, sound == 1 ? "" : "s", best->epoch));
  };
  // An epoch that was never made durable may go with a power failure; one that was may not.
  if (same_file && sidecar->settled_epoch > best->epoch && !accepted)
    return refuse(fmt::format("epoch {} was written to targets that do not answer now", sidecar->settled_epoch));
  if (!same_file && !best->is_final() && sound <= located.manifest.geometry.scheme.m && !accepted)
    return refuse("too few targets answer to know that nothing newer was written");
  reading.manifest = *best;
  reading.answers = std::move(copies.answers);
  reading.sidecar_agrees = same_file && sidecar->epoch <= best->epoch;
  if (best->is_final()) take_members_without_manifest(reading);
  tell_of_replacements(located, reading);
  return reading;
}

namespace {

void lose_if_stale(Members& members, int member, const layout::ManifestMember& entry) {
  if (entry.stale) members.lose(member, entry.why.empty() ? "stale: it missed writes" : entry.why);
}

}  // namespace

void lose_members_left_behind(Members& members, const catalog::Located& located, const Manifest& manifest) {
  for (int member = 0; member < members.count(); ++member) {
    lose_if_stale(members, member, manifest.members[size_t(member)]);
    if (const std::string why = replaced_by_now(located, member, manifest); !why.empty()) members.lose(member, why);
  }
}

void lose_stale_members(Members& members, const ManifestReading& reading) {
  for (int member = 0; member < members.count(); ++member) {
    lose_if_stale(members, member, reading.manifest.members[size_t(member)]);
    if (!members.available(member)) continue;  // or was not asked
    if (!reading.answers[member].ok()) members.lose(member, reading.answers[member]);
    else if (reading.epochs[member] < reading.manifest.settled_epoch)
      // A crash can leave a copy behind, but not behind what was once durable: this is an old one that was put back.
      members.lose(member, fmt::format("stale: it holds epoch {} of {}", reading.epochs[member], reading.manifest.epoch));
  }
}

Status check_losses(const Members& members, const Manifest& manifest) {
  const layout::Scheme& scheme = manifest.geometry.scheme;
  if (members.contested())
    return Status(Kind::lost, fmt::format("{}: the ranks together have found more than {} targets late, and {} tolerates no more; here: {}",
                                          manifest.path, scheme.m, scheme.name(), members.describe_lost()));
  if (members.lost_count() <= scheme.m) return Status();
  return Status(Kind::lost,
                fmt::format("{}: {} targets are {} and {} tolerates only {}: {}", manifest.path, members.lost_count(), what_missing_ones_are(members),
                            scheme.name(), scheme.m, members.describe_lost()),
                members.reason());
}

namespace {

// A manifest that could not be written for want of room only: what has to be done is something else than for lost targets.
Status check_room(const Members& members, const Manifest& manifest) {
  const int m = manifest.geometry.scheme.m;
  std::string full;
  int others = 0, count = 0;
  for (int member = 0; member < members.count(); ++member) {
    if (members.available(member)) continue;
    if (!members.full(member)) ++others;
    else full += fmt::format("{}{}", count++ ? ", " : "", members.path(member));
  }
  if (members.lost_count() <= m || others > m) return Status();
  return Status(
      Kind::no_space,
      fmt::format("{} can be read but not changed, for there is no space left on {}: make room there for a manifest of a few KiB, and try again",
                  manifest.path, full));
}

// The sidecar follows the members: where it cannot be written (its directory is gone or read-only) it stays behind, and readers go by the
// members. Not where so few of them are left that the others would be enough too: then the sidecar alone says which half counts.
Status publish(const Members& members, const catalog::Located& located, Manifest& manifest, bool durable) {
  Status published = located.path_keeper ? located.path_keeper->publish(manifest, durable) : Status(Kind::not_found, "there is none");
  if (published.ok() || !others_are_enough(manifest)) return Status();
  // What stands at the path may have kept it from being made anew, and the sidecar be right.
  auto sidecar = located.path_keeper ? located.path_keeper->sidecar() : Result<Manifest>(published);
  if (sidecar.ok() && sidecar->file_id == manifest.file_id && sidecar->epoch >= manifest.epoch) return Status();
  return Status(Kind::lost,
                fmt::format("{}: only {} of {} targets answer, and the sidecar that must exclude another version cannot be written ({}); bring "
                            "targets back, or make the file's directory writable",
                            manifest.path, members.count() - members.lost_count(), members.count(), published.sentence()));
}

}  // namespace

namespace {

// As it will be published when all members have it.
void prepare_sidecar(const catalog::Located& located, Manifest manifest) {
  manifest.settled_epoch = manifest.epoch;
  located.path_keeper->prepare(std::move(manifest));
}

// Whether the losses that this process knows are all written down.
bool all_are_named(const Members& members, const Manifest& manifest) {
  for (const int member : members.lost())
    if (!manifest.members[size_t(member)].stale) return false;
  return true;
}

// They are written down.
void name_lost(const Members& members, Manifest& manifest) {
  for (int member = 0; member < members.count(); ++member)
    if (!members.available(member) && !manifest.members[size_t(member)].stale) {
      manifest.members[size_t(member)].stale = true;
      manifest.members[size_t(member)].why = members.why(member).substr(0, 1000);
    }
}

// Who has noticed one loss may have been cut off from others at the same moment, which it has asked before. Were it to call the one stale on those that it
// still reaches, the file would have a loss less to spare, though its writer fails. Whoever is asked after the loss was noticed shows the same cut.
void ask_those_that_are_left(Members& members, const Manifest& manifest) {
  for (MemberSet asked; !all_are_named(members, manifest) && asked != members.lost() && members.lost_count() <= members.may_miss();) {
    asked = members.lost();
    members.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.target().check_identity(); }; });
  }
}

// What a job has written is its own as long as it runs. A repair from outside takes it from nobody.
void name_job(Manifest& manifest) {
  if (std::string job = job_of_this_process(); !job.empty()) manifest.job = std::move(job);
}

}  // namespace

StagedManifest stage_manifest(const Members& members, Manifest manifest) {
  name_lost(members, manifest);
  name_job(manifest);
  ++manifest.epoch;
  auto text = std::make_shared<const std::string>(layout::encode(manifest));
  return {std::move(text), "new." + layout::random_id()};
}

MemberCall stage_call(const catalog::Located& located, int member, const StagedManifest& staged) {
  return
      [text = staged.text, name = located.meta_name(member, "manifest"), scratch = located.meta_name(member, staged.scratch)](MemberHandle& handle) {
        handle.stage(name, scratch, std::as_bytes(std::span(*text)));
        return Status();
      };
}

Status write_manifest(Members& members, const catalog::Located& located, Manifest& manifest, bool durable) {
  for (;;) {
    ask_those_that_are_left(members, manifest);
    const MemberSet lost = members.lost();
    name_lost(members, manifest);
    name_job(manifest);
    HF_TRY(check_room(members, manifest));
    HF_TRY(check_losses(members, manifest));
    members.give_up(lost);  // from here on others may read that they are
    ++manifest.epoch;
    auto text = std::make_shared<const std::string>(layout::encode(manifest));
    auto written = members.begin_each([&](int member) -> MemberCall {
      return [text, durable, name = located.meta_name(member, "manifest")](MemberHandle& handle) {
        return handle.put(name, std::as_bytes(std::span(*text)), durable);
      };
    });
    if (durable && located.path_keeper && members.can_stage()) prepare_sidecar(located, manifest);
    members.wait_all(written);
    if (members.lost() == lost) break;
  }
  if (durable) manifest.settled_epoch = manifest.epoch;
  return publish(members, located, manifest, durable);
}

}  // namespace holdfast::engine
