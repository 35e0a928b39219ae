#include "frontend/shared_pointer/individual.hpp"

#include "catalog/user_files.hpp"

namespace holdfast::frontend {

Result<std::shared_ptr<layers::Shelf>> shelf_of(const RecordPlan& plan) {
  if (plan.located) return layers::shelf_on_targets(*plan.located);
  auto file = catalog::look(plan.path, true);
  if (!file) return file.status();
  return layers::shelf_beside(plan.path, file->mode);
}

}  // namespace holdfast::frontend
