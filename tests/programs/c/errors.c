/* Error handlers of files, error classes, and that a failed call leaves the file usable. */
#include "check.h"

static int calls, last_class;
static void note(MPI_File *file, int *code, ...) {
  (void)file;
  ++calls;
  MPI_Error_class(*code, &last_class);
}

static void files_return_errors_by_default(void) {
  MPI_File file = MPI_FILE_NULL;
  MPI_Errhandler handler;
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
  CHECK(handler == MPI_ERRORS_RETURN, "the default handler of files is not MPI_ERRORS_RETURN");
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, path("absent"), MPI_MODE_RDWR, MPI_INFO_NULL, &file));
}

// Its own section: the others need the file although one of them may be left out.
static void the_file_is_written(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "handled", MPI_MODE_CREATE | MPI_MODE_RDWR);
  unsigned char data[1000];
  fill(data, 1000, (int64_t)rank * 1000, 1);
  OK(MPI_File_write_at_all(file, rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  MIDDLE();
}

static void a_handler_is_called_with_the_error(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "handled", MPI_MODE_RDONLY);
  unsigned char data[1000];
  MPI_Errhandler handler, asked;
  OK(MPI_File_create_errhandler(note, &handler));
  OK(MPI_File_set_errhandler(file, handler));
  OK(MPI_File_get_errhandler(file, &asked));
  CHECK(asked == handler, "get_errhandler gave another handler");
  MPI_Errhandler_free(&asked);
  calls = 0;
  int code = MPI_File_write_at(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE);
  CHECK(code != MPI_SUCCESS, "a write to a read-only file succeeded");
  CHECK(calls == 1, "the handler was called %d times", calls);
  CHECK(last_class == MPI_ERR_READ_ONLY, "the handler saw error class %d", last_class);
  OK(MPI_File_call_errhandler(file, MPI_ERR_FILE));
  CHECK(calls == 2 && last_class == MPI_ERR_FILE, "call_errhandler: %d calls, class %d", calls, last_class);
  OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
  OK(MPI_File_read_at(file, rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, 1000, (int64_t)rank * 1000, 1);
  OK(MPI_File_close(&file));
  MPI_Errhandler_free(&handler);
}

static void bad_arguments_are_refused(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "handled", MPI_MODE_RDWR);
  char byte = 'x';
  int code = MPI_File_write_at(file, -1, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
  CHECK(code != MPI_SUCCESS, "a write at -1 succeeded");
  code = MPI_File_write_at(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE);
  CHECK(code != MPI_SUCCESS, "a write of -1 bytes succeeded");
  code = MPI_File_set_size(file, -5);
  CHECK(code != MPI_SUCCESS, "a size of -5 was taken");
  OK(MPI_File_close(&file));
}

static void a_second_split_collective_is_refused(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "handled", MPI_MODE_RDONLY);
  char one[100], two[100];
  OK(MPI_File_read_at_all_begin(file, 0, one, 100, MPI_BYTE));
  int code = MPI_File_read_at_all_begin(file, 0, two, 100, MPI_BYTE);
  CHECK(code != MPI_SUCCESS, "two split collectives at once");
  OK(MPI_File_read_at_all_end(file, one, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
}

static void error_text_is_readable(void) {
  MPI_File file = MPI_FILE_NULL;
  int code = MPI_File_open(MPI_COMM_WORLD, path("absent"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), length = 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  OK(MPI_Error_string(code, text, &length));
  CHECK(length > 5, "the error's text is '%s'", text);
}

static void handles_go_through_fortran_and_back(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "handled", MPI_MODE_RDWR);
#ifdef MPI_ABI_VERSION  // the standard ABI's mpi.h has nothing of Fortran
  int number = MPI_File_toint(file);
  MPI_File again = MPI_File_fromint(number);
#else
  MPI_Fint number = MPI_File_c2f(file);
  MPI_File again = MPI_File_f2c(number);
#endif
  unsigned char data[1000];
  OK(MPI_File_read_at(again, rank * 1000, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE));
  SAME(data, 1000, (int64_t)rank * 1000, 1);
  OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"files_return_errors_by_default", files_return_errors_by_default},
                                  {"the_file_is_written", the_file_is_written},
                                  {"a_handler_is_called_with_the_error", a_handler_is_called_with_the_error},
                                  {"bad_arguments_are_refused", bad_arguments_are_refused},
                                  {"a_second_split_collective_is_refused", a_second_split_collective_is_refused},
                                  {"error_text_is_readable", error_text_is_readable},
                                  {"handles_go_through_fortran_and_back", handles_go_through_fortran_and_back},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
