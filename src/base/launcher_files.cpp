#include "base/launcher_files.hpp"

#include <string>

#include "base/config.hpp"

namespace holdfast {

bool is_of_the_launcher(std::string_view path) {
  static const std::string directory = environment_variable("PMIX_SERVER_TMPDIR");
  return !directory.empty() && path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace holdfast
