#include "intercept/posix/settings.hpp"

#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "tree/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

constexpr int not_configured = 78;  // EX_CONFIG

// What the user asked for is not known, so every file that the program makes could be one that he wants protected.
void end_for(const Status& status) {
  complain("settings", status.sentence() + "; the program ends here, for nobody knows what is wanted for its files");
  real()._exit(not_configured);
  __builtin_unreachable();
}

// Before the program's first line.
__attribute__((constructor(102))) void settings_at_load() { (void)settings(); }

}  // namespace

const Settings& settings() {
  static const Settings& loaded = []() -> const Settings& {
    const OurCode ours_now;
    const auto& found = tree::process_settings();
    if (!found) end_for(found.status());
    return *found;
  }();
  return loaded;
}

}  // namespace holdfast::intercept::posix
