// Who is calling? MPI's own functions call MPI again (ROMIO by the hundred, and Fortran's bindings call the C
// ones), and so does our front end. What is called from inside is not the program's call and passes.
#pragma once

namespace holdfast::frontend {

// How deep this thread is in our own code; 0 in the program's. The library is always loaded at start, so the
// variable needs no call to find it.
extern __thread int depth __attribute__((tls_model("initial-exec")));
// How many hooked calls (MPI_Init, MPI_Finalize ...) this thread is in.
extern __thread int hooks __attribute__((tls_model("initial-exec")));

// Our code runs: calls pass to the MPI.
class OurCode {
 public:
  OurCode() { ++depth; }
  ~OurCode() { --depth; }
  OurCode(const OurCode&) = delete;
  OurCode& operator=(const OurCode&) = delete;
};

// The program's code may run from here: its error handlers, attribute and request callbacks, and whatever MPI calls
// of the program are forwarded while we are inside. What it calls is served like any call of the program.
class ProgramCode {
 public:
  ProgramCode() : before_(depth) { depth = 0; }
  ~ProgramCode() { depth = before_; }
  ProgramCode(const ProgramCode&) = delete;
  ProgramCode& operator=(const ProgramCode&) = delete;

 private:
  int before_;
};

}  // namespace holdfast::frontend
