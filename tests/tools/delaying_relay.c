// A network with a delay, for kernels without netem: holds the other end of the tunnel device eth0 of each process's network
// namespace and hands every IPv4 packet on, DELAY microseconds after it came, to the device whose address ends in the packet's
// last byte (10.99.0.1 is the first). Ends when it is killed.
//
// usage: delaying_relay DELAY_US PID...
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_NODES = 64, PACKETS = 8192, LONGEST = 2048 };

// All wait equally long: the first that came is the first that goes.
static struct packet {
  int64_t due_ns;
  ssize_t bytes;
  unsigned char data[LONGEST];
} queue[PACKETS];
static unsigned long came, gone;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int tunnel_of(const char *pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  const int space = open(path, O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(path);
  close(space);
  const int tunnel = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
  strcpy(request.ifr_name, "eth0");
  if (tunnel < 0 || ioctl(tunnel, TUNSETIFF, &request) != 0) fail("/dev/net/tun");
  return tunnel;
}

static void take_all(int tunnel, int64_t delay_ns) {
  while (came - gone < PACKETS) {
    struct packet *packet = &queue[came % PACKETS];
    packet->bytes = read(tunnel, packet->data, LONGEST);
    if (packet->bytes <= 0) return;
    packet->due_ns = now_ns() + delay_ns;
    ++came;
  }
}

static void hand_on(const struct packet *packet, const struct pollfd *tunnels, int count) {
  const int is_ipv4 = packet->bytes >= 20 && packet->data[0] >> 4 == 4;
  const int node = packet->data[19] - 1;
  // A packet that finds no room is lost, as on any network.
  if (!is_ipv4 || node < 0 || node >= count) return;
  if (write(tunnels[node].fd, packet->data, (size_t)packet->bytes) < 0) return;
}

int main(int argc, char **argv) {
  struct pollfd tunnels[MOST_NODES];
  const int count = argc - 2;
  if (count < 1 || count > MOST_NODES) return fprintf(stderr, "usage: delaying_relay DELAY_US PID...\n"), 2;
  const int64_t delay_ns = atoll(argv[1]) * 1000;
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  for (int i = 0; i < count; ++i) tunnels[i] = (struct pollfd){.fd = tunnel_of(argv[i + 2]), .events = POLLIN};
  puts("up");
  fflush(stdout);
  while (1) {
    const int64_t wait_ns = gone == came ? 1000000000 : queue[gone % PACKETS].due_ns - now_ns();
    const struct timespec wait = {wait_ns > 0 ? wait_ns / 1000000000 : 0, wait_ns > 0 ? wait_ns % 1000000000 : 0};
    ppoll(tunnels, (nfds_t)count, &wait, NULL);
    for (int i = 0; i < count; ++i) take_all(tunnels[i].fd, delay_ns);
    for (; gone != came && queue[gone % PACKETS].due_ns <= now_ns(); ++gone) hand_on(&queue[gone % PACKETS], tunnels, count);
  }
}
