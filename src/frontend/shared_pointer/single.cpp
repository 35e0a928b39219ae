#include "frontend/shared_pointer/single.hpp"

#include <map>
#include <mutex>

#include "layout/manifest.hpp"

namespace holdfast::frontend {

namespace {

struct CommonLog {
  std::weak_ptr<layers::RecordLog> log;  // lives as long as a file that uses it is open
  std::string place;
};

}  // namespace

Status join_common_log(const RecordPlan& plan, const std::shared_ptr<layers::Shelf>& own, layers::RecordOptions& options) {
  static std::mutex mutex;
  static auto* logs = new std::map<std::string, CommonLog>;  // programs may close files from exit handlers
  const catalog::Located* located = plan.located;
  const bool over_targets = located && !located->single() && !located->manifest.pool;  // files of a pool lie on different members
  const std::string kind = !located ? "plain" : over_targets ? "set " + located->manifest.set_id : "file " + located->manifest.file_id;
  std::lock_guard guard(mutex);
  CommonLog& common = (*logs)[kind];
  options.common_log = common.log.lock();
  if (!options.common_log) {
    const std::string name = "single-" + layout::random_id();
    const auto shelf = over_targets ? layers::shelf_of_set(*located) : own;
    options.common_log = std::make_shared<layers::RecordLog>(shelf, name, plan.exchange->rank());
    common.log = options.common_log;
    common.place = (located ? std::string() : shelf->where() + "/") + name;
  }
  options.common_log_place = common.place;
  return Status();
}

}  // namespace holdfast::frontend
