/** Monotonic time, and a sleep that can end early. */

/** Milliseconds since some fixed moment. A change of the wall clock does not move it. */
export function now(): number {
  return performance.now();
}

/** True when it slept to the end, false when `early` was aborted. */
export function sleep(ms: number, early: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isFull: boolean) => {
      clearTimeout(timer);
      early.removeEventListener("abort", wake);
      resolve(isFull);
    };
    const wake = () => end(false);
    const timer = setTimeout(() => end(true), ms);
    early.addEventListener("abort", wake);
    if (early.aborted) wake();
  });
}
