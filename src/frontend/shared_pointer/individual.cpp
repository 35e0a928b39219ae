#include "frontend/shared_pointer/individual.hpp"

#include "catalog/user_files.hpp"

namespace holdfast::frontend {

Result<std::shared_ptr<layers::Shelf>> shelf_of(const RecordPlan& plan) {
  if (plan.located) return layers::shelf_on_targets(*plan.located);
  auto file = catalog::look(plan.path, true);
  if (!file) return file.status();
  // Beside the file itself, whatever links lead to it: another run, or a person, may come by another way.
  return layers::shelf_beside(catalog::resolved_path(plan.path), file->mode);
}

}  // namespace holdfast::frontend
