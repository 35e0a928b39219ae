// faultfs: a directory seen through a file system that fails on order, for tests and benchmarks of real programs.
//
//   faultfs BACKING MOUNTPOINT --control FILE [--cached] [--remember=SECONDS] [--osts=N [--deaf]] [-f] [FUSE options]
//
// --remember=SECONDS: the kernel may believe so long what it has seen of names and attributes, as network file systems let it (another
// mount of BACKING may have changed them meanwhile). Locks are never asked of this server: each mount grants them for itself.
//
// --osts=N behaves like a Lustre of N storage nodes (at most 64): a file gets its stripes when it is first opened to write, one stripe on
// the next node in turn for which there is no rule; until then setxattr of lustre.lov asks for others (afterwards it says yes and does nothing, a start of 0 means
// any, and a node that there is not is refused, all as Lustre does); getxattr tells which. With --deaf requests are never heeded.
// The table is kept in memory.
//
// -f stays in the foreground; SIGTERM unmounts and ends it. Without --cached every read and write of a program is a call here
// (direct I/O); with it the kernel's page cache stands between (and mmap for writing works).
//
// FILE is read again whenever it changes (replace it whole: write FILE.new, rename it); no file, or an empty one: no faults.
// One rule a line, `#` begins a comment; the first rule that fits a call decides. Counters begin again when FILE changes.
//
//   rate MB           at most MB (10^6 bytes) a second pass, reads and writes in sum; may be a fraction
//   CALL errno NAME   CALL answers that error: EIO ENOSPC EROFS EACCES ESTALE ENOTCONN ETIMEDOUT EDQUOT ENOENT, or a number
//   CALL delay MS     CALL takes so many milliseconds longer; may be a fraction
//   CALL hang         CALL blocks until the rule is gone, then is made; a caller that is killed is let go
//   CALL stuck        the same, but not even SIGKILL ends the caller, as with a server that is stopped
//   CALL flip BIT     bit BIT (modulo the length) of what is read or written is turned, nobody is told
//   write lose        writes answer success and are dropped; the next fsync of that open file answers EIO
//   write short       the first half is written, then ENOSPC
//
// CALL is one of: read write fsync close open create getattr mkdir unlink rmdir rename truncate readdir statfs any.
// After the action may follow: after=N (spares the first N calls), count=N (hits so many), name=TEXT (only paths that contain TEXT),
// ost=N (only reads and writes of bytes on that node).
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum action { ACT_NONE, ACT_ERRNO, ACT_DELAY, ACT_HANG, ACT_FLIP, ACT_LOSE, ACT_SHORT, ACT_STUCK };
struct rule {
  char call[16], name[256];
  enum action action;
  long long argument, after, count, seen;
  int ost;  // -1: any
};
struct verdict {
  enum action action;
  long long argument;
};

static struct {
  char *backing, *control;
  int cached, remember, osts, deaf;
} options;
static int backing_fd = -1;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[64];
static int rule_count;
static double rate_bytes;  // per second; 0: no limit
static struct timespec next_free, control_time;
static ino_t control_inode;
static off_t control_size;

// What an open file is here. `lost` is set by a dropped write and told by the next fsync.
struct handle {
  int fd;
  volatile int lost;
};
static struct handle *handle_of(struct fuse_file_info *info) { return (struct handle *)(uintptr_t)info->fh; }

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }
static int answer(long result) { return result < 0 ? -errno : (int)result; }

// ---- the control file

static long long errno_named(const char *name) {
  static const struct {
    const char *name;
    int value;
  } known[] = {{"EIO", EIO},           {"ENOSPC", ENOSPC},       {"EROFS", EROFS},   {"EACCES", EACCES}, {"ESTALE", ESTALE},
               {"ENOTCONN", ENOTCONN}, {"ETIMEDOUT", ETIMEDOUT}, {"EDQUOT", EDQUOT}, {"ENOENT", ENOENT}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (!strcmp(name, known[i].name)) return known[i].value;
  return atoi(name) > 0 ? atoi(name) : EIO;
}

static void parse_rule(char *line) {
  char *rest, *call = strtok_r(line, " \t\n", &rest), *what = call ? strtok_r(NULL, " \t\n", &rest) : NULL;
  if (!what || call[0] == '#') return;
  if (!strcmp(call, "rate")) {
    rate_bytes = atof(what) * 1e6;
    return;
  }
  static const char *const actions[] = {"", "errno", "delay", "hang", "flip", "lose", "short", "stuck"};
  if (rule_count == sizeof rules / sizeof *rules) return;
  struct rule *rule = &rules[rule_count];
  memset(rule, 0, sizeof *rule);
  rule->count = LLONG_MAX, rule->ost = -1;
  snprintf(rule->call, sizeof rule->call, "%s", call);
  for (int i = ACT_ERRNO; i <= ACT_STUCK; ++i)
    if (!strcmp(what, actions[i])) rule->action = (enum action)i;
  for (char *word; (word = strtok_r(NULL, " \t\n", &rest)) && word[0] != '#';) {
    if (!strncmp(word, "after=", 6)) rule->after = atoll(word + 6);
    else if (!strncmp(word, "count=", 6)) rule->count = atoll(word + 6);
    else if (!strncmp(word, "ost=", 4)) rule->ost = atoi(word + 4);
    else if (!strncmp(word, "name=", 5)) snprintf(rule->name, sizeof rule->name, "%s", word + 5);
    else if (rule->action == ACT_DELAY) rule->argument = (long long)(atof(word) * 1000);  // in microseconds from here on
    else rule->argument = rule->action == ACT_ERRNO ? errno_named(word) : atoll(word);
  }
  if (rule->action) ++rule_count;
  else fprintf(stderr, "faultfs: %s: no such action: %s\n", options.control, what);
}

// The caller holds the mutex.
static void reload(void) {
  struct stat now = {0};
  if (!options.control) return;
  if (stat(options.control, &now) != 0) memset(&now, 0, sizeof now);
  if (now.st_ino == control_inode && now.st_size == control_size && now.st_mtim.tv_sec == control_time.tv_sec &&
      now.st_mtim.tv_nsec == control_time.tv_nsec)
    return;
  control_inode = now.st_ino, control_size = now.st_size, control_time = now.st_mtim;
  rule_count = 0, rate_bytes = 0;
  FILE *file = now.st_ino ? fopen(options.control, "re") : NULL;
  char line[512];
  while (file && fgets(line, sizeof line, file)) parse_rule(line);
  if (file) fclose(file);
}

static void nap(long long microseconds) {
  struct timespec span = {microseconds / 1000000, microseconds % 1000000 * 1000};
  while (nanosleep(&span, &span) != 0 && errno == EINTR) {
  }
}

// `nodes`: a bit for each storage node that the call touches.
static int fits(const struct rule *rule, const char *call, const char *path, uint64_t nodes) {
  if ((strcmp(rule->call, "any") && strcmp(rule->call, call)) || !strstr(path ? path : "", rule->name)) return 0;
  return rule->ost < 0 || nodes >> rule->ost & 1;
}

static struct rule *due_rule(const char *call, const char *path, uint64_t nodes, int counting) {
  for (int i = 0; i < rule_count; ++i) {
    struct rule *rule = &rules[i];
    if (!fits(rule, call, path, nodes)) continue;
    long long number = rule->seen + (counting ? 1 : 0);
    if (counting) ++rule->seen;
    if (number > rule->after && number - rule->after <= rule->count) return rule;
  }
  return NULL;
}

static int is_hang(enum action action) { return action == ACT_HANG || action == ACT_STUCK; }

// What to do with a call; waits for delays and hangs. An error of the verdict is the call's answer.
static struct verdict judge(const char *call, const char *path, uint64_t nodes) {
  struct verdict verdict = {ACT_NONE, 0};
  pthread_mutex_lock(&mutex);
  reload();
  struct rule *rule = due_rule(call, path, nodes, 1);
  if (rule) verdict = (struct verdict){rule->action, rule->argument};
  // A hang ends when the file says so, whatever rule was there before.
  while (is_hang(verdict.action) && rule) {
    pthread_mutex_unlock(&mutex);
    nap(10000);
    if (verdict.action == ACT_HANG && fuse_interrupted()) return (struct verdict){ACT_ERRNO, EINTR};
    pthread_mutex_lock(&mutex);
    reload();
    rule = NULL;
    for (int i = 0; i < rule_count && !rule; ++i)
      if (is_hang(rules[i].action) && fits(&rules[i], call, path, nodes)) rule = &rules[i];
  }
  pthread_mutex_unlock(&mutex);
  if (verdict.action == ACT_DELAY) nap(verdict.argument);
  return verdict;
}

// One token bucket for all that passes: a call ends when its bytes have had their time.
static void pass(size_t bytes) {
  struct timespec now;
  pthread_mutex_lock(&mutex);
  if (rate_bytes <= 0) {
    pthread_mutex_unlock(&mutex);
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (next_free.tv_sec < now.tv_sec || (next_free.tv_sec == now.tv_sec && next_free.tv_nsec < now.tv_nsec)) next_free = now;
  long long nanoseconds = next_free.tv_nsec + (long long)(bytes / rate_bytes * 1e9);
  next_free.tv_sec += nanoseconds / 1000000000, next_free.tv_nsec = nanoseconds % 1000000000;
  struct timespec end = next_free;
  pthread_mutex_unlock(&mutex);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
  }
}

#define JUDGE(call, path) JUDGE_BYTES(call, path, 0)
#define JUDGE_BYTES(call, path, nodes)               \
  struct verdict verdict = judge(call, path, nodes); \
  if (verdict.action == ACT_ERRNO) return -(int)verdict.argument

static void flip(char *bytes, size_t count, long long bit) {
  if (count) bytes[bit / 8 % count] ^= (char)(1 << bit % 8);
}

// ---- like a Lustre

struct stripes {
  ino_t inode;  // in the backing directory; 0: a free entry
  uint32_t unit;
  int count, nodes[64];
};
static struct stripes *table;
static size_t table_size;
static int next_node;

// All of these: the caller holds the mutex.
static struct stripes *stripes_of(ino_t inode) {
  for (size_t i = 0; i < table_size; ++i)
    if (table[i].inode == inode) return &table[i];
  return NULL;
}
static struct stripes *add_stripes(ino_t inode) {
  struct stripes *entry = stripes_of(0);
  if (!entry) {
    struct stripes *grown = realloc(table, (table_size + 64) * sizeof *table);
    if (!grown) abort();
    memset(grown + table_size, 0, 64 * sizeof *grown);
    table = grown, entry = table + table_size, table_size += 64;
  }
  memset(entry, 0, sizeof *entry);
  entry->inode = inode;
  return entry;
}
static int is_lost(int node) {
  for (int i = 0; i < rule_count; ++i)
    if (rules[i].ost == node) return 1;
  return 0;
}
static void choose(struct stripes *entry, uint32_t unit, int count, int start) {
  entry->unit = unit, entry->count = count;
  for (int tries = 0; start < 0 && tries < options.osts && is_lost(next_node % options.osts); ++tries) ++next_node;
  if (start < 0) start = next_node++ % options.osts;
  for (int i = 0; i < count; ++i) entry->nodes[i] = (start + i) % options.osts;
}

static void settle_stripes(int fd) {
  struct stat found;
  if (!options.osts || fstat(fd, &found) != 0) return;
  pthread_mutex_lock(&mutex);
  if (!stripes_of(found.st_ino)) choose(add_stripes(found.st_ino), 1 << 20, 1, -1);
  pthread_mutex_unlock(&mutex);
}
static void forget_stripes(const char *path) {
  struct stat found;
  if (!options.osts || fstatat(backing_fd, below(path), &found, AT_SYMLINK_NOFOLLOW) != 0 || found.st_nlink > 1) return;
  pthread_mutex_lock(&mutex);
  struct stripes *entry = stripes_of(found.st_ino);
  if (entry) entry->inode = 0;
  pthread_mutex_unlock(&mutex);
}
static uint64_t nodes_of(int fd, off_t offset, size_t count) {
  struct stat found;
  uint64_t nodes = 0;
  if (!options.osts || count == 0 || fstat(fd, &found) != 0) return 0;
  pthread_mutex_lock(&mutex);
  const struct stripes *entry = stripes_of(found.st_ino);
  for (off_t stripe = entry ? offset / entry->unit : 1; entry && stripe <= (off_t)(offset + count - 1) / entry->unit; ++stripe)
    nodes |= 1ull << entry->nodes[stripe % entry->count];
  pthread_mutex_unlock(&mutex);
  return nodes;
}

static uint32_t u32_at(const char *bytes, size_t at) {
  uint32_t value;
  return memcpy(&value, bytes + at, sizeof value), value;
}
static uint16_t u16_at(const char *bytes, size_t at) {
  uint16_t value;
  return memcpy(&value, bytes + at, sizeof value), value;
}

// struct lov_user_md: magic, pattern, 16 bytes, stripe size, u16 count, u16 start; of version 3 and with a list of nodes a pool's name follows.
static int fs_setxattr(const char *path, const char *name, const char *value, size_t size, int flags) {
  (void)flags;
  if (!options.osts) return -ENOSYS;
  if (strcmp(name, "lustre.lov")) return -EOPNOTSUPP;
  const uint32_t magic = size >= 32 ? u32_at(value, 0) : 0;
  if (magic != 0x0BD10BD0 && (magic != 0x0BD30BD0 || size < 48) && (magic != 0x0BD50BD0 || size < 48)) return -EINVAL;
  const uint32_t asked = u32_at(value, 24), unit = asked ? asked : 1 << 20;
  int count = u16_at(value, 28), start = u16_at(value, 30), listed = magic == 0x0BD50BD0;
  if (unit % 65536 || (listed && (count > options.osts || size < 48 + 24 * (size_t)count))) return -EINVAL;
  if (count > options.osts) count = options.osts;
  if (count == 0) count = 1;
  if (start == 0 || start == 0xffff) start = -1;
  if (start >= options.osts && !listed) return -EINVAL;
  for (int i = 0; listed && i < count; ++i)
    if (u32_at(value, 48 + 24 * (size_t)i + 20) >= (uint32_t)options.osts) return -EINVAL;
  struct stat found;
  if (fstatat(backing_fd, below(path), &found, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  pthread_mutex_lock(&mutex);
  if (!stripes_of(found.st_ino)) {
    struct stripes *entry = add_stripes(found.st_ino);
    if (options.deaf) choose(entry, 1 << 20, 1, -1);
    else choose(entry, unit, count, listed ? 0 : start);
    for (int i = 0; listed && !options.deaf && i < count; ++i) entry->nodes[i] = (int)u32_at(value, 48 + 24 * (size_t)i + 20);
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}
static int fs_getxattr(const char *path, const char *name, char *into, size_t size) {
  char value[32 + 24 * 64] = {0};
  struct stat found;
  if (!options.osts) return -ENOSYS;
  if (strcmp(name, "lustre.lov")) return -EOPNOTSUPP;
  if (fstatat(backing_fd, below(path), &found, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  pthread_mutex_lock(&mutex);
  const struct stripes *entry = stripes_of(found.st_ino);
  const int count = entry ? entry->count : 0;
  const uint32_t head[] = {0x0BD10BD0, 1, 0, 0, 0, 0, entry ? entry->unit : 0, (uint32_t)count};
  memcpy(value, head, sizeof head);
  for (int i = 0; i < count; ++i) memcpy(value + 32 + 24 * i + 20, &entry->nodes[i], 4);
  pthread_mutex_unlock(&mutex);
  const size_t length = 32 + 24 * (size_t)count;
  if (count == 0) return -ENODATA;
  if (size == 0) return (int)length;
  if (size < length) return -ERANGE;
  memcpy(into, value, length);
  return (int)length;
}

// ---- the calls

static int fs_getattr(const char *path, struct stat *into, struct fuse_file_info *info) {
  JUDGE("getattr", path);
  return answer(info ? fstat(handle_of(info)->fd, into) : fstatat(backing_fd, below(path), into, AT_SYMLINK_NOFOLLOW));
}
static int opened(int fd, struct fuse_file_info *info) {
  if (fd < 0) return -errno;
  struct handle *handle = calloc(1, sizeof *handle);
  handle->fd = fd;
  // libfuse makes mknod of a regular file a creation with just these flags (a real one has O_LARGEFILE besides): that opens nothing.
  const int is_mknod = info->flags == (O_CREAT | O_EXCL | O_WRONLY);
  if ((info->flags & O_ACCMODE) != O_RDONLY && !is_mknod) settle_stripes(fd);
  info->fh = (uintptr_t)handle;
  info->direct_io = !options.cached;
  return 0;
}
static int fs_open(const char *path, struct fuse_file_info *info) {
  JUDGE("open", path);
  return opened(openat(backing_fd, below(path), (info->flags & ~(O_APPEND | O_DIRECT)) | O_NOFOLLOW | O_CLOEXEC), info);
}
static int fs_create(const char *path, mode_t mode, struct fuse_file_info *info) {
  JUDGE("create", path);
  int flags = (info->flags & ~(O_APPEND | O_DIRECT)) | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  return opened(openat(backing_fd, below(path), flags, mode), info);
}
static int fs_release(const char *path, struct fuse_file_info *info) {
  (void)path;
  close(handle_of(info)->fd);
  free(handle_of(info));
  return 0;
}
static int fs_read(const char *path, char *into, size_t count, off_t offset, struct fuse_file_info *info) {
  JUDGE_BYTES("read", path, nodes_of(handle_of(info)->fd, offset, count));
  ssize_t got = pread(handle_of(info)->fd, into, count, offset);
  if (got < 0) return -errno;
  if (verdict.action == ACT_FLIP) flip(into, got, verdict.argument);
  pass(got);
  return (int)got;
}
static int fs_write(const char *path, const char *from, size_t count, off_t offset, struct fuse_file_info *info) {
  JUDGE_BYTES("write", path, nodes_of(handle_of(info)->fd, offset, count));
  pass(count);
  if (verdict.action == ACT_LOSE) return handle_of(info)->lost = 1, (int)count;
  if (verdict.action == ACT_SHORT) {
    ssize_t half = count > 1 ? pwrite(handle_of(info)->fd, from, count / 2, offset) : 0;
    return half > 0 ? (int)half : -ENOSPC;
  }
  if (verdict.action != ACT_FLIP) return answer(pwrite(handle_of(info)->fd, from, count, offset));
  char *changed = malloc(count);
  if (!changed) return -ENOMEM;
  memcpy(changed, from, count);
  flip(changed, count, verdict.argument);
  int result = answer(pwrite(handle_of(info)->fd, changed, count, offset));
  free(changed);
  return result;
}
static int fs_fsync(const char *path, int data_only, struct fuse_file_info *info) {
  JUDGE("fsync", path);
  if (handle_of(info)->lost) return handle_of(info)->lost = 0, -EIO;
  return answer(data_only ? fdatasync(handle_of(info)->fd) : fsync(handle_of(info)->fd));
}
static int fs_flush(const char *path, struct fuse_file_info *info) {
  (void)info;
  JUDGE("close", path);
  return 0;
}
static int fs_fsyncdir(const char *path, int data_only, struct fuse_file_info *info) {
  (void)data_only, (void)info;
  JUDGE("fsync", path);
  int fd = openat(backing_fd, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int result = fd < 0 ? -errno : answer(fsync(fd));
  if (fd >= 0) close(fd);
  return result;
}
static int fs_truncate(const char *path, off_t size, struct fuse_file_info *info) {
  JUDGE("truncate", path);
  if (info) return answer(ftruncate(handle_of(info)->fd, size));
  int fd = openat(backing_fd, below(path), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  int result = fd < 0 ? -errno : answer(ftruncate(fd, size));
  if (fd >= 0) close(fd);
  return result;
}
static int fs_mkdir(const char *path, mode_t mode) {
  JUDGE("mkdir", path);
  return answer(mkdirat(backing_fd, below(path), mode));
}
static int fs_link(const char *from, const char *to) {
  JUDGE("create", to);
  return answer(linkat(backing_fd, below(from), backing_fd, below(to), 0));
}
static int fs_unlink(const char *path) {
  JUDGE("unlink", path);
  forget_stripes(path);
  return answer(unlinkat(backing_fd, below(path), 0));
}
static int fs_rmdir(const char *path) {
  JUDGE("rmdir", path);
  return answer(unlinkat(backing_fd, below(path), AT_REMOVEDIR));
}
static int fs_rename(const char *from, const char *to, unsigned flags) {
  JUDGE("rename", from);
  if (!(flags & (RENAME_NOREPLACE | RENAME_EXCHANGE))) forget_stripes(to);
  return answer(renameat2(backing_fd, below(from), backing_fd, below(to), flags));
}
static int fs_symlink(const char *content, const char *path) {
  JUDGE("create", path);
  return answer(symlinkat(content, backing_fd, below(path)));
}
static int fs_readlink(const char *path, char *into, size_t count) {
  ssize_t got = readlinkat(backing_fd, below(path), into, count - 1);
  if (got < 0) return -errno;
  into[got] = 0;
  return 0;
}
static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
  (void)info;
  return answer(fchmodat(backing_fd, below(path), mode, 0));
}
static int fs_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info) {
  (void)info;
  return answer(fchownat(backing_fd, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}
static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
  (void)info;
  return answer(utimensat(backing_fd, below(path), times, AT_SYMLINK_NOFOLLOW));
}
static int fs_statfs(const char *path, struct statvfs *into) {
  JUDGE("statfs", path);
  return answer(fstatvfs(backing_fd, into));
}
static int fs_readdir(const char *path, void *into, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info, enum fuse_readdir_flags flags) {
  (void)offset, (void)info, (void)flags;
  JUDGE("readdir", path);
  int fd = openat(backing_fd, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  if (!directory) return -errno;
  for (struct dirent *entry; (entry = readdir(directory));) fill(into, entry->d_name, NULL, 0, 0);
  closedir(directory);
  return 0;
}
static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config) {
  (void)connection;
  config->use_ino = 1;  // identities are the backing directory's, and stay when mounted again
  config->entry_timeout = config->attr_timeout = config->negative_timeout = options.remember;
  config->nullpath_ok = 0;
  config->hard_remove = 1;  // an open file that is removed is gone by name at once, as on any file system
  return NULL;
}

static const struct fuse_operations operations = {.init = fs_init,
                                                  .getattr = fs_getattr,
                                                  .open = fs_open,
                                                  .create = fs_create,
                                                  .release = fs_release,
                                                  .read = fs_read,
                                                  .write = fs_write,
                                                  .flush = fs_flush,
                                                  .fsync = fs_fsync,
                                                  .fsyncdir = fs_fsyncdir,
                                                  .truncate = fs_truncate,
                                                  .mkdir = fs_mkdir,
                                                  .link = fs_link,
                                                  .setxattr = fs_setxattr,
                                                  .getxattr = fs_getxattr,
                                                  .unlink = fs_unlink,
                                                  .rmdir = fs_rmdir,
                                                  .rename = fs_rename,
                                                  .symlink = fs_symlink,
                                                  .readlink = fs_readlink,
                                                  .chmod = fs_chmod,
                                                  .chown = fs_chown,
                                                  .utimens = fs_utimens,
                                                  .statfs = fs_statfs,
                                                  .readdir = fs_readdir};

static int take_argument(void *data, const char *argument, int key, struct fuse_args *out) {
  (void)data, (void)out;
  if (key != FUSE_OPT_KEY_NONOPT || options.backing) return 1;
  options.backing = strdup(argument);
  return 0;
}

int main(int argc, char **argv) {
  struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
  static const struct fuse_opt known[] = {{"--control %s", offsetof(__typeof__(options), control), 0},
                                          {"--control=%s", offsetof(__typeof__(options), control), 0},
                                          {"--cached", offsetof(__typeof__(options), cached), 1},
                                          {"--remember=%d", offsetof(__typeof__(options), remember), 0},
                                          {"--osts=%d", offsetof(__typeof__(options), osts), 0},
                                          {"--deaf", offsetof(__typeof__(options), deaf), 1},
                                          FUSE_OPT_END};
  if (fuse_opt_parse(&args, &options, known, take_argument) != 0 || !options.backing || options.osts < 0 || options.osts > 64) {
    fprintf(stderr, "usage: faultfs BACKING MOUNTPOINT --control FILE [--cached] [--remember=SECONDS] [--osts=N [--deaf]] [-f] [FUSE options]\n");
    return 2;
  }
  backing_fd = open(options.backing, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (backing_fd < 0) return perror(options.backing), 1;
  char absolute[PATH_MAX];  // -f or not, fuse may change the working directory
  if (options.control && options.control[0] != '/' && getcwd(absolute, sizeof absolute - strlen(options.control) - 2))
    options.control = strdup(strcat(strcat(absolute, "/"), options.control));
  umask(0);  // the kernel has applied the caller's
  // Calls that hang each hold a thread; others must still get one.
  fuse_opt_add_arg(&args, "-omax_threads=128,fsname=faultfs,subtype=faultfs");
  return fuse_main(args.argc, args.argv, &operations, NULL);
}
