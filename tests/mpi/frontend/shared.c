// Everything about shared file pointers, on MPI's own files and on protected ones: records that describe themselves, all calls
// against a model, groups of all sizes, and what must be refused.
#include "check.h"

// Arguments 3, 4 and 5, where the network is slow: records of each rank, files open at once, random calls.
static int on_each = 400, at_once = 300, calls = 150;

// ---------------------------------------------------------------- records

typedef struct {
  int magic, rank, number, bytes;  // of the whole record
} Head;
enum { MAGIC = 0x5ec04d, LONGEST = 3000 };

static int record_bytes(int by, int number) {
  return (int)sizeof(Head) + (int)(byte_at((unsigned)by * 7919u + (unsigned)number, 3) * 11u % (LONGEST - sizeof(Head)));
}

static int make_record(char *at, int number) {
  Head head = {MAGIC, rank, number, record_bytes(rank, number)};
  memcpy(at, &head, sizeof head);
  fill(at + sizeof head, (size_t)head.bytes - sizeof head, (unsigned)(rank * 100003 + number));
  return head.bytes;
}

// Walks the whole file: every record of every rank once, whole, each rank's own in its order.
static void check_records(const char *path, int each) {
  MPI_File fh;
  MPI_Offset size = 0;
  int *next = calloc((size_t)ranks, sizeof(int));
  if (rank != 0) return free(next);
  fh = open_file(MPI_COMM_SELF, path, MPI_MODE_RDONLY);
  OK(MPI_File_get_size(fh, &size));
  char *all = malloc((size_t)size + LONGEST);
  OK(MPI_File_read_at(fh, 0, all, (int)size, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Offset at = 0;
  while (at < size) {
    Head head;
    memcpy(&head, all + at, sizeof head);
    if (head.magic != MAGIC || head.rank < 0 || head.rank >= ranks || head.bytes != record_bytes(head.rank, head.number)) {
      CHECK(!"a record begins where the one before it ends");
      break;
    }
    if (head.number != next[head.rank]) SAME(head.number, next[head.rank]);
    next[head.rank] = head.number + 1;
    if (!holds(all + at + sizeof head, (size_t)head.bytes - sizeof head, (unsigned)(head.rank * 100003 + head.number))) CHECK(!"a record is whole");
    at += head.bytes;
  }
  SAME(at, size);
  for (int r = 0; r < ranks; ++r) SAME(next[r], each);
  OK(MPI_File_close(&fh));
  free(all);
  free(next);
}

static void records(const char *path) {
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  char buffer[4][LONGEST];
  MPI_Request requests[4];
  MPI_Status status;
  for (int i = 0; i < on_each;) {
    if (i % 3 == 0) {  // several under way at once
      int count = 0;
      for (; count < 4 && i < on_each; ++count, ++i)
        OK(MPI_File_iwrite_shared(fh, buffer[count], make_record(buffer[count], i), MPI_BYTE, &requests[count]));
      OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    } else {
      const int bytes = make_record(buffer[0], i++);
      OK(MPI_File_write_shared(fh, buffer[0], bytes, MPI_BYTE, &status));
      SAME(count_of(&status, MPI_BYTE), bytes);
    }
  }
  OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  check_records(path, on_each);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Work is handed out by reads: each item to one rank.
static void work(const char *path) {
  enum { ITEMS = 500 };
  int items[ITEMS], mine[ITEMS] = {0}, all[ITEMS], item, count;
  MPI_Status status;
  MPI_Request request;
  for (int i = 0; i < ITEMS; ++i) items[i] = i;
  if (rank == 0) {
    MPI_File fh = open_file(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    OK(MPI_File_write(fh, items, ITEMS, MPI_INT, &status));
    OK(MPI_File_close(&fh));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int i = 0;; ++i) {
    if (i % 2) {
      OK(MPI_File_read_shared(fh, &item, 1, MPI_INT, &status));
    } else {
      OK(MPI_File_iread_shared(fh, &item, 1, MPI_INT, &request));
      OK(MPI_Wait(&request, &status));
    }
    count = count_of(&status, MPI_INT);
    if (count != 1) break;
    CHECK(item >= 0 && item < ITEMS);
    ++mine[item];
  }
  SAME(count, 0);  // the end
  OK(MPI_File_close(&fh));
  MPI_Allreduce(mine, all, ITEMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < ITEMS; ++i) SAME(all[i], 1);
}

// ---------------------------------------------------------------- all calls against a model

enum { ROOM = 1 << 16, MOST = 40 };
static struct {
  unsigned char bytes[ROOM], known[ROOM];  // what nobody has written may be anything
  long long size, shared, own[64];
  int disp, etype, strided;  // the view: in bytes; strided: two of every four etypes
} model;

static long long byte_of(long long etypes) {
  const long long block = model.strided ? etypes / 2 * 4 + etypes % 2 : etypes;
  return model.disp + block * model.etype;
}

static long long model_end(void) {
  long long etypes = 0;
  while (byte_of(etypes) < model.size) ++etypes;
  return etypes;
}

static void model_write(long long at, int etypes, unsigned seed) {
  for (int i = 0; i < etypes; ++i) {
    for (int k = 0; k < model.etype; ++k)
      model.bytes[byte_of(at + i) + k] = byte_at(seed, (size_t)(i * model.etype + k)), model.known[byte_of(at + i) + k] = 1;
    if (byte_of(at + i) + model.etype > model.size) model.size = byte_of(at + i) + model.etype;
  }
}

static int model_there(long long at, int etypes) {  // how many can be read
  int i = 0;
  while (i < etypes && byte_of(at + i) + model.etype <= model.size) ++i;
  return i;
}

static MPI_Datatype etype_now, filetype_now;

static void new_view(MPI_File fh) {
  static const int bytes[] = {1, 4, 8};
  const int kind = (int)random_below(3);
  if (filetype_now != MPI_DATATYPE_NULL) MPI_Type_free(&filetype_now);
  model.disp = (int)random_below(100);
  model.etype = bytes[kind];
  model.strided = (int)random_below(2);
  etype_now = kind == 0 ? MPI_BYTE : kind == 1 ? MPI_INT : MPI_DOUBLE;
  MPI_Datatype two;
  MPI_Type_contiguous(2, etype_now, &two);
  MPI_Type_create_resized(two, 0, (MPI_Aint)model.etype * (model.strided ? 4 : 2), &filetype_now);
  MPI_Type_commit(&filetype_now);
  MPI_Type_free(&two);
  OK(MPI_File_set_view(fh, model.disp, etype_now, filetype_now, "native", MPI_INFO_NULL));
  model.shared = 0;
  memset(model.own, 0, sizeof model.own);
}

static void settle(MPI_File fh) {  // what one rank has written is there for all
  OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(fh));
}

static void compare(const unsigned char *got, MPI_Status *status, long long at, int etypes) {
  const int there = model_there(at, etypes);
  const int count = count_of(status, MPI_BYTE) / model.etype;  // the file's end may lie within an etype
  SAME(count, there);
  for (int i = 0; i < there * model.etype && i < count * model.etype; ++i) {
    const long long byte = byte_of(at + i / model.etype) + i % model.etype;
    if (!model.known[byte] || got[i] == model.bytes[byte]) continue;
    CHECK(!"what is read is what was written");
    printf("etype %d of %d (%d there) at %lld: byte %lld is %02x, not %02x; the file has %lld\n", i / model.etype, etypes, there, at, byte, got[i],
           model.bytes[byte], model.size);
    return;
  }
}

// One rank at a time, so that the model knows the order.
static void one_rank_acts(MPI_File fh, unsigned seed) {
  const int who = (int)random_below((unsigned)ranks), what = (int)random_below(8), count = (int)random_below(MOST);
  const long long at = random_below(600);
  const int writes = what < 4;
  unsigned char data[MOST * 8];
  MPI_Status status;
  MPI_Request request;
  long long begins = what == 0 || what == 1 || what == 4 || what == 5 ? model.shared : what == 2 || what == 6 ? at : model.own[who];
  if (begins + count > 1200) return;
  if (rank == who) {
    if (writes) fill(data, (size_t)count * model.etype, seed);
    switch (what) {
      case 0: OK(MPI_File_write_shared(fh, data, count, etype_now, &status)); break;
      case 1:
        OK(MPI_File_iwrite_shared(fh, data, count, etype_now, &request));
        OK(MPI_Wait(&request, &status));
        break;
      case 2: OK(MPI_File_write_at(fh, at, data, count, etype_now, &status)); break;
      case 3: OK(MPI_File_write(fh, data, count, etype_now, &status)); break;
      case 4: OK(MPI_File_read_shared(fh, data, count, etype_now, &status)); break;
      case 5:
        OK(MPI_File_iread_shared(fh, data, count, etype_now, &request));
        OK(MPI_Wait(&request, &status));
        break;
      case 6: OK(MPI_File_read_at(fh, at, data, model_there(at, count), etype_now, &status)); break;
      default: OK(MPI_File_read(fh, data, model_there(begins, count), etype_now, &status)); break;
    }
    if (what == 4 || what == 5) compare(data, &status, begins, count);
    if (what == 6 || what == 7) compare(data, &status, begins, model_there(begins, count));
    if (writes) SAME(count_of(&status, etype_now), count);
  }
  if (writes) model_write(begins, count, seed);
  if (what == 0 || what == 1 || what == 4 || what == 5) model.shared += count;
  if (what == 3) model.own[who] += count;
  if (what == 7) model.own[who] += model_there(begins, count);
  if (writes) settle(fh);
  else MPI_Barrier(MPI_COMM_WORLD);
}

static void all_take_turns(MPI_File fh, unsigned seed) {
  const int what = (int)random_below(4);
  int counts[64], before = 0, total = 0;
  unsigned char data[MOST * 8];
  MPI_Status status;
  for (int r = 0; r < ranks; ++r) {
    counts[r] = (int)random_below(MOST);
    if (r < rank) before += counts[r];
    total += counts[r];
  }
  if (model.shared + total > 1200) return;
  const int mine = counts[rank];
  if (what < 2) fill(data, (size_t)mine * model.etype, seed + (unsigned)rank);
  switch (what) {
    case 0: OK(MPI_File_write_ordered(fh, data, mine, etype_now, &status)); break;
    case 1:
      OK(MPI_File_write_ordered_begin(fh, data, mine, etype_now));
      OK(MPI_File_write_ordered_end(fh, data, &status));
      break;
    case 2: OK(MPI_File_read_ordered(fh, data, mine, etype_now, &status)); break;
    default:
      OK(MPI_File_read_ordered_begin(fh, data, mine, etype_now));
      OK(MPI_File_read_ordered_end(fh, data, &status));
      break;
  }
  if (what < 2) SAME(count_of(&status, etype_now), mine);
  else compare(data, &status, model.shared + before, mine);
  long long at = model.shared;
  for (int r = 0; r < ranks; ++r) {
    if (what < 2) model_write(at, counts[r], seed + (unsigned)r);
    at += counts[r];
  }
  model.shared = at;
  if (what < 2) settle(fh);
}

static void move_pointer(MPI_File fh) {
  const int what = (int)random_below(3);
  const long long from = what == 0 ? 0 : what == 1 ? model.shared : model_end();
  long long to = random_below(500);
  if (random_below(8) == 0) {  // before the beginning: refused, and nothing moves
    SAME(error_class(MPI_File_seek_shared(fh, -from - 1, what == 0 ? MPI_SEEK_SET : what == 1 ? MPI_SEEK_CUR : MPI_SEEK_END)), MPI_ERR_ARG);
    return;
  }
  if (what == 2 && random_below(2)) to = from;
  OK(MPI_File_seek_shared(fh, to - from, what == 0 ? MPI_SEEK_SET : what == 1 ? MPI_SEEK_CUR : MPI_SEEK_END));
  model.shared = to;
}

// Of MPI's own files the bytes can be looked at as they lie.
static void look(const char *path, const char *what) {
  static unsigned char all[ROOM];
  if (rank != 0 || failures || strcmp(where, "native") != 0) return;
  FILE *file = fopen(path, "rb");
  const long long there = (long long)fread(all, 1, ROOM, file);
  fclose(file);
  SAME(there, model.size);
  for (long long i = 0; i < there && i < model.size; ++i) {
    if (!model.known[i] || all[i] == model.bytes[i]) continue;
    printf("%s: byte %lld of %lld is %02x, not %02x\n", what, i, there, all[i], model.bytes[i]);
    ++failures;
    return;
  }
}

static void against_the_model(const char *path, int rounds) {
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Offset at = -1;
  memset(&model, 0, sizeof model);
  filetype_now = MPI_DATATYPE_NULL;
  random_state = 88172645463325252ull;  // the same on all ranks
  new_view(fh);
  for (int round = 0; round < rounds && !failures; ++round) {
    const unsigned seed = (unsigned)round * 131u, what = random_below(20);
    if (what < 9) one_rank_acts(fh, seed);
    else if (what < 15) all_take_turns(fh, seed);
    else if (what < 17) move_pointer(fh);
    else if (what == 17) new_view(fh);
    else if (what == 18) OK(MPI_File_set_size(fh, model.size = random_below(3000)));
    else settle(fh);
    if (what == 18) memset(model.known + model.size, 0, ROOM - (size_t)model.size);
    OK(MPI_File_get_position_shared(fh, &at));
    SAME(at, model.shared);
    if (random_below(4) == 0) {
      OK(MPI_File_get_position(fh, &at));
      SAME(at, model.own[rank]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    look(path, "after this round");
    if (failures) printf("round %d (%u), etype %d, strided %d, disp %d\n", round, what, model.etype, model.strided, model.disp);
    int any = failures;
    MPI_Allreduce(&any, &failures, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  OK(MPI_File_close(&fh));
  if (filetype_now != MPI_DATATYPE_NULL) MPI_Type_free(&filetype_now);
}

// ---------------------------------------------------------------- groups, modes, hints

static void alone_and_in_part(const char *directory) {
  char name[64];
  int back = -1, half, halves;
  MPI_Status status;
  snprintf(name, sizeof name, "alone%d", rank);
  MPI_File fh = open_file(MPI_COMM_SELF, in(directory, name), MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < 5; ++i) OK(MPI_File_write_shared(fh, &i, 1, MPI_INT, &status));
  OK(MPI_File_seek_shared(fh, 8, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(fh, &back, 1, MPI_INT, &status));
  SAME(back, 2);
  OK(MPI_File_close(&fh));
  // Two files of two groups at once, then again, one group in another order of ranks.
  for (int round = 0; round < 3; ++round) {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, round == 1 ? -rank : rank, &part);
    MPI_Comm_rank(part, &half);
    MPI_Comm_size(part, &halves);
    snprintf(name, sizeof name, "half%d.%d", rank % 2, round);
    fh = open_file(part, in(directory, name), MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Comm_free(&part);
    OK(MPI_File_write_ordered(fh, &half, 1, MPI_INT, &status));
    OK(MPI_File_sync(fh));
    OK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(fh, &back, 1, MPI_INT, &status));
    SAME(back, half);
    MPI_Offset at = 0;
    OK(MPI_File_get_position_shared(fh, &at));
    SAME(at, 4 * halves);
    OK(MPI_File_close(&fh));
  }
}

// More than one window's slots.
static void many(const char *directory, int count) {
  MPI_File *files = malloc(sizeof(MPI_File) * (size_t)count);
  char name[32];
  MPI_Status status;
  for (int i = 0; i < count; ++i) {
    snprintf(name, sizeof name, "many%d", i);
    files[i] = open_file(MPI_COMM_WORLD, in(directory, name), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  }
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k <= i % 3; ++k) OK(MPI_File_write_shared(files[i], &i, 1, MPI_INT, &status));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) {
    MPI_Offset at = -1;
    OK(MPI_File_get_position_shared(files[i], &at));
    SAME(at, 4 * ranks * (i % 3 + 1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) OK(MPI_File_close(&files[(i * 7) % count]));
  free(files);
}

static void at_the_end_of_a_file(const char *path) {
  MPI_Offset at = -1;
  MPI_Status status;
  char text[16] = "";
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  OK(MPI_File_write_ordered(fh, "1234", 4, MPI_CHAR, &status));
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_APPEND | MPI_MODE_RDWR);
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, 4 * ranks);
  OK(MPI_File_write_ordered(fh, "ab", 2, MPI_CHAR, &status));
  OK(MPI_File_seek_shared(fh, -2, MPI_SEEK_END));
  OK(MPI_File_sync(fh));
  OK(MPI_File_read_ordered(fh, text, 2, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), rank == 0 ? 2 : 0);
  if (rank == 0) CHECK(memcmp(text, "ab", 2) == 0);
  OK(MPI_File_close(&fh));
}

static const char *serving(MPI_File fh) {
  static char value[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  int found = 0;
  OK(MPI_File_get_info(fh, &info));
  MPI_Info_get(info, (char *)"holdfast_shared_pointer", MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  return found ? value : "";
}

static int open_with(const char *path, const char *algorithm, MPI_File *fh) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, (char *)"holdfast_shared_pointer", (char *)algorithm);
  const int class = error_class(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, fh));
  MPI_Info_free(&info);
  return class;
}

static void hints_and_mistakes(const char *directory) {
  MPI_File fh;
  MPI_Status status;
  int value = rank;
  SAME(open_with(in(directory, "by_process"), "process", &fh), MPI_SUCCESS);
  if (ranks > 1) CHECK(strcmp(serving(fh), "process") == 0);
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  OK(MPI_File_close(&fh));
  SAME(open_with(in(directory, "wrong"), "sm", &fh), MPI_ERR_ARG);
  if (ranks > 1) SAME(open_with(in(directory, "wrong"), rank ? "process" : "window", &fh), MPI_ERR_NOT_SAME);
  // A view that differs: fine for other accesses, none for the shared pointer.
  fh = open_file(MPI_COMM_WORLD, in(directory, "views"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(strcmp(serving(fh), "window") == 0 || strcmp(serving(fh), "process") == 0);
  OK(MPI_File_set_view(fh, rank * 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write(fh, &value, 1, MPI_INT, &status));
  if (ranks > 1) {
    SAME(error_class(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status)), MPI_ERR_NOT_SAME);
    SAME(error_class(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET)), MPI_ERR_NOT_SAME);
  }
  OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, &status));
  SAME(error_class(MPI_File_write_shared(fh, "x", 1, MPI_CHAR, &status)), MPI_ERR_IO);  // not a whole etype
  SAME(error_class(MPI_File_write_shared(fh, &value, -1, MPI_INT, &status)), MPI_ERR_COUNT);
  SAME(error_class(MPI_File_write_ordered_end(fh, &value, &status)), MPI_ERR_IO);
  MPI_Offset at = -1;
  OK(MPI_File_get_position_shared(fh, &at));
  SAME(at, ranks);
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, in(directory, "views"), MPI_MODE_RDONLY);
  const int class = error_class(MPI_File_write_shared(fh, &value, 1, MPI_INT, &status));
  CHECK(class == MPI_ERR_READ_ONLY);
  OK(MPI_File_close(&fh));
}

static void all_of_it(const char *name, const char *directory, int files, int rounds) {
  where = name;
  records(in(directory, "records"));
  work(in(directory, "work"));
  against_the_model(in(directory, "model"), rounds);
  alone_and_in_part(directory);
  many(directory, files);
  at_the_end_of_a_file(in(directory, "append"));
  hints_and_mistakes(directory);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  if (argc > 3) on_each = atoi(argv[3]);
  if (argc > 5) at_once = atoi(argv[4]), calls = atoi(argv[5]);
  all_of_it("native", argv[1], at_once, calls);
  all_of_it("protected", argv[2], 3, calls * 2 / 5);
  return finish();
}
