// Hints: those of MPI_Info that Holdfast knows go into the settings of one open; those in force come back.
#include <algorithm>
#include <vector>

#include "frontend/mpi/file.hpp"
#include "frontend/mpi/policy.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

std::string value_of(MPI_Info info, const char* key) {
  int found = 0;
#if HF_HAS_Info_get_string
  int length = MPI_MAX_INFO_VAL + 1;
  std::vector<char> value(length);
  real.Info_get_string(info, key, &length, value.data(), &found);
#else
  std::vector<char> value(MPI_MAX_INFO_VAL + 1);
  real.Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &found);
#endif
  return found ? value.data() : "";
}

}  // namespace

Status apply_hints(MPI_Info info, Settings& settings) {
  if (info == MPI_INFO_NULL) return Status();
  int keys = 0;
  real.Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    real.Info_get_nthkey(info, i, key);
    HF_TRY(settings.apply_hint(key, value_of(info, key)));
  }
  return Status();
}

namespace {

int nodes_of(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0, first = 0, nodes = 1;
  if (real.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
    real.Comm_rank(node, &rank);
    real.Comm_free(&node);
  }
  first = rank == 0;
  real.Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, comm);
  return std::max(nodes, 1);
}

}  // namespace

NativeHints::NativeHints(MPI_Comm comm, MPI_Info program, const std::string& path, bool same) : program_(program) {
  if (!process_settings() || !tree::is_meant(*process_settings(), path, tree::mpi_io)) return;
  const Settings& asked = *process_settings();
  if (asked.cb_nodes > 0 && same) {
    // ROMIO takes one process a node, whatever it is asked for, unless it is told to take more.
    const int nodes = nodes_of(comm);
    if (!given("cb_nodes")) {
      add("cb_nodes", std::to_string(asked.cb_nodes));
      if (asked.cb_nodes > nodes && !given("cb_config_list")) add("cb_config_list", "*:" + std::to_string((asked.cb_nodes + nodes - 1) / nodes));
    }
  }
  // Each with the name that OMPIO has for it on a Lustre.
  const uint64_t unit = asked.striping_unit.value_or(0);
  if (unit > 0 && !given("striping_unit") && !given("stripe_size"))
    for (const char* key : {"striping_unit", "stripe_size"}) add(key, std::to_string(unit));
  const int factor = asked.striping_factor.value_or(0);
  if (factor > 0 && !given("striping_factor") && !given("stripe_width"))
    for (const char* key : {"striping_factor", "stripe_width"}) add(key, std::to_string(factor));
}

NativeHints::~NativeHints() {
  if (own_ != MPI_INFO_NULL) real.Info_free(&own_);
}

bool NativeHints::given(const char* key) const { return program_ != MPI_INFO_NULL && !value_of(program_, key).empty(); }

void NativeHints::add(const char* key, const std::string& value) {
  if (own_ == MPI_INFO_NULL && (program_ == MPI_INFO_NULL ? real.Info_create(&own_) : real.Info_dup(program_, &own_)) != MPI_SUCCESS) {
    own_ = MPI_INFO_NULL;
    return;
  }
  real.Info_set(own_, key, value.c_str());
}

// The layout is what the file has, whoever asked for what; the rest is what was asked for.
std::map<std::string, std::string> hints_in_force(const Settings& settings, const layout::Manifest& manifest, int ranks) {
  const layout::Geometry& geometry = manifest.geometry;
  std::map<std::string, std::string> hints = settings.hints();
  hints["holdfast_protect"] = geometry.scheme.name();
  hints["holdfast_placement"] = layout::placement_name(geometry.placement);
  hints["striping_unit"] = std::to_string(geometry.unit_bytes);
  hints["striping_factor"] = std::to_string(geometry.members);
  hints["cb_nodes"] = std::to_string(settings.cb_nodes > 0 ? std::min(settings.cb_nodes, ranks) : ranks);
  hints["start_iodevice"] = std::to_string(geometry.start);
  hints.erase("replication_factor");
  hints.erase("holdfast_shared_pointer");  // what serves is told instead
  if (geometry.scheme.mirror) hints["replication_factor"] = std::to_string(geometry.scheme.width());
  return hints;
}

int ProtectedMpiFile::get_info(MPI_Info* used) {
  if (const int code = real.Info_create(used); code != MPI_SUCCESS) return report(*this, Fault(code));
  real.Info_set(*used, "holdfast_shared_pointer", shared.serving());
  for (const auto& [key, value] : hints) {
    if (!value.empty() && value.size() <= MPI_MAX_INFO_VAL) real.Info_set(*used, key.c_str(), value.c_str());
  }
  return MPI_SUCCESS;
}

}  // namespace holdfast::frontend

using namespace holdfast;
using namespace holdfast::frontend;

int hf_File_set_info(MPI_File fh, MPI_Info info) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    Settings settings = file.settings;
    HF_FAULT(agree(*file.exchange, apply_hints(info, settings)));
    settings.cb_nodes = file.settings.cb_nodes;  // decided at open
    file.settings = settings;
    if (file.protected_file) file.hints = hints_in_force(file.settings, file.protected_file->located().manifest, file.exchange->size());
    return Fault();
  });
}
