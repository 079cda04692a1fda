/* A wall clock that is wrong: preloaded into a process, it moves CLOCK_REALTIME by as many seconds as the file named by
 * TENURE_SKEW_FILE says, now and whenever that changes. The monotonic clock is left alone, as it is on a machine whose
 * wall clock is set. Built by `cc` when a row needs it (skew.rs). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef int (*clock_fn)(clockid_t, struct timespec *);

static int real(clockid_t clock, struct timespec *at) {
  static clock_fn next;
  if (!next) next = (clock_fn)dlsym(RTLD_NEXT, "clock_gettime");
  return next(clock, at);
}

/* The file is read at most every two milliseconds: servers ask for the time at every statement. Two threads that race
 * here read it twice. */
static long skew(void) {
  static volatile long seconds, read_at = -1;
  struct timespec now;
  real(CLOCK_MONOTONIC_COARSE, &now);
  long ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (read_at >= 0 && ms - read_at < 2) return seconds;
  read_at = ms;
  const char *path = getenv("TENURE_SKEW_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return seconds;
  char text[32];
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length > 0) {
    text[length] = 0;
    seconds = atol(text);
  }
  return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int failed = real(clock, at);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += skew();
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (!failed) {
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
  }
  return failed;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
