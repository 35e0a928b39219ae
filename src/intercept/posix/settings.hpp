// The settings that plain file calls work under: read from the environment at the first protected file.
#pragma once
#include "base/config.hpp"

namespace holdfast::intercept::posix {

const Settings& settings();

}  // namespace holdfast::intercept::posix
