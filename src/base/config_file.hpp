// holdfast.toml, read: keys and values as text, in the file's order. What they mean is config.cpp's business.
#pragma once
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast {

struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  // one, or a list's elements
  bool is_list = false;
  size_t first_line = 0, last_line = 0, end_column = 0;  // where it stands, from 1 on; the column behind its value
};

bool config_file_exists(const std::string& path);
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

}  // namespace holdfast
