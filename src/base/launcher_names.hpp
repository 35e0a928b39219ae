// Programs that start the ranks of a job, by their names.
#pragma once
#include <algorithm>
#include <string_view>

namespace holdfast {

inline constexpr std::string_view mpi_launchers[] = {"mpirun", "mpiexec", "orterun", "prterun"};
inline constexpr std::string_view other_launchers[] = {"srun", "prun", "aprun", "jsrun", "ibrun"};

namespace detail {
// Alone, or before what tells one from another: mpirun.openmpi, mpirun_rsh.
inline bool begins_name(std::string_view stem, std::string_view name) {
  return name.starts_with(stem) && (name.size() == stem.size() || name[stem.size()] == '.' || name[stem.size()] == '_');
}
}  // namespace detail

// `name` is a file's, without its directories.
inline bool is_mpi_launcher(std::string_view name) {
  return std::any_of(std::begin(mpi_launchers), std::end(mpi_launchers), [=](std::string_view stem) { return detail::begins_name(stem, name); });
}
inline bool starts_ranks(std::string_view name) {
  return is_mpi_launcher(name) ||
         std::any_of(std::begin(other_launchers), std::end(other_launchers), [=](std::string_view stem) { return detail::begins_name(stem, name); });
}

}  // namespace holdfast
