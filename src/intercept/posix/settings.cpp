#include "intercept/posix/settings.hpp"

#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::intercept::posix {

namespace {

constexpr int not_configured = 78;  // EX_CONFIG

// What the user asked for is not known, so every file that the program makes could be one that he wants protected.
void end_for(const Status& status) {
  complain("settings", status.sentence() + "; the program ends here, for nobody knows what is wanted for its files");
  real()._exit(not_configured);
  __builtin_unreachable();
}

// Before the program's first line. Asked here and not kept: what the program sets for itself counts at its first file.
__attribute__((constructor(102))) void at_load() {
  const OurCode ours_now;
  const auto found = Settings::load();
  if (!found) end_for(found.status());
}

}  // namespace

const Settings& settings() {
  static const Settings* const loaded = [] {
    const OurCode ours_now;
    auto found = Settings::load();
    if (!found) end_for(found.status());
    target::choose_lock_way(found->locks);
    return new Settings(std::move(*found));
  }();
  return *loaded;
}

}  // namespace holdfast::intercept::posix
