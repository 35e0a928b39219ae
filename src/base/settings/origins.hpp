// Which source named which setting: what `holdfast settings` shows. Settings itself does not remember it.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/settings/source.hpp"
#include "base/status.hpp"

namespace holdfast {

struct Origins {
  std::string file;                           // that is read; empty: none
  std::map<std::string_view, Source> by_key;  // the higher source where both name it

  Source of(std::string_view key) const {
    const auto found = by_key.find(key);
    return found == by_key.end() ? Source::defaults : found->second;
  }
};

// As Settings::load_with(config_path) looks for them.
Result<Origins> origins_of_settings(const std::string& config_path);

}  // namespace holdfast
