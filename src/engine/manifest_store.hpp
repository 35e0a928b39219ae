// The manifest on the members: which copy is the truth, and how it is replaced.
#pragma once
#include "base/config.hpp"
#include "engine/members.hpp"
#include "layout/manifest.hpp"

namespace holdfast::engine {

struct ManifestReading {
  layout::Manifest manifest;
  std::vector<Status> answers;   // by member: whether it had a sound copy of this file's manifest
  std::vector<uint64_t> epochs;  // by member, 0 where there was none
  bool sidecar_agrees = false;   // it is there and knows of no newer epoch
};

// The newest manifest among the available members. Every acknowledged manifest is on all members but at most m, so any m+1 of them include a current
// one. With fewer, the sidecar must not know of a newer epoch. Otherwise refused with Kind::stale and the epoch that could be served
// (settings.accept_epoch accepts it). Of a file that was never synced, a member that holds neither a manifest nor data has missed nothing. It counts
// as one that has the manifest, and gets it with the next write.
Result<ManifestReading> read_manifest(Members& members, const catalog::Located& located, const Settings& settings);

// Kind::lost, naming the lost targets and why, where more members are lost than the scheme bears.
Status check_losses(const Members& members, const layout::Manifest& manifest);

// Marks the members that are lost as stale, raises the epoch and replaces the manifest on all others. A member that fails is lost,
// which is a new epoch. Kind::lost where more than m are. Afterwards the user's path and sidecar follow.
Status write_manifest(Members& members, const catalog::Located& located, layout::Manifest& manifest, bool durable);

// What write_manifest will put on the members, unless more of them are lost by then. It is written with the data and made durable by the same
// settle, so that write_manifest only has to give it its name.
struct StagedManifest {
  std::shared_ptr<const std::string> text;
  std::string scratch;  // the name until then
};
StagedManifest stage_manifest(const Members& members, layout::Manifest manifest);
MemberCall stage_call(const catalog::Located& located, int member, const StagedManifest& staged);

// A repair has moved the member's part elsewhere since this process found it: the sentence that says so. Empty where it has not.
std::string replaced_by_now(const catalog::Located& located, int member, const layout::Manifest& manifest);

// What another process or rank has read: members that it calls stale, or whose part lies elsewhere by now, are lost to this open.
void lose_members_left_behind(Members& members, const catalog::Located& located, const layout::Manifest& manifest);

// Members that the manifest calls stale, or whose own copy is older than a crash could have left it, are lost to this open.
void lose_stale_members(Members& members, const ManifestReading& reading);

}  // namespace holdfast::engine
