/* Calls of all kinds that have nothing to do with files. Rank 0 prints what they gave: the same with and without a library before them. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { most = 16 };
static int rank, ranks;
static MPI_Comm world;

static void say(const char* what, long value) {
  long sum = 0;
  value *= rank + 1;
  MPI_Reduce(&value, &sum, 1, MPI_LONG, MPI_SUM, 0, world);
  if (rank == 0) printf("%s %ld\n", what, sum);
}

static void messages(void) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  int out = rank + 7, in = -1, flag = 0, count = 0, done;
  MPI_Request requests[3];
  MPI_Status status, statuses[3];
  MPI_Message message;
  char room[1024 + MPI_BSEND_OVERHEAD];
  void* back;
  MPI_Sendrecv(&out, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1, world, &status);
  say("sendrecv", in + status.MPI_SOURCE);
  MPI_Isend(&out, 1, MPI_INT, right, 2, world, &requests[0]);
  MPI_Irecv(&in, 1, MPI_INT, left, 2, world, &requests[1]);
  MPI_Issend(&out, 1, MPI_INT, rank, 5, world, &requests[2]);
  MPI_Recv(&done, 1, MPI_INT, rank, 5, world, MPI_STATUS_IGNORE);
  MPI_Waitall(3, requests, statuses);
  say("isend", in);
  MPI_Isend(&out, 1, MPI_INT, right, 3, world, &requests[0]);
  MPI_Probe(left, 3, world, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Recv(&in, count, MPI_INT, left, 3, world, &status);
  for (flag = 0; !flag;) MPI_Test(&requests[0], &flag, &status);
  say("probe", in + count);
  MPI_Buffer_attach(room, sizeof room);
  MPI_Bsend(&out, 1, MPI_INT, right, 4, world);
  MPI_Mprobe(left, 4, world, &message, &status);
  MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
  MPI_Buffer_detach(&back, &count);
  say("mprobe", in + (back == room) + count);
  MPI_Send_init(&out, 1, MPI_INT, right, 6, world, &requests[0]);
  MPI_Recv_init(&in, 1, MPI_INT, left, 6, world, &requests[1]);
  for (count = 0; count < 3; ++count, ++out) {
    MPI_Startall(2, requests);
    for (done = 0; done < 2; ++done) MPI_Waitany(2, requests, &flag, &status);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  say("persistent", in);
  MPI_Sendrecv_replace(&out, 1, MPI_INT, right, 8, left, 8, world, &status);
  say("replaced", out);
}

static void product(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] = (((int*)inout)[i] * ((int*)in)[i]) % 1009;
}

static void collectives(void) {
  int mine[most], all[most * most], counts[most], places[most];
  MPI_Request request;
  MPI_Op op;
  for (int i = 0; i < most; ++i) mine[i] = rank * most + i, counts[i] = 1, places[i] = i;
  MPI_Barrier(world);
  MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, world);
  say("allgather", all[2 * ranks - 1]);
  MPI_Allgatherv(mine, 1, MPI_INT, all, counts, places, MPI_INT, world);
  say("allgatherv", all[ranks - 1]);
  MPI_Gather(mine, 1, MPI_INT, all, 1, MPI_INT, 0, world);
  MPI_Scatter(all, 1, MPI_INT, &mine[1], 1, MPI_INT, 0, world);
  say("scatter", mine[1]);
  MPI_Alltoall(mine, 1, MPI_INT, all, 1, MPI_INT, world);
  MPI_Alltoallv(mine, counts, places, MPI_INT, all, counts, places, MPI_INT, world);
  say("alltoall", all[0] + all[ranks - 1]);
  MPI_Op_create(product, 1, &op);
  for (int i = 0; i < most; ++i) mine[i] = rank + i + 1;
  MPI_Allreduce(mine, all, most, MPI_INT, op, world);
  MPI_Op_free(&op);
  say("own operation", all[most - 1]);
  MPI_Reduce_scatter_block(mine, all, 1, MPI_INT, MPI_MAX, world);
  say("reduce scatter", all[0]);
  MPI_Scan(mine, all, 1, MPI_INT, MPI_SUM, world);
  say("scan", all[0]);
  all[0] = 0;
  MPI_Exscan(mine, all, 1, MPI_INT, MPI_SUM, world);
  say("exscan", rank ? all[0] : 0);
  mine[0] = rank;
  MPI_Ibcast(mine, 1, MPI_INT, ranks - 1, world, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Iallreduce(mine, all, 1, MPI_INT, MPI_MIN, world, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ibarrier(world, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Reduce_local(mine, all, 1, MPI_INT, MPI_SUM);
  say("nonblocking", all[0]);
}

static int copied = 0, deleted = 0;
static int copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  int one = 1, sum = 0;
  (void)key;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm); /* the program's code, called by MPI */
  copied += sum;
  *(void**)out = in;
  *flag = extra == NULL;
  return MPI_SUCCESS;
}
static int forget(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  return ++deleted, MPI_SUCCESS;
}

static void communicators(void) {
  MPI_Comm half, twin, cart, between;
  MPI_Group group, part;
  int size, key, flag, dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], from, to, result, first = 0;
  char name[MPI_MAX_OBJECT_NAME];
  void* value;
  MPI_Comm_create_keyval(copy, forget, &key, NULL);
  MPI_Comm_set_attr(world, key, &first);
  MPI_Comm_dup(world, &twin);
  MPI_Comm_get_attr(twin, key, &value, &flag);
  MPI_Comm_compare(world, twin, &result);
  say("dup", flag + (value == &first) + (result == MPI_CONGRUENT) + copied);
  MPI_Comm_split(world, rank % 2, -rank, &half);
  MPI_Comm_set_name(half, "half");
  MPI_Comm_get_name(half, name, &size);
  MPI_Comm_rank(half, &from);
  MPI_Comm_size(half, &size);
  say("split", from + size + (int)strlen(name));
  if (ranks > 1) {
    MPI_Intercomm_create(half, 0, world, rank % 2 ? (ranks - 1) / 2 * 2 : (ranks / 2 - 1) * 2 + 1, 9, &between);
    MPI_Comm_remote_size(between, &size);
    MPI_Comm_test_inter(between, &flag);
    say("intercommunicator", size + flag);
    MPI_Comm_free(&between);
  }
  MPI_Comm_group(world, &group);
  MPI_Group_incl(group, 1, &first, &part);
  MPI_Group_size(part, &size);
  MPI_Group_rank(group, &result);
  say("group", size + result);
  MPI_Group_free(&part);
  MPI_Group_free(&group);
  MPI_Dims_create(ranks, 2, dims);
  MPI_Cart_create(world, 2, dims, periods, 0, &cart);
  MPI_Cart_coords(cart, rank, 2, coords);
  MPI_Cart_shift(cart, 0, 1, &from, &to);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, (int[4]){0}, 1, MPI_INT, cart);
  say("cart", coords[0] * 10 + coords[1] + from - to);
  MPI_Comm_free(&cart);
  MPI_Comm_free(&half);
  MPI_Comm_free(&twin);
  MPI_Comm_delete_attr(world, key);
  MPI_Comm_free_keyval(&key);
  say("forgotten", deleted);
}

static void types(void) {
  MPI_Datatype vector, structure, pair[2] = {MPI_INT, MPI_DOUBLE}, column, fortran;
  int lengths[2] = {2, 1}, size = 0, position = 0, numbers, addresses, kinds, combiner, back[4] = {0};
  MPI_Aint places[2] = {0, 16}, lower, extent, here, there;
  char packed[256];
  int data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  MPI_Type_vector(3, 1, 4, MPI_INT, &vector);
  MPI_Type_commit(&vector);
  MPI_Pack_size(1, vector, world, &size);
  MPI_Pack(data, 1, vector, packed, sizeof packed, &position, world);
  position = 0;
  MPI_Unpack(packed, sizeof packed, &position, back, 3, MPI_INT, world);
  say("pack", back[0] + back[1] + back[2]);
  MPI_Type_create_struct(2, lengths, places, pair, &structure);
  MPI_Type_get_extent(structure, &lower, &extent);
  MPI_Type_size(structure, &size);
  MPI_Type_get_envelope(structure, &numbers, &addresses, &kinds, &combiner);
  say("struct", (long)extent + size + numbers + addresses + kinds);
  MPI_Type_create_resized(vector, 0, 4, &column);
  MPI_Type_get_extent(column, &lower, &extent);
#ifdef MPI_ABI_VERSION
  fortran = MPI_Type_fromint(MPI_Type_toint(vector));
#else
  fortran = MPI_Type_f2c(MPI_Type_c2f(vector));
#endif
  MPI_Type_size(fortran, &size);
  MPI_Get_address(&data[0], &here);
  MPI_Get_address(&data[1], &there);
  say("types", (long)(extent + size + MPI_Aint_diff(there, here)));
  MPI_Type_free(&column);
  MPI_Type_free(&structure);
  MPI_Type_free(&vector);
}

static void windows(void) {
  MPI_Win window;
  int *memory, one = 1, before = -1, got = -1;
  MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, world, &memory, &window);
  memory[0] = 0, memory[1] = 100 + rank;
  MPI_Win_fence(0, window);
  MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
  MPI_Get(&got, 1, MPI_INT, (rank + 1) % ranks, 1, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  say("get", got);
  say("accumulate", rank == 0 ? memory[0] : 0);
  MPI_Barrier(world);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
  MPI_Win_flush(0, window);
  MPI_Win_unlock(0, window);
  MPI_Barrier(world);
  MPI_Win_free(&window);
  say("fetched", before >= ranks && before < 2 * ranks);
}

static int errors = 0;
static void on_error(MPI_Comm* comm, int* code, ...) {
  int class;
  (void)comm;
  MPI_Error_class(*code, &class);
  errors += class == MPI_ERR_RANK;
}

static void environment(void) {
  MPI_Info info;
  MPI_Errhandler handler;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int version, subversion, length, flag, class, *limit, provided;
  double start = MPI_Wtime();
  void* memory;
  MPI_Get_version(&version, &subversion);
  MPI_Get_library_version(text, &length);
  MPI_Get_processor_name(text, &length);
  MPI_Initialized(&flag);
  MPI_Query_thread(&provided);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &class);
  say("environment", version + flag + class + (*limit >= 32767) + (length > 0) + (MPI_Wtime() >= start) + (MPI_Wtick() < 1));
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get_nkeys(info, &length);
  MPI_Info_get(info, "key", 10, text, &flag);
  MPI_Info_free(&info);
  say("info", length + flag + (strcmp(text, "value") == 0));
  MPI_Alloc_mem(100, MPI_INFO_NULL, &memory);
  MPI_Free_mem(memory);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(world, handler);
  length = MPI_Send(&version, 1, MPI_INT, ranks + 5, 0, world);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  MPI_Error_string(length, text, &flag);
  say("error", errors + (length != MPI_SUCCESS) + (flag > 0));
  MPI_Pcontrol(1, "said to a profiler");
}

int main(int argc, char** argv) {
  int provided, finalized;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  messages();
  collectives();
  communicators();
  types();
  windows();
  environment();
  MPI_Comm_free(&world);
  MPI_Finalize();
  MPI_Finalized(&finalized);
  return finalized ? 0 : 1;
}
