// `holdfast plan replicas`.
#pragma once
#include <CLI/CLI.hpp>

namespace holdfast::cli {

void add_plan_of_replicas(CLI::App& plan, int& code);

}  // namespace holdfast::cli
