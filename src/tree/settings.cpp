#include "tree/settings.hpp"

#include "target/lock_reach.hpp"

namespace holdfast::tree {

const Result<Settings>& process_settings() {
  static const auto* const loaded = [] {  // never destroyed: files are written while the process ends
    auto* settings = new Result<Settings>(Settings::load());
    if (settings->ok()) target::choose_lock_way((*settings)->locks);
    return settings;
  }();
  return *loaded;
}

}  // namespace holdfast::tree
