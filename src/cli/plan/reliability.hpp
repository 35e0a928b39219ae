// `holdfast plan reliability`.
#pragma once
#include <CLI/CLI.hpp>

namespace holdfast::cli {

void add_reliability(CLI::App& plan, int& code);

}  // namespace holdfast::cli
