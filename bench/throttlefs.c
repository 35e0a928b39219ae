/* A FUSE pass-through to one directory with a fixed bandwidth: throttlefs BYTES_PER_SECOND DIRECTORY MOUNTPOINT
   Stays in the foreground; unmount it or send SIGTERM. Reads and writes share one token bucket, and nothing is cached in
   front of it (direct I/O), so that every byte pays. It gives targets equal, stable bandwidth, for ratios. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { burst_ns = 2000000 }; /* idle time that may be made up for: 2 ms */

static int root = -1;
static double ns_per_byte;
static pthread_mutex_t bucket = PTHREAD_MUTEX_INITIALIZER;
static int64_t free_at_ns; /* when all bytes that were let through so far have passed */

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits until `bytes` more have passed at the fixed rate. */
static void pay(size_t bytes) {
  pthread_mutex_lock(&bucket);
  int64_t earliest = now_ns() - burst_ns;
  if (free_at_ns < earliest) free_at_ns = earliest;
  free_at_ns += (int64_t)((double)bytes * ns_per_byte);
  struct timespec until = {free_at_ns / 1000000000, free_at_ns % 1000000000};
  pthread_mutex_unlock(&bucket);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
}

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }
static int result(int r) { return r < 0 ? -errno : 0; }

static void *on_init(struct fuse_conn_info *connection, struct fuse_config *config) {
  (void)connection;
  config->use_ino = 1;
  config->nullpath_ok = 1;
  config->direct_io = 1;
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
  if (n > 0) pay((size_t)n);
  return n < 0 ? -errno : (int)n;
}

static int on_write(const char *path, const char *from, size_t bytes, off_t offset, struct fuse_file_info *fi) {
  (void)path;
  pay(bytes);
  ssize_t n = pwrite((int)fi->fh, from, bytes, offset);
  return n < 0 ? -errno : (int)n;
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

int main(int argc, char **argv) {
  double rate = argc == 4 ? atof(argv[1]) : 0;
  if (rate <= 0) {
    fprintf(stderr, "usage: throttlefs BYTES_PER_SECOND DIRECTORY MOUNTPOINT\n");
    return 2;
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
