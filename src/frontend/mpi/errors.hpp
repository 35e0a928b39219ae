// From a Status to what an MPI program expects: an error code, through its file's error handler.
#pragma once
#include <string>

#include "base/status.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

// Why a call fails: an MPI error class, and the sentence where there is one worth a line on stderr. A mistake of
// the program has none: MPI's own words say it.
struct Fault {
  int code = MPI_SUCCESS;
  std::string sentence;

  Fault() = default;
  Fault(int error_class, std::string text = {}) : code(error_class), sentence(std::move(text)) {}
  Fault(const Status& status);
  bool ok() const { return code == MPI_SUCCESS; }
};

int error_class(const Status& status);

// For MPI_File_open and MPI_File_delete, which have no file yet: MPI_FILE_NULL's handler.
int report(const Fault& fault);

// A new file inherits MPI_FILE_NULL's handler, but MPICH 4.0 takes no reference to it and drops one at the file's close.
// The program's handler would be gone too early. Takes the reference.
void keep_inherited_handler(MPI_File fh);

// One line on stderr.
void say(const std::string& sentence);

}  // namespace holdfast::frontend

// Hands a Fault on to the caller.
#define HF_FAULT(expression)                                                                  \
  do {                                                                                        \
    if (::holdfast::frontend::Fault hf_fault_(expression); !hf_fault_.ok()) return hf_fault_; \
  } while (0)
