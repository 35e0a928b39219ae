#include "cli/job/drop_old.hpp"

#include "checkpoint/attempt.hpp"

namespace holdfast::cli {

void drop_old(const checkpoint::Surveyor& surveyor, const std::vector<checkpoint::Protected>& old, const checkpoint::Run& run,
              const Settings& settings, const layout::Attempt& first_attempt, PlainBefore& before) {
  checkpoint::note_giving_way(old, run, settings);
  for (const std::vector<layout::Manifest>& files : surveyor.stores_of(old)) {
    (void)checkpoint::drop(files, run.attempt, settings);
    for (const layout::Manifest& file : files)
      if (file.version->attempt >= first_attempt && !file.version->roll) before.replaced(file.version->file);
  }
}

}  // namespace holdfast::cli
