#include <fmt/format.h>

#include "checkpoint/pattern.hpp"
#include "cli/job/checkpointed.hpp"
#include "cli/job/drainer.hpp"
#include "cli/job/restart_hosts.hpp"
#include "cli/job/simulated_loss.hpp"

namespace holdfast::cli {

Status check_checkpoints(const Settings& settings, const CheckpointOptions& options) {
  auto bad = [](std::string sentence) { return Status(Kind::invalid, std::move(sentence)); };
  HF_TRY(parse_drain(options.drain).status());
  if (settings.checkpoint.empty()) {
    if (!settings.complete.empty()) return bad("--complete is about checkpoints: name their files with --checkpoint 'ck/{step}/*.{rank}'");
    if (settings.protect_at_close) return bad("--protect-at is about checkpoints: name their files with --checkpoint 'ck/ck.{step}.{rank}'");
    if (settings.units_remote) return bad("--units is about checkpoints: name their files with --checkpoint 'ck/ck.{step}.{rank}'");
    if (options.drain == "last" || options.drain.starts_with("every:"))
      return bad(
          fmt::format("--drain {} is about checkpoints: name them with --checkpoint 'ck/ck.{{step}}.{{rank}}', or write --drain end", options.drain));
    const char* given = options.resume                    ? "--resume"
                        : options.restarts                ? "--restarts"
                        : !options.simulated_loss.empty() ? "--simulate-loss"
                        : !options.restart_with.empty()   ? "--restart-with"
                                                          : nullptr;
    return given ? bad(fmt::format("{} is about checkpoints: name them with --checkpoint 'ck/ck.{{step}}.{{rank}}'", given)) : Status();
  }
  const auto patterns = checkpoint::Patterns::parse(settings.checkpoint, settings.complete);
  if (!patterns) return patterns.status();
  if (patterns->are_single() && options.teams > 1)
    return bad("--replicas keeps checkpoints of a {step} or a {rank}, and no files one by one: put one of these into the pattern");
  if (patterns->are_single() && options.drain.starts_with("every:"))
    return bad(fmt::format("--drain {} counts checkpoints, and files that are protected one by one are none: write --drain last", options.drain));
  if (settings.local.empty() || !settings.protects())
    return bad(
        "--checkpoint keeps files on the nodes' own disks: add --local '/tmp/hf-{node}' --protect rs:4+2, or try it on one "
        "machine with --simulate-nodes 6");
  if (!options.restart_with.empty()) HF_TRY(restart_words("--restart-with", options.restart_with, "0", {"n1"}).status());
  if (options.simulated_loss.empty()) return {};
  if (options.simulated_nodes == 0) return bad("--simulate-loss loses simulated nodes: give --simulate-nodes too");
  return parse_simulated_loss(options.simulated_loss, options.simulated_nodes).status();
}

}  // namespace holdfast::cli
