#include "intercept/posix/settings.hpp"

#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::intercept::posix {

const Settings& settings() {
  static const Settings* const loaded = [] {
    const OurCode ours_now;
    auto found = Settings::load();
    if (!found) complain("settings", found.status().sentence() + "; defaults are used for plain file calls");
    if (found) target::choose_lock_way(found->locks);
    return new Settings(found ? std::move(*found) : Settings());
  }();
  return *loaded;
}

}  // namespace holdfast::intercept::posix
