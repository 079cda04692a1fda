/** What can go wrong with a request: the server said no, or nobody knows. */

/** The server answered with an error. `code` is stable and what programs look at. */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail = "",
    readonly field: string | null = null,
    readonly retryAfter: number | null = null,
  ) {
    super(detail ? `${status} ${code}: ${detail}` : `${status} ${code}`);
  }

  /** Whether the same request may succeed later. */
  get isPassing(): boolean {
    return this.status >= 500 || this.status === 408 || this.status === 429;
  }
}

/** No readable answer: a timeout, no connection, or a broken one. The server may have acted or not. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}
