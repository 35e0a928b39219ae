// What MPI says about shared pointers, rule by rule, on MPI's own files and on protected ones: a function is named after its rule.
#include <unistd.h>

#include "check.h"

static MPI_File ints(const char *path, int amode) {
  MPI_File fh = open_file(MPI_COMM_WORLD, path, amode);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  return fh;
}

static void shared_pointer_is_at(MPI_File fh, MPI_Offset wanted) {
  MPI_Offset at = -1;
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, wanted);
  MPI_Barrier(MPI_COMM_WORLD);
}

// ---------------------------------------------------------------- where it stands

static void append_begins_at_the_end_and_a_view_at_zero(const char *path) {
  MPI_Status status;
  int value = rank;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_APPEND | MPI_MODE_RDWR);
  shared_pointer_is_at(fh, 4 * ranks);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  shared_pointer_is_at(fh, 0);
  OK(MPI_File_close(&fh));
}

static void a_view_that_is_refused_moves_nothing(const char *path) {
  MPI_Status status;
  int value = rank;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "no such thing", MPI_INFO_NULL) != MPI_SUCCESS);
  shared_pointer_is_at(fh, ranks);
  if (ranks > 1) {
    OK(MPI_File_set_view(fh, 4 * rank, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "no such thing", MPI_INFO_NULL) != MPI_SUCCESS);
    SAME(error_class(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_NOT_SAME);  // the views still differ
  }
  OK(MPI_File_close(&fh));
}

// Record logs give other ranks' records their places at the next collective call only.
static int others_may_be_pending(void) {
  const char *algorithm = getenv("HOLDFAST_SHARED_POINTER");
  return algorithm && (strcmp(algorithm, "individual") == 0 || strcmp(algorithm, "single") == 0);
}

static void nonblocking_calls_have_moved_it_when_they_return(const char *path) {
  MPI_Request requests[3];
  MPI_Status status;
  int values[3] = {1, 2, 3}, back[3] = {0, 0, 0};
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < 3; ++i) OK(MPI_File_iwrite_shared(fh, &values[i], 1, MPI_INT, &requests[i]));
  MPI_Barrier(MPI_COMM_WORLD);
  if (!others_may_be_pending()) shared_pointer_is_at(fh, 3 * ranks);
  OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  OK(MPI_File_sync(fh));
  shared_pointer_is_at(fh, 3 * ranks);
  OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  OK(MPI_File_iread_shared(fh, back, 3, MPI_INT, &requests[0]));
  MPI_Barrier(MPI_COMM_WORLD);
  shared_pointer_is_at(fh, 3 * ranks);
  OK(MPI_Wait(&requests[0], &status));
  SAME(count_of(&status, MPI_INT), 3);
  OK(MPI_File_close(&fh));
}

static void other_calls_leave_it_alone(const char *path) {
  MPI_Status status;
  int value = rank;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  OK(MPI_File_write_at(fh, 50 + rank, &value, 1, MPI_INT, &status));
  OK(MPI_File_write(fh, &value, 1, MPI_INT, &status));
  OK(MPI_File_write_all(fh, &value, 1, MPI_INT, &status));
  OK(MPI_File_seek(fh, 7, MPI_SEEK_SET));
  OK(MPI_File_set_atomicity(fh, 1));
  OK(MPI_File_set_atomicity(fh, 0));
  OK(MPI_File_set_size(fh, 40 * 4));
  OK(MPI_File_sync(fh));
  shared_pointer_is_at(fh, ranks);
  OK(MPI_File_seek_shared(fh, 3, MPI_SEEK_END));
  shared_pointer_is_at(fh, 43);
  OK(MPI_File_seek_shared(fh, -3, MPI_SEEK_CUR));
  shared_pointer_is_at(fh, 40);
  OK(MPI_File_read_shared(fh, &value, 1, MPI_INT, &status));  // at the end of the file
  SAME(count_of(&status, MPI_INT), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  shared_pointer_is_at(fh, 40 + ranks);
  OK(MPI_File_close(&fh));
}

// ---------------------------------------------------------------- who may call what

static void sequential_files_have_no_positions(const char *path) {
  MPI_Offset at;
  MPI_Status status;
  MPI_File fh = MPI_FILE_NULL;
  SAME(error_class(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &fh)),
       MPI_ERR_AMODE);
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  SAME(error_class(MPI_File_get_position_shared(fh, &at)), MPI_ERR_UNSUPPORTED_OPERATION);
  SAME(error_class(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET)), MPI_ERR_UNSUPPORTED_OPERATION);
  SAME(error_class(MPI_File_set_size(fh, 100)), MPI_ERR_UNSUPPORTED_OPERATION);
  OK(MPI_File_write_ordered(fh, "x", 1, MPI_CHAR, &status));
  OK(MPI_File_close(&fh));
}

// The present displacement is where the pointer stands once the last rank has come to the call.
static void a_sequential_view_begins_behind_all_that_was_written(const char *path) {
  MPI_Status status;
  char text[200] = "";
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  for (int round = 0; round < 3; ++round) {
    if (rank == ranks - 1) usleep(30000);
    for (int i = 0; i <= rank; ++i) OK(MPI_File_write_shared(fh, "s", 1, MPI_CHAR, &status));
    OK(MPI_File_set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    OK(MPI_File_write_ordered(fh, "O", 1, MPI_CHAR, &status));
  }
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  OK(MPI_File_read_at(fh, 0, text, sizeof text, MPI_CHAR, &status));
  const int each = ranks * (ranks + 1) / 2 + ranks;
  SAME(count_of(&status, MPI_CHAR), 3 * each);
  for (int i = 0; i < 3 * each; ++i) SAME(text[i], i % each < each - ranks ? 's' : 'O');
  OK(MPI_File_close(&fh));
}

static void reads_and_writes_need_the_access_mode(const char *path) {
  MPI_Status status;
  MPI_Request request;
  int value = rank;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  SAME(error_class(MPI_File_read_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_ACCESS);
  SAME(error_class(MPI_File_iread_shared(fh, &value, 1, MPI_INT, &request)), MPI_ERR_ACCESS);
  SAME(error_class(MPI_File_read_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_ACCESS);
  SAME(error_class(MPI_File_read_ordered_begin(fh, &value, 1, MPI_INT)), MPI_ERR_ACCESS);
  shared_pointer_is_at(fh, 0);
  OK(MPI_File_close(&fh));
  fh = ints(path, MPI_MODE_RDONLY);
  SAME(error_class(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_READ_ONLY);
  SAME(error_class(MPI_File_iwrite_shared(fh, &value, 1, MPI_INT, &request)), MPI_ERR_READ_ONLY);
  SAME(error_class(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_READ_ONLY);
  SAME(error_class(MPI_File_write_ordered_begin(fh, &value, 1, MPI_INT)), MPI_ERR_READ_ONLY);
  shared_pointer_is_at(fh, 0);
  OK(MPI_File_close(&fh));
}

// ---------------------------------------------------------------- what must be the same on all ranks

static int open_with_hint(const char *path, const char *key, const char *value) {
  MPI_Info info;
  MPI_File fh = MPI_FILE_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, (char *)key, (char *)value);
  const int class = error_class(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  MPI_Info_free(&info);
  if (class == MPI_SUCCESS) OK(MPI_File_close(&fh));
  return class;
}

static void hints_that_differ_between_ranks_are_an_error_of_the_open(const char *path) {
  if (ranks == 1) return;
  SAME(open_with_hint(path, "holdfast_shared_pointer", rank == ranks - 1 ? "process" : "window"), MPI_ERR_NOT_SAME);
  SAME(open_with_hint(path, "holdfast_shared_pointer", rank == 0 ? "individual" : "window"), MPI_ERR_NOT_SAME);
  SAME(open_with_hint(path, "holdfast_shared_pointer", rank == 0 ? "native" : "window"), MPI_ERR_NOT_SAME);
  SAME(open_with_hint(path, "holdfast_ordered", rank == 0 ? "scan" : "root"), MPI_ERR_NOT_SAME);
  SAME(open_with_hint(path, "holdfast_merge", rank == 0 ? "later" : "close"), MPI_ERR_NOT_SAME);
  SAME(open_with_hint(path, "holdfast_shared_pointer", "window"), MPI_SUCCESS);
}

static void views_that_differ_between_ranks_are_an_error_of_each_shared_call(const char *path) {
  MPI_Status status;
  MPI_Request request;
  int value = rank;
  if (ranks == 1) return;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int kind = 0; kind < 2; ++kind) {  // another displacement; the same size in another order
    MPI_Datatype filetype;
    const int at = kind == 1 && rank == 0;
    MPI_Type_create_indexed_block(1, 1, &at, MPI_INT, &filetype);
    MPI_Datatype resized;
    MPI_Type_create_resized(filetype, 0, 8, &resized);
    MPI_Type_commit(&resized);
    OK(MPI_File_set_view(fh, kind == 0 ? 4 * rank : 0, MPI_INT, resized, "native", MPI_INFO_NULL));
    SAME(error_class(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_read_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_iwrite_shared(fh, &value, 1, MPI_INT, &request)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET)), MPI_ERR_NOT_SAME);
    OK(MPI_File_write_at(fh, 20, &value, 1, MPI_INT, &status));  // all else works
    MPI_Type_free(&filetype);
    MPI_Type_free(&resized);
  }
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  shared_pointer_is_at(fh, ranks);
  OK(MPI_File_close(&fh));
}

static void a_seek_that_differs_between_ranks_moves_nothing(const char *path) {
  MPI_Status status;
  int value = rank;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  if (ranks > 1) {
    SAME(error_class(MPI_File_seek_shared(fh, rank, MPI_SEEK_SET)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_seek_shared(fh, 0, rank == 0 ? MPI_SEEK_SET : MPI_SEEK_CUR)), MPI_ERR_NOT_SAME);
  }
  SAME(error_class(MPI_File_seek_shared(fh, 0, 77777)), MPI_ERR_ARG);
  SAME(error_class(MPI_File_seek_shared(fh, -1 - ranks, MPI_SEEK_CUR)), MPI_ERR_ARG);
  shared_pointer_is_at(fh, ranks);
  OK(MPI_File_close(&fh));
}

// ---------------------------------------------------------------- ordered and split calls

static void an_ordered_call_goes_on_without_the_rank_that_is_wrong(const char *path) {
  MPI_Status status;
  int value = rank, back = -1;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  const int wrong = ranks - 1;
  SAME(error_class(MPI_File_write_ordered(fh, &value, rank == wrong ? -1 : 1, MPI_INT, &status)), rank == wrong ? MPI_ERR_COUNT : MPI_SUCCESS);
  shared_pointer_is_at(fh, ranks - 1);
  OK(MPI_File_write_ordered(fh, NULL, 0, MPI_INT, &status));  // nobody has anything
  SAME(count_of(&status, MPI_INT), 0);
  shared_pointer_is_at(fh, ranks - 1);
  OK(MPI_File_write_ordered(fh, &value, rank % 2, MPI_INT, MPI_STATUS_IGNORE));
  shared_pointer_is_at(fh, ranks - 1 + ranks / 2);
  OK(MPI_File_sync(fh));
  OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(fh, &back, rank == wrong ? 0 : 1, MPI_INT, &status));
  if (rank != wrong) SAME(back, rank);
  OK(MPI_File_close(&fh));
}

static void a_split_call_ends_as_it_began(const char *path) {
  MPI_Status status;
  int value = rank, back = -1;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_ordered_begin(fh, &value, 1, MPI_INT));
  SAME(error_class(MPI_File_write_ordered_begin(fh, &value, 1, MPI_INT)), MPI_ERR_IO);
  SAME(error_class(MPI_File_read_ordered_end(fh, &back, &status)), MPI_ERR_IO);
  SAME(error_class(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_IO);
  SAME(error_class(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET)), MPI_ERR_IO);
  SAME(error_class(MPI_File_close(&fh)), MPI_ERR_IO);
  CHECK(fh != MPI_FILE_NULL);
  OK(MPI_File_write_at(fh, 100 + rank, &value, 1, MPI_INT, &status));  // independent access may go on
  OK(MPI_File_write_ordered_end(fh, &value, &status));
  SAME(count_of(&status, MPI_INT), 1);
  OK(MPI_File_sync(fh));
  shared_pointer_is_at(fh, ranks);
  OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
  OK(MPI_File_read_ordered_begin(fh, &back, 1, MPI_INT));
  SAME(error_class(MPI_File_write_ordered_end(fh, &value, &status)), MPI_ERR_IO);
  OK(MPI_File_read_ordered_end(fh, &back, MPI_STATUS_IGNORE));
  SAME(back, rank);
  OK(MPI_File_close(&fh));
}

// ---------------------------------------------------------------- atomic mode, representations, places too far away

static void atomic_mode_writes_whole_records_in_the_order_of_calls(const char *path) {
  enum { EACH = 20, WORDS = 500 };
  MPI_Status status;
  int record[WORDS], next[64] = {0};
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_atomicity(fh, 1));
  for (int i = 0; i < EACH; ++i) {
    for (int k = 0; k < WORDS; ++k) record[k] = rank * 1000 + i;
    OK(MPI_File_write_shared(fh, record, WORDS, MPI_INT, &status));
  }
  MPI_Barrier(MPI_COMM_WORLD);  // in atomic mode that is enough
  for (int i = 0; i < EACH * ranks; ++i) {
    OK(MPI_File_read_at(fh, (MPI_Offset)i * WORDS, record, WORDS, MPI_INT, &status));
    const int by = record[0] / 1000;
    CHECK(by >= 0 && by < ranks);
    if (by < 0 || by >= ranks) break;
    SAME(record[0] % 1000, next[by]++);
    for (int k = 0; k < WORDS; ++k) CHECK(record[k] == record[0]);
  }
  OK(MPI_File_close(&fh));
}

static void external32_counts_etypes_as_the_file_has_them(const char *path) {
  MPI_Status status;
  int value = 0x01020304 + rank, back = -1;
  unsigned char bytes[4] = {0};
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  if (error_class(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL)) == MPI_SUCCESS) {
    OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
    shared_pointer_is_at(fh, ranks);
    OK(MPI_File_sync(fh));
    OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(fh, &back, 1, MPI_INT, &status));
    SAME(back, value);
    OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(fh, 0, bytes, 4, MPI_BYTE, &status));
    if (strcmp(where, "protected") == 0) CHECK(bytes[0] == 1 && bytes[3] == 4);  // not every MPI's own does it
  }
  OK(MPI_File_close(&fh));
}

static void a_place_beyond_all_files_is_refused(const char *path) {
  MPI_Status status;
  MPI_Offset size = 0;
  int value = 7 + rank, back = -1;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  static const long long far[] = {1ll << 61, 1ll << 62, 0x7fffffffffffffffll};  // with four bytes each: beyond, at zero again, just before
  for (int i = 0; i < 3; ++i) {
    const int moved = error_class(MPI_File_seek_shared(fh, far[i], MPI_SEEK_SET));
    SAME(moved, MPI_ERR_ARG);
    if (moved == MPI_SUCCESS) CHECK(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  }
  if (strcmp(where, "protected") == 0) {
    for (int i = 0; i < 3; ++i) {
      SAME(error_class(MPI_File_write_at(fh, far[i], &value, 1, MPI_INT, &status)), MPI_ERR_ARG);
      SAME(error_class(MPI_File_seek(fh, far[i], MPI_SEEK_SET)), MPI_ERR_ARG);
    }
  }
  shared_pointer_is_at(fh, ranks);
  OK(MPI_File_get_size(fh, &size));
  SAME(size, 4 * ranks);
  OK(MPI_File_read_at(fh, rank, &back, 1, MPI_INT, &status));
  SAME(back, value);
  OK(MPI_File_close(&fh));
}

static int called;
static void count_call(MPI_File *fh, int *code, ...) { (void)fh, (void)code, ++called; }

static void an_error_calls_the_files_handler_once(const char *path) {
  MPI_Errhandler handler;
  MPI_Status status;
  MPI_Request request;
  int value = rank;
  MPI_File fh = ints(path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_File_create_errhandler(count_call, &handler);
  OK(MPI_File_set_errhandler(fh, handler));
  called = 0;
  SAME(error_class(MPI_File_read_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_ACCESS);
  SAME(called, 1);
  SAME(error_class(MPI_File_iread_shared(fh, &value, 1, MPI_INT, &request)), MPI_ERR_ACCESS);
  SAME(called, 2);
  SAME(error_class(MPI_File_read_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_ACCESS);
  SAME(called, 3);
  SAME(error_class(MPI_File_seek_shared(fh, -1, MPI_SEEK_SET)), MPI_ERR_ARG);
  SAME(called, 4);
  SAME(error_class(MPI_File_write_ordered_end(fh, &value, &status)), MPI_ERR_IO);
  SAME(called, 5);
  OK(MPI_File_close(&fh));
  MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*holds)(const char *path);
  } rules[] = {
#define RULE(name) {#name, name}
      RULE(append_begins_at_the_end_and_a_view_at_zero),
      RULE(a_view_that_is_refused_moves_nothing),
      RULE(nonblocking_calls_have_moved_it_when_they_return),
      RULE(other_calls_leave_it_alone),
      RULE(sequential_files_have_no_positions),
      RULE(a_sequential_view_begins_behind_all_that_was_written),
      RULE(reads_and_writes_need_the_access_mode),
      RULE(hints_that_differ_between_ranks_are_an_error_of_the_open),
      RULE(views_that_differ_between_ranks_are_an_error_of_each_shared_call),
      RULE(a_seek_that_differs_between_ranks_moves_nothing),
      RULE(an_ordered_call_goes_on_without_the_rank_that_is_wrong),
      RULE(a_split_call_ends_as_it_began),
      RULE(atomic_mode_writes_whole_records_in_the_order_of_calls),
      RULE(external32_counts_etypes_as_the_file_has_them),
      RULE(a_place_beyond_all_files_is_refused),
      RULE(an_error_calls_the_files_handler_once),
  };
  begin(&argc, &argv);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
    if (argc > 3 && strcmp(argv[3], rules[i].name) != 0) continue;
    for (int way = 1; way <= 2; ++way) {
      where = way == 1 ? "native" : "protected";
      rules[i].holds(in(argv[way], rules[i].name));
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  return finish();
}
