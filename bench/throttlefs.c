/* A FUSE pass-through to one directory with a fixed bandwidth: throttlefs BYTES_PER_SECOND DIRECTORY MOUNTPOINT [SERVER]
   Stays in the foreground; unmount it or send SIGTERM. Reads and writes share one token bucket, and nothing is cached in
   front of it (direct I/O), so that every byte pays. It gives targets equal, stable bandwidth, for ratios.
   Mounts that name the same file SERVER are clients of one server: they share its bucket, and the file counts what they have
   moved (struct server). What copy_file_range copies within a mount is free and not counted, as where servers copy by themselves. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { burst_ns = 2000000 }; /* idle time that may be made up for: 2 ms */

static int root = -1;
static double ns_per_byte;

struct server {
  _Atomic uint64_t read, written; /* bytes */
  _Atomic int64_t free_at_ns;     /* when all bytes that were let through so far have passed */
};
static struct server alone;
static struct server *server = &alone;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits until `bytes` more have passed at the fixed rate. */
static void pay(size_t bytes) {
  const int64_t earliest = now_ns() - burst_ns;
  int64_t before = server->free_at_ns, after;
  do after = (before < earliest ? earliest : before) + (int64_t)((double)bytes * ns_per_byte);
  while (!atomic_compare_exchange_weak(&server->free_at_ns, &before, after));
  struct timespec until = {after / 1000000000, after % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
}

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }
static int result(int r) { return r < 0 ? -errno : 0; }

static void *on_init(struct fuse_conn_info *connection, struct fuse_config *config) {
  (void)connection;
  config->use_ino = 1;
  config->nullpath_ok = 1;
  config->direct_io = 1;
  if (server != &alone) config->entry_timeout = config->attr_timeout = 0; /* other mounts may change what is there */
  return 0;
}

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *fi) {
  return result(fi ? fstat((int)fi->fh, st) : fstatat(root, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int on_open(const char *path, struct fuse_file_info *fi) {
  int fd = openat(root, below(path), fi->flags & ~(O_DIRECT | O_NOFOLLOW));
  if (fd < 0) return -errno;
  fi->fh = (uint64_t)fd;
  return 0;
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *fi) {
  int fd = openat(root, below(path), (fi->flags & ~O_DIRECT) | O_CREAT, mode);
  if (fd < 0) return -errno;
  fi->fh = (uint64_t)fd;
  return 0;
}

static int on_release(const char *path, struct fuse_file_info *fi) {
  (void)path;
  return result(close((int)fi->fh));
}

static int on_read(const char *path, char *into, size_t bytes, off_t offset, struct fuse_file_info *fi) {
  (void)path;
  ssize_t n = pread((int)fi->fh, into, bytes, offset);
  if (n > 0) {
    server->read += (uint64_t)n;
    pay((size_t)n);
  }
  return n < 0 ? -errno : (int)n;
}

static int on_write(const char *path, const char *from, size_t bytes, off_t offset, struct fuse_file_info *fi) {
  (void)path;
  pay(bytes);
  ssize_t n = pwrite((int)fi->fh, from, bytes, offset);
  if (n > 0) server->written += (uint64_t)n;
  return n < 0 ? -errno : (int)n;
}

static ssize_t on_copy(const char *from, struct fuse_file_info *source, off_t at, const char *to, struct fuse_file_info *target, off_t where,
                       size_t bytes, int flags) {
  (void)from, (void)to;
  ssize_t n = copy_file_range((int)source->fh, &at, (int)target->fh, &where, bytes, (unsigned)flags);
  return n < 0 ? -errno : n;
}

static int on_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi, enum fuse_readdir_flags flags) {
  (void)path, (void)offset, (void)flags;
  int fd = openat((int)fi->fh, ".", O_RDONLY | O_DIRECTORY);
  DIR *directory = fd < 0 ? 0 : fdopendir(fd);
  if (!directory) return -errno;
  for (struct dirent *e; (e = readdir(directory));) fill(buffer, e->d_name, 0, 0, 0);
  closedir(directory);
  return 0;
}

static int on_opendir(const char *path, struct fuse_file_info *fi) {
  int fd = openat(root, below(path), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return -errno;
  fi->fh = (uint64_t)fd;
  return 0;
}

static int on_fsync(const char *path, int data_only, struct fuse_file_info *fi) {
  (void)path;
  return result(data_only ? fdatasync((int)fi->fh) : fsync((int)fi->fh));
}

static int on_truncate(const char *path, off_t bytes, struct fuse_file_info *fi) {
  if (fi) return result(ftruncate((int)fi->fh, bytes));
  int fd = openat(root, below(path), O_WRONLY);
  if (fd < 0) return -errno;
  int r = result(ftruncate(fd, bytes));
  close(fd);
  return r;
}

static int on_statfs(const char *path, struct statvfs *st) {
  (void)path;
  return result(fstatvfs(root, st));
}

static int on_fallocate(const char *path, int mode, off_t offset, off_t bytes, struct fuse_file_info *fi) {
  (void)path;
  return result(fallocate((int)fi->fh, mode, offset, bytes));
}

static off_t on_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi) {
  (void)path;
  off_t at = lseek((int)fi->fh, offset, whence);
  return at < 0 ? -errno : at;
}

static int on_mkdir(const char *path, mode_t mode) { return result(mkdirat(root, below(path), mode)); }
static int on_rmdir(const char *path) { return result(unlinkat(root, below(path), AT_REMOVEDIR)); }
static int on_unlink(const char *path) { return result(unlinkat(root, below(path), 0)); }
static int on_symlink(const char *to, const char *path) { return result(symlinkat(to, root, below(path))); }
static int on_link(const char *from, const char *to) { return result(linkat(root, below(from), root, below(to), 0)); }

static int on_readlink(const char *path, char *into, size_t bytes) {
  ssize_t n = readlinkat(root, below(path), into, bytes - 1);
  if (n < 0) return -errno;
  into[n] = 0;
  return 0;
}

static int on_rename(const char *from, const char *to, unsigned flags) { return result(renameat2(root, below(from), root, below(to), flags)); }

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *fi) {
  return result(fi ? fchmod((int)fi->fh, mode) : fchmodat(root, below(path), mode, 0));
}

static int on_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi) {
  return result(fi ? futimens((int)fi->fh, times) : utimensat(root, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static const struct fuse_operations operations = {
    .init = on_init,
    .getattr = on_getattr,
    .open = on_open,
    .create = on_create,
    .release = on_release,
    .read = on_read,
    .write = on_write,
    .copy_file_range = on_copy,
    .opendir = on_opendir,
    .readdir = on_readdir,
    .releasedir = on_release,
    .fsync = on_fsync,
    .fsyncdir = on_fsync,
    .truncate = on_truncate,
    .statfs = on_statfs,
    .fallocate = on_fallocate,
    .lseek = on_lseek,
    .mkdir = on_mkdir,
    .rmdir = on_rmdir,
    .unlink = on_unlink,
    .symlink = on_symlink,
    .link = on_link,
    .readlink = on_readlink,
    .rename = on_rename,
    .chmod = on_chmod,
    .utimens = on_utimens,
};

static int find_server(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0666);
  if (fd < 0 || ftruncate(fd, sizeof *server) != 0) return -1;
  void *shared = mmap(0, sizeof *server, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (shared == MAP_FAILED) return -1;
  server = shared;
  return 0;
}

int main(int argc, char **argv) {
  double rate = argc == 4 || argc == 5 ? atof(argv[1]) : 0;
  if (rate <= 0) {
    fprintf(stderr, "usage: throttlefs BYTES_PER_SECOND DIRECTORY MOUNTPOINT [SERVER]\n");
    return 2;
  }
  if (argc == 5 && find_server(argv[4]) != 0) {
    fprintf(stderr, "throttlefs: %s: %s\n", argv[4], strerror(errno));
    return 1;
  }
  ns_per_byte = 1e9 / rate;
  root = open(argv[2], O_RDONLY | O_DIRECTORY);
  if (root < 0) {
    fprintf(stderr, "throttlefs: %s: %s\n", argv[2], strerror(errno));
    return 1;
  }
  umask(0);
  char *arguments[] = {argv[0], "-f", "-o", "fsname=throttlefs,max_threads=8", argv[3], 0};
  return fuse_main(5, arguments, &operations, 0);
}
