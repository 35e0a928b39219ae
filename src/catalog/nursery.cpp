#include "catalog/nursery.hpp"

#include <fcntl.h>

#include "catalog/environment.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

Nursery::Nursery(const std::string& path) : directory_(new_sidecar_beside(path)), file_(directory_ + "/" + name_of(path)) {}

Nursery::~Nursery() { (void)environment().unlinkat(AT_FDCWD, directory_.c_str(), AT_REMOVEDIR); }

Status Nursery::make() const { return make_directory(directory_); }

}  // namespace holdfast::catalog
